//! Say on what machine and on which day numbers were made, without names or places.

use std::time::{SystemTime, UNIX_EPOCH};

/// The CPU: how many cores, and of what model.
pub fn cpu_name() -> String {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let s = if cores == 1 { "" } else { "s" };
    format!("{cores} core{s}, {}", leaps::device::cpu_name())
}

/// Today, in Greenwich.
pub fn today() -> String {
    let seconds = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
    date(seconds / 86_400)
}

/// The date of a day after 1970-01-01 (Hinnant's days and civil dates).
fn date(day: u64) -> String {
    let z = day + 719_468;
    let (era, of_era) = (z / 146_097, z % 146_097);
    let year = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let month = (5 * of_year + 2) / 153;
    let (day, month) =
        (of_year - (153 * month + 2) / 5 + 1, if month < 10 { month + 3 } else { month - 9 });
    let year = year + era * 400 + u64::from(month <= 2);
    format!("{year:04}-{month:02}-{day:02}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_have_dates() {
        for (day, text) in [
            (0, "1970-01-01"),
            (11_016, "2000-02-29"),
            (11_017, "2000-03-01"),
            (20_772, "2026-11-15"),
            (47_541, "2100-03-01"),
        ] {
            assert_eq!(date(day), text);
        }
        assert!(cpu_name().contains("core"));
    }
}
