//! Run Markov chains with any kernel, or temperatures that exchange states.

use anyhow::Result;
use clap::Args;
use serde::Serialize;

use super::sampling::{Destination, conclude, prepare};
use crate::app::Context;
use crate::config::{ChainSpec, KernelSpec, ProblemArgs, Work, kernels_help, number};
use crate::samplers::run_chains;

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

/// Run the chains and print averages, errors and autocorrelation times; after Ctrl-C those of the steps that were made.
pub fn run(args: &McmcArgs, context: &Context) -> Result<()> {
    let mut layers = args.problem.layers(context.globals.seed, &context.matches)?;
    layers.flags("sample", &args.kernel, &context.matches)?;
    layers.flags("sample", &args.chains, &context.matches)?;
    layers.flags("sample", &args.stops, &context.matches)?;
    let keep = args.destination.out.is_some();
    let job = prepare(context, layers, &args.destination, Work::Chains { keep })?;
    let progress = job.progress(context, "mcmc");
    let done = run_chains(&job.config, &job.problem, job.file.is_some(), &progress);
    drop(progress);
    let (result, samples) = done.map_err(|error| job.layers.explain(error))?;
    conclude(context, job, &result, &samples)
}
