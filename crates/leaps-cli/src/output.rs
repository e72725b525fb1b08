//! Print data on standard output and talk on standard error.

use std::io::{self, Write};

use anyhow::{Context, Result};
use leaps::observe::Estimate;
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

/// A table for people: columns aligned, the first to the left and the others to the right.
#[derive(Debug, Default)]
pub struct Table {
    rows: Vec<Vec<String>>,
}

impl Table {
    /// Add a row.
    pub fn row(&mut self, cells: impl IntoIterator<Item = impl Into<String>>) {
        self.rows.push(cells.into_iter().map(Into::into).collect());
    }

    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.rows.len()
    }

    /// The table as lines without trailing blanks.
    pub fn text(&self) -> String {
        let columns = self.rows.iter().map(Vec::len).max().unwrap_or(0);
        let width = |column: usize| {
            let cells = self.rows.iter().filter_map(|row| row.get(column));
            cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
        };
        let widths: Vec<usize> = (0..columns).map(width).collect();
        let mut text = String::new();
        for row in &self.rows {
            let mut line = String::new();
            for (column, (cell, width)) in row.iter().zip(&widths).enumerate() {
                match column {
                    0 => line += &format!("{cell:<width$}"),
                    _ => line += &format!("  {cell:>width$}"),
                }
            }
            text += line.trim_end();
            text.push('\n');
        }
        text
    }
}

/// A value with its standard error in the last digits: 209.829(4).
pub fn with_error(mean: f64, error: f64) -> String {
    Estimate { mean, error, exact: None }.to_string()
}

/// A number that has no error of its own, with one digit more than the first of the error of the number it stands beside.
pub fn beside(value: f64, error: f64) -> String {
    if !value.is_finite() || !(1e-12..f64::INFINITY).contains(&error) {
        return fixed(value, 4);
    }
    fixed(value, (1 - error.log10().floor() as i32).max(0) as usize)
}

/// A number with so many decimals, 0 without a sign.
pub fn fixed(value: f64, decimals: usize) -> String {
    let text = format!("{value:.decimals$}");
    let zero = text.trim_start_matches('-').chars().all(|c| c == '0' || c == '.');
    if zero { text.trim_start_matches('-').to_owned() } else { text }
}

/// How many standard errors an estimate is from the truth.
pub fn sigmas(mean: f64, error: f64, exact: f64) -> String {
    let z = (mean - exact) / error;
    if z.is_finite() && error.is_finite() { format!("{z:+.1}") } else { "-".to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_beside_an_estimate_are_as_fine_as_its_error_allows() {
        for (value, error, text) in [
            (174.31234, 0.019, "174.312"),
            (209.82512, 0.004, "209.8251"),
            (-3.25678, 0.2, "-3.26"),
            (12.34, 3.0, "12.3"),
            (1234.5, 56.0, "1234"),
            (1.5, f64::NAN, "1.5000"),
            (1.5, 0.0, "1.5000"),
        ] {
            assert_eq!(beside(value, error), text, "{value} beside +- {error}");
        }
    }

    #[test]
    fn columns_line_up() {
        let mut table = Table::default();
        table.row(["log_z", "209.8"]);
        table.row(["energy_per_site", "-1.4557"]);
        assert_eq!(table.text(), "log_z              209.8\nenergy_per_site  -1.4557\n");
    }

    #[test]
    fn deviations_count_errors() {
        assert_eq!(sigmas(1.1, 0.05, 1.0), "+2.0");
        assert_eq!(sigmas(1.0, 0.0, 1.0), "-");
    }
}
