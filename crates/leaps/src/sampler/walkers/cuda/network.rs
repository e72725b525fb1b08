//! Move walkers by the jump process of a network on a GPU: [`NetworkWalkers`](crate::sampler::NetworkWalkers) with the same random numbers.
//!
//! Walkers sit in the lanes of one large network batch. The network and the kernel `act` are launched again and again without
//! waiting; a walker that is done gives its lane to a waiting one, on the GPU. When no walker waits and half of the lanes
//! are empty, the batch shrinks. No result depends on lanes or on their number.

mod following;

use std::sync::Arc;

use cudarc::driver::{CudaEvent, CudaFunction, CudaSlice, PinnedHostSlice};

use crate::device::cuda::arguments::{Input, Output, join};
use crate::device::cuda::{Gpu, address, failed, launch};
use crate::device::{Progress, Purpose, StopOnly};
use crate::net::cuda::{CudaBatch, CudaNetwork, TIME_FEATURES, time_features};
use crate::path::Path;
use crate::rates::Parametrisation;
use crate::sampler::walkers::cuda::resample::{CudaResampler, threshold};
use crate::sampler::walkers::network::Scheme;
use crate::sampler::walkers::{Lineage, Population, check_energy, one_by_one};
use crate::sampler::{Grid, Resampling};
use crate::target::cuda::{CudaTarget, Sweep, Weights};
use crate::target::{Target, show_state};
use crate::{Error, Result};
use following::Following;

/// Source of the kernels.
pub(crate) const FLOW: &str = join!(Following::SOURCE, include_str!("network.cu"));

/// The kernel that follows a network pass.
const ACT: &str = "act";

/// Most lanes that are worth while.
pub(crate) const LANES: usize = 16384;

/// Fewer are not worth while, however little memory there is.
pub(crate) const FEWEST_LANES: usize = 64;

/// Passes between looks at the counters.
const PERIOD: usize = 4;

/// Counters of `flow.cu`.
const COUNTERS: usize = 8;

/// A network on a GPU and how its fluxes become rates.
pub(crate) struct CudaRates<'a> {
    /// With space for `lanes` lanes.
    pub(crate) network: Box<dyn CudaNetwork + 'a>,
    pub(crate) lanes: usize,
    pub(crate) parametrisation: Parametrisation,
}

/// Walkers on a GPU that follow a network.
pub(crate) struct CudaWalkers<'a> {
    target: &'a dyn Target,
    on_gpu: Arc<CudaTarget>,
    path: &'a Path,
    network: Box<dyn CudaNetwork + 'a>,
    scheme: Scheme,
    durations: Vec<f64>,
    sweeps: u64,
    walkers: usize,
    seed: u64,
    lanes: usize,
    kernels: Kernels,
    /// Shared memory of [`ACT`].
    shared: usize,
    states: CudaSlice<u8>,
    energies: CudaSlice<f64>,
    log_weights: CudaSlice<f64>,
    pending: CudaSlice<f64>,
    passes: CudaSlice<u32>,
    everyone: CudaSlice<u32>,
    rows: CudaSlice<u32>,
    moments: CudaSlice<u32>,
    /// Interval of every lane and passes in it, one after the other.
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
    moments: CudaSlice<f32>,
}

/// What the counters say.
#[derive(Clone, Copy)]
struct News {
    finished: usize,
    crossed: u64,
}

