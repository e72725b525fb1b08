//! Move one state at a time, leaving the model's distribution invariant.
//!
//! A kernel owns its scratch space and step sizes, so a chain clones its own; it draws every random
//! choice through [`Draw`], so that tests can enumerate its transitions exactly.

pub mod lanes;

use crate::device::Draw;
use crate::target::Model;

/// What a step did. Reported, never fed back except to [`Kernel::adapt`].
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Info {
    /// Probability with which the proposal was accepted (1 where nothing can be rejected), averaged
    /// over the proposals of the step.
    pub acceptance: f64,
    /// Number of sites whose token changed.
    pub changed: usize,
}

/// A Markov kernel that leaves `rho(x) ~ exp(-U(x))` invariant.
pub trait Kernel: Clone + Send {
    /// Make one step from `x`.
    fn step<D: Draw>(&mut self, model: &Model<'_>, x: &mut [u8], draw: &mut D) -> Info;

    /// Learn from a step during burn-in; kernels without step sizes ignore it. Never called after
    /// burn-in, since adapting for ever would break invariance.
    fn adapt(&mut self, info: &Info) {
        let _ = info;
    }

    /// Energy evaluations charged for a step with `tokens` tokens, counted as the DISCS benchmark does.
    fn energy_calls(&self, tokens: usize) -> f64;
}
