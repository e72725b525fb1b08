//! Progress of a search in restarts, which time may end.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use crate::device::Progress;

/// Parts of a restart that whoever watches hears of.
const PARTS: u64 = 1000;

/// Passes on what restarts say about themselves, and ends them in time.
pub struct Watch<'a> {
    outer: &'a dyn Progress,
    until: Option<Instant>,
    total: AtomicU64,
    done: AtomicU64,
    /// Parts of this restart that were passed on.
    said: AtomicU64,
}

impl<'a> Watch<'a> {
    /// Watch so many restarts, any number if none is given.
    pub fn new(outer: &'a dyn Progress, until: Option<Instant>, restarts: Option<usize>) -> Self {
        outer.total(restarts.map_or(0, |restarts| PARTS.saturating_mul(restarts as u64)));
        Watch {
            outer,
            until,
            total: AtomicU64::new(0),
            done: AtomicU64::new(0),
            said: AtomicU64::new(0),
        }
    }

    /// A restart begins.
    pub fn begin(&self) {
        for count in [&self.total, &self.done, &self.said] {
            count.store(0, Ordering::Relaxed);
        }
    }

    /// It has ended.
    pub fn end(&self) {
        self.say(PARTS);
    }

    /// Why the search was stopped.
    pub fn reason(&self) -> &'static str {
        if self.outer.stopped() { "interrupted" } else { "time-limit" }
    }

    fn say(&self, parts: u64) {
        let before = self.said.fetch_max(parts, Ordering::Relaxed);
        if parts > before {
            self.outer.advance(parts - before);
        }
    }
}

impl Progress for Watch<'_> {
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
