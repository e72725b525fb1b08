//! The loop of network passes that moves walkers on a GPU through a stretch of intervals.

use std::ops::Range;

use super::arguments::{
    COMPACTORS, COUNTERS, CROSSED, FAILED, FAILED_INTERVAL, FAILED_VALUE, FAILED_WALKER, FINISHED,
    RATES_FAILED, TERMS_FAILED, WAITING, WalkArguments,
};
use super::tables::Tables;
use super::{BLOCK, CudaWalkers};
use crate::Result;
use crate::device::cuda::arguments::{Input, Output};
use crate::device::cuda::{failed, launch};
use crate::device::{Progress, Purpose, StopOnly};
use crate::net::cuda::{Couplings, CudaBatch};
use crate::sampler::walkers::cuda::ensemble::CudaEnsemble;
use crate::sampler::walkers::cuda::resample::{CudaResampler, Judged};
use crate::sampler::{Grid, Resampling, Scheme, Span};
use crate::target::cuda::{Sweep, Weights};

/// Passes between looks at the counters.
const PERIOD: usize = 4;

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

impl CudaWalkers<'_> {
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
            jumped: Output::of(gpu, &self.jumped),
            outputs: Input::of(gpu, &self.outputs),
            lambda: Input::of(gpu, &tables.lambda),
            slopes: Input::of(gpu, &tables.slopes),
            durations: Input::of(gpu, &tables.durations),
            calls: Input::of(gpu, &tables.calls),
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
    pub(super) fn along<T>(
        &mut self,
        grid: &Grid,
        work: impl FnOnce(&mut Self, &Tables) -> Result<T>,
    ) -> Result<T> {
        let tables = match self.tables.take() {
            Some(tables) if tables.grid == *grid => tables,
            _ => Tables::new(&self.gpu(), &self.path, (grid, &self.plan), &self.condition)?,
        };
        let done = work(self, &tables);
        self.tables = Some(tables);
        done
    }

    /// Run all walkers through the intervals, weighing first in each if `weigh`.
    pub(super) fn drive(
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
    pub(super) fn resample_and_follow(
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
            rows[2] = (Output::cast(&self.gpu(), &self.pending), size_of::<f64>());
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
        counters[WAITING] = self.slots as u64;
        gpu.write(&counters, &mut self.counters)?;
        let (grid, slots) = ((self.slots.div_ceil(128) as u32, 1, 1), self.slots as u32);
        launch!(gpu, self.kernels.begin, (grid, 128, 0), &arguments, &slots)?;

        // Every walker needs a pass in every interval that lasts, for all its substeps; other schemes than events need no more.
        let scheme = self.plan.scheme;
        let mut least = self.plan.network_calls_in(stretch.intervals.clone());
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
                    ((1, 1, 1), COMPACTORS, 0),
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
            couplings: Couplings::of_one(&self.couplings),
        };
        match self.keeps {
            true => self.network.forward_changed(&slots, &self.jumped, &mut self.outputs)?,
            false => self.network.forward(&slots, &mut self.outputs)?,
        }
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
        Ok(Some(News { finished: counters[FINISHED] as usize, crossed: counters[CROSSED] }))
    }

    /// Turn a number that is not finite into an error.
    fn heed(&self, counters: &[u64]) -> Result<()> {
        let kind = counters[FAILED] as usize;
        if kind == 0 {
            return Ok(());
        }
        // Whoever failed first may still have been writing down where.
        let counters = self.gpu().download(&self.counters)?;
        let (walker, value) =
            (counters[FAILED_WALKER] as usize, f64::from_bits(counters[FAILED_VALUE]));
        let visit = self.visit(walker, counters[FAILED_INTERVAL]);
        let what = match kind {
            RATES_FAILED => "sum of the rates".into(),
            _ => visit.energy_term(kind - TERMS_FAILED),
        };
        Err(visit.infinite(what, value, &self.ensemble.host_state(walker)?))
    }
}
