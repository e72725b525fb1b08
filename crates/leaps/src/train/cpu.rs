//! Gradient steps on the CPU.

use super::step::{Source, TrainState, TrainStep, Weights, mean_over};
use super::{Loss, Objective, PoolDraw, TrainSpec};
use crate::device::{Progress, Ranks};
use crate::mcmc::{AnyKernel, KernelName};
use crate::sampler::{NetworkWalk, NetworkWalkers, Population, RateModel, WalkPlan, Walkers};
use crate::target::show_state;
use crate::{Error, Result};

/// Training on the CPU.
pub(super) struct CpuTraining {
    objective: Objective,
    spec: TrainSpec,
    loss: Loss,
    kernel: AnyKernel,
    /// Walkers of the pool that the reference states are.
    chosen: Vec<usize>,
    gradient: Vec<f32>,
    /// Mean squared residual.
    mean_square: f64,
}

impl CpuTraining {
    /// Training towards an objective.
    pub(super) fn new(objective: &Objective, spec: &TrainSpec) -> Result<Self> {
        let ends = objective.path.ends();
        Ok(CpuTraining {
            loss: Loss::new(objective),
            kernel: AnyKernel::new(KernelName::HeatBath, &*objective.target, ends)?,
            chosen: Vec::new(),
            gradient: vec![0.0; objective.parameters()],
            mean_square: f64::NAN,
            objective: objective.clone(),
            spec: spec.clone(),
        })
    }
}

impl TrainStep for CpuTraining {
    /// The host's is the state.
    fn upload(&mut self, _: &TrainState) -> Result<()> {
        Ok(())
    }

    fn download(&mut self, _: &mut TrainState) -> Result<()> {
        Ok(())
    }

    fn reference(
        &mut self,
        state: &mut TrainState,
        source: Source,
        progress: &dyn Progress,
    ) -> Result<()> {
        let step = state.optimiser.step;
        (self.chosen, state.batch) = match (source, &mut state.pool) {
            (Source::Batch(batch), _) => (Vec::new(), batch),
            (Source::Pool, None) => (Vec::new(), std::mem::take(&mut state.batch)),
            (Source::Pool, Some(pool)) => {
                pool.renew(&self.objective, step, progress)?;
                let (size, sweeps) = (self.spec.batch, self.spec.sweeps);
                let draw = PoolDraw { size, sweeps, step };
                pool.draw(&self.objective, &self.kernel, draw, progress)?
            }
        };
        Ok(())
    }

    fn gradient(&mut self, state: &mut TrainState, progress: &dyn Progress) -> Result<()> {
        let (parameters, batch) = (&state.optimiser.parameters, &state.batch);
        let residuals = self.loss.gradient(parameters, batch, &mut self.gradient, progress);
        let interrupted = matches!(residuals, Err(Error::Interrupted));
        if let Some(pool) = state.pool.as_mut().filter(|_| !interrupted) {
            pool.put(&self.chosen, batch);
        }
        let residuals = residuals?;
        self.mean_square = residuals.iter().map(|r| r * r).sum::<f64>() / residuals.len() as f64;
        Ok(())
    }

    fn reduce(&mut self, ranks: &dyn Ranks) -> Result<()> {
        if ranks.size() == 1 {
            return Ok(());
        }
        mean_over(ranks, &mut self.gradient)
    }

    fn apply(&mut self, state: &mut TrainState, rate: f64) -> Result<(f64, f64)> {
        let infinite = |what: &str, value: f64| Error::NonFinite {
            what: what.into(),
            value,
            seed: 0,
            walker: 0,
            step: 0,
            state: show_state(state.batch.state(0)),
        };
        if !self.mean_square.is_finite() {
            return Err(infinite("loss", self.mean_square));
        }
        let norm = state.optimiser.step(&self.gradient, rate, &self.spec);
        if !norm.is_finite() {
            return Err(infinite("norm of the gradient", norm));
        }
        Ok((self.mean_square, norm))
    }

    fn walkers<'s>(
        &'s mut self,
        state: &TrainState,
        weights: Weights,
        plan: &WalkPlan,
        population: Population,
    ) -> Result<Box<dyn Walkers + 's>> {
        let Objective { target, path, net, parametrisation, condition, .. } = &self.objective;
        let all = match weights {
            Weights::Current => &state.optimiser.parameters,
            Weights::Average => &state.optimiser.average,
        };
        let own = &all[..net.parameters()];
        let rates = &RateModel::new(net, own, *parametrisation).conditioned_on(condition);
        let walk = NetworkWalk { target, path, rates, plan, population };
        Ok(Box::new(NetworkWalkers::new(walk)?))
    }
}