impl<'a> CudaWalkers<'a> {
    /// `walkers` walkers in uniformly random states; `durations` from [`scheme_grid`](crate::sampler::scheme_grid). The network has its
    /// parameters already ([`CudaNetwork::refresh`]).
    pub(crate) fn new(
        target: &'a dyn Target,
        on_gpu: &Arc<CudaTarget>,
        path: &'a Path,
        flow: CudaRates<'a>,
        scheme: Scheme,
        durations: Vec<f64>,
        sweeps: u64,
        walkers: usize,
        seed: u64,
    ) -> Result<Self> {
        let gpu = &on_gpu.gpu;
        let (sites, q, terms) = (on_gpu.sites, on_gpu.q, on_gpu.terms);
        let lanes = flow.lanes.min(walkers).max(1);
        let shared = if scheme == Scheme::Events { sites } else { 2 * sites };
        // What kernels ask for besides takes less than 1 KiB.
        if shared + 1024 > gpu.shared() {
            let reason = format!("{sites} sites do not fit its shared memory; use the device cpu");
            return Err(Error::not_applicable("a GPU", reason));
        }
        let kernels = on_gpu.compile(FLOW, &defines(flow.parametrisation, scheme))?;
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
            target,
            path,
            network: flow.network,
            scheme,
            durations,
            sweeps,
            walkers,
            seed,
            lanes,
            kernels,
            shared,
            states: on_gpu.initial_states(walkers, seed)?,
            energies: gpu.zeros(walkers * terms)?,
            log_weights: gpu.zeros(walkers)?,
            pending: gpu.zeros(walkers)?,
            passes: gpu.zeros(walkers)?,
            everyone: gpu.upload(&everyone)?,
            rows: gpu.zeros(lanes)?,
            moments: gpu.zeros(lanes)?,
            phase: [gpu.zeros(lanes)?, gpu.zeros(lanes)?],
            left: gpu.zeros(lanes)?,
            outputs: gpu.zeros(lanes * sites * outputs)?,
            counters: gpu.zeros(COUNTERS)?,
            news: [news()?, news()?],
            came: [event()?, event()?],
            tables: None,
            resampler: None,
            on_gpu: on_gpu.clone(),
        };
        made.on_gpu.energies(&made.states, walkers, &mut made.energies)?;
        let energies = made.energies()?;
        for (walker, row) in energies.chunks_exact(terms).enumerate() {
            let state = || made.state(walker).unwrap_or_default();
            check_energy(target, row, state, seed, walker, 0)?;
        }
        Ok(made)
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

    /// Bytes that a lane takes beside the network's.
    pub(crate) fn bytes_per_lane(target: &dyn Target) -> usize {
        let outputs = if target.q() == 2 { 1 } else { target.q() };
        4 * size_of::<u32>() + size_of::<f64>() + target.sites() * outputs * size_of::<f32>()
    }

    /// Network passes per walker so far.
    pub(crate) fn passes(&self) -> Result<f64> {
        let passes = self.gpu().download(&self.passes)?;
        let sum: u64 = passes[..self.walkers].iter().map(|&n| u64::from(n)).sum();
        Ok(sum as f64 / self.walkers as f64)
    }

    /// What the network has said.
    #[cfg(test)]
    pub(crate) fn outputs_mut(&mut self) -> &mut CudaSlice<f32> {
        &mut self.outputs
    }

    fn gpu(&self) -> &Gpu {
        &self.on_gpu.gpu
    }

    fn state(&self, walker: usize) -> Result<Vec<u8>> {
        let sites = self.on_gpu.sites;
        self.gpu().download(&self.states.slice(walker * sites..(walker + 1) * sites))
    }

    /// Put what kernels need of `grid` on the GPU.
    fn prepare(&mut self, grid: &Grid) -> Result<()> {
        if self.tables.as_ref().is_some_and(|tables| tables.grid == *grid) {
            return Ok(());
        }
        let (mut lambda, mut slopes, mut moments) = (Vec::new(), Vec::new(), Vec::new());
        for (k, &t) in grid.times().iter().enumerate() {
            lambda.extend_from_slice(grid.lambda(k));
            slopes.extend(self.path.slope(t));
            moments.extend_from_slice(&time_features(t));
        }
        debug_assert_eq!(moments.len(), grid.times().len() * TIME_FEATURES);
        let gpu = self.gpu();
        self.tables = Some(Tables {
            grid: grid.clone(),
            lambda: gpu.upload(&lambda)?,
            slopes: gpu.upload(&slopes)?,
            durations: gpu.upload(&self.durations)?,
            moments: gpu.upload(&moments)?,
        });
        Ok(())
    }

