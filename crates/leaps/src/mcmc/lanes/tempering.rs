//! Ladders of temperatures, 64 at a time: a tile for every rung, whose lanes are ladders.
//!
//! Neighbouring rungs exchange states by swapping lanes of their tiles. Rung `r` of ladder `c` moves by the streams of the walker
//! `(c / 64) * 64 * (rungs + 1) + r * 64 + c % 64`, exchanges by those of ladder `c`. Behind the last rung is a tile at infinite temperature, whose heat-bath
//! sweeps make independent random states; it takes part in nothing but the table.

use std::ops::Range;

use rayon::prelude::*;

use super::chains::acceptance;
use super::{Plan, Rule, Scan, Tables, Tile, Updates};
use crate::Result;
use crate::device::lanes::LANES;
use crate::device::{Progress, Purpose, SimdLevel, Stream};
use crate::mcmc::chains::{check_finite, glance};
use crate::mcmc::rounds::in_rounds;
use crate::mcmc::tempering::Exchanges;
use crate::mcmc::{TemperingOutcome, TemperingSettings};
use crate::observe::{LadderTable, OrderParameter, Recorder};
use crate::target::{Density, Pairwise, Target, initial_state};

/// Sweeps within the temperatures of a ladder.
#[derive(Clone, Debug)]
pub struct LadderPlan {
    pub(in crate::mcmc) rungs: Plan,
    /// Heat bath, which at infinite temperature forgets everything.
    pub(in crate::mcmc) infinite: Plan,
}

impl LadderPlan {
    /// Sweeps of any model by this rule, by [`Plan::of`].
    pub fn of(target: &dyn Target, rule: Rule, scan: Scan) -> Result<Self> {
        let rungs = Plan::of(target, rule, scan)?;
        let infinite = Plan::of(target, Rule::HeatBath, Scan::Systematic)?;
        Ok(LadderPlan { rungs, infinite })
    }

    /// Sweeps of a pairwise model by this rule, where tables fit it: what GPUs have.
    pub fn new(model: &Pairwise, rule: Rule, scan: Scan) -> Result<Self> {
        let rungs = Plan::new(model, rule, scan)?;
        let infinite = Plan::new(model, Rule::HeatBath, Scan::Systematic)?;
        Ok(LadderPlan { rungs, infinite })
    }

    /// The same by [`Plan::signed_or_of`].
    pub fn signed_or_of(target: &dyn Target, rule: Rule, scan: Scan) -> Result<Self> {
        let rungs = Plan::signed_or_of(target, rule, scan)?;
        let infinite = Plan::signed_or_of(target, Rule::HeatBath, Scan::Systematic)?;
        Ok(LadderPlan { rungs, infinite })
    }

    /// The acceptance of the rungs of a ladder that is now in these states, and what its steps are charged.
    pub(in crate::mcmc) fn charged(
        &self,
        target: &dyn Target,
        tempering: &TemperingSettings,
        (number, steps): (usize, u64),
        last: &[Vec<u8>],
    ) -> Result<(Vec<f64>, f64)> {
        let (rungs, seed) = (last.len(), tempering.chains.seed);
        let (coldest, cold) =
            (Density::new(target, &tempering.ladder[rungs - 1]), &last[rungs - 1]);
        check_finite(&coldest, cold, 0.0, (seed, number, steps))?;
        let acceptance = acceptance(&coldest, &self.rungs, cold, seed, number as u32);
        let updates = self.rungs.sites() as f64 * self.rungs.calls_per_update();
        Ok((vec![acceptance; rungs], (steps * rungs as u64) as f64 * (updates + 1.0)))
    }
}

/// Ladders that share tiles.
struct Group<R> {
    /// From hot to cold, and infinite temperature.
    tiles: Vec<Rung>,
    ladders: Vec<Ladder<R>>,
    first: usize,
}

struct Rung {
    tile: Tile,
    /// `[term * 64 + lane]`.
    energies: Vec<f64>,
    counts: Vec<u32>,
}

