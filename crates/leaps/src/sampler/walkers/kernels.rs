//! Move each walker by a Markov kernel of its own: for any target and any kernel.

use rayon::prelude::*;

use crate::Result;
use crate::device::{Progress, Purpose, Stream};
use crate::mcmc::Kernel;
use crate::sampler::Grid;
use crate::sampler::walkers::{Population, check_energy};
use crate::target::{Density, Target, initial_state};

struct Walker<K> {
    x: Vec<u8>,
    energies: Vec<f64>,
    kernel: K,
}

/// Walkers that make `steps` steps of a kernel per interval.
pub struct KernelWalkers<'a, K> {
    target: &'a dyn Target,
    walkers: Vec<Walker<K>>,
    steps: u64,
    seed: u64,
    /// Steps made so far.
    made: u64,
    calls: f64,
}

impl<'a, K: Kernel + Sync> KernelWalkers<'a, K> {
    /// `walkers` walkers in uniformly random states.
    pub fn new(
        target: &'a dyn Target,
        kernel: &K,
        steps: u64,
        walkers: usize,
        seed: u64,
    ) -> Result<Self> {
        let made: Result<Vec<_>> = (0..walkers)
            .into_par_iter()
            .map(|walker| {
                let x = initial_state(target, seed, walker as u32);
                let energies: Vec<f64> =
                    (0..target.terms()).map(|term| target.energy(term, &x)).collect();
                check_energy(target, &energies, || x.clone(), seed, walker, 0)?;
                Ok(Walker { x, energies, kernel: kernel.clone() })
            })
            .collect();
        Ok(KernelWalkers { target, walkers: made?, steps, seed, made: 0, calls: 1.0 })
    }
}

impl<K: Kernel + Sync> Population for KernelWalkers<'_, K> {
    fn walkers(&self) -> usize {
        self.walkers.len()
    }

    fn weigh(&mut self, grid: &Grid, k: usize, log_weights: &mut [f64]) -> Result<()> {
        let (before, after) = (grid.lambda(k - 1), grid.lambda(k));
        for (walker, log_weight) in self.walkers.iter().zip(log_weights) {
            for ((energy, before), after) in walker.energies.iter().zip(before).zip(after) {
                *log_weight += (before - after) * energy;
            }
        }
        Ok(())
    }

    fn mutate(
        &mut self,
        grid: &Grid,
        k: usize,
        _: &mut [f64],
        progress: &dyn Progress,
    ) -> Result<()> {
        let (target, seed, steps, made) = (self.target, self.seed, self.steps, self.made);
        let model = Density::new(target, grid.lambda(k));
        self.walkers.par_iter_mut().enumerate().with_min_len(8).try_for_each(
            |(number, walker)| {
                for step in 0..steps {
                    progress.check()?;
                    let at = made + step;
                    let mut stream = Stream::new(seed, Purpose::Move, number as u32, at);
                    walker.kernel.step(&model, &mut walker.x, &mut stream);
                }
                for (term, energy) in walker.energies.iter_mut().enumerate() {
                    *energy = target.energy(term, &walker.x);
                }
                check_energy(target, &walker.energies, || walker.x.clone(), seed, number, k as u64)
            },
        )?;
        self.made += steps;
        if let Some(walker) = self.walkers.first() {
            self.calls += 1.0 + steps as f64 * walker.kernel.energy_calls(target.q());
        }
        Ok(())
    }

    fn resample(&mut self, ancestors: &[u32]) -> Result<()> {
        let old: Vec<(Vec<u8>, Vec<f64>)> = self
            .walkers
            .iter_mut()
            .map(|w| (std::mem::take(&mut w.x), std::mem::take(&mut w.energies)))
            .collect();
        for (walker, &ancestor) in self.walkers.iter_mut().zip(ancestors) {
            let (x, energies) = &old[ancestor as usize];
            walker.x.extend_from_slice(x);
            walker.energies.extend_from_slice(energies);
        }
        Ok(())
    }

    fn energies(&self) -> Result<Vec<f64>> {
        Ok(self.walkers.iter().flat_map(|w| w.energies.iter().copied()).collect())
    }

    fn states(&self) -> Result<Vec<u8>> {
        Ok(self.walkers.iter().flat_map(|w| w.x.iter().copied()).collect())
    }

    fn energy_calls(&self) -> f64 {
        self.calls
    }
}
