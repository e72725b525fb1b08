//! The program `leaps`, and small things that the package asks the library for.

use std::ffi::OsString;

use pyo3::prelude::*;

/// Run the program on the words of a command line; returns its exit code.
#[pyfunction]
pub fn program(py: Python<'_>, words: Vec<OsString>) -> u8 {
    py.detach(|| leaps_cli::run(words))
}

/// The keyword arguments that a job takes, by the name of the program's verb.
#[pyfunction]
pub fn keys_of(job: &str) -> Vec<&'static str> {
    let keys = leaps::spec::keys_of_job(job).into_iter().map(|(_, key)| key);
    keys.chain(["seed"]).collect()
}

/// A number with its standard error in the last digits: 209.829(4).
#[pyfunction]
pub fn with_error(mean: f64, error: f64) -> String {
    leaps_report::text::with_error(mean, error)
}
