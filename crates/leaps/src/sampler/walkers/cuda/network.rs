//! Walkers on a GPU that follow the jump process of a network: [`NetworkWalkers`](crate::sampler::NetworkWalkers) with the same random numbers.
//!
//! Walkers sit in the slots of one large network batch. The network and the kernel `act` are launched again and again without
//! waiting; a walker that is done gives its slot to a waiting one, on the GPU. When no walker waits and half of the slots
//! are empty, the batch shrinks. No result depends on slots or on their number.

mod arguments;

use std::ops::Range;
use std::sync::Arc;

use cudarc::driver::{CudaEvent, CudaFunction, CudaSlice, PinnedHostSlice};

use crate::device::cuda::arguments::{Input, Output, join};
use crate::device::cuda::memory::fitting;
use crate::device::cuda::{Gpu, address, failed, launch};
use crate::device::{Precision, Progress, Purpose, StopOnly};
use crate::net::cuda::{CudaBatch, CudaNetwork, time_features};
use crate::path::Path;
use crate::rates::Parametrisation;
use crate::sampler::walkers::cuda::ensemble::CudaEnsemble;
use crate::sampler::walkers::cuda::resample::{CudaResampler, Judged};
use crate::sampler::walkers::cuda::sweeps::KEY;
use crate::sampler::walkers::{Cost, Lineage, Population, Visit, Walkers, interval_by_interval};
use crate::sampler::{Grid, Interval, NetworkWalk, RateModel, Resampling, Scheme, Span, WalkPlan};
use crate::target::Target;
use crate::target::cuda::{CudaTarget, Sweep, Weights};
use crate::{Error, Result};
use arguments::WalkArguments;
pub(crate) use arguments::defines;

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

/// Passes between looks at the counters.
const PERIOD: usize = 4;

/// Counters of `network.cu`.
const COUNTERS: usize = 8;

