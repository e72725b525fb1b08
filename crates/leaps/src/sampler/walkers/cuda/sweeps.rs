//! Walkers on a GPU that heat-bath or Metropolis sweeps move: for AIS and SMC of pairwise models.
//!
//! The walks are those of the walkers that serve the same moves on the CPU: [`LaneWalkers`](crate::sampler::LaneWalkers) where
//! tables allow, else [`KernelWalkers`](crate::sampler::KernelWalkers).

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;

use cudarc::driver::{CudaEvent, CudaSlice};

use crate::Result;
use crate::device::cuda::{Gpu, failed};
use crate::device::{Progress, Purpose};
use crate::mcmc::lanes::Rule;
use crate::mcmc::lanes::cuda::{Carried, CudaPlan};
use crate::sampler::moves::Means;
use crate::sampler::walkers::cuda::ensemble::CudaEnsemble;
use crate::sampler::walkers::cuda::resample::{CudaResampler, Judged};
use crate::sampler::walkers::{Cost, Lineage, Population, Walkers, interval_by_interval};
use crate::sampler::{Grid, Interval, Resampling, Span, Sweeps};
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
    ensemble: CudaEnsemble,
    moves: CudaMoves,
    /// Updates or sweeps made so far.
    made: u64,
    /// Energy evaluations so far, and those of an interval.
    calls: f64,
    calls_per_interval: f64,
    everyone: CudaSlice<u32>,
    resampler: Option<CudaResampler>,
    /// A grid and its weights, `[time * terms + term]`.
    lambda: Option<(Grid, CudaSlice<f64>)>,
}

