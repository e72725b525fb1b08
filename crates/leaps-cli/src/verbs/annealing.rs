//! `leaps ais` and `leaps smc`: annealed importance sampling, and sequential Monte Carlo, which resamples.

use anyhow::Result;
use clap::Args;

use super::sampling::{Destination, conclude, one_by_one, prepare};
use crate::app::Context;
use crate::config::{Layers, ProblemArgs};
use crate::grid::Grid;
use leaps::job::{Annealing, Sampler};
use leaps::mcmc::{KernelSpec, kernels_help};
use leaps::observe::MeasureSpec;
use leaps::path::PathSpec;
use leaps::sampler::{ResampleSpec, UpdateSpec, WalkerSpec};

/// Flags of `ais`.
#[derive(Args, Debug)]
#[command(after_help = kernels_help(false))]
pub struct AisArgs {
    #[command(flatten)]
    annealing: AnnealingArgs,
    #[command(flatten)]
    destination: Destination,
}

/// Flags of `smc`.
#[derive(Args, Debug)]
#[command(after_help = kernels_help(false))]
pub struct SmcArgs {
    #[command(flatten)]
    annealing: AnnealingArgs,
    #[command(flatten)]
    resample: ResampleSpec,
    #[command(flatten)]
    destination: Destination,
}

/// What both have.
#[derive(Args, Debug)]
struct AnnealingArgs {
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
    measure: MeasureSpec,
}

impl AnnealingArgs {
    fn layers(&self, context: &Context) -> Result<Layers> {
        let mut layers = self.problem.layers(context.globals.seed, &context.matches)?;
        layers.flags("path", &self.path, &context.matches)?;
        layers.flags("sample", &self.kernel, &context.matches)?;
        layers.flags("sample", &self.walkers, &context.matches)?;
        layers.flags("sample", &self.updates, &context.matches)?;
        layers.flags("sample", &self.measure, &context.matches)?;
        layers.stops(&context.grid.betas)?;
        Ok(layers)
    }
}

/// Anneal without resampling and print what the weighted walkers say.
pub fn ais(args: &AisArgs, context: &Context) -> Result<()> {
    anneal(args.annealing.layers(context)?, &args.destination, false, context)
}

/// Anneal with resampling and print what the weighted walkers say.
pub fn smc(args: &SmcArgs, context: &Context) -> Result<()> {
    let mut layers = args.annealing.layers(context)?;
    layers.flags("sample", &args.resample, &context.matches)?;
    anneal(layers, &args.destination, true, context)
}

fn anneal(
    layers: Layers,
    destination: &Destination,
    resample: bool,
    context: &Context,
) -> Result<()> {
    let prepared = prepare(context, layers, destination)?;
    if !context.grid.fields.is_empty() {
        // Temperatures of a range are met on the way, in every field.
        let places = Grid::places(&[], &context.grid.fields);
        return one_by_one(context, &prepared, &places, |problem, seed| {
            Sampler::Annealing(Annealing::of(&prepared.spec, problem, resample).seed(seed))
        });
    }
    let job = Annealing::of(&prepared.spec, prepared.problem.clone(), resample);
    prepared.explained(job.check_memory())?;
    // What batch systems send stops the walkers as Ctrl-C does: what they measured is not lost.
    context.catch_stops();
    let file = prepared.open()?;
    let progress = prepared.progress(context, if resample { "smc" } else { "ais" });
    let done = job.run_in(&context.job(&progress));
    drop(progress);
    conclude(context, &prepared, file, &prepared.or_stopped(context, done)?)
}
