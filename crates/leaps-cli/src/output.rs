//! Print data on standard output and talk on standard error.

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

/// A value with its standard error in the last digits, as physicists write it: 209.829(4).
///
/// The error has one digit, or two if the first is 1. Next to nothing is written with powers of ten: 1.2e-9(1.3e-9).
pub fn with_error(mean: f64, error: f64) -> String {
    if !mean.is_finite() || !error.is_finite() || error < 0.0 {
        return format!("{}(?)", (mean * 1e6).round() / 1e6);
    }
    if error < 1e-300 {
        return format!("{}(0)", (mean * 1e10).round() / 1e10);
    }
    let mut digits = -(error.log10().floor() as i32);
    let leading = error * 10f64.powi(digits);
    if leading < 1.95 {
        digits += 1;
    }
    let scaled = (error * 10f64.powi(digits)).round();
    if error < 1e-6 && mean != 0.0 && mean.abs() < 1e-4 {
        let places = digits + mean.abs().log10().floor() as i32;
        let own = digits + error.log10().floor() as i32;
        return format!(
            "{mean:.places$e}({error:.own$e})",
            places = places.max(0) as usize,
            own = own.max(0) as usize
        );
    }
    if digits > 0 {
        return format!("{mean:.places$}({scaled})", places = digits.min(300) as usize);
    }
    let unit = 10f64.powi(-digits);
    format!("{}({})", (mean / unit).round() * unit, scaled * unit)
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
    fn errors_are_in_the_last_digits() {
        for (mean, error, text) in [
            (209.8293, 0.0041, "209.829(4)"),
            (209.8293, 0.0014, "209.8293(14)"),
            (-1.45574, 0.00031, "-1.4557(3)"),
            (-1.45574, 0.00096, "-1.4557(10)"),
            (0.5, 0.2, "0.5(2)"),
            (12.34, 3.0, "12(3)"),
            (1234.0, 56.0, "1230(60)"),
            (1234.0, 12.0, "1234(12)"),
            (1.0, 0.0, "1(0)"),
            (0.00012, 0.0000008, "0.0001200(8)"),
            (0.00002, 0.000008, "0.000020(8)"),
            (1.23e-9, 1.3e-9, "1.2e-9(1.3e-9)"),
            (-2.34567e-5, 3.1e-8, "-2.346e-5(3e-8)"),
            (4e-12, 9.7e-9, "4e-12(1e-8)"),
            (f64::NAN, 0.1, "NaN(?)"),
            (1.0, f64::INFINITY, "1(?)"),
        ] {
            assert_eq!(with_error(mean, error), text, "{mean} +- {error}");
        }
    }

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
