//! Carry weighted walkers along the path by the rates of a network.

use leaps::device::Placement;
use leaps::run::Model;
use leaps::sampler::{Scheme, anneal, followers, scheme_grid_with_stops};
use leaps::{Error, Result};

use super::Samples;
use super::measured::{Journey, measured};
use super::snapshots::{can_be_drawn, snapshots};
use crate::config::{Config, Problem};
use crate::progress::TerminalProgress;
use crate::results::WalkerResult;

/// Run the network of `model`, called `name` in the result, and measure the walkers.
pub fn run_flow(
    config: &Config,
    problem: &Problem,
    model: &Model,
    name: &str,
    placement: &Placement,
    progress: &TerminalProgress,
) -> Result<(WalkerResult, Samples)> {
    let (target, path) = (&problem.target, &problem.path);
    let net = model.net(target).map_err(|error| match error {
        // The file is sound; it is the target that is another.
        Error::Corrupt { .. }
            if config.target.described().is_ok_and(|own| own.target != model.target) =>
        {
            let own = &model.target;
            let reason = format!(
                "its network does not fit {}; it was trained on {own}",
                problem.description
            );
            Error::not_applicable(format!("the model {name}"), reason)
        }
        other => other,
    })?;
    let told = model.family.map(|ranges| config.target.condition(&ranges)).transpose()?;
    let flow = model.flow(&net)?.conditioned_on(&told.unwrap_or_default());
    let scheme: Scheme = config.flow.scheme.into();
    let (cuts, seed) = (config.flow.cuts(config.walkers.intervals), config.seed);
    let (betas, stops): (Vec<f64>, Vec<f64>) =
        config.walkers.stops(path, problem.beta)?.into_iter().unzip();
    let (grid, durations) = scheme_grid_with_stops(path, scheme, &cuts, &stops)?;
    let intervals = durations.iter().filter(|duration| **duration > 0.0).count();
    let sweeps = config.walkers.sweeps.unwrap_or(0) as u64;
    let population = |walkers: usize| {
        let durations = durations.clone();
        followers(placement, target, path, &flow, scheme, durations, sweeps, walkers, seed)
    };

    let start = progress.seconds();
    let mut walkers = population(config.walkers.walkers)?;
    let (resampling, points) = (config.resample.resampling(0.0), config.walkers.trace_points);
    let ensemble = anneal(target, &mut *walkers, &grid, &resampling, points, seed, progress)?;
    let seconds = progress.seconds() - start;
    let snapshots = match can_be_drawn(target) {
        true => snapshots(target, &grid, &mut *population(1)?, progress)?,
        false => None,
    };
    let journey = Journey {
        seed,
        scheme: match scheme {
            Scheme::Events => "events",
            Scheme::Euler => "euler",
            Scheme::Trapezoid => "trapezoid",
        },
        kernel: if sweeps == 0 { "none" } else { "heat-bath" }.to_owned(),
        model: Some(name.to_owned()),
        intervals,
        betas,
        passes: walkers.passes()?,
        seconds,
        snapshots,
    };
    measured(problem, journey, ensemble)
}
