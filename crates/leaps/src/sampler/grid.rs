//! Grids: paths cut into intervals.

use std::ops::Range;

use crate::path::Path;
use crate::{Error, Result};

/// Intervals are longer than this where a stop cuts them.
const SLIVER: f64 = 1e-9;

/// The times `0 = t_0 < t_1 < ... < t_n = 1` and the weights of the energy terms at each.
#[derive(Clone, Debug, PartialEq)]
pub struct Grid {
    times: Vec<f64>,
    lambda: Vec<f64>,
    terms: usize,
    /// Times, by number, at which walkers are measured in full.
    stops: Vec<usize>,
}

impl Grid {
    /// `intervals` equal intervals.
    pub fn uniform(path: &Path, intervals: usize) -> Result<Self> {
        if intervals == 0 {
            return Err(Error::invalid("intervals", 0, "at least 1", "100 is a good start"));
        }
        let mut times: Vec<f64> = (0..=intervals).map(|k| k as f64 / intervals as f64).collect();
        times[intervals] = 1.0;
        Self::new(path, times)
    }

    /// Intervals between given times, which run from 0 to 1.
    pub fn new(path: &Path, times: Vec<f64>) -> Result<Self> {
        let ends = times.len() >= 2 && times[0] == 0.0 && times[times.len() - 1] == 1.0;
        if !ends || !times.windows(2).all(|pair| pair[0] < pair[1]) {
            return Err(Error::invalid(
                "times",
                format!("{} numbers", times.len()),
                "increasing from 0 to 1",
                "for example [0, 0.3, 0.7, 1]",
            ));
        }
        Ok(Self::unchecked(path, times))
    }

    /// `times` with `stops` among them, times above 0 and at most 1. A time right beside a stop makes way for it: a sliver of an interval would cost
    /// as much as a whole one and move nobody.
    pub fn cut_at(mut times: Vec<f64>, stops: &[f64]) -> Vec<f64> {
        for &stop in stops.iter().filter(|stop| **stop < 1.0) {
            times.retain(|time| *time == 0.0 || *time == 1.0 || (time - stop).abs() > SLIVER);
            times.push(stop);
        }
        times.sort_by(f64::total_cmp);
        times
    }

    /// The same grid with stops: at these times of it, walkers are not only weighed but measured in full.
    pub fn with_stops(mut self, times: &[f64]) -> Self {
        self.stops = (1..self.times.len()).filter(|&k| times.contains(&self.times[k])).collect();
        self
    }

    /// Whether interval `k` ends at a stop.
    pub fn is_stop(&self, k: usize) -> bool {
        self.stops.binary_search(&k).is_ok()
    }

    /// Whether walkers are measured after interval `k`, at a stop or at the end: resampling right before would only add noise.
    pub(super) fn is_measured(&self, k: usize) -> bool {
        k == self.intervals() || self.is_stop(k)
    }

    /// The one interval from `from` to `to`.
    pub(super) fn step(path: &Path, from: f64, to: f64) -> Self {
        Self::unchecked(path, vec![from, to])
    }

    fn unchecked(path: &Path, times: Vec<f64>) -> Self {
        let terms = path.terms();
        let mut lambda = vec![0.0; times.len() * terms];
        for (row, &t) in lambda.chunks_exact_mut(terms).zip(&times) {
            path.lambda_into(t, row);
        }
        Grid { times, lambda, terms, stops: Vec::new() }
    }

    /// The same times and weights from the end to the start, without stops.
    pub fn reversed(&self) -> Self {
        let mut times = self.times.clone();
        times.reverse();
        let rows = self.lambda.chunks_exact(self.terms).rev();
        let lambda = rows.flat_map(|row| row.iter().copied()).collect();
        Grid { times, lambda, terms: self.terms, stops: Vec::new() }
    }

    /// Number of intervals.
    pub fn intervals(&self) -> usize {
        self.times.len() - 1
    }

    /// The time at the end of interval `k`, from 1; 0 is the start.
    pub fn time(&self, k: usize) -> f64 {
        self.times[k]
    }

    /// All times.
    pub fn times(&self) -> &[f64] {
        &self.times
    }

    /// The weights of the energy terms at time `k`.
    pub fn lambda(&self, k: usize) -> &[f64] {
        &self.lambda[k * self.terms..(k + 1) * self.terms]
    }
}

/// One interval of a grid, from time `k - 1` to time `k`.
#[derive(Clone, Copy, Debug)]
pub struct Interval<'a> {
    /// The grid.
    pub grid: &'a Grid,
    /// The number of the interval, from 1.
    pub k: usize,
}

impl<'a> Interval<'a> {
    /// The weights of the energy terms at its end.
    pub fn lambda(&self) -> &'a [f64] {
        self.grid.lambda(self.k)
    }

    /// The interval as a span.
    pub fn alone(self) -> Span<'a> {
        Span { grid: self.grid, intervals: self.k..self.k + 1 }
    }

    /// By how much the weight of every energy term falls.
    pub fn drops(&self) -> impl Iterator<Item = f64> + use<'a> {
        drops(self.grid.lambda(self.k - 1), self.grid.lambda(self.k))
    }

    /// Add `U_{t_{k-1}}(x) - U_{t_k}(x)` to a log-weight, term by term.
    pub fn weigh(&self, energies: &[f64], log_weight: &mut f64) {
        for (drop, energy) in self.drops().zip(energies) {
            *log_weight += drop * energy;
        }
    }
}

/// Intervals of a grid, one after the other.
#[derive(Clone, Debug)]
pub struct Span<'a> {
    /// The grid.
    pub grid: &'a Grid,
    /// Their numbers, from 1.
    pub intervals: Range<usize>,
}

impl<'a> Span<'a> {
    /// All intervals of a grid.
    pub fn whole(grid: &'a Grid) -> Self {
        Span { grid, intervals: 1..grid.intervals() + 1 }
    }

    /// The intervals.
    pub fn iter(&self) -> impl Iterator<Item = Interval<'a>> + use<'a> {
        let grid = self.grid;
        self.intervals.clone().map(move |k| Interval { grid, k })
    }
}

/// By how much weights fall: lambda_before - lambda_after, so that the log-weight of a state grows by this times its energies. On a GPU it is
/// `plus_energy_drop` in `device/cuda/common.cu`.
pub(super) fn drops<'a>(
    before: &'a [f64],
    after: &'a [f64],
) -> impl Iterator<Item = f64> + use<'a> {
    before.iter().zip(after).map(|(before, after)| before - after)
}
