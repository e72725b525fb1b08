//! Read networks trained by the authors' code.

mod mapping;

#[cfg(test)]
pub(crate) use mapping::{Mapped, StateDict, Stored, map};

/// What is wrong with a part of a file.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Damage {
    what: String,
    reason: String,
}

/// A [`Damage`].
fn damage<T>(what: impl Into<String>, reason: impl Into<String>) -> Result<T, Damage> {
    Err(Damage { what: what.into(), reason: reason.into() })
}
