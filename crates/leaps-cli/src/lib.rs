//! The program `leaps`: samplers for discrete distributions on the command line.
//!
//! A library with few functions, so that packages of other languages can bring the program along.

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

use std::ffi::OsString;
use std::io::Write;
use std::process::ExitCode;

/// Run the program on the words of this process's command line.
pub fn main() -> ExitCode {
    ExitCode::from(run(std::env::args_os()))
}

/// Run the program on the words of a command line, the first of which is its own name; returns the exit code.
pub fn run(words: impl IntoIterator<Item = OsString>) -> u8 {
    let code = app::run(words);
    // Within another program nobody else does it.
    let _ = std::io::stdout().flush();
    code
}