/// A network on a GPU and how its fluxes become rates.
pub(crate) struct CudaRates<'a> {
    /// With space for `slots` slots.
    pub(crate) network: Box<dyn CudaNetwork + 'a>,
    pub(crate) slots: usize,
    pub(crate) parametrisation: Parametrisation,
    /// What the network is conditioned on beside the time.
    pub(crate) condition: Vec<f64>,
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
    /// What it is conditioned on beside the time.
    condition: Vec<f64>,
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
    let (fixed, each) = rates.net.cuda_bytes(gpu, precision, false)?;
    let slot = each + CudaWalkers::bytes_per_slot(&**target);
    let walker = CudaWalkers::bytes_per_walker(&**target);
    let few = fixed + walkers.min(FEWEST_SLOTS) * slot;
    gpu.with_room(KEY, walkers, (few, walker), || {
        // With less memory, fewer at a time.
        let room = fitting(fixed + walkers * walker, slot, gpu.free_memory()?);
        let slots = walkers.min(SLOTS).min(room.max(FEWEST_SLOTS));
        let mut network = rates.net.on_gpu(gpu, slots, precision)?;
        network.refresh(&gpu.upload(rates.parameters())?)?;
        let on_gpu = &Arc::new(CudaTarget::new(gpu, &**target)?);
        let RateModel { parametrisation, reversed, .. } = *rates;
        let condition = rates.condition.clone();
        let there = CudaRates { network, slots, parametrisation, condition, reversed };
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

/// What the GPU knows of a grid.
struct Tables {
    grid: Grid,
    lambda: CudaSlice<f64>,
    slopes: CudaSlice<f64>,
    durations: CudaSlice<f64>,
    /// Time features.
    features: CudaSlice<f32>,
}

/// Intervals that walkers cross without a stop between them. Trapezoid weighs with the state at the end of the stretch before interval `closing`.
#[derive(Clone)]
struct Stretch {
    intervals: Range<usize>,
    closing: usize,
    /// Whether to weigh first in each.
    weigh: bool,
}

/// What the counters say.
#[derive(Clone, Copy)]
struct News {
    finished: usize,
    crossed: u64,
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
            condition: rates.condition,
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
        4 * size_of::<u32>() + size_of::<f64>() + target.sites() * outputs * size_of::<f32>()
    }

    /// The outputs of the network.
    #[cfg(test)]
    pub(crate) fn outputs_mut(&mut self) -> &mut CudaSlice<f32> {
        &mut self.outputs
    }

    fn gpu(&self) -> Arc<Gpu> {
        self.ensemble.gpu()
    }

    /// What kernels need of `grid`, on the GPU.
    fn tables_of(&self, grid: &Grid) -> Result<Tables> {
        let (mut lambda, mut slopes, mut features) = (Vec::new(), Vec::new(), Vec::new());
        for (k, &t) in grid.times().iter().enumerate() {
            lambda.extend_from_slice(grid.lambda(k));
            slopes.extend(self.path.slope(t));
            features.extend(time_features(t, &self.condition));
        }
        let gpu = self.gpu();
        Ok(Tables {
            grid: grid.clone(),
            lambda: gpu.upload(&lambda)?,
            slopes: gpu.upload(&slopes)?,
            durations: gpu.upload(&self.plan.durations)?,
            features: gpu.upload(&features)?,
        })
    }

    /// The arguments of the kernels for a stretch of intervals.
    fn arguments(&self, tables: &Tables, stretch: &Stretch) -> WalkArguments {
        let gpu = &self.gpu();
        let CudaEnsemble { walkers, seed, states, energies, log_weights, .. } = &self.ensemble;
        WalkArguments {
            states: Output::of(gpu, states),
            log_weights: Output::of(gpu, log_weights),
            energies: Output::of(gpu, energies),
            pending: Output::of(gpu, &self.pending),
            passes: Output::of(gpu, &self.passes),
            rows: Output::of(gpu, &self.rows),
            time_indices: Output::of(gpu, &self.times),
            intervals: Output::of(gpu, &self.phase[0]),
            passed: Output::of(gpu, &self.phase[1]),
            left: Output::of(gpu, &self.left),
            outputs: Input::of(gpu, &self.outputs),
            lambda: Input::of(gpu, &tables.lambda),
            slopes: Input::of(gpu, &tables.slopes),
            durations: Input::of(gpu, &tables.durations),
            counters: Output::of(gpu, &self.counters),
            seed: *seed,
            start: stretch.intervals.start as u64,
            end: stretch.intervals.end as u64,
            closing: stretch.closing as u64,
            walkers: *walkers as u64,
            weigh: u64::from(stretch.weigh),
        }
    }

    /// Do something with what the GPU knows of a grid.
    fn along<T>(
        &mut self,
        grid: &Grid,
        work: impl FnOnce(&mut Self, &Tables) -> Result<T>,
    ) -> Result<T> {
        let tables = match self.tables.take() {
            Some(tables) if tables.grid == *grid => tables,
            _ => self.tables_of(grid)?,
        };
        let done = work(self, &tables);
        self.tables = Some(tables);
        done
    }

    /// Run all walkers through the intervals, weighing first in each if `weigh`.
    fn drive(
        &mut self,
        span: Span<'_>,
        weigh: bool,
        log_weights: &mut [f64],
        progress: &dyn Progress,
    ) -> Result<()> {
        self.ensemble.take_log_weights(log_weights)?;
        self.along(span.grid, |this, tables| {
            let closing = span.intervals.end;
            this.walk(tables, Stretch { intervals: span.intervals, closing, weigh }, progress)
        })?;
        self.ensemble.give_log_weights(log_weights)
    }

    /// Move all walkers through a stretch, with sweeps if there are any.
    fn walk(&mut self, tables: &Tables, stretch: Stretch, progress: &dyn Progress) -> Result<()> {
        match self.plan.sweeps {
            0 => self.follow(tables, stretch, progress),
            _ => self.sweep_and_follow(tables, stretch, progress),
        }
    }

    /// Weigh all walkers for an interval.
    fn weigh_there(&self, tables: &Tables, stretch: &Stretch, k: usize) -> Result<()> {
        let (gpu, arguments) = (self.gpu(), self.arguments(tables, stretch));
        let (grid, interval) = ((self.ensemble.walkers.div_ceil(128) as u32, 1, 1), k as u32);
        launch!(gpu, self.kernels.weigh, (grid, 128, 0), &arguments, &interval)
    }

    /// Interval by interval, resampling before the walkers move.
    fn resample_and_follow(
        &mut self,
        tables: &Tables,
        span: &Span<'_>,
        (rule, seed): (&Resampling, u64),
        resampler: &mut CudaResampler,
        progress: &dyn Progress,
    ) -> Result<()> {
        for (place, at) in span.iter().enumerate() {
            progress.check()?;
            resampler.remember(&self.ensemble.log_weights)?;
            // A stretch of its own, whose weights are complete when they are judged.
            let stretch = Stretch { intervals: at.k..at.k + 1, closing: at.k + 1, weigh: false };
            self.weigh_there(tables, &stretch, at.k)?;
            let mut rows = self.ensemble.rows();
            rows[2] = (address(&self.gpu(), &self.pending), size_of::<f64>());
            let judged = Judged { rule, at, place, seed };
            resampler.resample(&mut self.ensemble.log_weights, rows, judged)?;
            self.walk(tables, stretch, &StopOnly(progress))?;
            progress.advance(self.ensemble.walkers as u64);
        }
        Ok(())
    }

    /// Interval by interval, all walkers in step, heat-bath sweeps before the jumps.
    fn sweep_and_follow(
        &mut self,
        tables: &Tables,
        stretch: Stretch,
        progress: &dyn Progress,
    ) -> Result<()> {
        let gpu = self.gpu();
        let grid = (self.ensemble.walkers.div_ceil(128) as u32, 1, 1);
        for k in stretch.intervals.clone() {
            let part = Stretch { intervals: k..k + 1, weigh: false, ..stretch };
            if stretch.weigh {
                self.weigh_there(tables, &part, k)?;
            }
            let sweeps = self.plan.sweeps;
            let CudaEnsemble { target, walkers, seed, states, .. } = &mut self.ensemble;
            let (at, terms) = (self.plan.time(k), target.terms);
            let lambda = tables.lambda.slice(at * terms..(at + 1) * terms);
            target.sweep(
                Sweep::HeatBath,
                states,
                (&self.everyone, *walkers),
                Weights::Same(&lambda),
                (*seed, Purpose::Move),
                (k as u64 * sweeps, sweeps),
            )?;
            self.ensemble.measure()?;
            gpu.stream.memset_zeros(&mut self.counters).map_err(failed("a kernel"))?;
            let (arguments, number) = (self.arguments(tables, &part), k as u32);
            launch!(gpu, self.kernels.check, (grid, 128, 0), &arguments, &number)?;
            let counters = gpu.download(&self.counters)?;
            self.heed(&counters)?;
            self.follow(tables, part, progress)?;
        }
        Ok(())
    }

    /// Let the network move all walkers through the intervals.
    fn follow(&mut self, tables: &Tables, stretch: Stretch, progress: &dyn Progress) -> Result<()> {
        let (gpu, walkers) = (self.gpu(), self.ensemble.walkers);
        let arguments = self.arguments(tables, &stretch);
        let mut counters = [0u64; COUNTERS];
        counters[0] = self.slots as u64;
        gpu.write(&counters, &mut self.counters)?;
        let (grid, slots) = ((self.slots.div_ceil(128) as u32, 1, 1), self.slots as u32);
        launch!(gpu, self.kernels.begin, (grid, 128, 0), &arguments, &slots)?;

        // Every walker needs a pass in every interval that lasts; other schemes need no more.
        let scheme = self.plan.scheme;
        let lasting = |k: &usize| self.plan.durations[*k] > 0.0;
        let mut least = stretch.intervals.clone().filter(lasting).count();
        let closes =
            scheme == Scheme::Trapezoid && least > 0 && stretch.intervals.end == stretch.closing;
        least = (least + usize::from(closes)) * walkers.div_ceil(self.slots);
        let mut batch = self.slots;
        let mut crossed = 0;
        let (mut turn, mut asked) = (0, false);
        loop {
            progress.check()?;
            let passes = least.clamp(1, 32).max(if least == 0 { PERIOD } else { 1 });
            for _ in 0..passes {
                self.pass(tables, &arguments, batch)?;
            }
            least = least.saturating_sub(passes);
            // Look at the counters of the last turn while the GPU works on this one's passes, except at the very end.
            let exact = scheme != Scheme::Events && least == 0;
            let old = self.news_of(1 - turn, asked && !exact)?;
            gpu.stream
                .memcpy_dtoh(&self.counters, &mut self.news[turn])
                .map_err(failed("a kernel"))?;
            self.came[turn].record(&gpu.stream).map_err(failed("a kernel"))?;
            let news = if exact { self.news_of(turn, true)? } else { old };
            (turn, asked) = (1 - turn, true);
            let Some(news) = news else { continue };
            progress.advance(news.crossed - crossed);
            crossed = news.crossed;
            let remaining = walkers.saturating_sub(news.finished);
            if remaining == 0 {
                return Ok(());
            }
            if 2 * remaining <= batch {
                let (slots, keep) = (batch as u32, remaining as u32);
                launch!(
                    gpu,
                    self.kernels.compact,
                    ((1, 1, 1), 1024, 0),
                    &arguments,
                    &slots,
                    &keep
                )?;
                batch = remaining;
            }
        }
    }

    /// One network pass and what follows from it.
    fn pass(&mut self, tables: &Tables, arguments: &WalkArguments, batch: usize) -> Result<()> {
        let slots = CudaBatch {
            slots: batch,
            states: &self.ensemble.states,
            rows: &self.rows,
            time_indices: &self.times,
            table: &tables.features,
        };
        self.network.forward(&slots, &mut self.outputs)?;
        let grid = (batch as u32, 1, 1);
        let (gpu, pairs) = (self.gpu(), self.ensemble.target.arguments());
        launch!(gpu, self.kernels.act, (grid, BLOCK, self.shared), pairs, arguments)
    }

    /// The counters in `news[turn]`, once they have come.
    fn news_of(&self, turn: usize, there: bool) -> Result<Option<News>> {
        if !there {
            return Ok(None);
        }
        self.came[turn].synchronize().map_err(failed("a kernel"))?;
        let counters = self.news[turn].as_slice().map_err(failed("a kernel"))?.to_vec();
        self.heed(&counters)?;
        Ok(Some(News { finished: counters[1] as usize, crossed: counters[2] }))
    }

    /// Turn a number that is not finite into an error.
    fn heed(&self, counters: &[u64]) -> Result<()> {
        let kind = counters[3];
        if kind == 0 {
            return Ok(());
        }
        // Whoever failed first may still have been writing down where.
        let counters = self.gpu().download(&self.counters)?;
        let (walker, value) = (counters[4] as usize, f64::from_bits(counters[6]));
        let visit = self.visit(walker, counters[5]);
        let what = match kind {
            1 => "sum of the rates".into(),
            _ => visit.energy_term(kind as usize - 2),
        };
        Err(visit.infinite(what, value, &self.ensemble.host_state(walker)?))
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
