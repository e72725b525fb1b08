//! Walkers on a GPU that follow the jump process of a network: [`NetworkWalkers`](crate::sampler::NetworkWalkers) with the same random numbers.
//!
//! Walkers sit in the slots of one large network batch. The network and the kernel `act` are launched again and again without
//! waiting; a walker that is done gives its slot to a waiting one, on the GPU. When no walker waits and half of the slots
//! are empty, the batch shrinks. No result depends on slots or on their number.

mod arguments;
mod follow;
mod tables;

use std::sync::Arc;

use cudarc::driver::{CudaEvent, CudaFunction, CudaSlice, PinnedHostSlice};

use crate::device::cuda::arguments::join;
use crate::device::cuda::memory::fitting;
use crate::device::cuda::{Gpu, failed};
use crate::device::{Precision, Progress, StopOnly};
use crate::net::cuda::{CudaNetwork, Keep};
use crate::path::Path;
use crate::rates::Parametrisation;
use crate::sampler::walkers::cuda::ensemble::CudaEnsemble;
use crate::sampler::walkers::cuda::resample::CudaResampler;
use crate::sampler::walkers::cuda::sweeps::KEY;
use crate::sampler::walkers::{Cost, Lineage, Population, Visit, Walkers, interval_by_interval};
use crate::sampler::{Interval, NetworkWalk, RateModel, Resampling, Scheme, Span, WalkPlan};
use crate::target::Target;
use crate::target::cuda::CudaTarget;
use crate::{Error, Result};
pub(crate) use arguments::defines;
use arguments::{COUNTERS, WalkArguments};
use tables::Tables;

/// Source of the kernels.
pub(crate) const NETWORK_WALK: &str = join!(WalkArguments::SOURCE, include_str!("network.cu"));

/// The kernel that follows a network pass.
const ACT: &str = "act";

/// Threads of a block of it, and of one of the residuals in training.
pub(crate) const BLOCK: usize = 128;

/// Most slots that are worth while.
pub(crate) const SLOTS: usize = 16384;

/// Fewer are not worth while, however little memory there is.
const FEWEST_SLOTS: usize = 64;

/// A network on a GPU and how its fluxes become rates.
pub(crate) struct CudaRates<'a> {
    /// With space for `slots` slots.
    pub(crate) network: Box<dyn CudaNetwork + 'a>,
    /// Whether it keeps activations ([`CudaNetwork::keep`]).
    pub(crate) keeps: bool,
    pub(crate) slots: usize,
    pub(crate) parametrisation: Parametrisation,
    /// What the network is conditioned on beside the time.
    pub(crate) condition: Vec<f64>,
    /// Couplings of the instance that it is shown.
    pub(crate) couplings: Arc<[f32]>,
    /// Whether walkers go back in time.
    pub(crate) reversed: bool,
}

/// Walkers on a GPU that are to follow a network there.
#[derive(Clone, Copy)]
pub(crate) struct CudaWalk<'a> {
    pub(crate) target: &'a Arc<dyn Target>,
    /// The same on the GPU.
    pub(crate) on_gpu: &'a Arc<CudaTarget>,
    pub(crate) path: &'a Path,
    pub(crate) plan: &'a WalkPlan,
    pub(crate) population: Population,
}

/// Walkers on a GPU that follow a network, which may be lent.
pub(crate) struct CudaWalkers<'n> {
    target: Arc<dyn Target>,
    ensemble: CudaEnsemble,
    path: Path,
    network: Box<dyn CudaNetwork + 'n>,
    /// Whether it keeps activations, and which site of every slot has changed since its last pass.
    keeps: bool,
    jumped: CudaSlice<u32>,
    /// What it is conditioned on beside the time.
    condition: Vec<f64>,
    /// Couplings of the instance that it is shown.
    couplings: CudaSlice<f32>,
    plan: WalkPlan,
    slots: usize,
    kernels: Kernels,
    /// Shared memory of [`ACT`].
    shared: usize,
    pending: CudaSlice<f64>,
    passes: CudaSlice<u32>,
    everyone: CudaSlice<u32>,
    rows: CudaSlice<u32>,
    /// Time index of every slot.
    times: CudaSlice<u32>,
    /// Interval of every slot and passes in it, one after the other.
    phase: [CudaSlice<u32>; 2],
    left: CudaSlice<f64>,
    outputs: CudaSlice<f32>,
    counters: CudaSlice<u64>,
    /// Counters on their way back, and when they have come.
    news: [PinnedHostSlice<u64>; 2],
    came: [CudaEvent; 2],
    tables: Option<Tables>,
    resampler: Option<CudaResampler>,
}

