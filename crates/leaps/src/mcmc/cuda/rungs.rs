//! Ladders of temperatures on a GPU whose rungs are moved by tables, as on the CPU 64 ladders at a time.

use std::ops::Range;
use std::sync::Arc;

use cudarc::driver::{CudaSlice, CudaViewMut};
use rayon::prelude::*;

use super::batches::{Batches, FIXED, KEY, Mover, Wanted, in_batches};
use super::check_measured;
use super::ladders::{CudaLadders, Layout, LowestStates, RungTable};
use crate::device::Progress;
use crate::device::cuda::Gpu;
use crate::mcmc::chains::check_finite;
use crate::mcmc::lanes::cuda::{Climbers, CudaPlan, Measured};
use crate::mcmc::lanes::{LadderPlan, Tables, Tile, Updates};
use crate::mcmc::{TemperingOutcome, TemperingSettings};
use crate::observe::cuda::{CudaMeasure, Found};
use crate::observe::{LadderTable, RemoteRecorder};
use crate::target::cuda::CudaTarget;
use crate::target::{Density, Pairwise, Target, initial_state, pairwise_for_gpu};
use crate::{Error, Result};

/// Ladders on a GPU. Behind the last rung of each is one at infinite temperature, for the table alone.
struct Ladders<'a> {
    tempering: &'a TemperingSettings,
    layout: Layout,
    rungs: CudaPlan,
    infinite: CudaPlan,
    ladders: CudaLadders,
    states: CudaSlice<u8>,
    /// `[walker]`: the row of its state.
    rows: CudaSlice<u32>,
    /// `[row * terms + term]`.
    energies: CudaSlice<f64>,
    /// `[row * (q - 1) + value - 1]`.
    counts: CudaSlice<u32>,
    lowest: LowestStates,
    sites: u64,
    /// Steps made so far.
    done: u64,
}

impl<'a> Ladders<'a> {
    /// Bytes of a rung with these sites, values and energy terms.
    fn bytes(pairs: &Pairwise) -> usize {
        let (sites, q, terms) = (pairs.sites(), pairs.q(), pairs.terms());
        sites + 4 + 8 * terms + 4 * (q - 1) + CudaLadders::BYTES
    }

    /// All ladders in their first states.
    fn new(
        target: &CudaTarget,
        pairs: &Pairwise,
        plan: &LadderPlan,
        tempering: &'a TemperingSettings,
    ) -> Result<Self> {
        let (gpu, weights) = (&target.gpu, &tempering.ladder);
        let (ladders, rungs) = (tempering.chains.chains, weights.len());
        let layout = Layout { ladders, rungs, tile: Tile::WALKERS, period: rungs + 1 };
        let walkers = layout.places();
        let tables: Vec<Tables> =
            weights.iter().map(|lambda| Tables::new(&plan.rungs, lambda)).collect();
        let infinite = Tables::new(&plan.infinite, &vec![0.0; pairs.terms()]);
        let rows = gpu.upload(&(0..walkers as u32).collect::<Vec<u32>>())?;
        Ok(Ladders {
            rungs: CudaPlan::staying(gpu, &plan.rungs, &tables)?,
            infinite: CudaPlan::staying(gpu, &plan.infinite, &[infinite])?,
            ladders: CudaLadders::new(gpu, pairs, layout, weights, &rows)?,
            states: target.initial_states(walkers, tempering.chains.seed)?,
            rows,
            energies: gpu.zeros(walkers * pairs.terms())?,
            counts: gpu.zeros(walkers * (pairs.q() - 1))?,
            lowest: LowestStates::new(gpu, ladders, pairs.sites())?,
            sites: pairs.sites() as u64,
            done: 0,
            tempering,
            layout,
        })
    }

    /// Sweep the rungs, or what is behind them.
    fn sweep(&mut self, hot: bool, steps: Range<u64>, measured: Measured) -> Result<()> {
        let Layout { rungs, tile, period, ladders } = self.layout;
        let (plan, first) = if hot { (&self.infinite, rungs) } else { (&self.rungs, 0) };
        let mut climbers = Climbers {
            groups: ladders.div_ceil(tile),
            period,
            states: &mut self.states,
            rows: &self.rows,
            energies: &mut self.energies,
            counts: &mut self.counts,
        };
        let (from, count) = (steps.start * self.sites, (steps.end - steps.start) * self.sites);
        let seed = self.tempering.chains.seed;
        plan.sweep(&mut climbers, first, seed, Updates { from, count }, measured)
    }
}

