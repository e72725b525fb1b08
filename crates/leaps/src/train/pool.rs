//! Pools: walkers in equilibrium along the path, as reference states.

use rayon::prelude::*;

use super::{Batch, Objective};
use crate::device::{Progress, Purpose, Stream};
use crate::mcmc::lockstep::sweep_apart;
use crate::mcmc::{AnyKernel, Kernel, KernelName};
use crate::target::{Density, initial_state};
use crate::{Error, Result};

/// Walkers spread evenly over the times of the path.
///
/// Walker `w` of `W` lives at the time `(w + u)/W`, with a fresh u each time it is used; it moves by heat-bath
/// sweeps there. In a family of M targets it belongs to member `w mod M`; of [instances](super::Instances) with R walkers each, to
/// instance `w / R`, and then these R share their time.
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
pub(super) const PREPARATION: u64 = 64;

/// How far towards its time a walker is at a sweep of the preparation; the second half is spent there.
pub(super) fn annealed(sweep: u64) -> f64 {
    (2.0 * (sweep + 1) as f64 / PREPARATION as f64).min(1.0)
}

impl Pool {
    /// `walkers` walkers, annealed to their times; those of all instances if there are some.
    pub fn new(
        objective: &Objective,
        walkers: usize,
        seed: u64,
        progress: &dyn Progress,
    ) -> Result<Self> {
        if let Some(instances) = &objective.instances {
            return Pool::over(instances, &objective.path, seed, progress);
        }
        let (target, members) = (&*objective.target, &objective.members);
        let sites = target.sites();
        let mut states = vec![0; walkers * sites];
        let kernel = AnyKernel::new(KernelName::HeatBath, target, members[0].path.ends())?;
        let lambda = |walker: usize, sweep: u64| {
            let t = (walker as f64 + 0.5) / walkers as f64;
            members[walker % members.len()].path.lambda(t * annealed(sweep))
        };
        let stream = |walker: usize, sweep: u64| {
            Stream::new(seed, Purpose::Initial, walker as u32, 1 + sweep)
        };
        if target.prefers_batches() {
            for (walker, x) in states.chunks_exact_mut(sites).enumerate() {
                x.copy_from_slice(&initial_state(target, seed, walker as u32));
            }
            for sweep in 0..PREPARATION {
                progress.check()?;
                let weights: Vec<f64> = (0..walkers).flat_map(|w| lambda(w, sweep)).collect();
                let mut draws: Vec<Stream> = (0..walkers).map(|w| stream(w, sweep)).collect();
                sweep_apart(target, &weights, &mut states, &mut draws)?;
            }
            return Ok(Pool { states, sites, seed });
        }
        states.par_chunks_mut(sites).enumerate().try_for_each_init(
            || kernel.clone(),
            |kernel, (walker, x)| {
                progress.check()?;
                x.copy_from_slice(&initial_state(target, seed, walker as u32));
                for sweep in 0..PREPARATION {
                    let (lambda, mut stream) = (lambda(walker, sweep), stream(walker, sweep));
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
    /// path. Where `together` walkers share a target and a time, they come together.
    pub(super) fn choose(&self, size: usize, step: u64, together: usize) -> Vec<(usize, f64)> {
        let (size, walkers) = (size / together, self.walkers() / together);
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
        let rows = |(first, t)| (first * together..(first + 1) * together).map(move |row| (row, t));
        chosen.into_iter().flat_map(rows).collect()
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
        let together = objective.walkers_together();
        let chosen = self.choose(size, step, together);
        let mut batch = Batch::new(sites);
        batch.times.extend(chosen.iter().map(|(_, t)| *t));
        batch.members = self.members(&chosen, objective);
        batch.instances = objective.instances_of(&chosen, step)?;
        let seed = self.seed;
        let lambda = |walker: usize, t: f64| members[walker % members.len()].path.lambda(t);
        let stream = |walker: usize, sweep: u64| {
            Stream::new(seed, Purpose::Reference, walker as u32, step * sweeps + sweep)
        };
        if target.prefers_batches() {
            let weights: Vec<f64> = chosen.iter().flat_map(|&(w, t)| lambda(w, t)).collect();
            let walkers: Vec<usize> = chosen.into_iter().map(|(walker, _)| walker).collect();
            let own = |&walker: &usize| &self.states[walker * sites..][..sites];
            batch.states = walkers.iter().flat_map(own).copied().collect();
            for sweep in 0..sweeps {
                progress.check()?;
                let mut draws: Vec<Stream> = walkers.iter().map(|&w| stream(w, sweep)).collect();
                sweep_apart(target, &weights, &mut batch.states, &mut draws)?;
            }
            return Ok((walkers, batch));
        }
        let mut taken: Vec<(usize, f64, Vec<u8>)> = chosen
            .into_iter()
            .map(|(walker, t)| (walker, t, self.states[walker * sites..][..sites].to_vec()))
            .collect();
        taken.par_iter_mut().enumerate().try_for_each_init(
            || kernel.clone(),
            |kernel, (slot, (walker, t, x))| {
                let target = batch.target(slot, target);
                let lambda = lambda(*walker, *t);
                for sweep in 0..sweeps {
                    // Now and then: a look at the clock costs as much as some updates.
                    if sweep % 16 == 0 {
                        progress.check()?;
                    }
                    let mut stream = stream(*walker, sweep);
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

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::device::NoProgress;
    use crate::net::{FreeEnergy, FreeEnergySpec, MlpSpec, Net, NetSpec};
    use crate::path::{Path, Schedule};
    use crate::rates::Parametrisation;
    use crate::target::{BatchEnergy, Boundary, Lattice, Pairwise, Target};

    /// States of a pool, and of the walkers drawn from it, do not depend on whether energies are asked for in batches.
    #[test]
    fn pools_in_batches_are_pools() {
        let lattice = Lattice::new(&[3, 4], Boundary::Periodic).unwrap();
        let plain = Arc::new(Pairwise::potts(lattice, 3, 1.0, 0.2).unwrap());
        let own = plain.clone();
        let together = BatchEnergy::new("potts", 12, 3, move |states, out| {
            for (x, out) in states.chunks_exact(12).zip(out) {
                *out = (0..own.terms()).map(|term| own.energy(term, x)).sum();
            }
            Ok(())
        });
        let pool = |target: Arc<dyn Target>| {
            let path = Path::new(&vec![0.8; target.terms()], Schedule::Linear).unwrap();
            let net = Net::new(&NetSpec::Mlp(MlpSpec { hidden: 4 }), &*target).unwrap();
            let free = FreeEnergy::new(&FreeEnergySpec::Rate, 12).unwrap();
            let (net, free) = (Arc::new(net), Arc::new(free));
            let objective = Objective::new(&target, &path, &net, &free, Parametrisation::Barker);
            let kernel = AnyKernel::new(KernelName::HeatBath, &*target, path.ends()).unwrap();
            let pool = Pool::new(&objective, 40, 7, &NoProgress).unwrap();
            let draw = PoolDraw { size: 16, sweeps: 2, step: 3 };
            let (walkers, batch) = pool.draw(&objective, &kernel, draw, &NoProgress).unwrap();
            (pool.states, walkers, batch.states, batch.times)
        };
        assert_eq!(pool(plain), pool(Arc::new(together)));
    }
}
