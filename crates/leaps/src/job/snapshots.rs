//! One walker at a few times of the path.

use crate::Result;
use crate::device::{Progress, StopOnly};
use crate::results::{Frame, Snapshots};
use crate::sampler::{Grid, Population};
use crate::target::Target;

/// The times that are kept, or those of the grid that are nearest.
const TIMES: [f64; 5] = [0.0, 0.25, 0.5, 0.75, 1.0];

/// Larger lattices make no picture.
const MOST_SITES: usize = 64 * 64;

/// Whether a target's states can be drawn: on a lattice of two dimensions, with a digit for every value.
pub fn can_be_drawn(target: &dyn Target) -> bool {
    let flat = target.lattice().is_some_and(|lattice| lattice.shape().len() == 2);
    flat && target.sites() <= MOST_SITES && target.q() <= 10
}

/// Carry a population of one walker along the grid.
pub fn snapshots(
    target: &dyn Target,
    grid: &Grid,
    walker: &mut dyn Population,
    progress: &dyn Progress,
) -> Result<Option<Snapshots>> {
    let Some(lattice) = target.lattice().filter(|_| can_be_drawn(target)) else { return Ok(None) };
    let mut frames = Vec::new();
    let (mut at, mut log_weights) = (0, vec![0.0; walker.walkers()]);
    for wanted in TIMES {
        let k = (at..=grid.intervals())
            .min_by(|&a, &b| {
                (grid.time(a) - wanted).abs().total_cmp(&(grid.time(b) - wanted).abs())
            })
            .unwrap_or(at);
        if k > at {
            walker.advance(grid, at + 1..k + 1, &mut log_weights, &StopOnly(progress))?;
            at = k;
        }
        let states = walker.states()?;
        let digit = |&value: &u8| char::from(b'0' + value);
        let x = states[..target.sites()].iter().map(digit).collect();
        frames.push(Frame { t: grid.time(k), x });
    }
    Ok(Some(Snapshots { shape: lattice.shape().to_vec(), q: target.q(), frames }))
}
