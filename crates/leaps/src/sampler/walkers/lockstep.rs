//! Walkers that are moved in lockstep, for targets that prefer batches.

use std::sync::Arc;

use crate::Result;
use crate::device::{Progress, Purpose, Stream};
use crate::mcmc::lanes::Rule;
use crate::mcmc::lockstep;
use crate::sampler::Interval;
use crate::sampler::walkers::{Cost, Population, Walkers};
use crate::target::{Density, Target, initial_state};

/// How walkers are moved in an interval.
#[derive(Clone, Copy, Debug)]
pub struct Sweeps {
    /// Heat bath or Metropolis.
    pub rule: Rule,
    /// Sweeps over all sites.
    pub count: u64,
    /// Energy evaluations charged for a sweep of one walker.
    pub calls: f64,
}

/// Walkers that make sweeps in lockstep, in the same states as [`KernelWalkers`](crate::sampler::KernelWalkers) of the same kernel.
pub struct LockstepWalkers {
    target: Arc<dyn Target>,
    population: Population,
    sweeps: Sweeps,
    states: Vec<u8>,
    energies: Vec<f64>,
    /// Sweeps made so far.
    made: u64,
    calls: f64,
}

impl LockstepWalkers {
    /// Walkers in uniformly random states.
    pub fn new(target: &Arc<dyn Target>, sweeps: Sweeps, population: Population) -> Result<Self> {
        let first = |i| initial_state(&**target, population.seed, population.number(i));
        let mut made = LockstepWalkers {
            target: target.clone(),
            population,
            sweeps,
            states: (0..population.walkers).flat_map(first).collect(),
            energies: vec![0.0; population.walkers * target.terms()],
            made: 0,
            calls: 1.0,
        };
        made.measure(0)?;
        Ok(made)
    }

    fn measure(&mut self, step: u64) -> Result<()> {
        self.target.energies(&self.states, &mut self.energies)?;
        let rows = self.energies.chunks_exact(self.target.terms());
        for (i, (row, x)) in rows.zip(self.states.chunks_exact(self.target.sites())).enumerate() {
            self.population.visit(&*self.target, i, step).check(row, || x.to_vec())?;
        }
        Ok(())
    }
}

/// Copies of rows of `n` entries.
fn gathered<T: Copy>(rows: &[T], n: usize, ancestors: &[u32]) -> Vec<T> {
    ancestors.iter().flat_map(|&a| &rows[a as usize * n..][..n]).copied().collect()
}

impl Walkers for LockstepWalkers {
    fn walkers(&self) -> usize {
        self.population.walkers
    }

    fn mutate(&mut self, at: Interval<'_>, _: &mut [f64], progress: &dyn Progress) -> Result<()> {
        let target = self.target.clone();
        let model = Density::new(&*target, at.lambda());
        let population = self.population;
        for step in self.made..self.made + self.sweeps.count {
            progress.check()?;
            let stream =
                |i| Stream::new(population.seed, Purpose::Move, population.number(i), step);
            let mut draws: Vec<Stream> = (0..population.walkers).map(stream).collect();
            lockstep::sweep(self.sweeps.rule, &model, &mut self.states, &mut draws)?;
        }
        self.measure(at.k as u64)?;
        self.made += self.sweeps.count;
        self.calls += 1.0 + self.sweeps.count as f64 * self.sweeps.calls;
        Ok(())
    }

    fn resample(&mut self, ancestors: &[u32]) -> Result<()> {
        self.states = gathered(&self.states, self.target.sites(), ancestors);
        self.energies = gathered(&self.energies, self.target.terms(), ancestors);
        Ok(())
    }

    fn start_at(&mut self, states: &[u8]) -> Result<()> {
        self.states.copy_from_slice(states);
        self.measure(0)
    }

    fn energies(&self) -> Result<Vec<f64>> {
        Ok(self.energies.clone())
    }

    fn states(&self) -> Result<Vec<u8>> {
        Ok(self.states.clone())
    }

    fn cost(&self) -> Result<Cost> {
        Ok(Cost { energy_calls: self.calls, network_passes: 0.0 })
    }
}