struct Ladder<R> {
    recorder: R,
    exchanges: Exchanges,
    /// Energy terms of the rungs, `[rung * terms + term]`.
    energies: Vec<f64>,
    table: Option<LadderTable>,
}

/// As [`run_tempering`](crate::mcmc::run_tempering) without Houdayer moves, the kernel being sweeps of `plan`, made for `target`.
///
/// A ladder's states depend on the seed and its number alone. The acceptance of Metropolis is estimated after the run, since tiles do not count.
pub fn run_lane_tempering<R: Recorder>(
    target: &dyn Target,
    plan: &LadderPlan,
    tempering: &TemperingSettings,
    make: impl Fn(usize) -> R + Sync,
    progress: &dyn Progress,
) -> Result<Vec<TemperingOutcome<R>>> {
    let (settings, ladder) = (&tempering.chains, &tempering.ladder);
    tempering.check(target)?;
    progress.total((settings.burn_in + settings.steps).saturating_mul(settings.chains as u64));
    let (level, sites, rungs) = (SimdLevel::detect(), plan.rungs.sites() as u64, ladder.len());
    let (terms, q) = (target.terms(), target.q());
    let order = OrderParameter::of(target);
    let tables: Vec<Tables> =
        ladder.iter().map(|lambda| Tables::new(&plan.rungs, lambda)).collect();
    let infinite = Tables::new(&plan.infinite, &vec![0.0; terms]);
    let begin = |group: usize| {
        let first = group * LANES;
        let ladders = first..(first + LANES).min(settings.chains);
        let rung = |rung: usize| {
            let number = (first * (rungs + 1) + rung * LANES) as u32;
            let mut tile = Tile::new(plan.rungs.sites(), settings.seed, number);
            for lane in 0..LANES {
                tile.set(lane, &initial_state(target, settings.seed, number + lane as u32));
            }
            Rung { tile, energies: vec![0.0; terms * LANES], counts: vec![0; q * LANES] }
        };
        Group {
            tiles: (0..=rungs).map(rung).collect(),
            ladders: ladders
                .map(|number| Ladder {
                    recorder: make(number),
                    exchanges: Exchanges::new(rungs, 1),
                    energies: vec![0.0; rungs * terms],
                    table: tempering.table.map(|width| LadderTable::new(rungs + 1, width)),
                })
                .collect(),
            first,
        }
    };
    let groups = (0..settings.chains.div_ceil(LANES)).into_par_iter();
    let mut groups: Vec<Group<R>> = groups.map(begin).collect();
    let stride = glance(plan.rungs.sites() * rungs * LANES.min(settings.chains));
    // Short sweeps are not worth a thread each.
    let together = (512 / plan.rungs.sites()).max(1);
    let advance = |group: &mut Group<R>, round: Range<u64>| {
        let Group { tiles, ladders, first } = group;
        let (mut x, mut unsaid) = (vec![0; plan.rungs.sites()], 0);
        for step in round {
            if step == settings.burn_in {
                ladders.iter_mut().for_each(|ladder| ladder.exchanges.reset_counts());
            }
            let kept = step >= settings.burn_in
                && (step - settings.burn_in + 1).is_multiple_of(settings.thin);
            let gather = kept && tempering.table.is_some();
            let updates = Updates { from: step * sites, count: sites };
            tiles[..rungs].par_iter_mut().zip(&tables).with_min_len(together).for_each(
                |(rung, tables)| {
                    rung.tile.update(&plan.rungs, tables, level, updates);
                    if tempering.exchange || gather {
                        rung.tile.energies(&plan.rungs, level, &mut rung.energies);
                    }
                },
            );
            if tempering.exchange {
                exchange(tiles, ladders, ladder, (settings.seed, *first, step));
            }
            if kept {
                for (lane, ladder) in ladders.iter_mut().enumerate() {
                    tiles[rungs - 1].tile.get(lane, &mut x);
                    ladder.recorder.record(&x);
                }
            }
            if gather {
                let hot = &mut tiles[rungs];
                hot.tile.update(&plan.infinite, &infinite, level, updates);
                hot.tile.energies(&plan.infinite, level, &mut hot.energies);
                tabulate(tiles, ladders, q, &order);
            }
            unsaid += 1;
            if unsaid == stride {
                progress.advance(stride * ladders.len() as u64);
                unsaid = 0;
            }
        }
        progress.advance(unsaid * ladders.len() as u64);
        Ok(())
    };
    // Sweeps have no step size to agree on.
    let steps = in_rounds(settings, &mut groups, progress, advance, |_| ())?;
    let finish = |Group { tiles, ladders, first }: Group<R>| {
        let outcome = |(lane, ladder): (usize, Ladder<R>)| {
            let state = |rung: &Rung| {
                let mut x = vec![0; plan.rungs.sites()];
                rung.tile.get(lane, &mut x);
                x
            };
            let last: Vec<Vec<u8>> = tiles[..rungs].iter().map(state).collect();
            let (acceptance, energy_calls) =
                plan.charged(target, tempering, (first + lane, steps), &last)?;
            Ok(TemperingOutcome {
                recorders: vec![ladder.recorder],
                steps,
                acceptance,
                swap_rates: ladder.exchanges.swap_rates(),
                round_trips: ladder.exchanges.round_trips(),
                energy_calls,
                table: ladder.table,
                last,
            })
        };
        ladders.into_iter().enumerate().map(outcome).collect::<Vec<_>>()
    };
    groups.into_par_iter().flat_map_iter(finish).collect()
}

