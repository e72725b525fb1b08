//! The memory that this process may still take, by every limit that the system sets.

use std::fmt;

#[cfg(not(windows))]
#[path = "unix.rs"]
mod system;
#[cfg(windows)]
#[path = "windows.rs"]
mod system;

pub use system::free_memory;

/// A number of bytes, shown in the unit that fits it: `17.3 MB`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bytes(pub f64);

impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let units = [(1e12, "TB"), (1e9, "GB"), (1e6, "MB"), (1e3, "kB")];
        let (unit, name) =
            units.into_iter().find(|(unit, _)| self.0 >= *unit).unwrap_or((1.0, "B"));
        let value = self.0 / unit;
        let digits = match value {
            _ if unit == 1.0 => 0,
            ..10.0 => 2,
            ..100.0 => 1,
            _ => 0,
        };
        write!(f, "{value:.digits$} {name}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_have_units_that_fit() {
        for (bytes, text) in [
            (0.0, "0 B"),
            (999.0, "999 B"),
            (1234.0, "1.23 kB"),
            (17.25e6, "17.2 MB"),
            (4.2e11, "420 GB"),
            (5e15, "5000 TB"),
        ] {
            assert_eq!(Bytes(bytes).to_string(), text);
        }
    }
}
