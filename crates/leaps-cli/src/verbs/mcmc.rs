//! `leaps mcmc`: Markov chains with any kernel, or temperatures that exchange states.

use anyhow::Result;
use clap::Args;
use serde::Serialize;

use super::sampling::{Destination, conclude, one_by_one, prepare};
use crate::app::Context;
use crate::config::ProblemArgs;
use crate::grid::Grid;
use leaps::job::{Chains, Sampler};
use leaps::mcmc::{ChainSpec, KernelSpec, Move, kernels_help};
use leaps::observe::MeasureSpec;
use leaps::parse::numbers;

/// Flags of `mcmc`.
#[derive(Args, Debug)]
#[command(after_help = kernels_help(true))]
pub struct McmcArgs {
    #[command(flatten)]
    problem: ProblemArgs,
    #[command(flatten)]
    kernel: KernelSpec,
    #[command(flatten)]
    chains: ChainSpec,
    #[command(flatten)]
    stops: StopSpec,
    #[command(flatten)]
    measure: MeasureSpec,
    #[command(flatten)]
    destination: Destination,
}

/// Numbers that are one value on the command line.
type Numbers = Vec<f64>;

/// Temperatures within a ladder.
#[derive(Args, Debug, Serialize)]
#[command(next_help_heading = "Sampling")]
struct StopSpec {
    /// Free energies at these inverse temperatures within the ladder of parallel-tempering, houdayer or ladder as well: B,... or FROM:TO:POINTS
    #[arg(long, value_name = "B,...", value_parser = numbers, default_value = "", hide_default_value = true)]
    at_beta: Numbers,
}

/// Run the chains and print averages, errors and autocorrelation times; after a signal those of the steps that were made.
pub fn run(args: &McmcArgs, context: &Context) -> Result<()> {
    let mut layers = args.problem.layers(context.globals.seed, &context.matches)?;
    layers.flags("sample", &args.kernel, &context.matches)?;
    layers.flags("sample", &args.chains, &context.matches)?;
    layers.flags("sample", &args.stops, &context.matches)?;
    layers.flags("sample", &args.measure, &context.matches)?;
    let one_temperature = matches!(layers.resolve()?.kernel.kernel, Move::Kernel(_));
    if !one_temperature {
        layers.stops(&context.grid.betas)?;
    }
    let prepared = prepare(context, layers, &args.destination)?;
    if one_temperature {
        prepared.explained(prepared.spec.walkers.check_no_stops())?;
    }
    // The temperatures of a range lie within a ladder, if there is one.
    let betas = if one_temperature { &context.grid.betas[..] } else { &[] };
    if !(betas.is_empty() && context.grid.fields.is_empty()) {
        let places = Grid::places(betas, &context.grid.fields);
        return one_by_one(context, &prepared, &places, |problem, seed| {
            Sampler::Chains(Chains::of(&prepared.spec, problem).seed(seed))
        });
    }
    let mut job = Chains::of(&prepared.spec, prepared.problem.clone());
    job.keep = args.destination.out.is_some();
    prepared.explained(job.check_memory())?;
    // What batch systems send stops the chains as Ctrl-C does: what they measured is not lost.
    context.catch_stops();
    let file = prepared.open()?;
    let progress = prepared.progress(context, "mcmc");
    let done = job.run_in(&context.job(&progress));
    drop(progress);
    conclude(context, &prepared, file, &prepared.or_stopped(context, done)?)
}
