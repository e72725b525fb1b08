//! Times of a grid chosen by a pilot run, so that every interval costs the same.
//!
//! A pilot run goes along the path and places each next time where the conditional effective sample size of
//! the step falls to a target value. The grid is then fixed, and the run that uses it is exact: a run
//! that chose its times from its own walkers would have a biased log Z.

use super::grid::drops;
use super::{Grid, Interval, Resampler, Walkers};
use crate::device::{Progress, Purpose, Stream};
use crate::observe::LogWeights;
use crate::path::Path;
use crate::{Error, Result};

/// More intervals than this mean that the target value cannot be met.
const MAX_INTERVALS: usize = 1_000_000;

/// Times from 0 to 1 whose steps have the conditional effective sample size `level`, in (0, 1), judged by
/// the pilot `walkers`.
pub fn choose_times(
    walkers: &mut dyn Walkers,
    path: &Path,
    level: f64,
    seed: u64,
    progress: &dyn Progress,
) -> Result<Vec<f64>> {
    if !(level > 0.0 && level < 1.0) {
        return Err(Error::invalid(
            "path.conditional_ess",
            level,
            "between 0 and 1, both excluded",
            "0.95 is usual; closer to 1 means more intervals",
        ));
    }
    let mut times = vec![0.0];
    let mut log_weights = vec![0.0; walkers.walkers()];
    let mut from = path.lambda(0.0);
    let mut to = from.clone();
    while times[times.len() - 1] < 1.0 {
        progress.check()?;
        let t = times[times.len() - 1];
        let weights = LogWeights::new(log_weights.clone())?;
        let energies = walkers.energies()?;
        let mut quality = |t: f64| {
            path.lambda_into(t, &mut to);
            weights.conditional_ess(|i| {
                let energies = &energies[i * from.len()..(i + 1) * from.len()];
                drops(&from, &to).zip(energies).map(|(drop, energy)| drop * energy).sum()
            })
        };
        let next = if quality(1.0) >= level {
            1.0
        } else {
            let (mut low, mut high) = (t, 1.0);
            for _ in 0..50 {
                let middle = 0.5 * (low + high);
                if quality(middle) >= level {
                    low = middle
                } else {
                    high = middle
                }
                if high - low < 1e-3 * (high - t) {
                    break;
                }
            }
            low.max(t + 1e-12)
        };
        times.push(next);
        if times.len() > MAX_INTERVALS {
            return Err(Error::invalid(
                "path.conditional_ess",
                level,
                format!("reachable with {MAX_INTERVALS} intervals"),
                "lower it",
            ));
        }
        from = path.lambda(next);
        // Walkers know grids, not times: give them the one interval they are to cross.
        let step = Grid::step(path, t, next);
        let interval = Interval { grid: &step, k: 1 };
        walkers.weigh(interval, &mut log_weights)?;
        let weights = LogWeights::new(log_weights.clone())?;
        if weights.ess() < 0.5 && next < 1.0 {
            let mut stream = Stream::new(seed, Purpose::Resample, 0, times.len() as u64);
            walkers.resample(&Resampler::Systematic.ancestors(&weights, &mut stream))?;
            log_weights.fill(0.0);
        }
        walkers.mutate(interval, &mut log_weights, progress)?;
    }
    Ok(times)
}
