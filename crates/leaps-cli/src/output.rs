//! Data on standard output, messages on standard error.

use std::io::{self, Write};

use anyhow::{Context, Result};
use serde::Serialize;

/// One line to the person at the terminal; a closed standard error is no reason to fail.
pub fn talk(text: &str) {
    // What users gave may hold control characters; terminals must not see them.
    let clean: String = text
        .chars()
        .flat_map(|c| {
            let hide = c.is_control() && c != '\n';
            hide.then(|| c.escape_default()).into_iter().flatten().chain((!hide).then_some(c))
        })
        .collect();
    let _ = writeln!(io::stderr().lock(), "leaps: {clean}");
}

/// Write data to standard output and make sure that it is gone.
pub fn data(text: &str) -> Result<()> {
    let mut out = io::stdout().lock();
    let end = if text.ends_with('\n') { "" } else { "\n" };
    let written = out.write_all(text.as_bytes()).and_then(|()| out.write_all(end.as_bytes()));
    written.and_then(|()| out.flush()).context("standard output")
}

/// Write one JSON object to standard output; numbers that are not finite become null.
pub fn json(value: &impl Serialize) -> Result<()> {
    data(&serde_json::to_string_pretty(value)?)
}

/// Names and values for people, aligned in two columns.
pub fn pairs(rows: &[(&str, String)]) -> String {
    let width = rows.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
    let line = |(name, value): &(&str, String)| format!("{name:width$}  {value}\n");
    rows.iter().map(line).collect()
}
