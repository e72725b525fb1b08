//! The program `leaps`: samplers for discrete distributions on the command line.
//!
//! A library with one function, so that packages of other languages can bring the program along.

mod app;
mod cli;
mod config;
mod csv;
mod error;
mod grid;
mod models;
mod output;
mod progress;
mod samples;
mod signals;
mod standing;
mod tables;
mod threads;
mod training;
mod verbs;

use std::process::ExitCode;

/// Run the program on the words of this process's command line.
pub fn main() -> ExitCode {
    app::run(std::env::args_os())
}
