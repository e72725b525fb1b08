//! One walker at a few times of the path.

use crate::Result;
use crate::device::{Progress, StopOnly};
use crate::observe::LogWeights;
use crate::results::{Frame, Snapshots};
use crate::sampler::{Grid, Lineage, Resampling, Span, Walkers};
use crate::target::Target;

/// Into so many equal parts the path is divided; at their ends, or at the times of the grid that are nearest, states are kept.
const PARTS: usize = 16;

/// States of the sample that are kept.
const SAMPLE: usize = 12;

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
    for wanted in (0..=PARTS).map(|part| part as f64 / PARTS as f64) {
        let k = (at..=grid.intervals())
            .min_by(|&a, &b| {
                (grid.time(a) - wanted).abs().total_cmp(&(grid.time(b) - wanted).abs())
            })
            .unwrap_or(at);
        if k == at && !frames.is_empty() {
            continue;
        }
        if k > at {
            let span = Span { grid, intervals: at + 1..k + 1 };
            walker.advance(span, &Resampling::NEVER, &mut lineage, &StopOnly(progress))?;
            at = k;
        }
        let states = walker.states()?;
        frames.push(Frame { t: grid.time(k), x: digits(&states[..target.sites()]) });
    }
    let (shape, q) = (lattice.shape().to_vec(), target.q());
    Ok(Some(Snapshots { shape, q, frames, sample: Vec::new() }))
}

/// Some of the walkers at the end, one for every equal part of the weight: a sample of the target without weights.
pub fn sample(states: &[u8], sites: usize, weights: &LogWeights) -> Vec<String> {
    let mut chosen = Vec::new();
    let mut below = 0.0;
    for (x, weight) in states.chunks_exact(sites).zip(weights.normalised()) {
        below += weight;
        while chosen.len() < SAMPLE && (chosen.len() as f64 + 0.5) < below * SAMPLE as f64 {
            chosen.push(digits(x));
        }
    }
    chosen
}

/// A state, one digit a site.
fn digits(x: &[u8]) -> String {
    x.iter().map(|&value| char::from(b'0' + value)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn walkers_are_drawn_as_often_as_their_weight_says() {
        let logs = [0.75f64, 0.0, 0.25].map(f64::ln).to_vec();
        let chosen = sample(&[1, 1, 0, 0, 0, 1], 2, &LogWeights::new(logs).unwrap());
        let count = |x: &str| chosen.iter().filter(|y| *y == x).count();
        assert_eq!([count("11"), count("00"), count("01")], [9, 0, 3]);
    }
}
