//! Read limits of time: `--time-limit 1h30m`, and the end of a SLURM job.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Time to write a checkpoint before SLURM ends a job.
const MARGIN: Duration = Duration::from_secs(60);

/// A duration such as `90s`, `30m`, `1h`, `1h30m`, `2d`, plain seconds, or `hours:minutes:seconds`.
pub fn duration(text: &str) -> Result<Duration, String> {
    let seconds = match text.contains(':') {
        true => clock(text),
        false => units(text),
    };
    let usable = seconds.filter(|s| s.is_finite() && *s > 0.0 && *s < 1e9);
    usable
        .map(Duration::from_secs_f64)
        .ok_or_else(|| "a time such as 90s, 30m, 1h30m or 2d".to_owned())
}

fn clock(text: &str) -> Option<f64> {
    let parts: Option<Vec<f64>> =
        text.split(':').map(|part| part.parse::<u32>().ok().map(f64::from)).collect();
    match parts?[..] {
        [minutes, seconds] => Some(60.0 * minutes + seconds),
        [hours, minutes, seconds] => Some(3600.0 * hours + 60.0 * minutes + seconds),
        _ => None,
    }
}

fn units(text: &str) -> Option<f64> {
    let (mut sum, mut rest) = (0.0, text);
    while !rest.is_empty() {
        let end = rest.find(|c: char| c.is_ascii_alphabetic()).unwrap_or(rest.len());
        let value: f64 = rest[..end].parse().ok().filter(|value| *value >= 0.0)?;
        let mut letters = rest[end..].chars();
        sum += value
            * match letters.next() {
                None | Some('s') => 1.0,
                Some('m') => 60.0,
                Some('h') => 3600.0,
                Some('d') => 86400.0,
                Some(_) => return None,
            };
        rest = letters.as_str();
    }
    (!text.is_empty()).then_some(sum)
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
            ("45", 45.0),
            ("1:30", 90.0),
            ("01:00:05", 3605.0),
        ] {
            assert_eq!(duration(text), Ok(Duration::from_secs_f64(seconds)), "{text}");
        }
        for text in ["", "h", "0", "-5s", "1x", "1h-3m", "nan", "1e300h", "1:2:3:4", "1:x", "::"] {
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
