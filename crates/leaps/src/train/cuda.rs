//! Gradient steps on a GPU: reference walkers, loss, free energy and Adam, around a network there.
//!
//! Parameters, moments and the pool live on the GPU; a step sends the chosen walkers' times there and gets loss and norm
//! back. Random numbers are those of the CPU.

use std::sync::Arc;

use cudarc::driver::{CudaFunction, CudaSlice};

use super::rollout::Rollout;
use super::{Batch, Buffer, Optimiser, Pool, Reference, TrainSpec};
use crate::device::cuda::{Gpu, launch};
use crate::device::{Precision, Progress, Purpose};
use crate::net::cuda::{CudaBatch, CudaNetwork, TIME_FEATURES, time_features};
use crate::net::{FreeEnergy, FreeEnergySpec, Net};
use crate::path::Path;
use crate::rates::Parametrisation;
use crate::sampler::walkers::cuda::network::{CudaRates, CudaWalkers, FLOW, defines};
use crate::sampler::{Ensemble, Grid, Resampling, Scheme, anneal};
use crate::target::cuda::{CudaTarget, Sweep, Weights};
use crate::target::{Target, show_state};
use crate::{Error, Result};

/// Source of the kernels.
const TRAIN: &str = include_str!("train.cu");

/// Numbers per block of the kernel `squares`.
const PART: usize = 16384;

/// Hidden units of the free energy.
const UNITS: u32 = 32;

/// Training on a GPU.
pub(super) struct CudaTraining<'a> {
    target: &'a dyn Target,
    path: &'a Path,
    free: &'a FreeEnergy,
    parametrisation: Parametrisation,
    on_gpu: Arc<CudaTarget>,
    network: Box<dyn CudaNetwork + 'a>,
    /// Lanes that the network has space for.
    lanes: usize,
    kernels: Kernels,
    /// Parameters of the network, and all.
    own: usize,
    all: usize,
    parameters: CudaSlice<f32>,
    average: CudaSlice<f32>,
    first: CudaSlice<f32>,
    second: CudaSlice<f32>,
    gradient: CudaSlice<f32>,
    /// The pool, or the batch itself.
    states: CudaSlice<u8>,
    /// Rows of `states` in the batch, and their times.
    chosen: Vec<(usize, f64)>,
    rows: CudaSlice<u32>,
    moments: CudaSlice<u32>,
    table: CudaSlice<f32>,
    lambda: CudaSlice<f64>,
    slopes: CudaSlice<f64>,
    shift: CudaSlice<f32>,
    out: CudaSlice<f32>,
    d_out: CudaSlice<f32>,
    residuals: CudaSlice<f64>,
    parts: CudaSlice<f64>,
    result: CudaSlice<f64>,
}

struct Kernels {
    free_rates: CudaFunction,
    free_gradient: CudaFunction,
    residuals: CudaFunction,
    squares: CudaFunction,
    totals: CudaFunction,
    adam: CudaFunction,
}

