//! Pools: walkers in equilibrium along the path, as reference states.

use rayon::prelude::*;

use super::{Batch, Objective};
use crate::device::{Progress, Purpose, Stream};
use crate::mcmc::{AnyKernel, Kernel, KernelName};
use crate::target::{Density, initial_state};
use crate::{Error, Result};

/// Walkers spread evenly over the times of the path.
///
/// Walker `w` of `W` lives at the time `(w + u)/W`, with a fresh u each time it is used; it moves by heat-bath
/// sweeps there. In a family of M targets it belongs to member `w mod M`.
#[derive(Clone, Debug, PartialEq)]
pub struct Pool {
    /// States, `[walker * sites + site]`.
    pub states: Vec<u8>,
    sites: usize,
    /// Seed of its random numbers.
    pub(super) seed: u64,
}

/// Which walkers of a pool a gradient step uses, and how far they move.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PoolDraw {
    /// How many walkers.
    pub size: usize,
    /// Sweeps of each.
    pub sweeps: u64,
    /// The gradient step.
    pub step: u64,
}

/// Sweeps that bring a new pool from the uniform distribution to its times, the temperature falling.
const PREPARATION: u64 = 64;

impl Pool {
    /// `walkers` walkers, annealed to their times.
    pub fn new(
        objective: &Objective,
        walkers: usize,
        seed: u64,
        progress: &dyn Progress,
    ) -> Result<Self> {
        let (target, members) = (&*objective.target, &objective.members);
        let sites = target.sites();
        let mut states = vec![0; walkers * sites];
        let kernel = AnyKernel::new(KernelName::HeatBath, target, members[0].path.ends())?;
        states.par_chunks_mut(sites).enumerate().try_for_each_init(
            || kernel.clone(),
            |kernel, (walker, x)| {
                progress.check()?;
                x.copy_from_slice(&initial_state(target, seed, walker as u32));
                let t = (walker as f64 + 0.5) / walkers as f64;
                let path = &members[walker % members.len()].path;
                for sweep in 0..PREPARATION {
                    let fraction = (2.0 * (sweep + 1) as f64 / PREPARATION as f64).min(1.0);
                    let lambda = path.lambda(t * fraction);
                    let mut stream = Stream::new(seed, Purpose::Initial, walker as u32, 1 + sweep);
                    kernel.step(&Density::new(target, &lambda), x, &mut stream);
                }
                Ok(())
            },
        )?;
        Ok(Pool { states, sites, seed })
    }

    /// Take over the states of an earlier pool.
    pub fn resume(states: Vec<u8>, sites: usize, q: usize, seed: u64) -> Result<Self> {
        let whole = sites > 0 && !states.is_empty() && states.len().is_multiple_of(sites);
        if !whole || states.iter().any(|&value| value as usize >= q) {
            return Err(Error::invalid(
                "pool",
                format!("{} values", states.len()),
                format!("full states of {sites} values below {q}"),
                "resume from a checkpoint of this target",
            ));
        }
        Ok(Pool { states, sites, seed })
    }

    /// Number of walkers.
    pub fn walkers(&self) -> usize {
        self.states.len() / self.sites
    }

    /// The walkers that gradient step `step` uses, in increasing order, and their times: `size` of them or, in small
    /// pools, fewer.
    ///
    /// Times are stratified: walker number `k` of the batch comes from the k-th of `size` equal parts of the
    /// path.
    pub(super) fn choose(&self, size: usize, step: u64) -> Vec<(usize, f64)> {
        let walkers = self.walkers();
        let mut stream = Stream::new(self.seed, Purpose::Reference, u32::MAX, step);
        let mut chosen: Vec<(usize, f64)> = (0..size)
            .map(|k| {
                let walker =
                    ((k as f64 + stream.uniform()) / size as f64 * walkers as f64) as usize;
                let walker = walker.min(walkers - 1);
                (walker, (walker as f64 + stream.uniform()) / walkers as f64)
            })
            .collect();
        // More draws than walkers would visit some of them twice.
        chosen.dedup_by_key(|(walker, _)| *walker);
        chosen
    }

    /// The members of the family that chosen walkers belong to; none if there is only one target.
    pub(super) fn members(&self, chosen: &[(usize, f64)], objective: &Objective) -> Vec<usize> {
        match objective.members.len() {
            1 => Vec::new(),
            count => chosen.iter().map(|(walker, _)| walker % count).collect(),
        }
    }

    /// The walkers that are drawn, and their states and times after their sweeps. The pool itself
    /// moves once they are [`put`](Self::put) back, so that a step can be given up.
    pub fn draw(
        &self,
        objective: &Objective,
        kernel: &AnyKernel,
        draw: PoolDraw,
        progress: &dyn Progress,
    ) -> Result<(Vec<usize>, Batch)> {
        let (target, members) = (&*objective.target, &objective.members);
        let PoolDraw { size, sweeps, step } = draw;
        let sites = self.sites;
        let chosen = self.choose(size, step);
        let mut batch = Batch::new(sites);
        batch.times.extend(chosen.iter().map(|(_, t)| *t));
        batch.members = self.members(&chosen, objective);
        let mut taken: Vec<(usize, f64, Vec<u8>)> = chosen
            .into_iter()
            .map(|(walker, t)| (walker, t, self.states[walker * sites..][..sites].to_vec()))
            .collect();
        let seed = self.seed;
        taken.par_iter_mut().try_for_each_init(
            || kernel.clone(),
            |kernel, (walker, t, x)| {
                let lambda = members[*walker % members.len()].path.lambda(*t);
                for sweep in 0..sweeps {
                    // Now and then: a look at the clock costs as much as some updates.
                    if sweep % 16 == 0 {
                        progress.check()?;
                    }
                    let at = step * sweeps + sweep;
                    let mut stream = Stream::new(seed, Purpose::Reference, *walker as u32, at);
                    kernel.step(&Density::new(target, &lambda), x, &mut stream);
                }
                Result::Ok(())
            },
        )?;
        for (_, _, x) in &taken {
            batch.states.extend_from_slice(x);
        }
        Ok((taken.into_iter().map(|(walker, ..)| walker).collect(), batch))
    }

    /// Leave these walkers in the states of a batch that was drawn from them.
    pub fn put(&mut self, walkers: &[usize], batch: &Batch) {
        for (i, walker) in walkers.iter().enumerate() {
            self.states[walker * self.sites..][..self.sites].copy_from_slice(batch.state(i));
        }
    }
}
