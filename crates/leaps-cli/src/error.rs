//! Errors as one line of advice and an exit code.

use std::fmt;
use std::io;

use crate::cli;

/// Failures of the program itself; those of the library are [`leaps::Error`].
#[derive(Debug)]
pub enum Failure {
    /// The command line or the configuration is wrong.
    Usage(String),
    /// The work is done, but what was asked of its result does not hold (`--require-ess`).
    Requirement(String),
    /// A time limit or a signal ended the work; what was done is kept.
    Stopped(String),
    /// Ctrl-C ended the work; what was done is kept.
    Interrupted(String),
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Failure::Usage(text)
            | Failure::Requirement(text)
            | Failure::Stopped(text)
            | Failure::Interrupted(text) => f.write_str(text),
        }
    }
}

impl std::error::Error for Failure {}

/// A [`Failure::Usage`].
pub fn usage(text: impl Into<String>) -> anyhow::Error {
    Failure::Usage(text.into()).into()
}

/// Whether the reader of our output went away, which is no error: `leaps ... | head`.
pub fn is_closed_pipe(error: &anyhow::Error) -> bool {
    error.chain().any(|cause| match cause.downcast_ref::<io::Error>() {
        Some(io) => io.kind() == io::ErrorKind::BrokenPipe,
        None => false,
    })
}

/// The exit code an error ends the program with.
pub fn exit_code(error: &anyhow::Error) -> u8 {
    if is_closed_pipe(error) {
        return 0;
    }
    for cause in error.chain() {
        if let Some(failure) = cause.downcast_ref::<Failure>() {
            return match failure {
                Failure::Usage(_) => 2,
                Failure::Requirement(_) => 1,
                Failure::Stopped(_) => 75,
                Failure::Interrupted(_) => 130,
            };
        }
        if let Some(error) = cause.downcast_ref::<leaps::Error>() {
            use leaps::Error::*;
            return match error {
                Invalid { .. }
                | UnknownKey { .. }
                | NotApplicable { .. }
                | Misfit { .. }
                | Parse { .. }
                | Experiment { .. } => 2,
                NonFinite { .. } | Weights(_) => 3,
                Io { .. } | Corrupt { .. } | Device { .. } => 4,
                Interrupted => 130,
                _ => 4,
            };
        }
    }
    4 // what is left is the operating system's
}

/// Whether the work ended because somebody wanted it to, which is no error either.
pub fn is_stop(error: &anyhow::Error) -> bool {
    [75, 130].contains(&exit_code(error))
}

/// The error and its causes in one line.
pub fn one_line(error: &anyhow::Error) -> String {
    let mut text = String::new();
    for cause in error.chain().map(ToString::to_string) {
        if text.is_empty() {
            text = cause;
        } else if !text.contains(&cause) {
            text += &format!(": {cause}"); // most errors already say their cause
        }
    }
    if let Some(advice) = error.chain().find_map(|cause| advice(cause.downcast_ref()?)) {
        text += &format!("; {advice}");
    }
    text.split(['\n', '\r']).map(str::trim).filter(|l| !l.is_empty()).collect::<Vec<_>>().join(" ")
}

/// The way out of a numerical failure, which the library cannot know: it has no flags.
fn advice(error: &leaps::Error) -> Option<&'static str> {
    match error {
        leaps::Error::NonFinite { what, .. }
            if what.contains("loss") || what.contains("gradient") =>
        {
            Some("lower --lr, or allow --rollbacks")
        }
        leaps::Error::NonFinite { what, .. }
            if what.contains("rates") || what.contains("network") =>
        {
            Some("train with a lower --lr, or sample an earlier checkpoint")
        }
        leaps::Error::NonFinite { .. } => {
            Some("lower --beta, and look for couplings or fields that are too large")
        }
        leaps::Error::Weights(_) => Some("lower --beta, or use more --intervals"),
        _ => None,
    }
}

/// Rewrite an error of the command line parser as one line that names the flag and the way out.
pub fn from_clap(error: &clap::Error) -> String {
    use clap::error::{ContextKind, ContextValue, ErrorKind};
    let text = |kind| match error.get(kind) {
        Some(ContextValue::String(text)) => Some(text.clone()),
        Some(ContextValue::Strings(texts)) => Some(texts.join(", ")),
        _ => None,
    };
    let flag = text(ContextKind::InvalidArg).unwrap_or_default();
    let flag = flag.split([' ', '=']).next().unwrap_or_default();
    let flag = flag.trim_matches(['[', ']', '<', '>']).to_owned();
    if error.kind() == ErrorKind::UnknownArgument
        && let Some(owners) = cli::verbs_with(&flag)
    {
        return format!("{flag}: belongs to {owners}; see --help");
    }
    let value = text(ContextKind::InvalidValue);
    let condition = match error.kind() {
        ErrorKind::InvalidValue => text(ContextKind::ValidValue).map(|all| format!("one of {all}")),
        ErrorKind::ValueValidation => std::error::Error::source(error).map(|e| e.to_string()),
        _ => None,
    };
    match (value, condition) {
        (Some(value), _) if value.is_empty() => format!("{flag}: needs a value; see --help"),
        (Some(value), Some(condition)) => format!("{flag} = {value}: must be {condition}"),
        _ => paragraphs(&error.render().to_string()),
    }
}

/// The message and the tips of a rendered parser error, without the usage.
fn paragraphs(rendered: &str) -> String {
    let mut kept: Vec<String> = Vec::new();
    for paragraph in rendered.split("\n\n") {
        let line = paragraph.lines().map(str::trim).collect::<Vec<_>>().join(" ");
        let line = line.trim();
        if let Some(message) = line.strip_prefix("error: ") {
            kept.push(message.to_owned());
        } else if line.starts_with("tip: ") {
            kept.extend(line.split("tip: ").map(|tip| tip.trim().to_owned()));
        }
    }
    kept.retain(|part| !part.is_empty());
    kept.push("see --help".to_owned());
    kept.join("; ")
}
