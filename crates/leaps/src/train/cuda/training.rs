//! Gradient steps on a GPU: reference walkers, loss, free energy and Adam, around a network there.
//!
//! Parameters, Adam's means and the pool live on the GPU; a step sends the chosen walkers' times there and gets loss and norm
//! back. Random numbers are those of the CPU.

mod arguments;

use std::sync::Arc;

use cudarc::driver::{CudaFunction, CudaSlice};

use crate::device::cuda::arguments::{Input, Output, join};
use crate::device::cuda::memory::fitting;
use crate::device::cuda::{Gpu, failed, launch};
use crate::device::{Precision, Progress, Purpose, Ranks};
use crate::net::FreeEnergySpec;
use crate::net::cuda::{
    Couplings, CudaBatch, CudaNetwork, TIME_UNITS, time_defines, time_features, time_width,
};
use crate::rates::Parametrisation;
use crate::sampler::walkers::cuda::network::{
    BLOCK, CudaRates, CudaWalk, CudaWalkers, NETWORK_WALK, SLOTS, defines,
};
use crate::sampler::{Population, Scheme, WalkPlan, Walkers};
use crate::target::cuda::{CudaTarget, Sweep, Weights as SweepWeights};
use crate::target::show_state;
use crate::train::cuda::instances::CudaInstances;
use crate::train::loss::spread;
use crate::train::step::{Source, TrainStep, Weights, mean_over};
use crate::train::{Batch, Member, Objective, Reference, TrainSpec, TrainState};
use crate::{Error, Result};
use arguments::{Adam, Residuals};

/// Source of the kernels.
const TRAIN: &str = join!(Residuals::SOURCE, Adam::SOURCE, include_str!("train.cu"));

/// Numbers per block of the kernel `squares`.
const PART: usize = 16384;

/// Training on a GPU, with a network that may be lent.
pub(super) struct CudaTraining<'n> {
    objective: Objective,
    spec: TrainSpec,
    on_gpu: Arc<CudaTarget>,
    /// The targets of the reference states, if they are not that one.
    instances: Option<CudaInstances>,
    network: Box<dyn CudaNetwork + 'n>,
    /// Slots that the network has space for.
    slots: usize,
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
    /// The members of the family that they belong to; empty if there is only one target.
    members: Vec<usize>,
    /// The gradient step that they were drawn for.
    drawn_at: u64,
    rows: CudaSlice<u32>,
    /// Time index of every slot.
    times: CudaSlice<u32>,
    /// Time features.
    table: CudaSlice<f32>,
    /// Couplings of the instance that the network is shown.
    couplings: CudaSlice<f32>,
    lambda: CudaSlice<f64>,
    slopes: CudaSlice<f64>,
    shift: CudaSlice<f32>,
    out: CudaSlice<f32>,
    d_out: CudaSlice<f32>,
    residuals: CudaSlice<f64>,
    parts: CudaSlice<f64>,
    result: CudaSlice<f64>,
}

/// Training of an objective on a GPU, with as much room for validation as there is memory for.
pub(in crate::train) fn training(
    objective: &Objective,
    spec: &TrainSpec,
    gpu: &Arc<Gpu>,
    precision: Precision,
) -> Result<Box<dyn TrainStep>> {
    let (batch, walkers) = (spec.batch, spec.validate_walkers);
    let (fixed, slot) = CudaTraining::bytes(objective, spec, gpu, precision)?;
    let walker = CudaWalkers::bytes_per_walker(&*objective.target);
    gpu.with_room("train.validate_walkers", walkers, (fixed + slot, walker), || Ok(()))?;
    let fixed = fixed + walkers * walker;
    gpu.with_room("train.batch", batch, (fixed, slot), || {
        // Validation goes on with fewer walkers at a time if there is no room for more.
        let room = fitting(fixed, slot, gpu.free_memory()?);
        let slots = batch.max(walkers.min(SLOTS).min(room));
        let mut network = objective.net.on_gpu(gpu, slots, precision)?;
        network.reserve()?;
        let made: Box<dyn TrainStep> =
            Box::new(CudaTraining::new(objective, spec, gpu, (network, slots))?);
        Ok(made)
    })
}

