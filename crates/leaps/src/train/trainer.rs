//! The trainer: gradient steps, and how good the network has become.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::cpu::CpuTraining;
use super::step::{Source, TrainStep, Weights};
use super::{Batch, Buffer, Objective, Optimiser, Pool, Reference, TrainSpec, TrainState, cuda};
use crate::device::{NoProgress, Placement, Progress, Ranks, Single};
use crate::sampler::{Ensemble, Population, Protocol, Resampling, Scheme, WalkPlan, anneal};
use crate::{Error, Result};

/// What a gradient step did.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct StepMetrics {
    /// Steps made, this one included.
    pub step: u64,
    /// Mean squared residual.
    pub loss: f64,
    /// Norm of the gradient before clipping.
    pub norm: f64,
    /// Learning rate.
    #[serde(rename = "lr")]
    pub rate: f64,
}

/// A training run.
pub struct Trainer {
    objective: Objective,
    spec: TrainSpec,
    seed: u64,
    ranks: Arc<dyn Ranks>,
    device: Box<dyn TrainStep>,
    /// Everything that changes while it goes on.
    pub state: TrainState,
}

impl Trainer {
    /// A fresh run on the CPU. `progress` can interrupt the preparation of its pool.
    pub fn new(
        objective: &Objective,
        spec: &TrainSpec,
        seed: u64,
        progress: &dyn Progress,
    ) -> Result<Self> {
        Self::fresh(objective, spec, seed)?.prepared(progress)
    }

    /// A fresh run without reference states, which [`prepared`](Self::prepared) makes.
    pub fn fresh(objective: &Objective, spec: &TrainSpec, seed: u64) -> Result<Self> {
        Self::bare(objective, spec, seed, objective.initial(seed))
    }

    /// Bring reference walkers to their times. `progress` can interrupt that.
    pub fn prepared(mut self, progress: &dyn Progress) -> Result<Self> {
        if self.spec.reference == Reference::Pool {
            let walkers = self.spec.pool_walkers();
            let pool = Pool::new(&self.objective, walkers, self.seed, progress)?;
            self.state.pool = Some(pool);
        }
        Ok(self)
    }

    /// Start from these parameters of the network and the free energy in place of fresh ones.
    pub fn start_from(&mut self, parameters: &[f32]) -> Result<()> {
        let advice = "give those of the network, then those of the free energy";
        check_count(&self.objective, parameters, advice)?;
        self.state.optimiser = Optimiser::new(parameters.to_vec());
        Ok(())
    }

    /// A run without reference states, to be filled in from a checkpoint.
    pub fn bare(
        objective: &Objective,
        spec: &TrainSpec,
        seed: u64,
        parameters: Vec<f32>,
    ) -> Result<Self> {
        spec.check()?;
        check_count(objective, &parameters, "use a checkpoint of this network")?;
        Ok(Trainer {
            device: Box::new(CpuTraining::new(objective, spec)?),
            ranks: Arc::new(Single),
            state: TrainState {
                optimiser: Optimiser::new(parameters),
                pool: None,
                buffer: Buffer::default(),
                rate_factor: 1.0,
                batch: Batch::new(objective.target.sites()),
            },
            objective: objective.clone(),
            spec: spec.clone(),
            seed,
        })
    }

    /// Train on `placement` from now on.
    pub fn place_on(self, placement: &Placement) -> Result<Self> {
        match placement {
            Placement::Cpu => Ok(self),
            Placement::Cuda(gpu, precision) => {
                let device = cuda::training(&self.objective, &self.spec, gpu, *precision)?;
                self.with_device(device)
            }
        }
    }

    /// Train with `device` from now on.
    pub(super) fn with_device(mut self, mut device: Box<dyn TrainStep>) -> Result<Self> {
        device.upload(&self.state)?;
        self.device = device;
        Ok(self)
    }

    /// Share the gradient with other ranks.
    pub fn with_ranks(mut self, ranks: Arc<dyn Ranks>) -> Self {
        self.ranks = ranks;
        self
    }

    /// Bring [`state`](Self::state) up to date, if training goes on elsewhere than on the host.
    pub fn sync(&mut self) -> Result<()> {
        self.device.download(&mut self.state)
    }

