//! Move walkers by heat-bath or Metropolis sweeps on a GPU: for AIS and SMC of pairwise models.
//!
//! The walks are those of the population that serves the same moves on the CPU: [`LaneWalkers`](crate::sampler::LaneWalkers) where
//! tables allow, else [`KernelWalkers`](crate::sampler::KernelWalkers).

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;

use cudarc::driver::{CudaEvent, CudaSlice};

use crate::Result;
use crate::device::cuda::{Gpu, address, failed};
use crate::device::{Progress, Purpose};
use crate::mcmc::lanes::Plan;
use crate::mcmc::lanes::cuda::{Carried, CudaPlan};
use crate::sampler::walkers::cuda::resample::{CudaResampler, threshold};
use crate::sampler::walkers::{Lineage, Population, one_by_one};
use crate::sampler::{Grid, Resampling};
use crate::target::Target;
use crate::target::cuda::{CudaTarget, Sweep, Weights};

/// Updates of all walkers in one launch, about: what a look at the progress may have to wait for.
const UPDATES_PER_LAUNCH: u64 = 1 << 31;
/// A GPU is no faster with fewer walkers.
const FEWEST_WALKERS: u64 = 1 << 16;
/// Launches on their way at once.
const AHEAD: usize = 2;

/// The setting that says how many walkers there are.
pub(crate) const KEY: &str = "sample.walkers";

/// How walkers on a GPU are moved in an interval.
pub(crate) enum CudaMoves {
    /// So many updates by tables.
    Tables(Box<CudaPlan>, u64),
    /// So many sweeps, site by site.
    Sites(Sweep, u64),
}

/// Walkers on a GPU that make sweeps.
pub(crate) struct CudaSweepers {
    on_gpu: CudaTarget,
    moves: CudaMoves,
    walkers: usize,
    seed: u64,
    /// Updates or sweeps made so far.
    made: u64,
    /// Energy evaluations so far, and those of an interval.
    calls: f64,
    calls_per_interval: f64,
    states: CudaSlice<u8>,
    energies: CudaSlice<f64>,
    log_weights: CudaSlice<f64>,
    everyone: CudaSlice<u32>,
    resampler: Option<CudaResampler>,
    /// A grid and its weights, `[time * terms + term]`.
    lambda: Option<(Grid, CudaSlice<f64>)>,
}

impl CudaSweepers {
    /// Bytes that a walker of `target` takes on a GPU, with what resampling needs.
    fn bytes(target: &dyn Target) -> usize {
        let row = Self::row(target);
        row + size_of::<f64>() + size_of::<u32>() + CudaResampler::bytes(row)
    }

    fn row(target: &dyn Target) -> usize {
        target.sites() + target.terms() * size_of::<f64>()
    }

    /// `walkers` walkers in uniformly random states that make `amount` updates of a plan per interval.
    pub(crate) fn by_tables(
        gpu: &Arc<Gpu>,
        target: &dyn Target,
        plan: &Plan,
        updates: u64,
        walkers: usize,
        seed: u64,
    ) -> Result<Self> {
        let calls = updates as f64 * plan.calls_per_update();
        let moves =
            |gpu: &Arc<Gpu>| Ok(CudaMoves::Tables(Box::new(CudaPlan::new(gpu, plan)?), updates));
        Self::new(gpu, target, moves, walkers, seed, calls)
    }

    /// The same with `sweeps` sweeps over all sites; `calls` energy evaluations each.
    pub(crate) fn by_sites(
        gpu: &Arc<Gpu>,
        target: &dyn Target,
        (sweep, calls): (Sweep, f64),
        sweeps: u64,
        walkers: usize,
        seed: u64,
    ) -> Result<Self> {
        let moves = |_: &Arc<Gpu>| Ok(CudaMoves::Sites(sweep, sweeps));
        Self::new(gpu, target, moves, walkers, seed, 1.0 + sweeps as f64 * calls)
    }

