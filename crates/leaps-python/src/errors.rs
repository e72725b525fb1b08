//! Errors of the library as Python exceptions.

use leaps::Error;
use leaps::spec::SECTIONS;
use pyo3::exceptions::{
    PyFloatingPointError, PyKeyboardInterrupt, PyOSError, PyRuntimeError, PyTypeError, PyValueError,
};
use pyo3::prelude::*;

/// A key as a keyword argument: without its section.
fn keyword(key: &str) -> &str {
    match key.split_once('.') {
        Some((section, name)) if SECTIONS.contains(&section) => name,
        _ => key,
    }
}

/// The exception for an error of the library.
pub fn exception(error: Error) -> PyErr {
    match error {
        Error::Invalid { key, value, condition, advice } => {
            let key = keyword(&key);
            PyValueError::new_err(format!("{key} = {value}: must be {condition}; {advice}"))
        }
        Error::UnknownKey { key, advice } => {
            let key = keyword(&key);
            let advice = match advice.strip_prefix("did you mean ") {
                Some(near) => format!("did you mean {}", keyword(near)),
                None => advice,
            };
            PyTypeError::new_err(format!("{key}: no such keyword argument; {advice}"))
        }
        Error::NonFinite { .. } | Error::Weights(_) => {
            PyFloatingPointError::new_err(error.to_string())
        }
        Error::Io { path, source } => match source.raw_os_error() {
            // With a number the system's own subclass is raised: FileNotFoundError and its kin.
            Some(number) => {
                let path = path.display().to_string();
                let words = source.to_string();
                let words = words.split(" (os error").next().unwrap_or_default().to_owned();
                PyOSError::new_err((number, words, path))
            }
            None => PyOSError::new_err(format!("{}: {source}", path.display())),
        },
        Error::Device { .. } => PyRuntimeError::new_err(error.to_string()),
        Error::Interrupted => PyKeyboardInterrupt::new_err(()),
        other => PyValueError::new_err(other.to_string()),
    }
}

/// Results of the library as results of Python.
pub trait OrRaise<T> {
    /// The value, or the exception for the error.
    fn or_raise(self) -> PyResult<T>;
}

impl<T> OrRaise<T> for leaps::Result<T> {
    fn or_raise(self) -> PyResult<T> {
        self.map_err(exception)
    }
}
