//! Space for passes through a network on the CPU.

use super::time_features::conditioned_features;
use crate::device::vector::{Array, WIDTH};

/// Space for 16 configurations on their way through a network.
#[derive(Clone, Debug)]
pub struct Worker {
    pub(super) inputs: usize,
    pub(super) q: usize,
    pub(super) x: Vec<Array<f32>>,
    pub(super) t: Array<f32>,
    pub(super) features: Vec<Array<f32>>,
    /// What the network is conditioned on: `[lane][condition]`.
    pub(super) conditions: [Vec<f64>; WIDTH],
    pub(super) couplings: Vec<Array<f32>>,
    pub(super) scratch: Vec<Array<f32>>,
    pub(crate) out: Vec<Array<f32>>,
    pub(crate) d_out: Vec<Array<f32>>,
    /// Whether a backward pass may follow.
    pub(super) saves: bool,
}

impl Worker {
    /// Put a state and a time into a lane.
    pub fn set(&mut self, lane: usize, x: &[u8], t: f64) {
        self.set_time(lane, t);
        for (site, &site_value) in x.iter().enumerate() {
            self.set_value(lane, site, site_value);
        }
    }

    /// Condition the network on the target of a lane, from the next time on that the lane is given: as many numbers as
    /// [`Net::conditions`](super::Net::conditions), each about from -1 to 1. Otherwise they are 0.
    ///
    /// # Panics
    /// If they are more or fewer.
    pub fn set_condition(&mut self, lane: usize, condition: &[f64]) {
        self.conditions[lane].copy_from_slice(condition);
    }

    /// Show the network the couplings of a lane's instance: as many numbers as [`Net::couplings`](super::Net::couplings). Otherwise they are [those](super::Net::instance) of the
    /// target that it was built for.
    ///
    /// # Panics
    /// If they are more or fewer.
    pub fn set_couplings(&mut self, lane: usize, couplings: &[f32]) {
        assert_eq!(couplings.len(), self.couplings.len(), "couplings of a network");
        for (row, &coupling) in self.couplings.iter_mut().zip(couplings) {
            row.0[lane] = coupling;
        }
    }

    /// Change the time of a lane.
    pub fn set_time(&mut self, lane: usize, t: f64) {
        self.t.0[lane] = t as f32;
        for (row, value) in
            self.features.iter_mut().zip(conditioned_features(t, &self.conditions[lane]))
        {
            row.0[lane] = value as f32;
        }
    }

    /// Change one value of a lane.
    pub fn set_value(&mut self, lane: usize, site: usize, site_value: u8) {
        if self.inputs == 1 {
            self.x[site].0[lane] = if site_value == 1 { 1.0 } else { -1.0 };
        } else {
            for c in 0..self.q {
                self.x[site * self.q + c].0[lane] =
                    if c == site_value as usize { 1.0 } else { 0.0 };
            }
        }
    }

    /// Output `index = site * outputs + s` of a lane after a forward pass.
    pub fn output(&self, lane: usize, index: usize) -> f32 {
        self.out[index].0[lane]
    }

    /// Say how much a lane's loss grows with its output `index = site * outputs + s`: `d_out` of a backward pass.
    pub fn set_slope(&mut self, lane: usize, index: usize, slope: f32) {
        self.d_out[index].0[lane] = slope;
    }
}