/// Walkers in uniformly random states that move by `means`.
pub(in crate::sampler) fn sweep_walkers(
    gpu: &Arc<Gpu>,
    target: &dyn Target,
    means: Means,
    population: Population,
) -> Result<Box<dyn Walkers>> {
    let (moves, calls) = match means {
        Means::Tables(plan, updates) => {
            let calls = updates as f64 * plan.calls_per_update();
            (CudaMoves::Tables(Box::new(CudaPlan::new(gpu, &plan)?), updates), calls)
        }
        Means::Sweeps(Sweeps { rule, count, calls }, _) => {
            let sweep = match rule {
                Rule::HeatBath => Sweep::HeatBath,
                Rule::Metropolis => Sweep::Metropolis,
            };
            (CudaMoves::Sites(sweep, count), 1.0 + count as f64 * calls)
        }
        Means::Kernel(..) => unreachable!("GPUs have heat bath and Metropolis alone"),
    };
    Ok(Box::new(CudaSweepers::new(gpu, target, moves, calls, population)?))
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

    fn new(
        gpu: &Arc<Gpu>,
        target: &dyn Target,
        moves: CudaMoves,
        calls_per_interval: f64,
        population: Population,
    ) -> Result<Self> {
        let on_gpu = Arc::new(CudaTarget::new(gpu, target)?);
        let walkers = population.walkers;
        let everyone: Vec<u32> = match moves {
            CudaMoves::Tables(..) => Vec::new(),
            CudaMoves::Sites(..) => (0..walkers as u32).collect(),
        };
        let mut made = gpu.with_room(KEY, walkers, (0, Self::bytes(target)), || {
            Ok(CudaSweepers {
                ensemble: CudaEnsemble::new(&on_gpu, population)?,
                moves,
                made: 0,
                calls: 1.0,
                calls_per_interval,
                everyone: gpu.upload(&everyone)?,
                resampler: None,
                lambda: None,
            })
        })?;
        made.measure()?;
        Ok(made)
    }

    /// Compute the energies, as the moves do.
    fn measure(&mut self) -> Result<()> {
        let CudaEnsemble { walkers, states, energies, log_weights, .. } = &mut self.ensemble;
        match &mut self.moves {
            CudaMoves::Tables(plan, _) => {
                plan.measure(&mut Carried { walkers: *walkers, states, energies, log_weights })
            }
            CudaMoves::Sites(..) => self.ensemble.measure(),
        }
    }

    fn gpu(&self) -> Arc<Gpu> {
        self.ensemble.gpu()
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
                let each =
                    (self.ensemble.walkers as u64).max(FEWEST_WALKERS).saturating_mul(*updates);
                plan.room().min((UPDATES_PER_LAUNCH / each.max(1)).max(1) as usize)
            }
        }
    }

    /// Launch what carries the walkers through some intervals, at most [`room`](Self::room): weigh if `weigh`, and move.
    fn carry(&mut self, intervals: Range<usize>, weigh: bool) -> Result<()> {
        let Some((_, lambda)) = &self.lambda else { return Ok(()) };
        let CudaEnsemble { target, walkers, seed, states, energies, log_weights } =
            &mut self.ensemble;
        let (walkers, seed, from) = (*walkers, *seed, self.made);
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
                    if weigh {
                        target.weigh(log_weights, energies, (lambda, k), walkers)?;
                    }
                    let lambda = lambda.slice(k * target.terms..(k + 1) * target.terms);
                    target.sweep(
                        *sweep,
                        states,
                        (&self.everyone, walkers),
                        Weights::Same(&lambda),
                        (seed, Purpose::Move),
                        (self.made, *sweeps),
                    )?;
                    target.energies(states, walkers, energies)?;
                    self.made += *sweeps;
                    self.calls += self.calls_per_interval;
                }
            }
        }
        Ok(())
    }

    /// Weigh and move without resampling.
    fn carry_all(
        &mut self,
        intervals: Range<usize>,
        log_weights: &mut [f64],
        progress: &dyn Progress,
    ) -> Result<()> {
        self.ensemble.take_log_weights(log_weights)?;
        let (room, mut queue) = (self.room(), Queue::new(self.gpu(), progress));
        let mut start = intervals.start;
        while start < intervals.end {
            let end = (start + room).min(intervals.end);
            self.carry(start..end, true)?;
            queue.launched((end - start) as u64 * self.ensemble.walkers as u64)?;
            start = end;
        }
        queue.finish()?;
        self.ensemble.give_log_weights(log_weights)
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

impl Walkers for CudaSweepers {
    fn walkers(&self) -> usize {
        self.ensemble.walkers
    }

    fn mutate(&mut self, at: Interval<'_>, _: &mut [f64], progress: &dyn Progress) -> Result<()> {
        progress.check()?;
        self.prepare(at.grid)?;
        self.carry(at.k..at.k + 1, false)
    }

    fn advance(
        &mut self,
        span: Span<'_>,
        rule: &Resampling,
        lineage: &mut Lineage,
        progress: &dyn Progress,
    ) -> Result<()> {
        self.prepare(span.grid)?;
        if rule.is_never() {
            return self.carry_all(span.intervals, &mut lineage.log_weights, progress);
        }
        if !CudaResampler::serves(rule.resampler) {
            return interval_by_interval(self, span, rule, lineage, progress);
        }
        let (gpu, walkers, count) = (self.gpu(), self.ensemble.walkers, span.intervals.len());
        let mut resampler = match self.resampler.take() {
            Some(resampler) => resampler,
            None => {
                let row = self.ensemble.rows().iter().map(|(_, bytes)| bytes).sum();
                CudaResampler::new(&gpu, walkers, row)?
            }
        };
        resampler.begin(lineage, count)?;
        self.ensemble.take_log_weights(&lineage.log_weights)?;
        let (room, mut queue) = (self.room(), Queue::new(gpu, progress));
        for (place, at) in span.iter().enumerate() {
            let CudaEnsemble { target, energies, log_weights, .. } = &mut self.ensemble;
            resampler.remember(log_weights)?;
            if let Some((_, lambda)) = &self.lambda {
                target.weigh(log_weights, energies, (lambda, at.k), walkers)?;
            }
            let rows = self.ensemble.rows();
            let judged = Judged { rule, at, place, seed: lineage.seed };
            resampler.resample(&mut self.ensemble.log_weights, rows, judged)?;
            self.carry(at.k..at.k + 1, false)?;
            if (place + 1) % room == 0 || place + 1 == count {
                let since = place % room + 1;
                queue.launched((since * walkers) as u64)?;
            }
        }
        queue.finish()?;
        resampler.end(lineage, count)?;
        self.resampler = Some(resampler);
        self.ensemble.give_log_weights(&mut lineage.log_weights)
    }

    fn resample(&mut self, ancestors: &[u32]) -> Result<()> {
        let from = self.gpu().upload(ancestors)?;
        self.ensemble.gather(&from)
    }

    fn start_at(&mut self, states: &[u8]) -> Result<()> {
        self.ensemble.take_states(states)?;
        self.measure()
    }

    fn energies(&self) -> Result<Vec<f64>> {
        self.ensemble.host_energies()
    }

    fn states(&self) -> Result<Vec<u8>> {
        self.ensemble.host_states()
    }

    fn cost(&self) -> Result<Cost> {
        Ok(Cost { energy_calls: self.calls, network_passes: 0.0 })
    }
}
