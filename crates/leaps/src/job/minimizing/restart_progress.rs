//! Progress of a search in restarts, which time may end.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use crate::device::Progress;

/// Parts of a restart that whoever watches hears of.
const PARTS: u64 = 1000;

/// What the progress of a search is measured in.
#[derive(Clone, Copy)]
enum Measure {
    /// Parts of restarts.
    Parts,
    /// Milliseconds of the time that there is.
    Time,
    /// Restarts of which nobody knows how many there will be.
    Restarts,
}

/// Passes on what restarts say about themselves, and ends them in time.
pub struct RestartProgress<'a> {
    outer: &'a dyn Progress,
    start: Instant,
    until: Option<Instant>,
    measure: Measure,
    total: AtomicU64,
    done: AtomicU64,
    /// What was passed on: parts of this restart, or milliseconds of all.
    said: AtomicU64,
}

impl<'a> RestartProgress<'a> {
    /// The progress of so many restarts, any number if none is given, for so long.
    pub fn new(outer: &'a dyn Progress, limit: Option<Duration>, restarts: Option<usize>) -> Self {
        let start = Instant::now();
        let until = limit.and_then(|limit| start.checked_add(limit));
        let (measure, total) = match (restarts, limit) {
            (Some(restarts), _) => (Measure::Parts, PARTS.saturating_mul(restarts as u64)),
            (None, Some(limit)) => (Measure::Time, limit.as_millis() as u64),
            (None, None) => (Measure::Restarts, 0),
        };
        outer.total(total);
        RestartProgress {
            outer,
            start,
            until,
            measure,
            total: AtomicU64::new(0),
            done: AtomicU64::new(0),
            said: AtomicU64::new(0),
        }
    }

    /// A restart begins.
    pub fn begin(&self) {
        self.total.store(0, Ordering::Relaxed);
        self.done.store(0, Ordering::Relaxed);
        if let Measure::Parts = self.measure {
            self.said.store(0, Ordering::Relaxed);
        }
    }

    /// It has ended.
    pub fn end(&self) {
        match self.measure {
            Measure::Restarts => self.outer.advance(1),
            _ => self.say(PARTS),
        }
    }

    /// Why the search was stopped.
    pub fn reason(&self) -> &'static str {
        if self.outer.stopped() { "interrupted" } else { "time-limit" }
    }

    fn say(&self, parts: u64) {
        let parts = match self.measure {
            Measure::Parts => parts,
            Measure::Time => self.start.elapsed().as_millis() as u64,
            Measure::Restarts => return,
        };
        let before = self.said.fetch_max(parts, Ordering::Relaxed);
        if parts > before {
            self.outer.advance(parts - before);
        }
    }
}

impl Progress for RestartProgress<'_> {
    fn total(&self, units: u64) {
        self.total.store(units, Ordering::Relaxed);
    }

    fn advance(&self, done: u64) {
        let done = self.done.fetch_add(done, Ordering::Relaxed) + done;
        let total = self.total.load(Ordering::Relaxed).max(1);
        self.say((done as f64 / total as f64 * PARTS as f64).min(PARTS as f64) as u64);
    }

    fn stopped(&self) -> bool {
        self.outer.stopped() || self.until.is_some_and(|until| Instant::now() >= until)
    }
}
