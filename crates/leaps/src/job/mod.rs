//! Jobs: what a user asks for, each a builder with sane defaults that returns typed results.
//!
//! | job | what it does |
//! |---|---|
//! | [`Annealing`] | annealed importance sampling, and sequential Monte Carlo with resampling |
//! | [`Chains`] | Markov chains, and ladders of temperatures that exchange states |
//! | [`Sampling`] | weighted walkers that follow a trained network |
//! | [`Training`] | a network for a problem |
//! | [`FreeEnergies`] | free energy, entropy and observables over a grid of temperatures and fields |
//! | [`Minimizing`] | the lowest energy and a state that has it |
//! | [`Comparison`] | several samplers on one problem |
//! | [`Experiment`] | networks and samplers that a file describes, with everything kept on the disk |
//! | [`Reference`] | what results are held against |
//! | [`Solving`] | the exact answer, where there is one |
//! | [`Drawing`] | independent exact samples, measured as those of other samplers are |
//! | [`evaluate`] | all outputs of a network at given states |

/// Settings that builders have alike: `settings!(seed)` within an `impl`.
macro_rules! settings {
    (seed) => {
        /// The seed.
        pub fn seed(mut self, seed: u64) -> Self {
            self.seed = seed;
            self
        }
    };
    (structure_factor) => {
        /// Measure structure factors at all wave vectors as well, and correlations at all offsets.
        pub fn structure_factor(mut self) -> Self {
            self.measure.structure_factor = true;
            self
        }
    };
    (at_beta) => {
        /// Inverse temperatures on the way at which walkers are measured as well.
        pub fn at_beta(mut self, betas: impl IntoIterator<Item = f64>) -> Self {
            self.walkers.at_beta = betas.into_iter().collect();
            self
        }
    };
    ($first:ident, $($rest:ident),+) => {
        settings!($first);
        settings!($($rest),+);
    };
}

mod annealing;
mod chains;
mod comparison;
mod context;
mod drawing;
mod evaluation;
pub mod experiment;
mod free_energies;
mod measured;
mod memory;
mod minimizing;
mod monitor;
mod reference;
mod sampler;
mod sampling;
mod snapshots;
mod solving;
mod training;
mod two_sided;

use std::ops::Deref;

pub use annealing::Annealing;
pub use chains::Chains;
pub use comparison::{Comparison, NamedSampler, SamplerEntry};
pub use context::{Context, MOST_THREADS};
pub use drawing::Drawing;
pub use evaluation::{Evaluated, evaluate};
pub use experiment::Experiment;
pub use free_energies::{FreeEnergies, FreeEnergyMethod};
pub use measured::{bins, energies};
pub use memory::{check_memory, training_memory};
pub use minimizing::{BetaRange, MinimizeMethod, MinimizeSpec, Minimizing};
pub use monitor::Monitor;
pub use reference::{Law, Reference};
pub use sampler::Sampler;
pub use sampling::Sampling;
pub use solving::Solving;
pub use training::{ConfigText, Start, Trained, Training, begun, seconds, sizes, still_there};

use serde::Serialize;
use serde_json::Value;

use crate::observe::Families;
use crate::problem::Problem;
use crate::results::{Computed, Origin, Record};
use crate::store::NpzWriter;
use crate::target::Target;
use crate::{Error, Result};

/// What a job found, and the states that say so.
#[derive(Clone, Debug)]
pub struct Run<T> {
    /// The result; its fields are those of the run as well.
    pub result: T,
    /// States with their weights.
    pub samples: Samples,
    /// Where it was computed.
    pub computed: Computed,
}

impl<T> Deref for Run<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.result
    }
}

impl<T: Serialize> Run<T> {
    /// The result with its origin, for files and scripts.
    pub fn record(&self, problem: &Problem) -> Record<&T> {
        Record { origin: Origin::new(problem, &self.computed), result: &self.result }
    }
}

/// What was done; `None` if a stop came first.
fn unless_stopped<T>(done: Result<T>) -> Result<Option<T>> {
    match done {
        Err(Error::Interrupted) => Ok(None),
        done => done.map(Some),
    }
}

/// `sum_k E_k` of every state.
fn total_energies(target: &dyn Target, states: &[u8]) -> Result<Vec<f64>> {
    let terms = target.terms();
    let mut energies = vec![0.0; states.len() / target.sites() * terms];
    target.energies(states, &mut energies)?;
    Ok(energies.chunks_exact(terms).map(|row| row.iter().sum()).collect())
}

/// States with their weights.
#[derive(Clone, Debug, Default)]
pub struct Samples {
    /// `[walker * sites + site]`.
    pub states: Vec<u8>,
    /// Log-weights, each up to the same constant.
    pub log_weights: Vec<f64>,
    /// `sum_k E_k` of every state.
    pub energies: Vec<f64>,
}

impl Samples {
    /// Write the states with what is said about them.
    pub fn write(&self, file: &mut NpzWriter, target: &dyn Target, meta: &Value) -> Result<()> {
        let sites = [target.sites()];
        let shape = target.lattice().map_or(&sites[..], |lattice| lattice.shape());
        file.samples(shape, &self.states, &self.log_weights, &self.energies, meta)
    }

    /// States of one of `chains` chains, which lie one after the other, are not independent: each chain is a family.
    pub fn by_chain(&self, chains: usize) -> Families {
        let states = self.log_weights.len();
        let kept = (states / chains.max(1)).max(1);
        Families::new(&(0..states).map(|state| (state / kept) as u32).collect::<Vec<_>>())
    }
}
