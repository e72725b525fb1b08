//! Schemes that follow the jump process of a network, and the grids they go along.
//!
//! | scheme | chain | log-weight |
//! |---|---|---|
//! | euler (the paper, alg:samp) | every site flips independently during a step of length h | `h K_t(x)` before the step; biased at O(h) |
//! | trapezoid | the same | mean of K before and after the step; samples still biased. One more pass where weights are looked at |
//! | events | time frozen at the midpoint of each interval, jumps drawn one by one | exact at any number of intervals, for any network |

use std::ops::Range;

use serde::{Deserialize, Serialize};

use super::Grid;
use crate::path::Path;
use crate::{Error, Result};

/// How the jump process is followed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Scheme {
    /// Steps of fixed length, weights from the left end.
    Euler,
    /// The same steps, weights from both ends.
    Trapezoid,
    /// Jump by jump at frozen times: exact.
    #[default]
    Events,
}

/// How walkers follow a network.
#[derive(Clone, Debug, PartialEq)]
pub struct WalkPlan {
    /// The scheme.
    pub scheme: Scheme,
    /// The grid that it goes along.
    pub grid: Grid,
    /// How long it stays in each interval; 0 for the start in front of the first.
    pub durations: Vec<f64>,
    /// The time at which the network is called in each interval; where the list is empty, that of energies.
    pub calls: Vec<f64>,
    /// Heat-bath sweeps at the time of every interval.
    pub sweeps: u64,
}

impl WalkPlan {
    /// A scheme between `cuts`, the ends of intervals from 0 to 1, without sweeps.
    ///
    /// Euler and trapezoid go from cut to cut; events visits the midpoints, and weighs once more at the end.
    pub fn new(path: &Path, scheme: Scheme, cuts: &[f64]) -> Result<Self> {
        Self::with_stops(path, scheme, cuts, &[])
    }

    /// The same with stops, times above 0 at which walkers are measured ([`Ensemble::stops`](crate::sampler::Ensemble::stops)): intervals end there, and
    /// events weighs there as it does at the end.
    pub fn with_stops(path: &Path, scheme: Scheme, cuts: &[f64], stops: &[f64]) -> Result<Self> {
        Self::with_substeps(path, scheme, (cuts, 1), stops)
    }

    /// The same with so many substeps of every interval: the network is called at its midpoint for all of them, energies at the midpoint of each. Weights
    /// are exact, since they are for any fluxes.
    ///
    /// # Errors
    /// More than one substep for schemes other than events.
    pub fn with_substeps(
        path: &Path,
        scheme: Scheme,
        (cuts, substeps): (&[f64], usize),
        stops: &[f64],
    ) -> Result<Self> {
        Grid::new(path, cuts.to_vec())?;
        let cuts = Grid::cut_at(cuts.to_vec(), stops);
        let checked = Grid::new(path, cuts.clone())?;
        let mut durations = vec![0.0];
        if scheme != Scheme::Events {
            if substeps > 1 {
                let advice = "leave it out, or use the scheme events";
                return Err(Error::invalid(
                    "sample.substeps",
                    substeps,
                    "1 with this scheme",
                    advice,
                ));
            }
            durations.extend(cuts.windows(2).map(|pair| pair[1] - pair[0]));
            let grid = checked.with_stops(stops);
            return Ok(WalkPlan { scheme, grid, durations, calls: Vec::new(), sweeps: 0 });
        }
        let (mut times, mut calls) = (vec![0.0], vec![0.0]);
        for pair in cuts.windows(2) {
            let middle = 0.5 * (pair[0] + pair[1]);
            let at = |step: usize| match step {
                step if step == substeps => pair[1],
                step => pair[0] + (pair[1] - pair[0]) * step as f64 / substeps as f64,
            };
            for step in 0..substeps {
                times.push(0.5 * (at(step) + at(step + 1)));
                durations.push(at(step + 1) - at(step));
                calls.push(middle);
            }
            if pair[1] == 1.0 || stops.contains(&pair[1]) {
                times.push(pair[1]);
                durations.push(0.0);
                calls.push(middle);
            }
        }
        if substeps == 1 {
            calls.clear();
        }
        let grid = Grid::new(path, times)?.with_stops(stops);
        Ok(WalkPlan { scheme, grid, durations, calls, sweeps: 0 })
    }

    /// The same with heat-bath sweeps at the time of every interval.
    pub fn sweeps(mut self, sweeps: u64) -> Self {
        self.sweeps = sweeps;
        self
    }

    /// The way back from the end of the path to its start, through the same intervals.
    ///
    /// # Errors
    /// Schemes other than events, whose steps have no reversal, and sweeps, which would have to come after the jumps on the way back.
    pub fn reversed(&self) -> Result<Self> {
        if self.scheme != Scheme::Events || self.sweeps > 0 {
            let reason = "paths are reversed for the scheme events without sweeps alone";
            return Err(Error::not_applicable("a two-sided estimate", reason));
        }
        let (mut durations, mut calls) = (self.durations.clone(), self.calls.clone());
        // Entry k belongs to the time that interval k leads to, and nobody stays at the start.
        durations.reverse();
        calls.reverse();
        Ok(WalkPlan { grid: self.grid.reversed(), durations, calls, ..self.clone() })
    }

    /// The time, by number, of energies in interval `k`.
    pub(super) fn time(&self, k: usize) -> usize {
        if self.scheme == Scheme::Events { k } else { k - 1 }
    }

    /// The time at which the network is called in interval `k`.
    pub(super) fn call(&self, k: usize) -> f64 {
        self.calls.get(k).copied().unwrap_or_else(|| self.grid.time(self.time(k)))
    }

    /// Intervals with substeps counted, in which walkers stay for a while.
    fn stays(&self) -> impl Iterator<Item = usize> {
        (1..self.durations.len()).filter(|&k| self.durations[k] > 0.0)
    }

    /// The number of times at which the network is called in some intervals.
    pub(super) fn network_calls_in(&self, intervals: Range<usize>) -> usize {
        let first = intervals.start;
        let anew = |&k: &usize| k == first || self.call(k) != self.call(k - 1);
        self.stays().filter(|k| intervals.contains(k)).filter(anew).count()
    }

    /// The number of times at which the network is called.
    pub(super) fn network_calls(&self) -> usize {
        self.network_calls_in(1..self.durations.len()).max(1)
    }

    /// Energy evaluations of a walker after so many network passes: with every pass, and every substep without one, it looks at all neighbours, about two
    /// energies.
    pub(super) fn energy_calls(&self, passes: f64) -> f64 {
        let sweeps = self.sweeps as f64 * (self.durations.len() - 1) as f64;
        let substeps = self.stays().count().saturating_sub(self.network_calls());
        1.0 + 2.0 * (passes + substeps as f64) + sweeps
    }
}
