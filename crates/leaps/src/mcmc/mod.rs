//! Markov kernels: they move one state at a time and leave the model's distribution invariant.
//!
//! A kernel owns its scratch space and step sizes, so a chain clones its own; it draws every random
//! choice through [`Draw`], so that tests can enumerate its transitions exactly. A kernel is made for
//! one target and may be used with it at any weights `lambda`, which may change between steps.
//!
//! | kernel | one step | reference |
//! |---|---|---|
//! | [`Metropolis`] | a sweep of proposals | Metropolis et al. 1953 |
//! | [`HeatBath`] | a sweep of conditional draws | Creutz 1980 |
//! | [`Gibbs`] | one site | Geman and Geman 1984 |
//! | [`BlockGibbs`] | a few sites jointly | |
//! | [`HammingBall`] | the ball round an auxiliary state | Titsias and Yau 2017 |
//! | [`RandomWalk`] | blind flips of a few sites | |
//! | [`LocallyBalanced`] | one informed flip | Zanella 2020 |
//! | [`GibbsWithGradients`] | one informed flip, square root | Grathwohl et al. 2021 |
//! | [`PathAuxiliary`] | a path of informed flips | Sun et al. 2022 |
//! | [`DiscreteMala`] | all sites at once | Zhang, Liu and Liu 2022 |
//! | [`DiscreteLangevin`] | all sites for a time step | Sun et al. 2023 |
//! | [`Wolff`] | one cluster | Wolff 1989 |
//! | [`SwendsenWang`] | all clusters | Swendsen and Wang 1987 |
//!
//! [`Wolff`] and [`SwendsenWang`] join equal or opposite values of Ising and Potts models, and exchange values of other models of pairs.
//!
//! [`Tempering`] exchanges several states between temperatures, [`Houdayer`] parts of two states at
//! one temperature.

mod adapt;
mod block_gibbs;
mod bonds;
mod chains;
pub(crate) mod cuda;
mod dlmc;
mod dmala;
mod exchanges;
mod gibbs;
mod hamming_ball;
mod heat_bath;
mod houdayer;
mod kernel_name;
mod locally_balanced;
pub(crate) mod lockstep;
mod metropolis;
mod moves;
mod neighbours;
mod path_auxiliary;
mod random_walk;
mod rounds;
pub(crate) mod runner;
mod spec;
mod swendsen_wang;
mod tempering;
mod wolff;

pub use adapt::StepSize;
pub use block_gibbs::BlockGibbs;
pub use chains::{
    ChainOutcome, ChainSettings, TemperingOutcome, TemperingSettings, run_chains, run_tempering,
};
pub use dlmc::DiscreteLangevin;
pub use dmala::DiscreteMala;
pub use gibbs::Gibbs;
pub use hamming_ball::HammingBall;
pub use heat_bath::HeatBath;
pub use houdayer::Houdayer;
pub use kernel_name::{AnyKernel, KernelName};
pub use locally_balanced::{GibbsWithGradients, LocallyBalanced};
pub use metropolis::Metropolis;
pub use neighbours::Balance;
pub use path_auxiliary::PathAuxiliary;
pub use random_walk::RandomWalk;
pub use spec::{ChainSpec, KernelSpec, Move, kernels_help};
pub use swendsen_wang::SwendsenWang;
pub use tempering::Tempering;
pub use wolff::Wolff;

pub mod lanes;

use crate::device::Draw;
use crate::target::Density;

/// What a step did. Reported, never fed back except to [`Kernel::adapt`].
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Info {
    /// Probability with which the proposal was accepted (1 where nothing can be rejected), averaged
    /// over the proposals of the step.
    pub acceptance: f64,
    /// Number of sites whose value changed.
    pub changed: usize,
}

/// A Markov kernel that leaves `rho(x) ~ exp(-U(x))` invariant.
pub trait Kernel: Clone + Send {
    /// Make one step from `x`.
    fn step<D: Draw>(&mut self, model: &Density<'_>, x: &mut [u8], draw: &mut D) -> Info;

    /// The number that burn-in adapts, if there is one.
    fn step_size(&mut self) -> Option<&mut StepSize> {
        None
    }

    /// Learn from a step during burn-in; kernels without step sizes ignore it. Never called after the first half of
    /// burn-in, since adapting for ever would break invariance.
    fn adapt(&mut self, info: &Info) {
        if let Some(step_size) = self.step_size() {
            step_size.learn(info.acceptance);
        }
    }

    /// Energy evaluations charged for a step with `q` values, counted as the DISCS benchmark does.
    fn energy_calls(&self, q: usize) -> f64;

    /// Whether one step, from wherever the kernel stands, satisfies detailed balance:
    /// `rho(x) P(x, y) = rho(y) P(y, x)`. Sweeps in a fixed order only leave `rho` invariant.
    fn reversible(&self) -> bool {
        true
    }
}