    /// Steps made.
    pub fn steps(&self) -> u64 {
        self.state.optimiser.step
    }

    /// The reference states of the last step, failed ones included.
    pub fn batch(&self) -> &Batch {
        &self.state.batch
    }

    /// Whether the next step needs new rollouts.
    fn rolls(&self) -> bool {
        let (reference, every) = (self.spec.reference, self.spec.rollout_every);
        let empty = self.state.buffer.times.is_empty();
        reference == Reference::Policy || empty || self.steps().is_multiple_of(every)
    }

    /// Where the reference states of the next step come from.
    fn source(&mut self, progress: &dyn Progress) -> Result<Source> {
        if self.state.pool.is_some() {
            return Ok(Source::Pool);
        }
        let (step, spec, seed) = (self.steps(), &self.spec, self.seed);
        if self.rolls() {
            if spec.reference == Reference::Policy {
                self.state.buffer = Buffer::default();
            }
            let (plan, population) = Buffer::rollout(&self.objective.path, spec, step, seed)?;
            let weights = Weights::Current;
            let mut walkers = self.device.walkers(&self.state, weights, &plan, population)?;
            self.state.buffer.fill(&mut *walkers, &plan, spec, progress)?;
        }
        Ok(Source::Batch(self.state.buffer.draw(spec.batch, seed, step)))
    }

    /// One gradient step. A loss or gradient that is not finite is an error that changes no parameter.
    ///
    /// A step that `progress` interrupts has changed nothing that a checkpoint holds: it can be made again. On a GPU the sweeps and the
    /// gradient of a step are not interrupted.
    pub fn step(&mut self, progress: &dyn Progress) -> Result<StepMetrics> {
        let (step, seed) = (self.steps(), self.seed);
        let rate = self.state.rate_factor * self.spec.rate(step);
        let done = self.try_step(rate, progress);
        let (loss, norm) = done.map_err(|error| match error {
            Error::NonFinite { what, value, walker, state, .. } => {
                Error::NonFinite { what, value, seed, walker, step, state }
            }
            other => other,
        })?;
        Ok(StepMetrics { step: self.steps(), loss, norm, rate })
    }

    fn try_step(&mut self, rate: f64, progress: &dyn Progress) -> Result<(f64, f64)> {
        self.state.batch = Batch::new(self.objective.target.sites());
        // Rollouts that were put into a lasting buffer must not be made again: such a step is finished.
        let lasting = self.spec.reference == Reference::Buffer && self.rolls();
        let source = self.source(progress)?;
        self.device.reference(&mut self.state, source, progress)?;
        let progress = if lasting { &NoProgress } else { progress };
        self.device.gradient(&mut self.state, progress)?;
        self.device.reduce(&*self.ranks)?;
        self.device.apply(&mut self.state, rate)
    }

    /// Sample with the averaged parameters: exact weights by events.
    pub fn validate(
        &mut self,
        walkers: usize,
        intervals: usize,
        progress: &dyn Progress,
    ) -> Result<Ensemble> {
        let cuts: Vec<f64> = (0..=intervals).map(|k| k as f64 / intervals as f64).collect();
        let plan = WalkPlan::new(&self.objective.path, Scheme::Events, &cuts)?;
        // Fresh numbers every time, none of them the training's.
        let seed = self.seed ^ self.steps().wrapping_mul(0xA076_1D64_78BD_642F);
        let population = Population::new(walkers, seed);
        let mut walkers = self.device.walkers(&self.state, Weights::Average, &plan, population)?;
        let resampling = Resampling::NEVER;
        let protocol = Protocol { grid: &plan.grid, resampling, trace_points: 1, seed };
        anneal(&*self.objective.target, &mut *walkers, protocol, progress)
    }
}

/// Refuse parameters of another network.
fn check_count(objective: &Objective, parameters: &[f32], advice: &str) -> Result<()> {
    let n = objective.parameters();
    if parameters.len() == n {
        return Ok(());
    }
    Err(Error::invalid("parameters", parameters.len(), format!("{n} numbers"), advice))
}
