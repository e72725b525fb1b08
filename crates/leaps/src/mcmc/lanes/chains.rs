//! Run chains 64 at a time.

use rayon::prelude::*;

use super::{Plan, Rule, Tables, Tile};
use crate::Result;
use crate::device::{Level, Purpose, Stream, Watch};
use crate::mcmc::chains::{check_finite, glance};
use crate::mcmc::{ChainOutcome, ChainSettings, Kernel, Metropolis};
use crate::observe::Recorder;
use crate::target::{Model, initial_state};

/// Sweeps of the scalar kernel, from the last state, that estimate a chain's acceptance.
const ACCEPTANCE_SWEEPS: u64 = 16;

/// As [`run_chains`](crate::mcmc::run_chains), a step being a sweep of `plan`, made for `model`'s target.
///
/// A chain's states depend on the seed and its number alone. The acceptance of Metropolis is estimated
/// after the run, since tiles do not count.
pub fn run_lane_chains<R: Recorder>(
    model: &Model<'_>,
    plan: &Plan,
    settings: &ChainSettings,
    make: impl Fn(usize) -> R + Sync,
    watch: &dyn Watch,
) -> Result<Vec<ChainOutcome<R>>> {
    settings.check()?;
    let total = settings.burn_in + settings.steps;
    watch.total(total.saturating_mul(settings.chains as u64));
    let (level, sites) = (Level::detect(), plan.sites() as u64);
    let tables = Tables::new(plan, model.lambda);
    let groups: Result<Vec<Vec<ChainOutcome<R>>>> = (0..settings.chains.div_ceil(Tile::WALKERS))
        .into_par_iter()
        .map(|group| {
            let first = group * Tile::WALKERS;
            let chains = first..(first + Tile::WALKERS).min(settings.chains);
            let mut tile = Tile::new(plan.sites(), settings.seed, first as u32);
            let mut x = Vec::new();
            for chain in chains.clone() {
                x = initial_state(model.target, settings.seed, chain as u32);
                check_finite(model, &x, 0.0, (settings.seed, chain, 0))?;
                tile.set(chain - first, &x);
            }
            let mut recorders: Vec<R> = chains.clone().map(&make).collect();
            let stride = glance(plan.sites() * chains.len());
            let mut step = 0;
            while step < total {
                watch.check()?;
                // To the end of burn-in, then from kept state to kept state.
                let next = if step < settings.burn_in {
                    settings.burn_in
                } else {
                    step + settings.every - (step - settings.burn_in) % settings.every
                };
                let sweeps = (next.min(total) - step).min(stride);
                tile.update(plan, &tables, level, step * sites, sweeps * sites);
                step += sweeps;
                if step > settings.burn_in
                    && (step - settings.burn_in).is_multiple_of(settings.every)
                {
                    for (lane, recorder) in recorders.iter_mut().enumerate() {
                        tile.get(lane, &mut x);
                        recorder.record(&x);
                    }
                }
                watch.advance(sweeps * chains.len() as u64);
            }
            Ok(chains
                .zip(recorders)
                .map(|(chain, recorder)| {
                    let mut last = vec![0; plan.sites()];
                    tile.get(chain - first, &mut last);
                    let acceptance = acceptance(model, plan, &last, settings.seed, chain as u32);
                    let updates = settings.steps as f64 * plan.sites() as f64;
                    let energy_calls = updates * plan.calls_per_update();
                    ChainOutcome { recorder, acceptance, energy_calls, last }
                })
                .collect())
        })
        .collect();
    Ok(groups?.into_iter().flatten().collect())
}

fn acceptance(model: &Model<'_>, plan: &Plan, last: &[u8], seed: u64, chain: u32) -> f64 {
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