/// Walkers in uniformly random states, with as many slots as there is memory for.
pub(in crate::sampler) fn network_walkers(
    walk: NetworkWalk<'_>,
    gpu: &Arc<Gpu>,
    precision: Precision,
) -> Result<Box<dyn Walkers>> {
    let NetworkWalk { target, path, rates, plan, population } = walk;
    let walkers = population.walkers;
    // Other schemes change many sites between passes.
    let keep = |network: &mut dyn CudaNetwork| match plan.scheme {
        Scheme::Events => network.keep(Keep::WhereItPays),
        _ => Ok(false),
    };
    let (fixed, each) =
        rates.net.cuda_bytes(gpu, precision, |network| keep(network).map(|_| ()))?;
    let slot = each + CudaWalkers::bytes_per_slot(&**target);
    let walker = CudaWalkers::bytes_per_walker(&**target);
    let few = fixed + walkers.min(FEWEST_SLOTS) * slot;
    gpu.with_room(KEY, walkers, (few, walker), || {
        // With less memory, fewer at a time.
        let room = fitting(fixed + walkers * walker, slot, gpu.free_memory()?);
        let slots = walkers.min(SLOTS).min(room.max(FEWEST_SLOTS));
        let mut network = rates.net.on_gpu(gpu, slots, precision)?;
        network.refresh(&gpu.upload(rates.parameters())?)?;
        let keeps = keep(&mut *network)?;
        let on_gpu = &Arc::new(CudaTarget::new(gpu, &**target)?);
        let RateModel { parametrisation, reversed, .. } = *rates;
        let (condition, couplings) = (rates.condition.clone(), rates.couplings.clone());
        let there =
            CudaRates { network, keeps, slots, parametrisation, condition, couplings, reversed };
        let walk = CudaWalk { target, on_gpu, path, plan, population };
        let made: Box<dyn Walkers> = Box::new(CudaWalkers::new(there, walk)?);
        Ok(made)
    })
}

struct Kernels {
    begin: CudaFunction,
    weigh: CudaFunction,
    check: CudaFunction,
    compact: CudaFunction,
    act: CudaFunction,
}

impl<'n> CudaWalkers<'n> {
    /// Walkers in uniformly random states. The network has its parameters already ([`CudaNetwork::refresh`]).
    pub(crate) fn new(rates: CudaRates<'n>, walk: CudaWalk<'_>) -> Result<Self> {
        let CudaWalk { target, on_gpu, path, plan, population } = walk;
        let gpu = &on_gpu.gpu;
        let (sites, q, walkers) = (on_gpu.sites, on_gpu.q, population.walkers);
        let slots = rates.slots.min(walkers).max(1);
        let shared = if plan.scheme == Scheme::Events { sites } else { 2 * sites };
        // What kernels ask for besides takes less than 1 KiB.
        if shared + 1024 > gpu.shared() {
            let reason = format!("{sites} sites do not fit its shared memory; use the device cpu");
            return Err(Error::not_applicable("a GPU", reason));
        }
        let kernels = on_gpu
            .compile(NETWORK_WALK, &defines(rates.parametrisation, plan.scheme, rates.reversed))?;
        let kernels = Kernels {
            begin: kernels.get("begin", 0)?,
            weigh: kernels.get("weigh", 0)?,
            check: kernels.get("check", 0)?,
            compact: kernels.get("compact", 0)?,
            act: kernels.get(ACT, shared)?,
        };
        let everyone: Vec<u32> = (0..walkers as u32).collect();
        let outputs = if q == 2 { 1 } else { q };
        let context = gpu.stream.context();
        // SAFETY: nobody reads them before a copy has filled them.
        let news = || unsafe { context.alloc_pinned(COUNTERS) }.map_err(failed("memory"));
        let event = || context.new_event(None).map_err(failed("memory"));
        let mut made = CudaWalkers {
            target: target.clone(),
            ensemble: CudaEnsemble::new(on_gpu, population)?,
            path: path.clone(),
            network: rates.network,
            keeps: rates.keeps,
            jumped: gpu.zeros(slots)?,
            condition: rates.condition,
            couplings: gpu.upload(&rates.couplings)?,
            plan: plan.clone(),
            slots,
            kernels,
            shared,
            pending: gpu.zeros(walkers)?,
            passes: gpu.zeros(walkers)?,
            everyone: gpu.upload(&everyone)?,
            rows: gpu.zeros(slots)?,
            times: gpu.zeros(slots)?,
            phase: [gpu.zeros(slots)?, gpu.zeros(slots)?],
            left: gpu.zeros(slots)?,
            outputs: gpu.zeros(slots * sites * outputs)?,
            counters: gpu.zeros(COUNTERS)?,
            news: [news()?, news()?],
            came: [event()?, event()?],
            tables: None,
            resampler: None,
        };
        made.ensemble.measure()?;
        let energies = made.energies()?;
        for (walker, row) in energies.chunks_exact(on_gpu.terms).enumerate() {
            let state = || made.ensemble.host_state(walker).unwrap_or_default();
            made.visit(walker, 0).check(row, state)?;
        }
        Ok(made)
    }

