//! States at the temperatures of a ladder, gathered by their energy: all that reweighting in temperature needs.

use std::collections::BTreeMap;

use super::Order;
use crate::device::{Draw, Purpose, Stream};
use crate::target::Target;

/// Sums over the states of a bin of energies: how many, $H$, $H^2$, and the powers of the order parameter.
pub(super) const COLUMNS: usize = 7;

/// States of a ladder, whatever their temperatures, gathered by energy; and the energies of every rung.
///
/// Weights of reweighting depend on a state's energy $H$ alone. States are therefore kept as sums over bins that are so
/// narrow that a discrete energy has a bin of its own, and the mean energy of a bin stands for all of them.
#[derive(Clone, Debug, PartialEq)]
pub struct LadderTable {
    width: f64,
    pub(super) bins: BTreeMap<i64, [f64; COLUMNS]>,
    /// Of every rung the number of states, and the sums of $H$ and $H^2$.
    pub(super) rungs: Vec<[f64; 3]>,
    /// The lowest energy that was met, and a state that has it.
    lowest: Option<(f64, Vec<u8>)>,
}

impl LadderTable {
    /// A table for so many rungs with bins of this width.
    pub fn new(rungs: usize, width: f64) -> Self {
        let width = if width > 0.0 { width } else { 1.0 };
        LadderTable { width, bins: BTreeMap::new(), rungs: vec![[0.0; 3]; rungs], lowest: None }
    }

    /// A width for a target, a thousandth of its [`spread`](Self::spread): what differs within a bin changes no weight that matters.
    pub fn width_for(target: &dyn Target, seed: u64) -> f64 {
        Self::spread(target, seed) / 1024.0
    }

    /// The standard deviation of the energy at infinite temperature, about.
    pub fn spread(target: &dyn Target, seed: u64) -> f64 {
        let energy = |number: u32| -> f64 {
            let mut stream = Stream::new(seed, Purpose::Uniform, number, u64::MAX >> 8);
            let x: Vec<u8> = (0..target.sites()).map(|_| stream.below(target.q()) as u8).collect();
            (0..target.terms()).map(|term| target.energy(term, &x)).sum()
        };
        let energies: Vec<f64> = (0..64).map(energy).collect();
        let mean = energies.iter().sum::<f64>() / 64.0;
        (energies.iter().map(|e| (e - mean).powi(2)).sum::<f64>() / 63.0).sqrt()
    }

    /// Take in a state that was met on a rung, with its energy $H$ and its order parameter; `x` is asked for the state if its energy is the lowest so far.
    pub fn record(&mut self, rung: usize, energy: f64, order: Order, x: impl FnOnce() -> Vec<u8>) {
        let bin = (energy / self.width).floor() as i64;
        let sums = self.bins.entry(bin).or_insert([0.0; COLUMNS]);
        let row = [1.0, energy, energy * energy, order.m, order.abs, order.squared, order.fourth];
        sums.iter_mut().zip(row).for_each(|(sum, value)| *sum += value);
        self.rungs[rung].iter_mut().zip(row).for_each(|(sum, value)| *sum += value);
        if self.lowest.as_ref().is_none_or(|(lowest, _)| energy < *lowest) {
            self.lowest = Some((energy, x()));
        }
    }

    /// The lowest energy that was met, and a state that has it.
    pub fn lowest(&self) -> Option<&(f64, Vec<u8>)> {
        self.lowest.as_ref()
    }

    /// Say which state has the lowest energy, where [`record`](Self::record) could not.
    pub fn show_lowest(&mut self, x: &[u8]) {
        if let Some((_, state)) = &mut self.lowest {
            *state = x.to_vec();
        }
    }

    /// Number of states.
    pub fn states(&self) -> f64 {
        self.rungs.iter().map(|rung| rung[0]).sum()
    }
}