/// What the kernels of `train.cu` and those before them are compiled with.
fn train_defines(
    parametrisation: Parametrisation,
    conditions: usize,
) -> Vec<(&'static str, usize)> {
    let walk = defines(parametrisation, Scheme::Events, false);
    let time = time_defines(time_width(conditions) - 1);
    walk.into_iter().chain(time).chain([("PART", PART)]).collect()
}

/// The targets of the reference states: instances, or the one that is trained for.
fn targets<'t>(own: &'t CudaTarget, instances: &'t Option<CudaInstances>) -> &'t CudaTarget {
    instances.as_ref().map_or(own, |instances| &instances.target)
}

struct Kernels {
    free_rates: CudaFunction,
    free_gradient: CudaFunction,
    residuals: CudaFunction,
    deviations: CudaFunction,
    slopes: CudaFunction,
    squares: CudaFunction,
    loss_and_norm: CudaFunction,
    adam: CudaFunction,
}

impl<'n> CudaTraining<'n> {
    /// Training with a network that has space for so many slots: at least a batch, and as many as validation is to move at once.
    pub(super) fn new(
        objective: &Objective,
        spec: &TrainSpec,
        gpu: &Arc<Gpu>,
        (network, slots): (Box<dyn CudaNetwork + 'n>, usize),
    ) -> Result<Self> {
        let (batch, own) = (spec.batch, objective.net.parameters());
        let conditions = objective.net.conditions();
        if objective.free.conditions() != conditions {
            return Err(Error::not_applicable(
                "a GPU",
                "network and free energy must be conditioned on the same numbers to be trained there",
            ));
        }
        if slots < batch {
            let condition = format!("at most {slots}, the slots of the network on the GPU");
            let advice = "make room for more slots";
            return Err(Error::invalid("train.batch", batch, condition, advice));
        }
        let on_gpu = Arc::new(CudaTarget::new(gpu, &*objective.target)?);
        let (sites, q, terms) = (on_gpu.sites, on_gpu.q, on_gpu.terms);
        // What kernels ask for besides takes less than 1 KiB.
        if sites + 1024 > gpu.shared() {
            let reason = format!("{sites} sites do not fit its shared memory; use the device cpu");
            return Err(Error::not_applicable("a GPU", reason));
        }
        let instances = CudaInstances::of(gpu, objective)?;
        let source = [NETWORK_WALK, TRAIN].concat();
        let kernels = targets(&on_gpu, &instances)
            .compile(&source, &train_defines(objective.parametrisation, conditions))?;
        let kernels = Kernels {
            free_rates: kernels.get("free_rates", 0)?,
            free_gradient: kernels.get("free_gradient", 0)?,
            residuals: kernels.get("residuals", sites)?,
            deviations: kernels.get("deviations", 0)?,
            slopes: kernels.get("slopes", sites)?,
            squares: kernels.get("squares", 0)?,
            loss_and_norm: kernels.get("loss_and_norm", 0)?,
            adam: kernels.get("adam", 0)?,
        };
        let all = objective.parameters();
        let outputs = batch * sites * if q == 2 { 1 } else { q };
        let times: Vec<u32> = (0..batch as u32).collect();
        Ok(CudaTraining {
            objective: objective.clone(),
            spec: spec.clone(),
            network,
            slots,
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
            members: Vec::new(),
            drawn_at: 0,
            rows: gpu.zeros(batch)?,
            times: gpu.upload(&times)?,
            table: gpu.zeros(batch * time_width(conditions))?,
            couplings: gpu.upload(objective.net.instance())?,
            lambda: gpu.zeros(batch * terms)?,
            slopes: gpu.zeros(batch * terms)?,
            shift: gpu.zeros(batch)?,
            out: gpu.zeros(outputs)?,
            d_out: gpu.zeros(outputs)?,
            residuals: gpu.zeros(batch)?,
            parts: gpu.zeros(all.div_ceil(PART))?,
            result: gpu.zeros(3)?,
            instances,
            on_gpu,
        })
    }

    /// Bytes that training takes on a GPU: beside the configurations of a batch, and for every one of them.
    fn bytes(
        objective: &Objective,
        spec: &TrainSpec,
        gpu: &Arc<Gpu>,
        precision: Precision,
    ) -> Result<(usize, usize)> {
        let (target, net) = (&*objective.target, &objective.net);
        let (fixed, each) = net.cuda_bytes(gpu, precision, |network| network.reserve())?;
        let (sites, terms) = (target.sites(), target.terms());
        let outputs = sites * if target.q() == 2 { 1 } else { target.q() };
        let words = 3 + time_width(net.conditions()) + 2 * outputs;
        let own = sites + words * size_of::<f32>() + (2 * terms + 1) * size_of::<f64>();
        let parameters = 5 * net.parameters() * size_of::<f32>();
        let each = each + own + CudaWalkers::bytes_per_slot(target);
        let pool = if spec.reference == Reference::Pool { spec.pool_walkers() * sites } else { 0 };
        Ok((fixed + parameters + pool + CudaInstances::bytes(objective), each))
    }

    fn gpu(&self) -> &Gpu {
        &self.on_gpu.gpu
    }

    /// The reference states of the last step.
    fn batch(&self) -> Result<Batch> {
        let sites = self.on_gpu.sites;
        let mut batch = Batch::new(sites);
        for &(row, t) in &self.chosen {
            batch.states.extend(self.state(row)?);
            batch.times.push(t);
        }
        batch.members.clone_from(&self.members);
        batch.instances = self.objective.instances_of(&self.chosen, self.drawn_at)?;
        Ok(batch)
    }

    fn state(&self, row: usize) -> Result<Vec<u8>> {
        let sites = self.on_gpu.sites;
        self.gpu().download(&self.states.slice(row * sites..(row + 1) * sites))
    }

    /// Send rows and times to the GPU, with what the `members` of the family that they belong to weigh and are known by; none of these if
    /// there is only one target.
    fn choose(&mut self, chosen: Vec<(usize, f64)>, members: Vec<usize>) -> Result<()> {
        let rows: Vec<u32> = chosen.iter().map(|(row, _)| *row as u32).collect();
        let (mut table, mut lambda, mut slopes) = (Vec::new(), Vec::new(), Vec::new());
        for (slot, &(_, t)) in chosen.iter().enumerate() {
            let member = members.get(slot).copied().unwrap_or(0);
            let Member { path, condition } = &self.objective.members[member];
            table.extend(time_features(t, condition));
            lambda.extend(path.lambda(t));
            slopes.extend(path.slope(t));
        }
        (self.chosen, self.members) = (chosen, members);
        let gpu = self.on_gpu.gpu.clone();
        gpu.write(&rows, &mut self.rows)?;
        gpu.write(&table, &mut self.table)?;
        gpu.write(&lambda, &mut self.lambda)?;
        gpu.write(&slopes, &mut self.slopes)
    }

    /// Choose and move walkers of the pool, as [`Pool::draw`](crate::train::Pool::draw) does.
    fn draw(&mut self, state: &TrainState) -> Result<()> {
        let Some(pool) = &state.pool else { return Ok(()) };
        let (step, sweeps) = (state.optimiser.step, self.spec.sweeps);
        if let Some(instances) = &mut self.instances {
            instances.renew(&self.objective, (pool, step), &mut self.states)?;
        }
        self.drawn_at = step;
        let chosen = pool.choose(self.spec.batch, step, self.objective.walkers_together());
        let members = pool.members(&chosen, &self.objective);
        self.choose(chosen, members)?;
        targets(&self.on_gpu, &self.instances).sweep(
            Sweep::HeatBath,
            &mut self.states,
            (&self.rows, self.chosen.len()),
            SweepWeights::Each(&self.lambda),
            (pool.seed, Purpose::Reference),
            (step * sweeps, sweeps),
        )
    }

    /// Use a batch from elsewhere. Not with a pool, whose place it takes.
    fn take(&mut self, batch: &Batch) -> Result<()> {
        self.on_gpu.gpu.write(&batch.states, &mut self.states)?;
        self.choose(batch.times.iter().copied().enumerate().collect(), batch.members.clone())
    }

    /// The `count`-th step of Adam, with the gradient that is there; returns loss and norm of the gradient. A loss or norm that is
    /// not finite is an error that changes no parameter.
    fn update(&mut self, rate: f64, count: u64) -> Result<(f64, f64)> {
        let (gpu, spec) = (self.on_gpu.gpu.clone(), &self.spec);
        let (slots, n) = (self.chosen.len() as u32, self.all as u32);
        let blocks = self.all.div_ceil(PART) as u32;
        launch!(
            gpu,
            self.kernels.squares,
            ((blocks, 1, 1), 256, 0),
            &self.gradient,
            &self.parts,
            &n
        )?;
        launch!(
            gpu,
            self.kernels.loss_and_norm,
            ((1, 1, 1), 1024, 0),
            &self.residuals,
            &slots,
            &self.parts,
            &blocks,
            &self.result,
        )?;
        let count = count as f64;
        let rate = rate * (1.0 - spec.beta2.powf(count)).sqrt() / (1.0 - spec.beta1.powf(count));
        let ema = spec.ema.min((1.0 + count) / (10.0 + count));
        let adam = Adam {
            parameters: Output::of(&gpu, &self.parameters),
            average: Output::of(&gpu, &self.average),
            first: Output::of(&gpu, &self.first),
            second: Output::of(&gpu, &self.second),
            gradient: Input::of(&gpu, &self.gradient),
            result: Input::of(&gpu, &self.result),
            clip: spec.clip,
            rate: rate as f32,
            ema: ema as f32,
            b1: spec.beta1 as f32,
            b2: spec.beta2 as f32,
            n,
        };
        launch!(gpu, self.kernels.adam, ((n.div_ceil(256), 1, 1), 256, 0), &adam)?;
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
    fn differentiate(&mut self) -> Result<()> {
        let (gpu, free_energy) = (self.on_gpu.gpu.clone(), self.objective.free.clone());
        let slots = self.chosen.len();
        let together = self.objective.walkers_together();
        let share = 2.0 / slots as f64 * spread(together);
        let count = slots as u32;
        let (on_host, learnt) = match free_energy.spec() {
            FreeEnergySpec::Rate => (false, true),
            FreeEnergySpec::None => (false, false),
            FreeEnergySpec::Mlp { .. } => (true, true),
        };
        let times: Vec<f64> = self.chosen.iter().map(|(_, t)| *t).collect();
        let mut free = Vec::new();
        if on_host {
            free = gpu.download(&self.parameters.slice(self.own..self.all))?;
            gpu.write(&free_energy.rates(&free, &times), &mut self.shift)?;
        } else if learnt {
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
            slots,
            states: &self.states,
            rows: &self.rows,
            time_indices: &self.times,
            table: &self.table,
            couplings: match &self.instances {
                Some(instances) => instances.couplings(),
                None => Couplings::of_one(&self.couplings),
            },
        };
        self.network.forward_train(&batch, &mut self.out)?;
        let targets = targets(&self.on_gpu, &self.instances);
        let (pairs, sites) = (targets.arguments(), targets.sites);
        let residuals = Residuals {
            states: Input::of(&gpu, &self.states),
            rows: Input::of(&gpu, &self.rows),
            lambdas: Input::of(&gpu, &self.lambda),
            slopes: Input::of(&gpu, &self.slopes),
            shift: Input::of(&gpu, &self.shift),
            outputs: Input::of(&gpu, &self.out),
            share,
            out: Output::of(&gpu, &self.residuals),
            d_outputs: Output::of(&gpu, &self.d_out),
        };
        launch!(gpu, self.kernels.residuals, ((count, 1, 1), BLOCK, sites), pairs, &residuals)?;
        if self.instances.is_some() {
            let (rows, factor) = (together as u32, spread(together));
            let groups = count / rows;
            launch!(
                gpu,
                self.kernels.deviations,
                ((groups.div_ceil(128), 1, 1), 128, 0),
                &self.residuals,
                &rows,
                &factor,
                &groups,
            )?;
            launch!(gpu, self.kernels.slopes, ((count, 1, 1), BLOCK, sites), pairs, &residuals)?;
        }
        let mut own = self.gradient.slice_mut(..self.own);
        self.network.backward(&batch, &self.d_out, &mut own)?;
        if on_host {
            let residuals = gpu.download(&self.residuals.slice(..slots))?;
            let d: Vec<f32> = residuals.iter().map(|r| (share * r) as f32).collect();
            let mut gradient = vec![0.0; free.len()];
            free_energy.gradient(&free, &times, &d, &mut gradient);
            let mut rest = self.gradient.slice_mut(self.own..self.all);
            return gpu
                .stream
                .memcpy_htod(&gradient, &mut rest)
                .map_err(failed("memory of the GPU"));
        }
        if !learnt {
            return Ok(());
        }
        let free = self.parameters.slice(self.own..self.all);
        let mut rest = self.gradient.slice_mut(self.own..self.all);
        launch!(
            gpu,
            self.kernels.free_gradient,
            ((TIME_UNITS as u32, 1, 1), 256, 0),
            &free,
            &self.table,
            &self.residuals,
            &share,
            &mut rest,
            &count,
        )
    }
}

impl TrainStep for CudaTraining<'_> {
    fn upload(&mut self, state: &TrainState) -> Result<()> {
        let (gpu, optimiser) = (self.on_gpu.gpu.clone(), &state.optimiser);
        gpu.write(&optimiser.parameters, &mut self.parameters)?;
        gpu.write(&optimiser.average, &mut self.average)?;
        gpu.write(&optimiser.first, &mut self.first)?;
        gpu.write(&optimiser.second, &mut self.second)?;
        if let Some(pool) = &state.pool {
            self.states = gpu.upload(&pool.states)?;
            if let Some(instances) = &mut self.instances {
                instances.load(optimiser.step)?;
            }
        }
        self.chosen.clear();
        self.members.clear();
        self.network.refresh(&self.parameters)
    }

    fn download(&mut self, state: &mut TrainState) -> Result<()> {
        let (gpu, optimiser) = (&self.on_gpu.gpu, &mut state.optimiser);
        optimiser.parameters = gpu.download(&self.parameters.slice(..self.all))?;
        optimiser.average = gpu.download(&self.average.slice(..self.all))?;
        optimiser.first = gpu.download(&self.first.slice(..self.all))?;
        optimiser.second = gpu.download(&self.second.slice(..self.all))?;
        if let Some(pool) = &mut state.pool {
            pool.states = gpu.download(&self.states)?;
        }
        state.batch = self.batch()?;
        Ok(())
    }

    fn reference(
        &mut self,
        state: &mut TrainState,
        source: Source,
        _: &dyn Progress,
    ) -> Result<()> {
        match source {
            Source::Pool => self.draw(state),
            Source::Batch(batch) => self.take(&batch),
        }
    }

    fn gradient(&mut self, _: &mut TrainState, _: &dyn Progress) -> Result<()> {
        self.differentiate()
    }

    fn reduce(&mut self, ranks: &dyn Ranks) -> Result<()> {
        if ranks.size() == 1 {
            return Ok(());
        }
        let gpu = self.on_gpu.gpu.clone();
        let mut gradient = gpu.download(&self.gradient.slice(..self.all))?;
        mean_over(ranks, &mut gradient)?;
        gpu.write(&gradient, &mut self.gradient)
    }

    fn apply(&mut self, state: &mut TrainState, rate: f64) -> Result<(f64, f64)> {
        let count = state.optimiser.step + 1;
        let done = self.update(rate, count)?;
        state.optimiser.step = count;
        Ok(done)
    }

    fn walkers<'s>(
        &'s mut self,
        _: &TrainState,
        weights: Weights,
        plan: &WalkPlan,
        population: Population,
    ) -> Result<Box<dyn Walkers + 's>> {
        self.network.refresh(match weights {
            Weights::Current => &self.parameters,
            Weights::Average => &self.average,
        })?;
        let Objective { target, path, parametrisation, condition, .. } = &self.objective;
        let rates = CudaRates {
            network: Box::new(&mut *self.network),
            // Backward passes have the memory.
            keeps: false,
            slots: self.slots,
            parametrisation: *parametrisation,
            condition: condition.clone(),
            couplings: self.objective.net.instance().clone(),
            reversed: false,
        };
        let walk = CudaWalk { target, on_gpu: &self.on_gpu, path, plan, population };
        Ok(Box::new(CudaWalkers::new(rates, walk)?))
    }
}

#[cfg(test)]
mod tests;