impl<'a> CudaTraining<'a> {
    /// Training of a network with `own` parameters and space for `lanes` lanes, on batches of up to `batch`
    /// configurations.
    pub(super) fn new(
        gpu: &Arc<Gpu>,
        target: &'a dyn Target,
        path: &'a Path,
        free: &'a FreeEnergy,
        parametrisation: Parametrisation,
        (network, lanes): (Box<dyn CudaNetwork + 'a>, usize),
        own: usize,
        batch: usize,
    ) -> Result<Self> {
        if lanes < batch {
            let condition = format!("at most {lanes}, the lanes of the network on the GPU");
            return Err(Error::invalid(
                "train.batch",
                batch,
                condition,
                "make room for more lanes",
            ));
        }
        let on_gpu = Arc::new(CudaTarget::new(gpu, target)?);
        let (sites, q, terms) = (on_gpu.sites, on_gpu.q, on_gpu.terms);
        // What kernels ask for besides takes less than 1 KiB.
        if sites + 1024 > gpu.shared() {
            let reason = format!("{sites} sites do not fit its shared memory; use the device cpu");
            return Err(Error::not_applicable("a GPU", reason));
        }
        let source = [FLOW, TRAIN].concat();
        let kernels = on_gpu.compile(&source, &defines(parametrisation, Scheme::Events))?;
        let kernels = Kernels {
            free_rates: kernels.get("free_rates", 0)?,
            free_gradient: kernels.get("free_gradient", 0)?,
            residuals: kernels.get("residuals", sites)?,
            squares: kernels.get("squares", 0)?,
            totals: kernels.get("totals", 0)?,
            adam: kernels.get("adam", 0)?,
        };
        let all = own + free.parameters();
        let outputs = batch * sites * if q == 2 { 1 } else { q };
        let moments: Vec<u32> = (0..batch as u32).collect();
        Ok(CudaTraining {
            target,
            path,
            free,
            parametrisation,
            network,
            lanes,
            kernels,
            own,
            all,
            parameters: gpu.zeros(all)?,
            average: gpu.zeros(all)?,
            first: gpu.zeros(all)?,
            second: gpu.zeros(all)?,
            gradient: gpu.zeros(all)?,
            states: gpu.zeros(batch * sites)?,
            chosen: Vec::new(),
            rows: gpu.zeros(batch)?,
            moments: gpu.upload(&moments)?,
            table: gpu.zeros(batch * TIME_FEATURES)?,
            lambda: gpu.zeros(batch * terms)?,
            slopes: gpu.zeros(batch * terms)?,
            shift: gpu.zeros(batch)?,
            out: gpu.zeros(outputs)?,
            d_out: gpu.zeros(outputs)?,
            residuals: gpu.zeros(batch)?,
            parts: gpu.zeros(all.div_ceil(PART))?,
            result: gpu.zeros(3)?,
            on_gpu,
        })
    }

    /// Bytes that training takes on a GPU: beside the configurations of a batch, and for every one of them.
    pub(super) fn bytes(
        target: &dyn Target,
        net: &Net,
        spec: &TrainSpec,
        gpu: &Arc<Gpu>,
        precision: Precision,
    ) -> Result<(usize, usize)> {
        let (fixed, each) = net.cuda_bytes(gpu, precision, true)?;
        let (sites, terms) = (target.sites(), target.terms());
        let outputs = sites * if target.q() == 2 { 1 } else { target.q() };
        let words = 3 + TIME_FEATURES + 2 * outputs;
        let own = sites + words * size_of::<f32>() + (2 * terms + 1) * size_of::<f64>();
        let parameters = 5 * net.parameters() * size_of::<f32>();
        let each = each + own + CudaWalkers::bytes_per_lane(target);
        let pool = if spec.reference == Reference::Pool { spec.pool * sites } else { 0 };
        Ok((fixed + parameters + pool, each))
    }

    fn gpu(&self) -> &Gpu {
        &self.on_gpu.gpu
    }

    /// Take over parameters, moments and reference walkers.
    pub(super) fn upload(&mut self, optimiser: &Optimiser, pool: Option<&Pool>) -> Result<()> {
        let gpu = self.on_gpu.gpu.clone();
        gpu.write(&optimiser.parameters, &mut self.parameters)?;
        gpu.write(&optimiser.average, &mut self.average)?;
        gpu.write(&optimiser.first, &mut self.first)?;
        gpu.write(&optimiser.second, &mut self.second)?;
        if let Some(pool) = pool {
            self.states = gpu.upload(&pool.states)?;
        }
        self.chosen.clear();
        self.network.refresh(&self.parameters)
    }

    /// Give back what [`upload`](Self::upload) took, as it is now.
    pub(super) fn download(
        &self,
        optimiser: &mut Optimiser,
        pool: Option<&mut Pool>,
    ) -> Result<()> {
        let gpu = self.gpu();
        optimiser.parameters = gpu.download(&self.parameters.slice(..self.all))?;
        optimiser.average = gpu.download(&self.average.slice(..self.all))?;
        optimiser.first = gpu.download(&self.first.slice(..self.all))?;
        optimiser.second = gpu.download(&self.second.slice(..self.all))?;
        if let Some(pool) = pool {
            pool.states = gpu.download(&self.states)?;
        }
        Ok(())
    }

    /// The reference states of the last step.
    pub(super) fn batch(&self) -> Result<Batch> {
        let sites = self.on_gpu.sites;
        let mut batch = Batch::new(sites);
        for &(row, t) in &self.chosen {
            batch.states.extend(self.state(row)?);
            batch.times.push(t);
        }
        Ok(batch)
    }

    fn state(&self, row: usize) -> Result<Vec<u8>> {
        let sites = self.on_gpu.sites;
        self.gpu().download(&self.states.slice(row * sites..(row + 1) * sites))
    }

    /// Send rows and times to the GPU.
    fn choose(&mut self, chosen: Vec<(usize, f64)>) -> Result<()> {
        let rows: Vec<u32> = chosen.iter().map(|(row, _)| *row as u32).collect();
        let (mut table, mut lambda, mut slopes) = (Vec::new(), Vec::new(), Vec::new());
        for &(_, t) in &chosen {
            table.extend_from_slice(&time_features(t));
            lambda.extend(self.path.lambda(t));
            slopes.extend(self.path.slope(t));
        }
        self.chosen = chosen;
        let gpu = self.on_gpu.gpu.clone();
        gpu.write(&rows, &mut self.rows)?;
        gpu.write(&table, &mut self.table)?;
        gpu.write(&lambda, &mut self.lambda)?;
        gpu.write(&slopes, &mut self.slopes)
    }

    /// Choose and move walkers of the pool, as [`Pool::draw`] does.
    pub(super) fn draw(&mut self, pool: &Pool, spec: &TrainSpec, step: u64) -> Result<()> {
        self.choose(pool.choose(spec.batch, step))?;
        self.on_gpu.sweep(
            Sweep::HeatBath,
            &mut self.states,
            (&self.rows, self.chosen.len()),
            Weights::Each(&self.lambda),
            (pool.seed(), Purpose::Reference),
            (step * spec.sweeps, spec.sweeps),
        )
    }

    /// Use a batch from elsewhere. Not with a pool, whose place it takes.
    pub(super) fn take(&mut self, batch: &Batch) -> Result<()> {
        self.on_gpu.gpu.write(&batch.states, &mut self.states)?;
        self.choose(batch.times.iter().copied().enumerate().collect())
    }

    /// Roll the network out as it is, and put the states away.
    pub(super) fn roll(
        &mut self,
        buffer: &mut Buffer,
        spec: &TrainSpec,
        step: u64,
        seed: u64,
        progress: &dyn Progress,
    ) -> Result<()> {
        let plan = Rollout::new(self.path, spec, step, seed)?;
        self.network.refresh(&self.parameters)?;
        let mut walkers = CudaWalkers::new(
            self.target,
            &self.on_gpu,
            self.path,
            CudaRates {
                network: Box::new(&mut *self.network),
                lanes: self.lanes,
                parametrisation: self.parametrisation,
            },
            Scheme::Euler,
            plan.durations.clone(),
            spec.sweeps,
            spec.rollout_walkers,
            plan.seed,
        )?;
        buffer.fill(&mut walkers, &plan, spec, progress)
    }

    /// One step of Adam, the `count`-th, on the batch at hand; returns loss and norm of the gradient. A loss or norm that is
    /// not finite is an error that changes no parameter.
    pub(super) fn step(&mut self, rate: f64, count: u64, spec: &TrainSpec) -> Result<(f64, f64)> {
        self.gradient()?;
        self.update(rate, count, spec)
    }

    /// Adam, with the gradient that is there.
    fn update(&mut self, rate: f64, count: u64, spec: &TrainSpec) -> Result<(f64, f64)> {
        let gpu = self.on_gpu.gpu.clone();
        let (lanes, n) = (self.chosen.len(), self.all as u32);
        let blocks = self.all.div_ceil(PART) as u32;
        launch!(
            gpu,
            self.kernels.squares,
            ((blocks, 1, 1), 256, 0),
            &self.gradient,
            &self.parts,
            &n
        )?;
        let lanes = lanes as u32;
        launch!(
            gpu,
            self.kernels.totals,
            ((1, 1, 1), 1024, 0),
            &self.residuals,
            &lanes,
            &self.parts,
            &blocks,
            &self.result,
        )?;
        let count = count as f64;
        let rate = rate * (1.0 - spec.beta2.powf(count)).sqrt() / (1.0 - spec.beta1.powf(count));
        let ema = spec.ema.min((1.0 + count) / (10.0 + count));
        let (rate, ema, b1, b2) = (rate as f32, ema as f32, spec.beta1 as f32, spec.beta2 as f32);
        launch!(
            gpu,
            self.kernels.adam,
            ((n.div_ceil(256), 1, 1), 256, 0),
            &self.parameters,
            &self.average,
            &self.first,
            &self.second,
            &self.gradient,
            &self.result,
            &spec.clip,
            &rate,
            &ema,
            &b1,
            &b2,
            &n,
        )?;
        let result = gpu.download(&self.result)?;
        let (loss, norm, bad) = (result[0], result[1], result[2] as usize);
        if let Some(&(row, t)) = self.chosen.get(bad) {
            let value = gpu.download(&self.residuals.slice(bad..bad + 1))?[0];
            return Err(self.infinite(format!("residual of the loss at t = {t}"), value, bad, row));
        }
        for (what, value) in [("loss", loss), ("norm of the gradient", norm)] {
            if !value.is_finite() {
                return Err(self.infinite(what.into(), value, 0, self.chosen[0].0));
            }
        }
        Ok((loss, norm))
    }

    fn infinite(&self, what: String, value: f64, walker: usize, row: usize) -> Error {
        let state = self.state(row).map_or_else(|_| "lost".into(), |x| show_state(&x));
        Error::NonFinite { what, value, seed: 0, walker, step: 0, state }
    }

    /// Residuals of the batch and the gradient of their mean square, both left on the GPU.
    fn gradient(&mut self) -> Result<()> {
        let gpu = self.on_gpu.gpu.clone();
        let lanes = self.chosen.len();
        let share = 2.0 / lanes as f64;
        let count = lanes as u32;
        let on_host = *self.free.spec() != FreeEnergySpec::Rate;
        let times: Vec<f64> = self.chosen.iter().map(|(_, t)| *t).collect();
        let mut free = Vec::new();
        if on_host {
            free = gpu.download(&self.parameters.slice(self.own..self.all))?;
            gpu.write(&self.free.rates(&free, &times), &mut self.shift)?;
        } else {
            let own = self.parameters.slice(self.own..self.all);
            let grid = (count.div_ceil(4), 1, 1);
            launch!(
                gpu,
                self.kernels.free_rates,
                (grid, 128, 0),
                &own,
                &self.table,
                &self.shift,
                &count
            )?;
        }
        self.network.refresh(&self.parameters)?;
        let batch = CudaBatch {
            slots: lanes,
            states: &self.states,
            rows: &self.rows,
            time_indices: &self.moments,
            table: &self.table,
        };
        self.network.forward_train(&batch, &mut self.out)?;
        launch!(
            gpu,
            self.kernels.residuals,
            ((count, 1, 1), 128, self.on_gpu.sites),
            self.on_gpu.arguments(),
            &self.states,
            &self.rows,
            &self.lambda,
            &self.slopes,
            &self.shift,
            &self.out,
            &share,
            &self.residuals,
            &self.d_out,
        )?;
        let mut own = self.gradient.slice_mut(..self.own);
        self.network.backward(&batch, &self.d_out, &mut own)?;
        if on_host {
            let residuals = gpu.download(&self.residuals.slice(..lanes))?;
            let d: Vec<f32> = residuals.iter().map(|r| (share * r) as f32).collect();
            let mut gradient = vec![0.0; free.len()];
            self.free.gradient(&free, &times, &d, &mut gradient);
            let mut rest = self.gradient.slice_mut(self.own..self.all);
            return gpu
                .stream
                .memcpy_htod(&gradient, &mut rest)
                .map_err(crate::device::cuda::failed("memory of the GPU"));
        }
        let free = self.parameters.slice(self.own..self.all);
        let mut rest = self.gradient.slice_mut(self.own..self.all);
        launch!(
            gpu,
            self.kernels.free_gradient,
            ((UNITS, 1, 1), 256, 0),
            &free,
            &self.table,
            &self.residuals,
            &share,
            &mut rest,
            &count,
        )
    }

    /// Sample with the averaged parameters: exact weights by events.
    pub(super) fn validate(
        &mut self,
        (grid, durations): (Grid, Vec<f64>),
        walkers: usize,
        seed: u64,
        progress: &dyn Progress,
    ) -> Result<Ensemble> {
        self.network.refresh(&self.average)?;
        let flow = CudaRates {
            network: Box::new(&mut *self.network),
            lanes: self.lanes,
            parametrisation: self.parametrisation,
        };
        let mut population = CudaWalkers::new(
            self.target,
            &self.on_gpu,
            self.path,
            flow,
            Scheme::Events,
            durations,
            0,
            walkers,
            seed,
        )?;
        anneal(self.target, &mut population, &grid, &Resampling::NEVER, 1, seed, progress)
    }
}

#[cfg(test)]
mod tests;
