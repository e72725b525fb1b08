//! Take reference states from rollouts of the network itself, and keep them in a replay buffer.

use rayon::prelude::*;

use super::{Batch, TrainSpec};
use crate::Result;
use crate::device::{Draw, Purpose, Stream, Unwatched};
use crate::path::Path;
use crate::sampler::{Flow, FlowWalkers, Grid, Population, Stepper};
use crate::target::Target;

/// The states of rollouts at all their times.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Buffer {
    /// States, `[entry * sites + site]`, rollout after rollout.
    pub states: Vec<u8>,
    /// Their times.
    pub times: Vec<f64>,
    /// Where the next rollout goes.
    pub next: usize,
}

impl Buffer {
    /// The end time of rollouts at gradient step `step`: grows from one step to 1 over `spec.anneal` steps,
    /// spending quadratically more steps late.
    pub fn end_time(spec: &TrainSpec, step: u64) -> f64 {
        let first = 1.0 / spec.rollout_steps as f64;
        if spec.anneal == 0 {
            return 1.0;
        }
        (step as f64 / spec.anneal as f64).sqrt().clamp(first, 1.0)
    }

    /// Roll the network out to `end` with Euler steps and heat-bath sweeps, and put the states away.
    pub fn roll(
        &mut self,
        target: &dyn Target,
        path: &Path,
        flow: &Flow<'_>,
        spec: &TrainSpec,
        step: u64,
        seed: u64,
    ) -> Result<()> {
        let end = Self::end_time(spec, step);
        let h = 1.0 / spec.rollout_steps as f64;
        let steps = ((end / h).round() as usize).clamp(1, spec.rollout_steps);
        let mut durations = vec![0.0];
        durations.extend(std::iter::repeat_n(h, steps));
        // Rollouts at different steps must not share random numbers.
        let own = seed ^ (step + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        let mut walkers = FlowWalkers::new(
            target,
            path,
            flow,
            Stepper::Euler,
            durations,
            spec.sweeps,
            spec.rollout_walkers,
            own,
        )?;
        let times: Vec<f64> = (0..=spec.rollout_steps).map(|k| k as f64 * h).collect();
        let mut times = times;
        times[spec.rollout_steps] = 1.0;
        let grid = Grid::new(path, times)?;
        let mut log_weights = vec![0.0; spec.rollout_walkers];
        let (mut states, mut at) = (Vec::new(), Vec::new());
        for k in 1..=steps {
            walkers.advance(&grid, k..k + 1, &mut log_weights, &Unwatched)?;
            states.extend(walkers.states()?);
            at.extend(std::iter::repeat_n(grid.time(k), spec.rollout_walkers));
        }
        self.put(spec, states, at);
        Ok(())
    }

    fn put(&mut self, spec: &TrainSpec, states: Vec<u8>, times: Vec<f64>) {
        let room = spec.buffer * spec.rollout_walkers * spec.rollout_steps;
        let sites = states.len() / times.len();
        for (x, t) in states.chunks_exact(sites).zip(times) {
            if self.times.len() < room {
                self.states.extend_from_slice(x);
                self.times.push(t);
            } else {
                self.states[self.next * sites..][..sites].copy_from_slice(x);
                self.times[self.next] = t;
            }
            self.next = (self.next + 1) % room;
        }
    }

    /// `size` entries, drawn independently.
    pub fn draw(&self, size: usize, seed: u64, step: u64) -> Batch {
        let sites = self.states.len() / self.times.len().max(1);
        let mut stream = Stream::new(seed, Purpose::Reference, u32::MAX, step);
        let chosen: Vec<usize> = (0..size).map(|_| stream.below(self.times.len())).collect();
        let mut batch = Batch::new(sites);
        batch.times = chosen.iter().map(|&i| self.times[i]).collect();
        batch.states = chosen
            .par_iter()
            .flat_map_iter(|&i| self.states[i * sites..(i + 1) * sites].iter().copied())
            .collect();
        batch
    }
}
