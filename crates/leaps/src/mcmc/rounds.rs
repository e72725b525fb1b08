//! Rounds in which all chains make the same steps, so that a stop leaves them equally long.

use std::ops::Range;
use std::time::{Duration, Instant};

use rayon::prelude::*;

use super::ChainSettings;
use crate::Result;
use crate::device::Progress;

/// A round should take about this long: short enough to stop soon, long enough for threads that are done early not to wait.
const ROUND: Duration = Duration::from_millis(500);

/// Carry all chains through `settings`; `advance` takes one through a range of steps, and `adapted` has all of them when step sizes have
/// adapted for the last time. Returns how many steps after burn-in every chain has made.
///
/// These are fewer than asked for if `progress` stopped the chains when each of them had a state to keep: then what they have is what
/// shorter chains would have.
///
/// # Errors
/// [`Error::Interrupted`](crate::Error::Interrupted) if `progress` stopped the chains before that.
pub(super) fn in_rounds<C: Send>(
    settings: &ChainSettings,
    chains: &mut [C],
    progress: &dyn Progress,
    advance: impl Fn(&mut C, Range<u64>) -> Result<()> + Sync,
    adapted: impl Fn(&mut [C]),
) -> Result<u64> {
    let total = settings.burn_in + settings.steps;
    let adapting = settings.adapting();
    let measured = settings.burn_in + settings.thin;
    let (mut done, mut length) = (0, 1);
    while done < total && !(done >= measured && progress.stopped()) {
        let part = if done < adapting { adapting } else { total };
        let round = done..part.min(done + length);
        let start = Instant::now();
        chains.par_iter_mut().try_for_each(|chain| {
            if done < measured {
                progress.check()?;
            }
            advance(chain, round.clone())
        })?;
        done = round.end;
        if done == adapting {
            adapted(chains);
        }
        length = adjusted(length, start.elapsed());
    }
    Ok(done - settings.burn_in)
}

/// The length of the next round, given how long one of `length` steps took.
pub(super) fn adjusted(length: u64, took: Duration) -> u64 {
    match took {
        short if short < ROUND / 2 => length.saturating_mul(2),
        long if long > ROUND => length.div_ceil(2),
        _ => length,
    }
}
