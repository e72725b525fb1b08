//! Gradient steps on a device: what the CPU and a GPU do in their own ways.

use super::{Batch, Buffer, Optimiser, Pool};
use crate::Result;
use crate::device::{Progress, Ranks};
use crate::sampler::{Population, WalkPlan, Walkers};

/// Everything that changes in training.
///
/// On a GPU most of it lives there: what these fields hold is up to date after [`Trainer::sync`](super::Trainer::sync), the number of steps
/// always.
#[derive(Clone, Debug, PartialEq)]
pub struct TrainState {
    /// Parameters of the network, then of the free energy.
    pub optimiser: Optimiser,
    /// Reference walkers; none unless the reference is a pool.
    pub pool: Option<Pool>,
    /// Reference rollouts; empty unless the reference is one.
    pub buffer: Buffer,
    /// Factor of the learning rate, halved at every roll-back.
    pub rate_factor: f64,
    /// The reference states of the last step, failed ones included.
    pub batch: Batch,
}

/// Where the reference states of a step come from.
pub(super) enum Source {
    /// The pool.
    Pool,
    /// Rollouts that have been drawn from.
    Batch(Batch),
}

/// Which parameters walkers follow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Weights {
    /// Those of the last step.
    Current,
    /// Their average, which sampling uses.
    Average,
}

/// The parts of a gradient step. The gradient, its reduction over ranks and the update are separate, so that ranks can stand between them.
pub(super) trait TrainStep {
    /// Take over what the host holds.
    fn upload(&mut self, state: &TrainState) -> Result<()>;

    /// Give it back as it is now.
    fn download(&mut self, state: &mut TrainState) -> Result<()>;

    /// Make reference states ready for the next step. Interrupted, it has changed nothing that a checkpoint holds.
    fn reference(
        &mut self,
        state: &mut TrainState,
        source: Source,
        progress: &dyn Progress,
    ) -> Result<()>;

    /// The gradient of the loss over the reference states. Interrupted, it has changed nothing that a checkpoint holds.
    fn gradient(&mut self, state: &mut TrainState, progress: &dyn Progress) -> Result<()>;

    /// Replace the gradient by its mean over all ranks.
    fn reduce(&mut self, ranks: &dyn Ranks) -> Result<()>;

    /// Follow the gradient; returns loss and norm of the gradient. One that is not finite is an error that changes no parameter.
    fn apply(&mut self, state: &mut TrainState, rate: f64) -> Result<(f64, f64)>;

    /// Walkers in uniformly random states that follow the network, for rollouts and validation.
    fn walkers<'s>(
        &'s mut self,
        state: &TrainState,
        weights: Weights,
        plan: &WalkPlan,
        population: Population,
    ) -> Result<Box<dyn Walkers + 's>>;
}

/// Replace numbers by their mean over all ranks.
pub(super) fn mean_over(ranks: &dyn Ranks, numbers: &mut [f32]) -> Result<()> {
    ranks.sum(numbers)?;
    let share = 1.0 / ranks.size() as f32;
    numbers.iter_mut().for_each(|number| *number *= share);
    Ok(())
}
