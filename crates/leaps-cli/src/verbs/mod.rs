//! Do what each verb says, one file per verb.

pub mod check;
pub mod completions;
pub mod exact;
pub mod init;
pub mod man;
