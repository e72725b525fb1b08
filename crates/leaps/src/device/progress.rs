//! Progress of long work, and how it is asked to stop.

use super::Placement;
use crate::{Error, Result};

/// Somebody who watches long work. Methods are called from any thread.
pub trait Progress: Sync {
    /// `done` more units of the work announced by [`total`](Progress::total) are finished.
    fn advance(&self, done: u64) {
        let _ = done;
    }

    /// The work has `units` units in all; called once before it starts.
    fn total(&self, units: u64) {
        let _ = units;
    }

    /// The work is done there; `auto` fell back to the CPU for this reason.
    fn placed(&self, placement: &Placement, reason: Option<&Error>) {
        let _ = (placement, reason);
    }

    /// Whether the work should stop as soon as it can.
    fn stopped(&self) -> bool {
        false
    }

    /// [`Error::Interrupted`] if the work should stop.
    fn check(&self) -> Result<()> {
        if self.stopped() { Err(Error::Interrupted) } else { Ok(()) }
    }
}

/// Hears whether to stop and says nothing of progress: for a part of work that the whole already counts.
pub struct StopOnly<'a>(pub &'a dyn Progress);

impl Progress for StopOnly<'_> {
    fn stopped(&self) -> bool {
        self.0.stopped()
    }
}

/// Nobody watches.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoProgress;

impl Progress for NoProgress {}
