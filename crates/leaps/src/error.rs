//! Errors with fields, not only strings, so that a caller can act on them.

use std::path::PathBuf;

/// The result of everything in this library that can fail.
pub type Result<T> = std::result::Result<T, Error>;

/// What can go wrong.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A parameter violates a condition.
    #[error("{key} = {value}: must be {condition}; {advice}")]
    Invalid {
        /// The parameter's name as the user knows it.
        key: String,
        /// The offending value.
        value: String,
        /// The condition it violates, completing "must be ...".
        condition: String,
        /// The way out.
        advice: String,
    },
    /// A key of a configuration does not exist.
    #[error("{key}: unknown key; {advice}")]
    UnknownKey {
        /// The key.
        key: String,
        /// The key that was probably meant, or where to look.
        advice: String,
    },
    /// A method does not apply to a target.
    #[error("{method} does not apply: {reason}")]
    NotApplicable {
        /// The method that was asked for.
        method: String,
        /// Why it does not apply, and what would.
        reason: String,
    },
    /// A number stopped being finite.
    #[error("{what} is {value} (seed {seed}, walker {walker}, step {step}); the state was {state}")]
    NonFinite {
        /// The quantity, for example "energy term 0".
        what: String,
        /// Its value.
        value: f64,
        /// Seed of the run.
        seed: u64,
        /// Walker or chain in which it was seen.
        walker: usize,
        /// Step at which it was seen.
        step: u64,
        /// The state, shortened.
        state: String,
    },
    /// All weights of an ensemble are zero, or one of them is not a number.
    #[error("log-weights: {0}")]
    Weights(String),
    /// A file cannot be parsed.
    #[error("{path}:{line}:{column}: {reason}", path = path.display())]
    Parse {
        /// The file.
        path: PathBuf,
        /// Line, from 1.
        line: usize,
        /// Column, from 1.
        column: usize,
        /// What is wrong and what was expected.
        reason: String,
    },
    /// The file of an experiment does not say what can be done.
    #[error("{path}: {reason}", path = path.display())]
    Experiment {
        /// The file.
        path: PathBuf,
        /// The entry, the key, and what is wrong with it.
        reason: String,
    },
    /// A file cannot be read or written.
    #[error("{path}: {source}", path = path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The operating system's word.
        source: std::io::Error,
    },
    /// A file was read, but its contents are damaged or not what they should be.
    #[error("{path}: {what}: {reason}", path = path.display())]
    Corrupt {
        /// The file.
        path: PathBuf,
        /// The part of it: an entry, a tensor, a setting.
        what: String,
        /// What is wrong with it, and what was expected.
        reason: String,
    },
    /// A trained network has other tensors than the one it is to start.
    #[error(
        "{path}: does not fit: tensor {tensor} {}; use the same kind and sizes of network{}",
        misfit(found.as_deref(), needed.as_deref()),
        ", and one whose parameters do not belong to sites (hollow, lec) on another lattice",
        path = path.display()
    )]
    Misfit {
        /// The file of the trained network.
        path: PathBuf,
        /// The tensor.
        tensor: String,
        /// Its shape there; `None` if it is missing.
        found: Option<Vec<usize>>,
        /// The shape that the network to start needs; `None` if it has no such tensor.
        needed: Option<Vec<usize>>,
    },
    /// A GPU, its driver or its compiler does not do what was asked.
    #[error("{what}: {reason}; {advice}")]
    Device {
        /// The part that failed.
        what: String,
        /// What it says.
        reason: String,
        /// The way out.
        advice: String,
    },
    /// The caller asked for a stop (Ctrl-C).
    #[error("interrupted")]
    Interrupted,
}

/// What is wrong with the shape of a tensor.
fn misfit(found: Option<&[usize]>, needed: Option<&[usize]>) -> String {
    match (found, needed) {
        (Some(found), Some(needed)) => {
            format!("has shape {found:?}, the network to start needs {needed:?}")
        }
        (Some(found), None) => {
            format!("of shape {found:?} has no place in the network to start")
        }
        (None, Some(needed)) => {
            format!("is missing, the network to start needs it with shape {needed:?}")
        }
        (None, None) => "is missing".to_owned(),
    }
}

impl Error {
    /// An [`Error::Invalid`] from anything that prints.
    pub fn invalid(
        key: impl Into<String>,
        value: impl std::fmt::Display,
        condition: impl Into<String>,
        advice: impl Into<String>,
    ) -> Self {
        Error::Invalid {
            key: key.into(),
            value: value.to_string(),
            condition: condition.into(),
            advice: advice.into(),
        }
    }

    /// An [`Error::NotApplicable`].
    pub fn not_applicable(method: impl Into<String>, reason: impl Into<String>) -> Self {
        Error::NotApplicable { method: method.into(), reason: reason.into() }
    }

    /// An [`Error::Device`].
    pub fn device(
        what: impl Into<String>,
        reason: impl Into<String>,
        advice: impl Into<String>,
    ) -> Self {
        Error::Device { what: what.into(), reason: reason.into(), advice: advice.into() }
    }

    /// The same, with the place of a wrong key before it: a file, or an entry of a list.
    pub fn within(self, place: &dyn std::fmt::Display) -> Self {
        match self {
            Error::Invalid { key, value, condition, advice } => {
                Error::Invalid { key: format!("{place}: {key}"), value, condition, advice }
            }
            Error::UnknownKey { key, advice } => {
                Error::UnknownKey { key: format!("{place}: {key}"), advice }
            }
            other => other,
        }
    }

    /// Whether the run could go on with other settings: a bad parameter is the user's to mend, a
    /// number that is not finite is not.
    pub fn is_recoverable(&self) -> bool {
        !matches!(self, Error::NonFinite { .. } | Error::Weights(_))
    }
}

/// Refuse a parameter that is not finite.
pub fn finite(key: &str, value: f64) -> Result<f64> {
    if value.is_finite() {
        Ok(value)
    } else {
        Err(Error::invalid(key, value, "finite", "give an ordinary number"))
    }
}
