//! Run sequential Monte Carlo: annealing with resampling.

use anyhow::Result;
use clap::Args;

use super::sampling::{Destination, finish, prepare};
use crate::app::Context;
use crate::config::{
    KernelSpec, PathSpec, ProblemArgs, ResampleSpec, UpdateSpec, WalkerSpec, Work, kernels_help,
};
use crate::samplers::{gpu_has, run_walkers};

/// Flags of `smc`.
#[derive(Args, Debug)]
#[command(after_help = kernels_help(false))]
pub struct SmcArgs {
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
    resample: ResampleSpec,
    #[command(flatten)]
    destination: Destination,
}

/// Anneal with resampling and print what the weighted walkers say.
pub fn run(args: &SmcArgs, context: &Context) -> Result<()> {
    let mut layers = args.problem.layers(context.globals.seed, &context.matches)?;
    layers.flags("path", &args.path, &context.matches)?;
    layers.flags("sample", &args.kernel, &context.matches)?;
    layers.flags("sample", &args.walkers, &context.matches)?;
    layers.flags("sample", &args.updates, &context.matches)?;
    layers.flags("sample", &args.resample, &context.matches)?;
    let job = prepare(context, layers, &args.destination, Work::Anneal)?;
    let has = gpu_has(&job.config, &job.problem);
    let placement = context.placement_if(has).map_err(|error| job.layers.explain(error))?;
    let progress = job.progress(context, "smc");
    let done = run_walkers(&job.config, &job.problem, true, &placement, &progress);
    drop(progress);
    let (result, samples) = done.map_err(|error| job.layers.explain(error))?;
    finish(context, job, &result, &samples)
}
