//! Move walkers by heat-bath or Metropolis sweeps on a card: for AIS and SMC of pairwise models.
//!
//! The walks are those of the population that serves the same moves on the processor: [`LaneWalkers`](super::LaneWalkers) where
//! tables allow, else [`KernelWalkers`](super::KernelWalkers).

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;

use cudarc::driver::{CudaEvent, CudaSlice};

use super::card_resample::{CardResampler, threshold};
use super::population::{Lineage, Population, one_by_one};
use super::{Grid, Resampling};
use crate::Result;
use crate::device::cuda::{Card, address, failed};
use crate::device::{Purpose, Watch};
use crate::mcmc::lanes::Plan;
use crate::mcmc::lanes::card::{CardPlan, Carried};
use crate::target::Target;
use crate::target::card::{CardTarget, Sweep, Weights};

/// Updates of all walkers in one launch, about: what a look at the watch may have to wait for.
const UPDATES_PER_LAUNCH: u64 = 1 << 31;
/// A card is no faster with fewer walkers.
const FEWEST_WALKERS: u64 = 1 << 16;
/// Launches on their way at once.
const AHEAD: usize = 2;

/// The setting that says how many walkers there are.
pub(crate) const KEY: &str = "sample.walkers";

/// How walkers on a card are moved in an interval.
pub(crate) enum CardMoves {
    /// So many updates by tables.
    Tables(Box<CardPlan>, u64),
    /// So many sweeps, site by site.
    Sites(Sweep, u64),
}

/// Walkers on a card that make sweeps.
pub(crate) struct CardSweepers {
    on_card: CardTarget,
    moves: CardMoves,
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
    resampler: Option<CardResampler>,
    /// A grid and its weights, `[time * terms + term]`.
    lambda: Option<(Grid, CudaSlice<f64>)>,
}

impl CardSweepers {
    /// Bytes that a walker of `target` takes on a card, with what resampling needs.
    fn bytes(target: &dyn Target) -> usize {
        let row = Self::row(target);
        row + size_of::<f64>() + size_of::<u32>() + CardResampler::bytes(row)
    }

    fn row(target: &dyn Target) -> usize {
        target.sites() + target.terms() * size_of::<f64>()
    }

    /// `walkers` walkers in uniformly random states that make `amount` updates of a plan per interval.
    pub(crate) fn by_tables(
        card: &Arc<Card>,
        target: &dyn Target,
        plan: &Plan,
        updates: u64,
        walkers: usize,
        seed: u64,
    ) -> Result<Self> {
        let calls = updates as f64 * plan.calls_per_update();
        let moves =
            |card: &Arc<Card>| Ok(CardMoves::Tables(Box::new(CardPlan::new(card, plan)?), updates));
        Self::new(card, target, moves, walkers, seed, calls)
    }

    /// The same with `sweeps` sweeps over all sites; `calls` energy evaluations each.
    pub(crate) fn by_sites(
        card: &Arc<Card>,
        target: &dyn Target,
        (sweep, calls): (Sweep, f64),
        sweeps: u64,
        walkers: usize,
        seed: u64,
    ) -> Result<Self> {
        let moves = |_: &Arc<Card>| Ok(CardMoves::Sites(sweep, sweeps));
        Self::new(card, target, moves, walkers, seed, 1.0 + sweeps as f64 * calls)
    }

    fn new(
        card: &Arc<Card>,
        target: &dyn Target,
        moves: impl FnOnce(&Arc<Card>) -> Result<CardMoves>,
        walkers: usize,
        seed: u64,
        calls_per_interval: f64,
    ) -> Result<Self> {
        let on_card = CardTarget::new(card, target)?;
        let moves = moves(card)?;
        let everyone: Vec<u32> = match moves {
            CardMoves::Tables(..) => Vec::new(),
            CardMoves::Sites(..) => (0..walkers as u32).collect(),
        };
        let mut made = card.with_room(KEY, walkers, (0, Self::bytes(target)), || {
            Ok(CardSweepers {
                moves,
                walkers,
                seed,
                made: 0,
                calls: 1.0,
                calls_per_interval,
                states: on_card.initial_states(walkers, seed)?,
                energies: card.zeros(walkers * on_card.terms)?,
                log_weights: card.zeros(walkers)?,
                everyone: card.upload(&everyone)?,
                resampler: None,
                lambda: None,
                on_card,
            })
        })?;
        let CardSweepers { on_card, moves, states, energies, log_weights, .. } = &mut made;
        match moves {
            CardMoves::Tables(plan, _) => {
                plan.measure(&mut Carried { walkers, states, energies, log_weights })?
            }
            CardMoves::Sites(..) => on_card.energies(states, walkers, energies)?,
        }
        Ok(made)
    }

    fn card(&self) -> Arc<Card> {
        self.on_card.card.clone()
    }

    /// The weights of a grid's times on the card.
    fn prepare(&mut self, grid: &Grid) -> Result<()> {
        if self.lambda.as_ref().is_some_and(|(known, _)| known == grid) {
            return Ok(());
        }
        let all: Vec<f64> =
            (0..=grid.intervals()).flat_map(|k| grid.lambda(k).iter().copied()).collect();
        self.lambda = Some((grid.clone(), self.card().upload(&all)?));
        Ok(())
    }

    /// Most intervals of one launch.
    fn room(&self) -> usize {
        match &self.moves {
            CardMoves::Sites(..) => 1,
            CardMoves::Tables(plan, updates) => {
                let each = (self.walkers as u64).max(FEWEST_WALKERS).saturating_mul(*updates);
                plan.room().min((UPDATES_PER_LAUNCH / each.max(1)).max(1) as usize)
            }
        }
    }