    fn new(
        gpu: &Arc<Gpu>,
        target: &dyn Target,
        moves: impl FnOnce(&Arc<Gpu>) -> Result<CudaMoves>,
        walkers: usize,
        seed: u64,
        calls_per_interval: f64,
    ) -> Result<Self> {
        let on_gpu = CudaTarget::new(gpu, target)?;
        let moves = moves(gpu)?;
        let everyone: Vec<u32> = match moves {
            CudaMoves::Tables(..) => Vec::new(),
            CudaMoves::Sites(..) => (0..walkers as u32).collect(),
        };
        let mut made = gpu.with_room(KEY, walkers, (0, Self::bytes(target)), || {
            Ok(CudaSweepers {
                moves,
                walkers,
                seed,
                made: 0,
                calls: 1.0,
                calls_per_interval,
                states: on_gpu.initial_states(walkers, seed)?,
                energies: gpu.zeros(walkers * on_gpu.terms)?,
                log_weights: gpu.zeros(walkers)?,
                everyone: gpu.upload(&everyone)?,
                resampler: None,
                lambda: None,
                on_gpu,
            })
        })?;
        let CudaSweepers { on_gpu, moves, states, energies, log_weights, .. } = &mut made;
        match moves {
            CudaMoves::Tables(plan, _) => {
                plan.measure(&mut Carried { walkers, states, energies, log_weights })?
            }
            CudaMoves::Sites(..) => on_gpu.energies(states, walkers, energies)?,
        }
        Ok(made)
    }

    fn gpu(&self) -> Arc<Gpu> {
        self.on_gpu.gpu.clone()
    }

    /// The weights of a grid's times on the GPU.
    fn prepare(&mut self, grid: &Grid) -> Result<()> {
        if self.lambda.as_ref().is_some_and(|(known, _)| known == grid) {
            return Ok(());
        }
        let all: Vec<f64> =
            (0..=grid.intervals()).flat_map(|k| grid.lambda(k).iter().copied()).collect();
        self.lambda = Some((grid.clone(), self.gpu().upload(&all)?));
        Ok(())
    }

    /// Most intervals of one launch.
    fn room(&self) -> usize {
        match &self.moves {
            CudaMoves::Sites(..) => 1,
            CudaMoves::Tables(plan, updates) => {
                let each = (self.walkers as u64).max(FEWEST_WALKERS).saturating_mul(*updates);
                plan.room().min((UPDATES_PER_LAUNCH / each.max(1)).max(1) as usize)
            }
        }
    }

    /// Launch what carries the walkers through some intervals, at most [`room`](Self::room): weigh if `weigh`, and move.
    fn carry(&mut self, intervals: Range<usize>, weigh: bool) -> Result<()> {
        let Some((_, lambda)) = &self.lambda else { return Ok(()) };
        let (walkers, seed, from) = (self.walkers, self.seed, self.made);
        let CudaSweepers { states, energies, log_weights, .. } = self;
        match &mut self.moves {
            CudaMoves::Tables(plan, updates) => {
                let count = intervals.len() as u64;
                let mut carried = Carried { walkers, states, energies, log_weights };
                plan.carry(&mut carried, lambda, intervals, seed, (from, *updates), weigh)?;
                self.made += count * *updates;
                self.calls += count as f64 * self.calls_per_interval;
            }
            CudaMoves::Sites(sweep, sweeps) => {
                for k in intervals {
                    let terms = self.on_gpu.terms;
                    if weigh {
                        self.on_gpu.weigh(log_weights, energies, (lambda, k), walkers)?;
                    }
                    let lambda = lambda.slice(k * terms..(k + 1) * terms);
                    self.on_gpu.sweep(
                        *sweep,
                        states,
                        (&self.everyone, walkers),
                        Weights::Same(&lambda),
                        (seed, Purpose::Move),
                        (self.made, *sweeps),
                    )?;
                    self.on_gpu.energies(states, walkers, energies)?;
                    self.made += *sweeps;
                    self.calls += self.calls_per_interval;
                }
            }
        }
        Ok(())
    }
}

/// Launches on their way, so that a stop need not wait for many of them.
struct Queue<'a> {
    gpu: Arc<Gpu>,
    under_way: VecDeque<(CudaEvent, u64)>,
    progress: &'a dyn Progress,
}

impl<'a> Queue<'a> {
    fn new(gpu: Arc<Gpu>, progress: &'a dyn Progress) -> Self {
        Queue { gpu, under_way: VecDeque::new(), progress }
    }

    /// Something that makes `units` of progress was launched; wait for what was launched before the last.
    fn launched(&mut self, units: u64) -> Result<()> {
        let context = self.gpu.stream.context();
        let event = context.new_event(None).map_err(failed("a kernel"))?;
        event.record(&self.gpu.stream).map_err(failed("a kernel"))?;
        self.under_way.push_back((event, units));
        while self.under_way.len() > AHEAD {
            self.wait()?;
        }
        self.progress.check()
    }

    fn wait(&mut self) -> Result<()> {
        if let Some((event, units)) = self.under_way.pop_front() {
            event.synchronize().map_err(failed("a kernel"))?;
            self.progress.advance(units);
        }
        Ok(())
    }