impl Mover for Ladders<'_> {
    fn advance(&mut self, steps: Range<u64>) -> Result<()> {
        let (seed, burn_in) = (self.tempering.chains.seed, self.tempering.chains.burn_in);
        // States are counted where they may be the last before a table takes them in.
        let gather = self.tempering.table.is_some() && steps.end > burn_in;
        self.done = steps.end;
        if !self.tempering.exchange {
            return self.sweep(false, steps, Measured { energies: gather, counts: gather });
        }
        for step in steps.clone() {
            let counts = gather && step + 1 == steps.end;
            self.sweep(false, step..step + 1, Measured { energies: true, counts })?;
            self.ladders.exchange(&self.energies, seed, step, step >= burn_in)?;
        }
        Ok(())
    }

    fn found(&self) -> Found<'_> {
        Found { states: &self.states, rows: Some(&self.ladders.coldest) }
    }

    fn tabulate(&mut self, out: &mut CudaViewMut<'_, f64>) -> Result<()> {
        self.sweep(true, self.done - 1..self.done, Measured { energies: true, counts: true })?;
        let of = (&self.states, &self.energies, &self.counts);
        self.ladders.tabulate(of, &mut self.lowest, out)
    }
}

/// As [`run_lane_tempering`](crate::mcmc::lanes::run_lane_tempering), on a GPU: the same states and tables, but for exchanges that are closer to even
/// than the rounding of an exponential.
pub(crate) fn run_cuda_ladders<R: RemoteRecorder>(
    gpu: &Arc<Gpu>,
    target: &dyn Target,
    plan: &LadderPlan,
    tempering: &TemperingSettings,
    make: impl Fn(usize) -> R + Sync,
    progress: &dyn Progress,
) -> Result<Vec<TemperingOutcome<R>>> {
    tempering.check(target)?;
    if tempering.houdayer {
        return Err(Error::not_applicable("a GPU", "Houdayer moves run on the device cpu alone"));
    }
    let settings = &tempering.chains;
    let (seed, chains, rungs) = (settings.seed, settings.chains, tempering.ladder.len());
    let total = settings.burn_in + settings.steps;
    progress.total(total.saturating_mul(chains as u64));
    let model = Density::new(target, &tempering.ladder[rungs - 1]);
    check_finite(&model, &initial_state(target, seed, 0), 0.0, (seed, 0, 0))?;
    let mut recorders: Vec<R> = (0..chains).into_par_iter().map(&make).collect();
    check_measured(target)?;
    let pairs = pairwise_for_gpu(target)?;
    let (sites, q) = (pairs.sites(), pairs.q());
    let fresh = |width| RungTable { table: LadderTable::new(rungs + 1, width), sites, q };
    let mut tables: Vec<RungTable> = match tempering.table {
        Some(width) => (0..chains).map(|_| fresh(width)).collect(),
        None => Vec::new(),
    };

    let on_gpu = Arc::new(CudaTarget::new(gpu, target)?);
    let numbers = if tempering.table.is_some() { (rungs + 1) * q } else { 0 };
    let row = CudaMeasure::bytes(&recorders[0], pairs, gpu);
    let ladder = (rungs + 1) * Ladders::bytes(pairs);
    // The last tile may be empty but for one ladder.
    let fixed = FIXED + (Tile::WALKERS - 1) * ladder + rungs * plan.rungs.table_bytes();
    let each = ladder + 8 + sites + 2 * 8 * numbers + row;
    let (mut mover, mut batches) = gpu.with_room(KEY, chains, (fixed, each), || {
        let mover = Ladders::new(&on_gpu, pairs, plan, tempering)?;
        let measure = CudaMeasure::new(&on_gpu, pairs, recorders[0].measures(), chains)?;
        let wanted = Wanted::by(&recorders[0], &measure, numbers);
        Ok((mover, Batches::new(gpu, measure, chains, wanted, settings)?))
    })?;
    let kept = (&mut recorders[..], &mut tables[..]);
    let steps = in_batches(settings, &mut mover, &mut batches, kept, progress)?;

    let (layout, places) = (mover.layout, mover.layout.places());
    let rows = gpu.download(&mover.rows.slice(..places))?;
    let states = gpu.download(&mover.states.slice(..places * sites))?;
    let lowest = gpu.download(&mover.lowest.states.slice(..chains * sites))?;
    for (own, x) in tables.iter_mut().zip(lowest.chunks_exact(sites)) {
        own.table.show_lowest(x);
    }
    let exchanges = mover.ladders.outcomes(settings.burn_in, steps)?;
    let mut tables = tables.into_iter().map(|own| own.table);
    let tables: Vec<Option<LadderTable>> = (0..chains).map(|_| tables.next()).collect();
    let outcome = |(number, ((recorder, table), (swap_rates, round_trips)))| {
        let row = |rung: usize| rows[layout.place(number, rung)] as usize;
        let last: Vec<Vec<u8>> =
            (0..rungs).map(|rung| states[row(rung) * sites..][..sites].to_vec()).collect();
        let (acceptance, energy_calls) = plan.charged(target, tempering, (number, steps), &last)?;
        Ok(TemperingOutcome {
            recorders: vec![recorder],
            steps,
            acceptance,
            swap_rates,
            round_trips,
            energy_calls,
            table,
            last,
        })
    };
    let ladders: Vec<_> = recorders.into_iter().zip(tables).zip(exchanges).collect();
    ladders.into_par_iter().enumerate().map(outcome).collect()
}
