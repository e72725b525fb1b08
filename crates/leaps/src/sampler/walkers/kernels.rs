//! Walkers that a Markov kernel moves one by one: for any target and any kernel.

use std::sync::Arc;

use rayon::prelude::*;

use crate::Result;
use crate::device::{Progress, Purpose, Stream};
use crate::mcmc::Kernel;
use crate::sampler::Interval;
use crate::sampler::walkers::{Cost, Population, Walkers};
use crate::target::{Density, Target};

struct Walker<K> {
    x: Vec<u8>,
    energies: Vec<f64>,
    kernel: K,
}

/// Walkers that make `steps` steps of a kernel per interval.
pub struct KernelWalkers<K> {
    target: Arc<dyn Target>,
    population: Population,
    walkers: Vec<Walker<K>>,
    steps: u64,
    /// Steps made so far.
    made: u64,
    calls: f64,
}

impl<K: Kernel + Sync> KernelWalkers<K> {
    /// Walkers in uniformly random states.
    pub fn new(
        target: &Arc<dyn Target>,
        kernel: &K,
        steps: u64,
        population: Population,
    ) -> Result<Self> {
        let walkers: Result<Vec<_>> = (0..population.walkers)
            .into_par_iter()
            .map(|i| {
                let (x, energies) = population.initial(&**target, i)?;
                Ok(Walker { x, energies, kernel: kernel.clone() })
            })
            .collect();
        let (target, walkers) = (target.clone(), walkers?);
        Ok(KernelWalkers { target, population, walkers, steps, made: 0, calls: 1.0 })
    }
}

impl<K: Kernel + Sync> Walkers for KernelWalkers<K> {
    fn walkers(&self) -> usize {
        self.walkers.len()
    }

    fn mutate(&mut self, at: Interval<'_>, _: &mut [f64], progress: &dyn Progress) -> Result<()> {
        let (target, population) = (&*self.target, self.population);
        let (steps, made) = (self.steps, self.made);
        let model = Density::new(target, at.lambda());
        self.walkers.par_iter_mut().enumerate().with_min_len(8).try_for_each(|(i, walker)| {
            let (seed, number) = (population.seed, population.number(i));
            for step in made..made + steps {
                progress.check()?;
                let mut stream = Stream::new(seed, Purpose::Move, number, step);
                walker.kernel.step(&model, &mut walker.x, &mut stream);
            }
            population.visit(target, i, at.k as u64).measure(&walker.x, &mut walker.energies)
        })?;
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

    fn start_at(&mut self, states: &[u8]) -> Result<()> {
        self.population.put(&*self.target, &mut self.walkers, states, |walker| {
            (&mut walker.x, &mut walker.energies)
        })
    }

    fn energies(&self) -> Result<Vec<f64>> {
        Ok(self.walkers.iter().flat_map(|w| w.energies.iter().copied()).collect())
    }

    fn states(&self) -> Result<Vec<u8>> {
        Ok(self.walkers.iter().flat_map(|w| w.x.iter().copied()).collect())
    }

    fn cost(&self) -> Result<Cost> {
        Ok(Cost { energy_calls: self.calls, network_passes: 0.0 })
    }
}