    /// Launch what carries the walkers through some intervals, at most [`room`](Self::room): weigh if `weigh`, and move.
    fn carry(&mut self, intervals: Range<usize>, weigh: bool) -> Result<()> {
        let Some((_, lambda)) = &self.lambda else { return Ok(()) };
        let (walkers, seed, from) = (self.walkers, self.seed, self.made);
        let CardSweepers { states, energies, log_weights, .. } = self;
        match &mut self.moves {
            CardMoves::Tables(plan, updates) => {
                let count = intervals.len() as u64;
                let mut carried = Carried { walkers, states, energies, log_weights };
                plan.carry(&mut carried, lambda, intervals, seed, (from, *updates), weigh)?;
                self.made += count * *updates;
                self.calls += count as f64 * self.calls_per_interval;
            }
            CardMoves::Sites(sweep, sweeps) => {
                for k in intervals {
                    let terms = self.on_card.terms;
                    if weigh {
                        self.on_card.weigh(log_weights, energies, (lambda, k), walkers)?;
                    }
                    let lambda = lambda.slice(k * terms..(k + 1) * terms);
                    self.on_card.sweep(
                        *sweep,
                        states,
                        (&self.everyone, walkers),
                        Weights::Same(&lambda),
                        (seed, Purpose::Move),
                        (self.made, *sweeps),
                    )?;
                    self.on_card.energies(states, walkers, energies)?;
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
    card: Arc<Card>,
    under_way: VecDeque<(CudaEvent, u64)>,
    watch: &'a dyn Watch,
}

impl<'a> Queue<'a> {
    fn new(card: Arc<Card>, watch: &'a dyn Watch) -> Self {
        Queue { card, under_way: VecDeque::new(), watch }
    }

    /// Something that makes `units` of progress was launched; wait for what was launched before the last.
    fn launched(&mut self, units: u64) -> Result<()> {
        let context = self.card.stream.context();
        let event = context.new_event(None).map_err(failed("a kernel"))?;
        event.record(&self.card.stream).map_err(failed("a kernel"))?;
        self.under_way.push_back((event, units));
        while self.under_way.len() > AHEAD {
            self.wait()?;
        }
        self.watch.check()
    }

    fn wait(&mut self) -> Result<()> {
        if let Some((event, units)) = self.under_way.pop_front() {
            event.synchronize().map_err(failed("a kernel"))?;
            self.watch.advance(units);
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

impl Population for CardSweepers {
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

    fn mutate(&mut self, grid: &Grid, k: usize, _: &mut [f64], watch: &dyn Watch) -> Result<()> {
        watch.check()?;
        self.prepare(grid)?;
        self.carry(k..k + 1, false)
    }

    fn advance(
        &mut self,
        grid: &Grid,
        intervals: Range<usize>,
        log_weights: &mut [f64],
        watch: &dyn Watch,
    ) -> Result<()> {
        self.prepare(grid)?;
        let card = self.card();
        card.write(log_weights, &mut self.log_weights)?;
        let (room, mut queue) = (self.room(), Queue::new(card.clone(), watch));
        let mut start = intervals.start;
        while start < intervals.end {
            let end = (start + room).min(intervals.end);
            self.carry(start..end, true)?;
            queue.launched((end - start) as u64 * self.walkers as u64)?;
            start = end;
        }
        queue.finish()?;
        log_weights.copy_from_slice(&card.download(&self.log_weights.slice(..self.walkers))?);
        Ok(())
    }

    fn advance_resampling(
        &mut self,
        grid: &Grid,
        intervals: Range<usize>,
        resampling: &Resampling,
        seed: u64,
        lineage: &mut Lineage,
        watch: &dyn Watch,
    ) -> Result<()> {
        if !CardResampler::serves(resampling.scheme) {
            return one_by_one(self, grid, intervals, resampling, seed, lineage, watch);
        }
        self.prepare(grid)?;
        let card = self.card();
        let (sites, terms) = (self.on_card.sites, self.on_card.terms);
        let energies = terms * size_of::<f64>();
        let mut resampler = match self.resampler.take() {
            Some(resampler) => resampler,
            None => CardResampler::new(&card, self.walkers, sites + energies)?,
        };
        resampler.begin(lineage, intervals.len())?;
        card.write(&lineage.log_weights, &mut self.log_weights)?;
        let (room, mut queue) = (self.room(), Queue::new(card.clone(), watch));
        for (place, k) in intervals.clone().enumerate() {
            resampler.remember(&self.log_weights)?;
            if let Some((_, lambda)) = &self.lambda {
                let log_weights = &mut self.log_weights;
                self.on_card.weigh(log_weights, &self.energies, (lambda, k), self.walkers)?;
            }
            let rows = [
                (address(&card, &self.states), sites),
                (address(&card, &self.energies), energies),
                (0, 0),
            ];
            let rule = (threshold(resampling, k, grid), resampling.scheme);
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
        lineage.log_weights = card.download(&self.log_weights.slice(..self.walkers))?;
        Ok(())
    }

    fn resample(&mut self, ancestors: &[u32]) -> Result<()> {
        let from = self.card().upload(ancestors)?;
        let (target, n) = (&self.on_card, self.walkers);
        self.states = target.gathered(&self.states, target.sites, &from, n)?;
        self.energies = target.gathered(&self.energies, target.terms, &from, n)?;
        Ok(())
    }

    fn energies(&self) -> Result<Vec<f64>> {
        self.card().download(&self.energies.slice(..self.walkers * self.on_card.terms))
    }

    fn states(&self) -> Result<Vec<u8>> {
        self.card().download(&self.states.slice(..self.walkers * self.on_card.sites))
    }

    fn energy_calls(&self) -> f64 {
        self.calls
    }
}
