//! The program `leaps`, and small things that the package asks the library for.

use std::ffi::OsString;
use std::path::PathBuf;

use leaps::Error;
use leaps::store::write_instance;
use leaps::target::{Format, Instance};
use pyo3::prelude::*;

use crate::errors::OrRaise;

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

/// Write the file of an instance in another format; returns what was written, in words.
#[pyfunction]
pub fn convert(
    py: Python<'_>,
    source: PathBuf,
    destination: PathBuf,
    from_format: Option<&str>,
    to_format: Option<&str>,
) -> PyResult<String> {
    let format = |word: &str| word.parse::<Format>();
    let from = from_format.map(format).transpose().or_raise()?;
    let to = to_format.map(format).transpose().or_raise()?;
    py.detach(|| {
        let to = to.or_else(|| Format::of_name(&destination)).ok_or_else(|| {
            let names = Format::ALL.map(Format::name).join(", ");
            let condition = format!("one of {names}, since the name of the file does not say it");
            Error::invalid("to_format", "None", condition, "give it")
        })?;
        let (instance, from) = Instance::read(&source, from)?;
        write_instance(&instance, &destination, to)?;
        Ok(format!("{} of {}, {}", to.title(), from.title(), instance.describe()))
    })
    .or_raise()
}

/// A number with its standard error in the last digits: 209.829(4).
#[pyfunction]
pub fn with_error(mean: f64, error: f64) -> String {
    leaps_report::text::with_error(mean, error)
}