    fn visit(&self, walker: usize, step: u64) -> Visit<'_> {
        Visit { target: &*self.target, seed: self.ensemble.seed, walker, step }
    }

    /// Bytes of a walker's state, energies and unfinished weight.
    fn row(target: &dyn Target) -> usize {
        target.sites() + (target.terms() + 1) * size_of::<f64>()
    }

    /// Bytes that a walker takes on a GPU, with what resampling needs.
    pub(crate) fn bytes_per_walker(target: &dyn Target) -> usize {
        let row = Self::row(target);
        row + size_of::<f64>() + 2 * size_of::<u32>() + CudaResampler::bytes(row)
    }

    /// Bytes that a slot takes beside the network's.
    pub(crate) fn bytes_per_slot(target: &dyn Target) -> usize {
        let outputs = if target.q() == 2 { 1 } else { target.q() };
        5 * size_of::<u32>() + size_of::<f64>() + target.sites() * outputs * size_of::<f32>()
    }

    /// The outputs of the network.
    #[cfg(test)]
    pub(crate) fn outputs_mut(&mut self) -> &mut CudaSlice<f32> {
        &mut self.outputs
    }

    fn gpu(&self) -> Arc<Gpu> {
        self.ensemble.gpu()
    }
}

impl Walkers for CudaWalkers<'_> {
    fn walkers(&self) -> usize {
        self.ensemble.walkers
    }

    fn weigh(&mut self, at: Interval<'_>, log_weights: &mut [f64]) -> Result<()> {
        if self.plan.scheme != Scheme::Events {
            return Ok(());
        }
        let energies = self.energies()?;
        for (log_weight, row) in
            log_weights.iter_mut().zip(energies.chunks_exact(at.lambda().len()))
        {
            let mut drop = 0.0;
            at.weigh(row, &mut drop);
            *log_weight += drop;
        }
        Ok(())
    }

    fn mutate(
        &mut self,
        at: Interval<'_>,
        log_weights: &mut [f64],
        progress: &dyn Progress,
    ) -> Result<()> {
        self.drive(at.alone(), false, log_weights, &StopOnly(progress))
    }

    fn advance(
        &mut self,
        span: Span<'_>,
        rule: &Resampling,
        lineage: &mut Lineage,
        progress: &dyn Progress,
    ) -> Result<()> {
        if rule.is_never() {
            return self.drive(span, true, &mut lineage.log_weights, progress);
        }
        if !CudaResampler::serves(rule.resampler) {
            return interval_by_interval(self, span, rule, lineage, progress);
        }
        let (count, seed) = (span.intervals.len(), lineage.seed);
        let mut resampler = match self.resampler.take() {
            Some(resampler) => resampler,
            None => CudaResampler::new(&self.gpu(), self.walkers(), Self::row(&*self.target))?,
        };
        resampler.begin(lineage, count)?;
        self.ensemble.take_log_weights(&lineage.log_weights)?;
        self.along(span.grid, |this, tables| {
            this.resample_and_follow(tables, &span, (rule, seed), &mut resampler, progress)
        })?;
        resampler.end(lineage, count)?;
        self.resampler = Some(resampler);
        self.ensemble.give_log_weights(&mut lineage.log_weights)
    }

    fn resample(&mut self, ancestors: &[u32]) -> Result<()> {
        let from = self.gpu().upload(ancestors)?;
        self.ensemble.gather(&from)?;
        // Passes stay: they are the walker's own, whatever state it takes over.
        self.pending = self.ensemble.target.gathered(&self.pending, 1, &from, self.walkers())?;
        Ok(())
    }

    fn start_at(&mut self, states: &[u8]) -> Result<()> {
        self.ensemble.take_states(states)?;
        self.ensemble.measure()
    }

    fn energies(&self) -> Result<Vec<f64>> {
        self.ensemble.host_energies()
    }

    fn states(&self) -> Result<Vec<u8>> {
        self.ensemble.host_states()
    }

    fn cost(&self) -> Result<Cost> {
        let passes = self.gpu().download(&self.passes)?;
        let sum: u64 = passes[..self.walkers()].iter().map(|&n| u64::from(n)).sum();
        let network_passes = sum as f64 / self.walkers() as f64;
        Ok(Cost { energy_calls: self.plan.energy_calls(network_passes), network_passes })
    }
}

#[cfg(test)]
mod tests;
