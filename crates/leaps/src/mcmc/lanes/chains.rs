//! Chains, run 64 at a time.

use std::ops::Range;

use rayon::prelude::*;

use super::{Plan, Rule, Tables, Tile, Updates};
use crate::Result;
use crate::device::{Progress, Purpose, SimdLevel, Stream};
use crate::mcmc::chains::{check_finite, glance};
use crate::mcmc::rounds::in_rounds;
use crate::mcmc::{ChainOutcome, ChainSettings, Kernel, Metropolis};
use crate::observe::Recorder;
use crate::target::{Density, initial_state};

/// Sweeps of the scalar kernel, from the last state, that estimate a chain's acceptance.
const ACCEPTANCE_SWEEPS: u64 = 16;

/// Chains that one tile moves.
struct Group<R> {
    tile: Tile,
    recorders: Vec<R>,
    chains: Range<usize>,
}

/// As [`run_chains`](crate::mcmc::run_chains), a step being a sweep of `plan`, made for `model`'s target.
///
/// A chain's states depend on the seed and its number alone. The acceptance of Metropolis is estimated
/// after the run, since tiles do not count.
pub fn run_lane_chains<R: Recorder>(
    model: &Density<'_>,
    plan: &Plan,
    settings: &ChainSettings,
    make: impl Fn(usize) -> R + Sync,
    progress: &dyn Progress,
) -> Result<Vec<ChainOutcome<R>>> {
    settings.check()?;
    progress.total((settings.burn_in + settings.steps).saturating_mul(settings.chains as u64));
    let (level, sites) = (SimdLevel::detect(), plan.sites() as u64);
    let tables = Tables::new(plan, model.lambda);
    let begin = |group: usize| {
        let first = group * Tile::WALKERS;
        let chains = first..(first + Tile::WALKERS).min(settings.chains);
        let mut tile = Tile::new(plan.sites(), settings.seed, first as u32);
        for chain in chains.clone() {
            let x = initial_state(model.target, settings.seed, chain as u32);
            check_finite(model, &x, 0.0, (settings.seed, chain, 0))?;
            tile.set(chain - first, &x);
        }
        Ok(Group { tile, recorders: chains.clone().map(&make).collect(), chains })
    };
    let groups = (0..settings.chains.div_ceil(Tile::WALKERS)).into_par_iter();
    let mut groups: Vec<Group<R>> = groups.map(begin).collect::<Result<_>>()?;
    let stride = glance(plan.sites() * Tile::WALKERS.min(settings.chains));
    let advance = |group: &mut Group<R>, round: Range<u64>| {
        let Group { tile, recorders, chains } = group;
        let mut x = vec![0; plan.sites()];
        let mut step = round.start;
        while step < round.end {
            // To the end of burn-in, then from kept state to kept state.
            let next = if step < settings.burn_in {
                settings.burn_in
            } else {
                step + settings.thin - (step - settings.burn_in) % settings.thin
            };
            let sweeps = (next.min(round.end) - step).min(stride);
            let updates = Updates { from: step * sites, count: sweeps * sites };
            tile.update(plan, &tables, level, updates);
            step += sweeps;
            if step > settings.burn_in && (step - settings.burn_in).is_multiple_of(settings.thin) {
                for (lane, recorder) in recorders.iter_mut().enumerate() {
                    tile.get(lane, &mut x);
                    recorder.record(&x);
                }
            }
            progress.advance(sweeps * chains.len() as u64);
        }
        Ok(())
    };
    // Sweeps have no step size to agree on.
    let steps = in_rounds(settings, &mut groups, progress, advance, |_| ())?;
    let outcomes = |Group { tile, recorders, chains }: Group<R>| {
        let outcome = |(lane, (chain, recorder)): (usize, (usize, R))| {
            let mut last = vec![0; plan.sites()];
            tile.get(lane, &mut last);
            let acceptance = acceptance(model, plan, &last, settings.seed, chain as u32);
            let energy_calls = (steps * sites) as f64 * plan.calls_per_update();
            ChainOutcome { recorder, steps, acceptance, energy_calls, last }
        };
        chains.zip(recorders).enumerate().map(outcome).collect::<Vec<_>>()
    };
    Ok(groups.into_par_iter().flat_map_iter(outcomes).collect())
}

/// The acceptance of a chain, estimated from its last state.
pub(in crate::mcmc) fn acceptance(
    model: &Density<'_>,
    plan: &Plan,
    last: &[u8],
    seed: u64,
    chain: u32,
) -> f64 {
    if plan.rule == Rule::HeatBath {
        return 1.0;
    }
    let Ok(mut kernel) = Metropolis::new(model.target) else { return 1.0 };
    let mut x = last.to_vec();
    let sum: f64 = (0..ACCEPTANCE_SWEEPS)
        .map(|step| {
            let mut stream = Stream::new(seed, Purpose::Statistic, chain, step);
            kernel.step(model, &mut x, &mut stream).acceptance
        })
        .sum();
    sum / ACCEPTANCE_SWEEPS as f64
}
