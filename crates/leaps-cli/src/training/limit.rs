//! Limits of time: `--time-limit 1h30m`, and the end of a SLURM job.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use jiff::fmt::friendly::SpanParser;

/// Time to write a checkpoint before SLURM ends a job.
const MARGIN: Duration = Duration::from_secs(60);

/// A duration such as `90s`, `30m`, `1h30m`, `1.5d`, plain seconds, `hours:minutes:seconds`, or SLURM's
/// `minutes:seconds` and `days-hours:minutes:seconds`.
pub fn duration(text: &str) -> Result<Duration, String> {
    read(text).ok_or_else(|| "a time such as 90s, 30m, 1h30m or 2d".to_owned())
}

fn read(text: &str) -> Option<Duration> {
    // jiff leaves days to calendars; here they have 24 hours.
    let (days, rest) = match text.split_once(['d', '-']) {
        Some((days, "")) if text.ends_with('d') => (days, "0"),
        Some(parts) => parts,
        None => ("0", text),
    };
    let rest = match (text.contains('-'), rest.matches(':').count()) {
        (true, 0) => format!("{rest}h"),
        (true, 1) => format!("{rest}:00"),
        (false, 1) => format!("0:{rest}"),
        (false, 0) if rest.ends_with(|c: char| c.is_ascii_digit()) => format!("{rest}s"),
        _ => rest.to_owned(),
    };
    let days = Duration::try_from_secs_f64(86_400.0 * days.parse::<f64>().ok()?).ok()?;
    let time = days.checked_add(SpanParser::new().parse_unsigned_duration(rest).ok()?)?;
    (!time.is_zero() && time.as_secs() < 1_000_000_000).then_some(time)
}

/// When to stop: after `limit`, or a minute before the SLURM job this runs in ends.
pub fn deadline(limit: Option<Duration>) -> Option<Instant> {
    let asked = limit.and_then(|limit| Instant::now().checked_add(limit));
    let job =
        std::env::var("SLURM_JOB_END_TIME").ok().and_then(|end| job_left(&end, SystemTime::now()));
    let job = job.and_then(|left| Instant::now().checked_add(left));
    asked.into_iter().chain(job).min()
}

/// Time to train in a job that ends at `end`, in seconds since 1970.
fn job_left(end: &str, now: SystemTime) -> Option<Duration> {
    let end = UNIX_EPOCH.checked_add(Duration::from_secs(end.trim().parse().ok()?))?;
    Some(end.duration_since(now).unwrap_or_default().saturating_sub(MARGIN))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_as_people_write_them() {
        for (text, seconds) in [
            ("90s", 90.0),
            ("30m", 1800.0),
            ("1h", 3600.0),
            ("1h30m", 5400.0),
            ("1.5h", 5400.0),
            ("2d", 172800.0),
            ("1.5d", 129600.0),
            ("1d12h", 129600.0),
            ("45", 45.0),
            ("1h30", 3630.0),
            ("0.25s", 0.25),
            ("1:30", 90.0),
            ("90:00", 5400.0),
            ("01:00:05", 3605.0),
            ("2-00:00:00", 172800.0),
            ("1-12:30", 131400.0),
            ("1-12", 129600.0),
        ] {
            assert_eq!(duration(text), Ok(Duration::from_secs_f64(seconds)), "{text}");
        }
        let refused = "h d 0 0d -5s -1d 2- 1x 1h-3m nan nand 1e300h 1e300d 1e9 1000000000 1:2:3:4 1:x :: 1-2:3:4:5";
        for text in refused.split(' ').chain([""]) {
            assert!(duration(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_job_leaves_time_for_a_checkpoint() {
        let now = UNIX_EPOCH + Duration::from_secs(1_000_000);
        assert_eq!(job_left("1000600", now), Some(Duration::from_secs(540)));
        assert_eq!(job_left("1000010", now), Some(Duration::ZERO));
        assert_eq!(job_left("900000", now), Some(Duration::ZERO));
        assert_eq!(job_left("soon", now), None);
    }
}
