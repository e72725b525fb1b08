//! `leaps mcmc`: Markov chains with any kernel, or temperatures that exchange states.

use anyhow::Result;
use clap::Args;
use serde::Serialize;

use super::sampling::{Destination, conclude, prepare};
use crate::app::Context;
use crate::config::ProblemArgs;
use leaps::Error;
use leaps::job::Chains;
use leaps::mcmc::{ChainSpec, KernelSpec, kernels_help};
use leaps::parse::number;

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
    destination: Destination,
}

/// What only samplers that follow the path have, here to be refused with a reason.
#[derive(Args, Debug, Serialize)]
struct StopSpec {
    #[arg(long, hide = true, value_delimiter = ',', value_parser = number)]
    at_beta: Vec<f64>,
}

/// Run the chains and print averages, errors and autocorrelation times; after a signal those of the steps that were made.
pub fn run(args: &McmcArgs, context: &Context) -> Result<()> {
    let mut layers = args.problem.layers(context.globals.seed, &context.matches)?;
    layers.flags("sample", &args.kernel, &context.matches)?;
    layers.flags("sample", &args.chains, &context.matches)?;
    layers.flags("sample", &args.stops, &context.matches)?;
    let prepared = prepare(context, layers, &args.destination)?;
    prepared.explained(prepared.spec.walkers.check_no_stops())?;
    let mut job = Chains::of(&prepared.spec, prepared.problem.clone());
    job.keep = args.destination.out.is_some();
    prepared.explained(job.check_memory())?;
    // What batch systems send stops the chains as Ctrl-C does: what they measured is not lost.
    let signals = context.catch_stops();
    let file = prepared.open()?;
    let progress = prepared.progress(context, "mcmc");
    let done = job.run_in(&context.job(&progress));
    drop(progress);
    if matches!(done, Err(Error::Interrupted)) {
        return Err(signals.failure(Error::Interrupted.to_string()));
    }
    conclude(context, &prepared, file, &prepared.explained(done)?)
}
