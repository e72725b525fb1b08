//! The machine and the day on which numbers were made, without names or places.

use jiff::Timestamp;

/// The CPU: how many cores, and of what model.
pub fn cpu_name() -> String {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let s = if cores == 1 { "" } else { "s" };
    format!("{cores} core{s}, {}", leaps::device::cpu_name())
}

/// Today, in Greenwich.
pub fn today() -> String {
    date(Timestamp::now())
}

fn date(time: Timestamp) -> String {
    time.strftime("%F").to_string()
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
            let noon = Timestamp::from_second(86_400 * day + 43_200).unwrap();
            assert_eq!(date(noon), text);
        }
        assert!(cpu_name().contains("core"));
    }
}
