//! The program `leaps`: samplers for discrete distributions on the command line.

mod app;
mod cli;
mod config;
mod error;
mod models;
mod output;
mod progress;
mod reproduce;
mod samples;
mod signals;
mod tables;
mod threads;
mod timings;
mod training;
mod verbs;

fn main() -> std::process::ExitCode {
    app::run(std::env::args_os())
}
