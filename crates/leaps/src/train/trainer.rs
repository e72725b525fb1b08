//! The trainer: gradient steps, and how good the network has become.

use serde::{Deserialize, Serialize};

#[cfg(feature = "cuda")]
use super::cuda::CudaTraining;
use super::loss::Loss;
use super::{Batch, Buffer, Family, Member, Optimiser, Pool, Reference, TrainSpec};
#[cfg(feature = "cuda")]
use crate::device::cuda::memory::fitting;
use crate::device::{NoProgress, Placement, Progress};
use crate::mcmc::{AnyKernel, KernelName};
use crate::net::{FreeEnergy, Net};
use crate::path::Path;
#[cfg(feature = "cuda")]
use crate::path::Ranges;
use crate::rates::Parametrisation;
#[cfg(feature = "cuda")]
use crate::sampler::walkers::cuda::network::{CudaWalkers, LANES};
use crate::sampler::{
    Ensemble, NetworkWalkers, RateModel, Resampling, Scheme, anneal, scheme_grid,
};
use crate::target::Target;
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

/// A training run: everything that changes while it goes on.
pub struct Trainer<'a> {
    target: &'a dyn Target,
    path: &'a Path,
    net: &'a Net,
    #[cfg_attr(not(feature = "cuda"), allow(dead_code))]
    free: &'a FreeEnergy,
    parametrisation: Parametrisation,
    spec: TrainSpec,
    /// What the network is told about the target of the path.
    condition: Vec<f64>,
    /// The targets that reference states come from: that of the path, or a family.
    members: Vec<Member>,
    #[cfg(feature = "cuda")]
    gpu: Option<CudaTraining<'a>>,
    loss: Loss<'a>,
    kernel: AnyKernel,
    gradient: Vec<f32>,
    batch: Batch,
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
    /// A fresh run. `progress` can interrupt the preparation of its pool.
    pub fn new(
        target: &'a dyn Target,
        path: &'a Path,
        net: &'a Net,
        free: &'a FreeEnergy,
        parametrisation: Parametrisation,
        spec: &TrainSpec,
        seed: u64,
        progress: &dyn Progress,
    ) -> Result<Self> {
        Self::fresh(target, path, net, free, parametrisation, spec, seed)?.prepared(progress)
    }

    /// A fresh run without reference states, which [`prepared`](Self::prepared) makes.
    pub fn fresh(
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
        Self::bare(target, path, net, free, parametrisation, spec, seed, parameters)
    }

    /// Train on a family of targets: on paths of this target, of which the network is told. The path itself is what it is validated on.
    pub fn over(mut self, family: &Family) -> Result<Self> {
        family.check(self.net, self.free)?;
        self.condition.clone_from(&family.condition);
        self.members.clone_from(&family.members);
        self.loss = self.loss.over(&family.members);
        Ok(self)
    }

    /// Bring reference walkers to their times. `progress` can interrupt that.
    pub fn prepared(mut self, progress: &dyn Progress) -> Result<Self> {
        if self.spec.reference == Reference::Pool {
            let pool = Pool::new(self.target, &self.members, self.spec.pool, self.seed, progress)?;
            self.pool = Some(pool);
        }
        Ok(self)
    }

    /// Start from these parameters of the network and the free energy in place of fresh ones.
    pub fn start_from(&mut self, parameters: &[f32]) -> Result<()> {
        let n = self.optimiser.parameters.len();
        if parameters.len() != n {
            let condition = format!("{n} numbers");
            let advice = "give those of the network, then those of the free energy";
            return Err(Error::invalid("parameters", parameters.len(), condition, advice));
        }
        self.optimiser = Optimiser::new(parameters.to_vec());
        Ok(())
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
            free,
            parametrisation,
            spec: spec.clone(),
            condition: vec![0.0; net.conditions()],
            members: vec![Member::only(path, net)],
            #[cfg(feature = "cuda")]
            gpu: None,
            loss: Loss::new(target, path, net, free, parametrisation),
            kernel: AnyKernel::new(KernelName::HeatBath, target, path.ends())?,
            gradient: vec![0.0; n],
            batch: Batch::new(target.sites()),
            optimiser: Optimiser::new(parameters),
            pool: None,
            buffer: Buffer::default(),
            rate_factor: 1.0,
            seed,
        })
    }

    /// Go on on `placement`.
    #[cfg_attr(not(feature = "cuda"), expect(unused_mut))]
    pub fn place_on(mut self, placement: &Placement) -> Result<Self> {
        match placement {
            Placement::Cpu => {}
            #[cfg(not(feature = "cuda"))]
            Placement::Cuda(gpu, _) => match **gpu {},
            #[cfg(feature = "cuda")]
            Placement::Cuda(..) if self.net.conditions() > 0 => return Err(Ranges::no_gpu()),
            #[cfg(feature = "cuda")]
            Placement::Cuda(gpu, precision) => {
                let (batch, walkers) = (self.spec.batch, self.spec.validate_walkers);
                let (target, net) = (self.target, self.net);
                let (fixed, lane) = CudaTraining::bytes(target, net, &self.spec, gpu, *precision)?;
                let walker = CudaWalkers::bytes_per_walker(target);
                let fits = (fixed + lane, walker);
                gpu.with_room("train.validate_walkers", walkers, fits, || Ok(()))?;
                let fixed = fixed + walkers * walker;
                gpu.with_room("train.batch", batch, (fixed, lane), || {
                    // Validation goes on with fewer walkers at a time if there is no room for more.
                    let room = fitting(fixed, lane, gpu.free_memory()?);
                    let lanes = batch.max(walkers.min(LANES).min(room));
                    let mut network = net.on_gpu(gpu, lanes, *precision)?;
                    network.reserve()?;
                    self.with_gpu(gpu, network, lanes)
                })?;
            }
        }
        Ok(self)
    }

    /// Go on on a GPU, with a network there that has space for `lanes` lanes: at least a batch, and as many as
    /// validation is to move at once.
    ///
    /// What the public fields hold is then up to date only after [`sync`](Self::sync), the number of steps apart.
    #[cfg(feature = "cuda")]
    pub(crate) fn with_gpu(
        &mut self,
        gpu: &std::sync::Arc<crate::device::Gpu>,
        network: Box<dyn crate::net::cuda::CudaNetwork + 'a>,
        lanes: usize,
    ) -> Result<()> {
        let mut placement = CudaTraining::new(
            gpu,
            self.target,
            self.path,
            self.free,
            self.parametrisation,
            (network, lanes),
            self.net.parameters(),
            self.spec.batch,
        )?;
        placement.upload(&self.optimiser, self.pool.as_ref())?;
        self.gpu = Some(placement);
        Ok(())
    }

    /// Bring parameters, moments, reference walkers and the last batch back from the GPU, if training goes on there.
    pub fn sync(&mut self) -> Result<()> {
        #[cfg(feature = "cuda")]
        if let Some(gpu) = &self.gpu {
            gpu.download(&mut self.optimiser, self.pool.as_mut())?;
            self.batch = gpu.batch()?;
        }
        Ok(())
    }

    /// Steps made.
    pub fn steps(&self) -> u64 {
        self.optimiser.step
    }

    /// The reference states of the last step, failed ones included.
    pub fn batch(&self) -> &Batch {
        &self.batch
    }

    /// Whether step `step` needs new rollouts.
    fn rolls(&self, step: u64) -> bool {
        let (reference, every) = (self.spec.reference, self.spec.rollout_every);
        let empty = self.buffer.times.is_empty();
        reference == Reference::Policy || empty || step.is_multiple_of(every)
    }

    /// Reference states for the next step, and the walkers of the pool that they are.
    fn draw(&mut self, progress: &dyn Progress) -> Result<(Vec<usize>, Batch)> {
        let (step, spec) = (self.steps(), &self.spec);
        if let Some(pool) = &self.pool {
            let (size, sweeps) = (spec.batch, spec.sweeps);
            return pool.draw(
                self.target,
                &self.members,
                &self.kernel,
                size,
                sweeps,
                step,
                progress,
            );
        }
        if self.rolls(step) {
            let own = &self.optimiser.parameters[..self.net.parameters()];
            let flow = RateModel::new(self.net, own, self.parametrisation);
            if spec.reference == Reference::Policy {
                self.buffer = Buffer::default();
            }
            self.buffer.roll(self.target, self.path, &flow, spec, step, self.seed, progress)?;
        }
        Ok((Vec::new(), self.buffer.draw(spec.batch, self.seed, step)))
    }

    /// One gradient step. A loss or gradient that is not finite is an error that changes no parameter.
    ///
    /// A step that `progress` interrupts has changed nothing that a checkpoint holds: it can be made again. On a GPU the sweeps and the
    /// gradient of a step are not interrupted.
    pub fn step(&mut self, progress: &dyn Progress) -> Result<StepMetrics> {
        let (step, seed) = (self.steps(), self.seed);
        let place = |error: Error| match error {
            Error::NonFinite { what, value, walker, state, .. } => {
                Error::NonFinite { what, value, seed, walker, step, state }
            }
            other => other,
        };
        #[cfg(feature = "cuda")]
        if let Some(mut gpu) = self.gpu.take() {
            let done = self.step_there(&mut gpu, progress).map_err(place);
            self.gpu = Some(gpu);
            return done;
        }
        self.batch = Batch::new(self.target.sites());
        // Rollouts that were put into a lasting buffer must not be made again: such a step is finished.
        let lasting = self.spec.reference == Reference::Buffer && self.rolls(step);
        let (walkers, batch) = self.draw(progress).map_err(place)?;
        self.batch = batch;
        let progress = if lasting { &NoProgress } else { progress };
        let (parameters, gradient) = (&self.optimiser.parameters, &mut self.gradient);
        let residuals = self.loss.gradient(parameters, &self.batch, gradient, progress);
        if let (Some(pool), false) = (&mut self.pool, matches!(residuals, Err(Error::Interrupted)))
        {
            pool.put(&walkers, &self.batch);
        }
        let residuals = residuals.map_err(place)?;
        let loss = residuals.iter().map(|r| r * r).sum::<f64>() / residuals.len() as f64;
        let rate = self.rate_factor * self.spec.rate(step);
        let infinite = |what: &str, value: f64, batch: &Batch| Error::NonFinite {
            what: what.into(),
            value,
            seed,
            walker: 0,
            step,
            state: crate::target::show_state(batch.state(0)),
        };
        if !loss.is_finite() {
            return Err(infinite("loss", loss, &self.batch));
        }
        let norm = self.optimiser.step(&self.gradient, rate, &self.spec);
        if !norm.is_finite() {
            return Err(infinite("norm of the gradient", norm, &self.batch));
        }
        Ok(StepMetrics { step: self.steps(), loss, norm, rate })
    }

    /// A step on the GPU.
    #[cfg(feature = "cuda")]
    fn step_there(
        &mut self,
        gpu: &mut CudaTraining<'a>,
        progress: &dyn Progress,
    ) -> Result<StepMetrics> {
        let (step, spec) = (self.steps(), &self.spec);
        if let Some(pool) = &self.pool {
            gpu.draw(pool, spec, step)?;
        } else {
            if self.rolls(step) {
                if spec.reference == Reference::Policy {
                    self.buffer = Buffer::default();
                }
                gpu.roll(&mut self.buffer, spec, step, self.seed, progress)?;
            }
            gpu.take(&self.buffer.draw(spec.batch, self.seed, step))?;
        }
        let rate = self.rate_factor * spec.rate(step);
        let (loss, norm) = gpu.step(rate, step + 1, spec)?;
        self.optimiser.step = step + 1;
        Ok(StepMetrics { step: step + 1, loss, norm, rate })
    }

    /// Sample with the averaged parameters: exact weights by events.
    pub fn validate(
        &mut self,
        walkers: usize,
        intervals: usize,
        progress: &dyn Progress,
    ) -> Result<Ensemble> {
        let cuts: Vec<f64> = (0..=intervals).map(|k| k as f64 / intervals as f64).collect();
        let (grid, durations) = scheme_grid(self.path, Scheme::Events, &cuts)?;
        // Fresh numbers every time, none of them the training's.
        let seed = self.seed ^ self.steps().wrapping_mul(0xA076_1D64_78BD_642F);
        #[cfg(feature = "cuda")]
        if let Some(gpu) = &mut self.gpu {
            return gpu.validate((grid, durations), walkers, seed, progress);
        }
        let own = &self.optimiser.average[..self.net.parameters()];
        let flow =
            RateModel::new(self.net, own, self.parametrisation).conditioned_on(&self.condition);
        let mut population = NetworkWalkers::new(
            self.target,
            self.path,
            &flow,
            Scheme::Events,
            durations,
            0,
            walkers,
            seed,
        )?;
        anneal(self.target, &mut population, &grid, &Resampling::NEVER, 1, seed, progress)
    }
}