/// Exchange states of neighbouring rungs in every ladder.
fn exchange<R>(
    tiles: &mut [Rung],
    ladders: &mut [Ladder<R>],
    weights: &[Vec<f64>],
    (seed, first, step): (u64, usize, u64),
) {
    let (rungs, terms) = (weights.len(), weights[0].len());
    // 255 where a lane's state goes to the next rung.
    let mut swaps = vec![[0u8; LANES]; rungs];
    for (lane, ladder) in ladders.iter_mut().enumerate() {
        for (own, rung) in ladder.energies.chunks_exact_mut(terms).zip(&*tiles) {
            for (term, energy) in own.iter_mut().enumerate() {
                *energy = rung.energies[term * LANES + lane];
            }
        }
        let mut stream = Stream::new(seed, Purpose::Exchange, (first + lane) as u32, step);
        let swap = |a: usize, _: usize| swaps[a][lane] = 255;
        ladder.exchanges.step(weights, &mut ladder.energies, &mut stream, swap);
    }
    for (rung, lanes) in swaps[..rungs - 1].iter().enumerate() {
        if lanes.iter().all(|lane| *lane == 0) {
            continue;
        }
        let (hot, cold) = tiles.split_at_mut(rung + 1);
        let (hot, cold) = (&mut hot[rung], &mut cold[0]);
        hot.tile.exchange(&mut cold.tile, lanes);
        for (at, energy) in hot.energies.iter_mut().enumerate() {
            if lanes[at % LANES] != 0 {
                std::mem::swap(energy, &mut cold.energies[at]);
            }
        }
    }
}

/// Take the states of all rungs into the tables.
fn tabulate<R>(tiles: &mut [Rung], ladders: &mut [Ladder<R>], q: usize, order: &OrderParameter) {
    let rungs = tiles.len() - 1;
    tiles.par_iter_mut().for_each(|rung| rung.tile.counts(q, &mut rung.counts));
    for (lane, ladder) in ladders.iter_mut().enumerate() {
        let Some(table) = &mut ladder.table else { continue };
        for (number, rung) in tiles.iter().enumerate() {
            let energy = rung.energies.iter().skip(lane).step_by(LANES).sum();
            let mut counts = [0; 256];
            for (count, own) in counts.iter_mut().zip(rung.counts.iter().skip(lane).step_by(LANES))
            {
                *count = *own as usize;
            }
            // Infinite temperature comes last among the tiles and first in the table.
            let place = if number == rungs { 0 } else { number + 1 };
            table.record(place, energy, order.of_counts(&counts[..q]), || {
                let mut x = vec![0; rung.tile.sites()];
                rung.tile.get(lane, &mut x);
                x
            });
        }
    }
}
