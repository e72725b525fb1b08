//! One walker at a few times of the path.

use crate::Result;
use crate::device::{Progress, StopOnly};
use crate::results::{Frame, Snapshots};
use crate::sampler::{Grid, Lineage, Resampling, Span, Walkers};
use crate::target::Target;

/// The times that are kept, or those of the grid that are nearest.
const TIMES: [f64; 5] = [0.0, 0.25, 0.5, 0.75, 1.0];

/// Larger lattices make no picture.
const MOST_SITES: usize = 64 * 64;

/// Whether a target's states can be drawn: on a lattice of two dimensions, with a digit for every value. Where many walkers take the time of one, a
/// walker for the picture would take that of all.
pub fn can_be_drawn(target: &dyn Target) -> bool {
    if target.prefers_batches() {
        return false;
    }
    let flat = target.lattice().is_some_and(|lattice| lattice.shape().len() == 2);
    flat && target.sites() <= MOST_SITES && target.q() <= 10
}

/// Lead one walker along the grid.
pub fn snapshots(
    target: &dyn Target,
    grid: &Grid,
    walker: &mut dyn Walkers,
    progress: &dyn Progress,
) -> Result<Option<Snapshots>> {
    let Some(lattice) = target.lattice().filter(|_| can_be_drawn(target)) else { return Ok(None) };
    let mut frames = Vec::new();
    let (mut at, mut lineage) = (0, Lineage::new(walker.walkers(), 0.0, 0));
    for wanted in TIMES {
        let k = (at..=grid.intervals())
            .min_by(|&a, &b| {
                (grid.time(a) - wanted).abs().total_cmp(&(grid.time(b) - wanted).abs())
            })
            .unwrap_or(at);
        if k > at {
            let span = Span { grid, intervals: at + 1..k + 1 };
            walker.advance(span, &Resampling::NEVER, &mut lineage, &StopOnly(progress))?;
            at = k;
        }
        let states = walker.states()?;
        let digit = |&value: &u8| char::from(b'0' + value);
        let x = states[..target.sites()].iter().map(digit).collect();
        frames.push(Frame { t: grid.time(k), x });
    }
    Ok(Some(Snapshots { shape: lattice.shape().to_vec(), q: target.q(), frames }))
}
