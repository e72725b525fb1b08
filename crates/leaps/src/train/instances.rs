//! Random instances of a disorder, for one network that is shown the couplings.
//!
//! Instances are Edwards-Anderson glasses on one lattice, numbered. Each has a few reference walkers, all at one time; they are neighbours in the pool, so
//! that walker w belongs to instance w / R. The loss is the variance of the residual among the R walkers of an instance: their mean stands for
//! $-\partial_t F_t$, a function of the instance that nobody has to learn,
//!
//! $$L = \Big\langle \frac{1}{R-1} \sum_{r=1}^{R} \big(K_t(x_r) - \bar K_t\big)^2 \Big\rangle_{\text{instances, times}}.$$
//!
//! As training goes on instances give way to new ones in turn. Which, and to what, follows from the gradient step, so that a checkpoint needs the
//! walkers' states alone.

use std::sync::Arc;

use rayon::prelude::*;

use super::pool::{PREPARATION, annealed};
use super::{Batch, Objective, Pool};
use crate::Result;
use crate::device::{Draw, Progress, Purpose, Stream};
use crate::mcmc::{HeatBath, Kernel};
use crate::path::Path;
use crate::target::{Density, Disorder, Lattice, Pairwise};

/// The instances that one network is trained on.
#[derive(Clone, Debug, PartialEq)]
pub struct Instances {
    /// Where the spins are.
    pub lattice: Lattice,
    /// The law of the couplings.
    pub disorder: Disorder,
    /// Seed of the couplings.
    pub seed: u64,
    /// How many there are at a time.
    pub count: usize,
    /// Reference walkers of each: 2, 4, 8 or 16.
    pub walkers: usize,
    /// How many a gradient step draws.
    pub drawn: usize,
}

/// One instance is replaced by a new one for every so many that gradient steps have drawn.
const DRAWS: u64 = 1024;

/// Gradient steps between two renewals, so that walkers of several new instances are annealed together.
const PERIOD: u64 = 64;

impl Instances {
    /// Renewals up to and with those that gradient step `step` begins with.
    fn renewals(&self, step: u64) -> u64 {
        step / PERIOD * PERIOD * self.drawn as u64 / DRAWS
    }

    /// How often instance `number` has been replaced when gradient step `step` draws walkers.
    pub fn generation(&self, number: usize, step: u64) -> u64 {
        (self.renewals(step) + (self.count - 1 - number) as u64) / self.count as u64
    }

    /// The instances that gradient step `step` replaces before it draws walkers.
    pub fn renewed(&self, step: u64) -> impl Iterator<Item = usize> {
        let before = step.checked_sub(1).map_or(0, |step| self.renewals(step));
        let count = self.count as u64;
        (before..self.renewals(step)).map(move |renewal| (renewal % count) as usize)
    }

    /// Instance `number` as gradient step `step` uses it.
    pub fn target(&self, number: usize, step: u64) -> Result<Pairwise> {
        let generation = self.generation(number, step);
        // Targets that users name by their seeds are drawn at 0: none of these is trained on.
        let stream = Stream::new(self.seed, Purpose::Disorder, number as u32 + 1, generation);
        Pairwise::glass_from(self.lattice.clone(), self.disorder, stream)
    }

    /// The walkers of instance `number` as of gradient step `step`, annealed to their time.
    fn walkers(&self, path: &Path, seed: u64, (number, step): (usize, u64)) -> Result<Vec<u8>> {
        let (target, sites) = (self.target(number, step)?, self.lattice.sites());
        let mut kernel = HeatBath::new(&target)?;
        let t = (number as f64 + 0.5) / self.count as f64;
        let first = self.generation(number, step) * (1 + PREPARATION);
        let mut states = vec![0; self.walkers * sites];
        for (k, x) in states.chunks_exact_mut(sites).enumerate() {
            let walker = (number * self.walkers + k) as u32;
            let stream = |at: u64| Stream::new(seed, Purpose::Initial, walker, first + at);
            let mut start = stream(0);
            x.fill_with(|| start.below(2) as u8);
            for sweep in 0..PREPARATION {
                let lambda = path.lambda(t * annealed(sweep));
                kernel.step(&Density::new(&target, &lambda), x, &mut stream(1 + sweep));
            }
        }
        Ok(states)
    }
}

impl Objective {
    /// Reference walkers that share a target and a time: those of an instance, or each alone.
    pub(super) fn walkers_together(&self) -> usize {
        self.instances.as_ref().map_or(1, |instances| instances.walkers)
    }

    /// The instances that drawn walkers belong to, one after the other; none unless training goes over instances.
    pub(super) fn instances_of(
        &self,
        drawn: &[(usize, f64)],
        step: u64,
    ) -> Result<Vec<Arc<Pairwise>>> {
        let Some(instances) = &self.instances else { return Ok(Vec::new()) };
        drawn
            .par_chunks(instances.walkers)
            .map(|group| Ok(Arc::new(instances.target(group[0].0 / instances.walkers, step)?)))
            .collect()
    }
}

impl Pool {
    /// Walkers of all instances, annealed to their times.
    pub(super) fn over(
        instances: &Instances,
        path: &Path,
        seed: u64,
        progress: &dyn Progress,
    ) -> Result<Self> {
        let sites = instances.lattice.sites();
        let mut states = vec![0; instances.count * instances.walkers * sites];
        let groups = states.par_chunks_mut(instances.walkers * sites).enumerate();
        groups.try_for_each(|(number, states)| {
            progress.check()?;
            states.copy_from_slice(&instances.walkers(path, seed, (number, 0))?);
            Result::Ok(())
        })?;
        Pool::resume(states, sites, 2, seed)
    }

    /// The walkers of instances that gradient step `step` replaces, with the instances' numbers.
    pub(super) fn renewed(
        &self,
        objective: &Objective,
        step: u64,
        progress: &dyn Progress,
    ) -> Result<Vec<(usize, Vec<u8>)>> {
        let Some(instances) = &objective.instances else { return Ok(Vec::new()) };
        let numbers: Vec<usize> = instances.renewed(step).collect();
        numbers
            .into_par_iter()
            .map(|number| {
                progress.check()?;
                Ok((number, instances.walkers(&objective.path, self.seed, (number, step))?))
            })
            .collect()
    }

    /// Replace the instances that gradient step `step` begins with. Made again, as after an interruption, it gives the same walkers.
    pub(super) fn renew(
        &mut self,
        objective: &Objective,
        step: u64,
        progress: &dyn Progress,
    ) -> Result<()> {
        for (number, states) in self.renewed(objective, step, progress)? {
            self.states[number * states.len()..][..states.len()].copy_from_slice(&states);
        }
        Ok(())
    }
}

impl Batch {
    /// Configurations that share an instance and a time; each stands alone unless there are instances.
    pub(super) fn together(&self) -> usize {
        if self.instances.is_empty() { 1 } else { self.len() / self.instances.len() }
    }
}

#[cfg(test)]
mod tests;
