//! Identities of targets: what tells two of them apart in files.

use super::TargetSpec;

/// What a target is.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum TargetIdentity {
    /// One of the library's, as it was described.
    BuiltIn(Box<TargetSpec>),
    /// An energy that only its program has.
    Custom {
        /// What it is called.
        name: String,
        /// Which of its versions, if it has several.
        version: Option<String>,
    },
}