    /// The arguments of the kernels, for the intervals given; trapezoid weighs with the state at the end of the
    /// stretch before interval `closing`.
    fn arguments(
        &self,
        tables: &Tables,
        intervals: &std::ops::Range<usize>,
        closing: usize,
        weigh: bool,
    ) -> Following {
        let gpu = self.gpu();
        Following {
            states: Output::of(gpu, &self.states),
            log_weights: Output::of(gpu, &self.log_weights),
            energies: Output::of(gpu, &self.energies),
            pending: Output::of(gpu, &self.pending),
            passes: Output::of(gpu, &self.passes),
            rows: Output::of(gpu, &self.rows),
            moments: Output::of(gpu, &self.moments),
            intervals: Output::of(gpu, &self.phase[0]),
            passed: Output::of(gpu, &self.phase[1]),
            left: Output::of(gpu, &self.left),
            outputs: Input::of(gpu, &self.outputs),
            lambda: Input::of(gpu, &tables.lambda),
            slopes: Input::of(gpu, &tables.slopes),
            durations: Input::of(gpu, &tables.durations),
            counters: Output::of(gpu, &self.counters),
            seed: self.seed,
            start: intervals.start as u64,
            end: intervals.end as u64,
            closing: closing as u64,
            walkers: self.walkers as u64,
            weigh: u64::from(weigh),
        }
    }

    /// Run all walkers through the intervals, weighing first in each if `weigh`.
    fn drive(
        &mut self,
        grid: &Grid,
        intervals: std::ops::Range<usize>,
        weigh: bool,
        log_weights: &mut [f64],
        progress: &dyn Progress,
    ) -> Result<()> {
        self.prepare(grid)?;
        let Some(tables) = self.tables.take() else { return Ok(()) };
        self.on_gpu.gpu.write(log_weights, &mut self.log_weights)?;
        let done = if self.sweeps == 0 {
            let closing = intervals.end;
            self.follow(&tables, intervals, closing, weigh, progress)
        } else {
            self.sweep_and_follow(&tables, intervals, weigh, progress)
        };
        self.tables = Some(tables);
        done?;
        let got = self.gpu().download(&self.log_weights.slice(..self.walkers))?;
        log_weights.copy_from_slice(&got);
        Ok(())
    }

    /// Interval by interval, resampling before the walkers move.
    fn resample_and_follow(
        &mut self,
        tables: &Tables,
        intervals: std::ops::Range<usize>,
        (resampling, seed): (&Resampling, u64),
        resampler: &mut CudaResampler,
        progress: &dyn Progress,
    ) -> Result<()> {
        let gpu = self.on_gpu.gpu.clone();
        let (sites, terms, number) = (self.on_gpu.sites, self.on_gpu.terms, size_of::<f64>());
        let grid = (self.walkers.div_ceil(128) as u32, 1, 1);
        for (place, k) in intervals.enumerate() {
            progress.check()?;
            resampler.remember(&self.log_weights)?;
            // A stretch of its own, whose weights are complete when they are judged.
            let flow = self.arguments(tables, &(k..k + 1), k + 1, false);
            let interval = k as u32;
            launch!(gpu, self.kernels.weigh, (grid, 128, 0), &flow, &interval)?;
            let rows = [
                (address(&gpu, &self.states), sites),
                (address(&gpu, &self.energies), terms * number),
                (address(&gpu, &self.pending), number),
            ];
            let rule = (threshold(resampling, k, &tables.grid), resampling.resampler);
            resampler.resample(&mut self.log_weights, rows, rule, seed, (k, place))?;
            let part = &StopOnly(progress);
            match self.sweeps {
                0 => self.follow(tables, k..k + 1, k + 1, false, part)?,
                _ => self.sweep_and_follow(tables, k..k + 1, false, part)?,
            }
            progress.advance(self.walkers as u64);
        }
        Ok(())
    }

    /// Interval by interval, all walkers in step, heat-bath sweeps before the jumps.
    fn sweep_and_follow(
        &mut self,
        tables: &Tables,
        intervals: std::ops::Range<usize>,
        weigh: bool,
        progress: &dyn Progress,
    ) -> Result<()> {
        let gpu = self.on_gpu.gpu.clone();
        let (grid, terms) = ((self.walkers.div_ceil(128) as u32, 1, 1), self.on_gpu.terms);
        let closing = intervals.end;
        for k in intervals {
            let flow = self.arguments(tables, &(k..k + 1), closing, false);
            let number = k as u32;
            if weigh {
                launch!(gpu, self.kernels.weigh, (grid, 128, 0), &flow, &number)?;
            }
            let at = if self.scheme == Scheme::Events { k } else { k - 1 };
            let lambda = tables.lambda.slice(at * terms..(at + 1) * terms);
            self.on_gpu.sweep(
                Sweep::HeatBath,
                &mut self.states,
                (&self.everyone, self.walkers),
                Weights::Same(&lambda),
                (self.seed, Purpose::Move),
                (k as u64 * self.sweeps, self.sweeps),
            )?;
            self.on_gpu.energies(&self.states, self.walkers, &mut self.energies)?;
            gpu.stream.memset_zeros(&mut self.counters).map_err(failed("a kernel"))?;
            launch!(gpu, self.kernels.check, (grid, 128, 0), &flow, &number)?;
            let seen = gpu.download(&self.counters)?;
            self.heed(&seen)?;
            self.follow(tables, k..k + 1, closing, false, progress)?;
        }
        Ok(())
    }

