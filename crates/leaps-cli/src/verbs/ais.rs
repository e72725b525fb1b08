//! Run annealed importance sampling.

use anyhow::Result;
use clap::Args;

use super::sampling::{Destination, finish, prepare};
use crate::app::Context;
use crate::config::ProblemArgs;
use leaps::job::Annealing;
use leaps::mcmc::{KernelSpec, kernels_help};
use leaps::path::PathSpec;
use leaps::sampler::{UpdateSpec, WalkerSpec};

/// Flags of `ais`.
#[derive(Args, Debug)]
#[command(after_help = kernels_help(false))]
pub struct AisArgs {
    #[command(flatten)]
    problem: ProblemArgs,
    #[command(flatten)]
    path: PathSpec,
    #[command(flatten)]
    kernel: KernelSpec,
    #[command(flatten)]
    walkers: WalkerSpec,
    #[command(flatten)]
    updates: UpdateSpec,
    #[command(flatten)]
    destination: Destination,
}

/// Anneal without resampling and print what the weighted walkers say.
pub fn run(args: &AisArgs, context: &Context) -> Result<()> {
    let mut layers = args.problem.layers(context.globals.seed, &context.matches)?;
    layers.flags("path", &args.path, &context.matches)?;
    layers.flags("sample", &args.kernel, &context.matches)?;
    layers.flags("sample", &args.walkers, &context.matches)?;
    layers.flags("sample", &args.updates, &context.matches)?;
    let prepared = prepare(context, layers, &args.destination)?;
    let job = Annealing::of(&prepared.spec, prepared.problem.clone(), false);
    prepared.explained(job.check_memory())?;
    let file = prepared.open()?;
    let progress = prepared.progress(context, "ais");
    let done = prepared.explained(job.run_in(&context.job(&progress)));
    drop(progress);
    finish(context, &prepared, file, &done?)
}