    fn finish(mut self) -> Result<()> {
        while !self.under_way.is_empty() {
            self.wait()?;
        }
        Ok(())
    }
}

impl Population for CudaSweepers {
    fn walkers(&self) -> usize {
        self.walkers
    }

    fn weigh(&mut self, grid: &Grid, k: usize, log_weights: &mut [f64]) -> Result<()> {
        let (before, after) = (grid.lambda(k - 1), grid.lambda(k));
        let energies = self.energies()?;
        for (row, log_weight) in energies.chunks_exact(before.len()).zip(log_weights) {
            for ((energy, before), after) in row.iter().zip(before).zip(after) {
                *log_weight += (before - after) * energy;
            }
        }
        Ok(())
    }

    fn mutate(
        &mut self,
        grid: &Grid,
        k: usize,
        _: &mut [f64],
        progress: &dyn Progress,
    ) -> Result<()> {
        progress.check()?;
        self.prepare(grid)?;
        self.carry(k..k + 1, false)
    }

    fn advance(
        &mut self,
        grid: &Grid,
        intervals: Range<usize>,
        log_weights: &mut [f64],
        progress: &dyn Progress,
    ) -> Result<()> {
        self.prepare(grid)?;
        let gpu = self.gpu();
        gpu.write(log_weights, &mut self.log_weights)?;
        let (room, mut queue) = (self.room(), Queue::new(gpu.clone(), progress));
        let mut start = intervals.start;
        while start < intervals.end {
            let end = (start + room).min(intervals.end);
            self.carry(start..end, true)?;
            queue.launched((end - start) as u64 * self.walkers as u64)?;
            start = end;
        }
        queue.finish()?;
        log_weights.copy_from_slice(&gpu.download(&self.log_weights.slice(..self.walkers))?);
        Ok(())
    }

    fn advance_resampling(
        &mut self,
        grid: &Grid,
        intervals: Range<usize>,
        resampling: &Resampling,
        seed: u64,
        lineage: &mut Lineage,
        progress: &dyn Progress,
    ) -> Result<()> {
        if !CudaResampler::serves(resampling.resampler) {
            return one_by_one(self, grid, intervals, resampling, seed, lineage, progress);
        }
        self.prepare(grid)?;
        let gpu = self.gpu();
        let (sites, terms) = (self.on_gpu.sites, self.on_gpu.terms);
        let energies = terms * size_of::<f64>();
        let mut resampler = match self.resampler.take() {
            Some(resampler) => resampler,
            None => CudaResampler::new(&gpu, self.walkers, sites + energies)?,
        };
        resampler.begin(lineage, intervals.len())?;
        gpu.write(&lineage.log_weights, &mut self.log_weights)?;
        let (room, mut queue) = (self.room(), Queue::new(gpu.clone(), progress));
        for (place, k) in intervals.clone().enumerate() {
            resampler.remember(&self.log_weights)?;
            if let Some((_, lambda)) = &self.lambda {
                let log_weights = &mut self.log_weights;
                self.on_gpu.weigh(log_weights, &self.energies, (lambda, k), self.walkers)?;
            }
            let rows = [
                (address(&gpu, &self.states), sites),
                (address(&gpu, &self.energies), energies),
                (0, 0),
            ];
            let rule = (threshold(resampling, k, grid), resampling.resampler);
            resampler.resample(&mut self.log_weights, rows, rule, seed, (k, place))?;
            self.carry(k..k + 1, false)?;
            if (place + 1) % room == 0 || k + 1 == intervals.end {
                let since = place % room + 1;
                queue.launched((since * self.walkers) as u64)?;
            }
        }
        queue.finish()?;
        resampler.end(lineage, intervals.len())?;
        self.resampler = Some(resampler);
        lineage.log_weights = gpu.download(&self.log_weights.slice(..self.walkers))?;
        Ok(())
    }

    fn resample(&mut self, ancestors: &[u32]) -> Result<()> {
        let from = self.gpu().upload(ancestors)?;
        let (target, n) = (&self.on_gpu, self.walkers);
        self.states = target.gathered(&self.states, target.sites, &from, n)?;
        self.energies = target.gathered(&self.energies, target.terms, &from, n)?;
        Ok(())
    }

    fn energies(&self) -> Result<Vec<f64>> {
        self.gpu().download(&self.energies.slice(..self.walkers * self.on_gpu.terms))
    }

    fn states(&self) -> Result<Vec<u8>> {
        self.gpu().download(&self.states.slice(..self.walkers * self.on_gpu.sites))
    }

    fn energy_calls(&self) -> f64 {
        self.calls
    }
}