    /// Let the network move all walkers through the intervals.
    fn follow(
        &mut self,
        tables: &Tables,
        intervals: std::ops::Range<usize>,
        closing: usize,
        weigh: bool,
        progress: &dyn Progress,
    ) -> Result<()> {
        let gpu = self.on_gpu.gpu.clone();
        let flow = self.arguments(tables, &intervals, closing, weigh);
        let mut counters = [0u64; COUNTERS];
        counters[0] = self.lanes as u64;
        gpu.write(&counters, &mut self.counters)?;
        let (grid, lanes) = ((self.lanes.div_ceil(128) as u32, 1, 1), self.lanes as u32);
        launch!(gpu, self.kernels.begin, (grid, 128, 0), &flow, &lanes)?;

        // Every walker needs a pass in every interval that lasts; other schemes need no more.
        let mut least = intervals.clone().filter(|&k| self.durations[k] > 0.0).count();
        let closes = self.scheme == Scheme::Trapezoid && least > 0 && intervals.end == closing;
        least = (least + usize::from(closes)) * self.walkers.div_ceil(self.lanes);
        let mut batch = self.lanes;
        let mut crossed = 0;
        let (mut turn, mut asked) = (0, false);
        loop {
            progress.check()?;
            let passes = least.clamp(1, 32).max(if least == 0 { PERIOD } else { 1 });
            for _ in 0..passes {
                self.pass(tables, &flow, batch)?;
            }
            least = least.saturating_sub(passes);
            // Look at the counters of the last turn while the GPU works on this one's passes, except at the very end.
            let exact = self.scheme != Scheme::Events && least == 0;
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
            let remaining = self.walkers.saturating_sub(news.finished);
            if remaining == 0 {
                return Ok(());
            }
            if 2 * remaining <= batch {
                let (lanes, keep) = (batch as u32, remaining as u32);
                launch!(gpu, self.kernels.compact, ((1, 1, 1), 1024, 0), &flow, &lanes, &keep)?;
                batch = remaining;
            }
        }
    }

    /// One network pass and what follows from it.
    fn pass(&mut self, tables: &Tables, flow: &Following, batch: usize) -> Result<()> {
        let lanes = CudaBatch {
            slots: batch,
            states: &self.states,
            rows: &self.rows,
            time_indices: &self.moments,
            table: &tables.moments,
        };
        self.network.forward(&lanes, &mut self.outputs)?;
        let grid = (batch as u32, 1, 1);
        let pairs = self.on_gpu.arguments();
        launch!(self.gpu(), self.kernels.act, (grid, 128, self.shared), pairs, flow)
    }

    /// The counters in `news[turn]`, once they have come.
    fn news_of(&self, turn: usize, there: bool) -> Result<Option<News>> {
        if !there {
            return Ok(None);
        }
        self.came[turn].synchronize().map_err(failed("a kernel"))?;
        let seen = self.news[turn].as_slice().map_err(failed("a kernel"))?.to_vec();
        self.heed(&seen)?;
        Ok(Some(News { finished: seen[1] as usize, crossed: seen[2] }))
    }

    /// Turn a number that is not finite into an error.
    fn heed(&self, counters: &[u64]) -> Result<()> {
        let kind = counters[3];
        if kind == 0 {
            return Ok(());
        }
        // Whoever failed first may still have been writing down where.
        let counters = self.gpu().download(&self.counters)?;
        let walker = counters[4] as usize;
        Err(Error::NonFinite {
            what: match kind {
                1 => "sum of the rates".into(),
                _ => format!("energy term '{}'", self.target.term_name(kind as usize - 2)),
            },
            value: f64::from_bits(counters[6]),
            seed: self.seed,
            walker,
            step: counters[5],
            state: show_state(&self.state(walker)?),
        })
    }
}

