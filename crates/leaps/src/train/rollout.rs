//! Reference states from rollouts of the network itself, and their replay buffer.

use rayon::prelude::*;

use super::{Batch, TrainSpec};
use crate::Result;
use crate::device::{Draw, Progress, Purpose, StopOnly, Stream};
use crate::path::Path;
use crate::sampler::{Grid, Interval, Lineage, Population, Resampling, Scheme, WalkPlan, Walkers};

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

    /// The rollout at gradient step `step`: Euler steps with heat-bath sweeps to the end time.
    pub(super) fn rollout(
        path: &Path,
        spec: &TrainSpec,
        step: u64,
        seed: u64,
    ) -> Result<(WalkPlan, Population)> {
        let end = Buffer::end_time(spec, step);
        let h = 1.0 / spec.rollout_steps as f64;
        let steps = ((end / h).round() as usize).clamp(1, spec.rollout_steps);
        let mut durations = vec![0.0];
        durations.extend(std::iter::repeat_n(h, steps));
        let mut times: Vec<f64> = (0..=spec.rollout_steps).map(|k| k as f64 * h).collect();
        times[spec.rollout_steps] = 1.0;
        // Rollouts at different steps must not share random numbers.
        let seed = seed ^ (step + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        let grid = Grid::new(path, times)?;
        let (scheme, calls, sweeps) = (Scheme::Euler, Vec::new(), spec.sweeps);
        let plan = WalkPlan { scheme, grid, durations, calls, sweeps };
        Ok((plan, Population::new(spec.rollout_walkers, seed)))
    }

    /// Lead `walkers` through a rollout and put their states away. Interrupted, it puts nothing away.
    pub(super) fn fill(
        &mut self,
        walkers: &mut dyn Walkers,
        plan: &WalkPlan,
        spec: &TrainSpec,
        progress: &dyn Progress,
    ) -> Result<()> {
        let mut lineage = Lineage::new(walkers.walkers(), 0.0, 0);
        let (never, grid) = (&Resampling::NEVER, &plan.grid);
        let (mut states, mut times) = (Vec::new(), Vec::new());
        for k in 1..plan.durations.len() {
            let span = Interval { grid, k }.alone();
            walkers.advance(span, never, &mut lineage, &StopOnly(progress))?;
            states.extend(walkers.states()?);
            times.extend(std::iter::repeat_n(grid.time(k), walkers.walkers()));
        }
        self.put(spec, states, times);
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
