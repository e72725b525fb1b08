//! Take gradient steps, and say how good the network has become.

use super::loss::Loss;
use super::{Batch, Buffer, Optimiser, Pool, Reference, TrainSpec};
use crate::device::Watch;
use crate::mcmc::{AnyKernel, KernelName};
use crate::net::{FreeEnergy, Net};
use crate::path::Path;
use crate::rates::Parametrisation;
use crate::sampler::{Ensemble, Flow, FlowWalkers, Resampling, Stepper, anneal, flow_grid};
use crate::target::Target;
use crate::{Error, Result};

/// What a gradient step did.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Progress {
    /// Steps made, this one included.
    pub step: u64,
    /// Mean squared residual.
    pub loss: f64,
    /// Norm of the gradient before clipping.
    pub norm: f64,
    /// Learning rate.
    pub rate: f64,
}

/// A training run: everything that changes while it goes on.
pub struct Trainer<'a> {
    target: &'a dyn Target,
    path: &'a Path,
    net: &'a Net,
    parametrisation: Parametrisation,
    spec: TrainSpec,
    loss: Loss<'a>,
    kernel: AnyKernel,
    gradient: Vec<f32>,
    /// Parameters of the network, then of the free energy.
    pub optimiser: Optimiser,
    /// Reference walkers; empty unless the reference is a pool.
    pub pool: Option<Pool>,
    /// Reference rollouts; empty unless the reference is one.
    pub buffer: Buffer,
    /// Factor of the learning rate, halved at every roll-back.
    pub rate_factor: f64,
    seed: u64,
}

impl<'a> Trainer<'a> {
    /// A fresh run.
    pub fn new(
        target: &'a dyn Target,
        path: &'a Path,
        net: &'a Net,
        free: &'a FreeEnergy,
        parametrisation: Parametrisation,
        spec: &TrainSpec,
        seed: u64,
    ) -> Result<Self> {
        let mut parameters = net.initial(seed);
        parameters.extend(free.initial(seed));
        let mut trainer =
            Self::bare(target, path, net, free, parametrisation, spec, seed, parameters)?;
        if spec.reference == Reference::Pool {
            trainer.pool = Some(Pool::new(target, path, spec.pool, seed)?);
        }
        Ok(trainer)
    }

    /// A run without reference states, to be filled in from a checkpoint.
    pub fn bare(
        target: &'a dyn Target,
        path: &'a Path,
        net: &'a Net,
        free: &'a FreeEnergy,
        parametrisation: Parametrisation,
        spec: &TrainSpec,
        seed: u64,
        parameters: Vec<f32>,
    ) -> Result<Self> {
        spec.check()?;
        let n = net.parameters() + free.parameters();
        if parameters.len() != n {
            return Err(Error::invalid(
                "parameters",
                parameters.len(),
                format!("{n} numbers"),
                "use a checkpoint of this network",
            ));
        }
        Ok(Trainer {
            target,
            path,
            net,
            parametrisation,
            spec: spec.clone(),
            loss: Loss::new(target, path, net, free, parametrisation),
            kernel: AnyKernel::new(KernelName::HeatBath, target, path.ends())?,
            gradient: vec![0.0; n],
            optimiser: Optimiser::new(parameters),
            pool: None,
            buffer: Buffer::default(),
            rate_factor: 1.0,
            seed,
        })
    }

    /// Steps made.
    pub fn steps(&self) -> u64 {
        self.optimiser.step
    }

    fn batch(&mut self) -> Result<Batch> {
        let (step, spec) = (self.steps(), &self.spec);
        if let Some(pool) = &mut self.pool {
            let (size, sweeps) = (spec.batch, spec.sweeps);
            return Ok(pool.draw(self.target, self.path, &self.kernel, size, sweeps, step));
        }
        let on_policy = spec.reference == Reference::Policy;
        if on_policy || self.buffer.times.is_empty() || step.is_multiple_of(spec.rollout_every) {
            let flow = Flow {
                net: self.net,
                packed: self.net.pack(&self.optimiser.parameters[..self.net.parameters()]),
                parametrisation: self.parametrisation,
            };
            if on_policy {
                self.buffer = Buffer::default();
            }
            self.buffer.roll(self.target, self.path, &flow, spec, step, self.seed)?;
        }
        Ok(self.buffer.draw(spec.batch, self.seed, step))
    }

    /// One gradient step. A loss or gradient that is not finite is an error that changes no parameter.
    pub fn step(&mut self) -> Result<Progress> {
        let batch = self.batch()?;
        let step = self.steps();
        let place = |error: Error| match error {
            Error::NonFinite { what, value, walker, state, .. } => {
                Error::NonFinite { what, value, seed: self.seed, walker, step, state }
            }
            other => other,
        };
        let residuals = self
            .loss
            .gradient(&self.optimiser.parameters, &batch, &mut self.gradient)
            .map_err(place)?;
        let loss = residuals.iter().map(|r| r * r).sum::<f64>() / residuals.len() as f64;
        let rate = self.rate_factor * self.spec.rate(step);
        let norm = self.optimiser.step(&self.gradient, rate, &self.spec);
        if !loss.is_finite() || !norm.is_finite() {
            return Err(Error::NonFinite {
                what: "norm of the gradient".into(),
                value: norm,
                seed: self.seed,
                walker: 0,
                step,
                state: crate::target::show_state(batch.state(0)),
            });
        }
        Ok(Progress { step: self.steps(), loss, norm, rate })
    }

    /// Sample with the averaged parameters: exact weights by events.
    pub fn validate(
        &self,
        walkers: usize,
        intervals: usize,
        watch: &dyn Watch,
    ) -> Result<Ensemble> {
        let flow = Flow {
            net: self.net,
            packed: self.net.pack(&self.optimiser.average[..self.net.parameters()]),
            parametrisation: self.parametrisation,
        };
        let cuts: Vec<f64> = (0..=intervals).map(|k| k as f64 / intervals as f64).collect();
        let (grid, durations) = flow_grid(self.path, Stepper::Events, &cuts)?;
        // Fresh numbers every time, none of them the training's.
        let seed = self.seed ^ self.steps().wrapping_mul(0xA076_1D64_78BD_642F);
        let mut population = FlowWalkers::new(
            self.target,
            self.path,
            &flow,
            Stepper::Events,
            durations,
            0,
            walkers,
            seed,
        )?;
        anneal(self.target, &mut population, &grid, &Resampling::NEVER, 1, seed, watch)
    }
}