/// What the kernels of `flow.cu` are compiled with.
pub(crate) fn defines(
    parametrisation: Parametrisation,
    scheme: Scheme,
) -> [(&'static str, usize); 2] {
    let scheme = match scheme {
        Scheme::Euler => 0,
        Scheme::Trapezoid => 1,
        Scheme::Events => 2,
    };
    [("PARAMETRISATION", parametrisation as usize), ("SCHEME", scheme)]
}

impl Population for CudaWalkers<'_> {
    fn walkers(&self) -> usize {
        self.walkers
    }

    fn weigh(&mut self, grid: &Grid, k: usize, log_weights: &mut [f64]) -> Result<()> {
        if self.scheme != Scheme::Events {
            return Ok(());
        }
        let energies = self.energies()?;
        let (before, after) = (grid.lambda(k - 1), grid.lambda(k));
        for (log_weight, row) in log_weights.iter_mut().zip(energies.chunks_exact(before.len())) {
            let lambdas = before.iter().zip(after);
            *log_weight += row.iter().zip(lambdas).map(|(e, (a, b))| (a - b) * e).sum::<f64>();
        }
        Ok(())
    }

    fn mutate(
        &mut self,
        grid: &Grid,
        k: usize,
        log_weights: &mut [f64],
        progress: &dyn Progress,
    ) -> Result<()> {
        self.drive(grid, k..k + 1, false, log_weights, &StopOnly(progress))
    }

    fn advance(
        &mut self,
        grid: &Grid,
        intervals: std::ops::Range<usize>,
        log_weights: &mut [f64],
        progress: &dyn Progress,
    ) -> Result<()> {
        self.drive(grid, intervals, true, log_weights, progress)
    }

    fn advance_resampling(
        &mut self,
        grid: &Grid,
        intervals: std::ops::Range<usize>,
        resampling: &Resampling,
        seed: u64,
        lineage: &mut Lineage,
        progress: &dyn Progress,
    ) -> Result<()> {
        if !CudaResampler::serves(resampling.resampler) {
            return one_by_one(self, grid, intervals, resampling, seed, lineage, progress);
        }
        self.prepare(grid)?;
        let gpu = self.on_gpu.gpu.clone();
        let mut resampler = match self.resampler.take() {
            Some(resampler) => resampler,
            None => CudaResampler::new(&gpu, self.walkers, Self::row(self.target))?,
        };
        let Some(tables) = self.tables.take() else { return Ok(()) };
        resampler.begin(lineage, intervals.len())?;
        gpu.write(&lineage.log_weights, &mut self.log_weights)?;
        let (count, how) = (intervals.len(), (resampling, seed));
        let done = self.resample_and_follow(&tables, intervals, how, &mut resampler, progress);
        self.tables = Some(tables);
        done?;
        resampler.end(lineage, count)?;
        self.resampler = Some(resampler);
        lineage.log_weights = gpu.download(&self.log_weights.slice(..self.walkers))?;
        Ok(())
    }

    fn resample(&mut self, ancestors: &[u32]) -> Result<()> {
        let from = self.gpu().upload(ancestors)?;
        let (target, n) = (&self.on_gpu, self.walkers);
        self.states = target.gathered(&self.states, target.sites, &from, n)?;
        self.energies = target.gathered(&self.energies, target.terms, &from, n)?;
        // Passes stay: they are the walker's own, whatever state it takes over.
        self.pending = target.gathered(&self.pending, 1, &from, n)?;
        Ok(())
    }

    fn energies(&self) -> Result<Vec<f64>> {
        self.gpu().download(&self.energies.slice(..self.walkers * self.on_gpu.terms))
    }

    fn states(&self) -> Result<Vec<u8>> {
        self.gpu().download(&self.states.slice(..self.walkers * self.on_gpu.sites))
    }

    fn energy_calls(&self) -> f64 {
        // Every pass looks at all neighbours, about two energies.
        let sweeps = self.sweeps as f64 * (self.durations.len() - 1) as f64;
        1.0 + 2.0 * self.passes().unwrap_or(f64::NAN) + sweeps
    }
}

#[cfg(test)]
mod tests;
