//! Run Markov chains with any kernel, or temperatures that exchange states.

use anyhow::Result;
use clap::Args;

use super::sampling::{Destination, conclude, prepare};
use crate::app::Context;
use crate::config::{ChainSpec, KernelSpec, ProblemArgs, Work, kernels_help};
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
    destination: Destination,
}

/// Run the chains and print averages, errors and autocorrelation times; after Ctrl-C those of the steps that were made.
pub fn run(args: &McmcArgs, context: &Context) -> Result<()> {
    let mut layers = args.problem.layers(context.globals.seed, &context.matches)?;
    layers.flags("sample", &args.kernel, &context.matches)?;
    layers.flags("sample", &args.chains, &context.matches)?;
    let keep = args.destination.out.is_some();
    let job = prepare(context, layers, &args.destination, Work::Chains { keep })?;
    let watch = job.watch(context, "mcmc");
    let done = run_chains(&job.config, &job.problem, job.file.is_some(), &watch);
    drop(watch);
    let (result, samples) = done.map_err(|error| job.layers.explain(error))?;
    conclude(context, job, &result, &samples)
}
