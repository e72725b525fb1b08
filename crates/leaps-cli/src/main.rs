//! The program `leaps`: samplers for discrete distributions on the command line.

mod app;
mod cli;
mod config;
mod error;
mod models;
mod output;
mod progress;
mod results;
mod samplers;
mod tables;
mod verbs;

fn main() -> std::process::ExitCode {
    app::run(std::env::args_os())
}
