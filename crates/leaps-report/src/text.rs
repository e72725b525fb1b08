//! Numbers and tables as people read them.

use std::fmt;

use leaps::observe::Estimate;

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

/// A rate or a count with three figures.
pub struct Short(pub f64);

impl fmt::Display for Short {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = match self.0 {
            x if !x.is_finite() => "-".to_owned(),
            x if x.abs() >= 1e6 => format!("{x:.2e}"),
            x if x.abs() >= 100.0 || x == 0.0 => format!("{x:.0}"),
            x => format!("{x:.3}"),
        };
        f.pad(&text)
    }
}

/// A time in seconds as people say it.
pub fn span(seconds: f64) -> String {
    match seconds {
        s if !s.is_finite() => "-".to_owned(),
        ..120.0 => format!("{seconds:.0} s"),
        ..7200.0 => format!("{:.0} min", seconds / 60.0),
        ..172_800.0 => format!("{:.1} h", seconds / 3600.0),
        _ => format!("{:.1} d", seconds / 86_400.0),
    }
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
