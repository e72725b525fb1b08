//! `leaps mcmc`: Markov chains with any kernel, or temperatures that exchange states.

use anyhow::Result;
use clap::Args;
use serde::Serialize;

use super::sampling::{Destination, Prepared, conclude, prepare};
use crate::app::Context;
use crate::config::ProblemArgs;
use crate::error::usage;
use crate::output;
use leaps::Error;
use leaps::job::{Chains, Monitor, Sampler};
use leaps::mcmc::{ChainSpec, KernelSpec, Move, kernels_help};
use leaps::parse::numbers;
use leaps::results::{Compared, Comparison, Computed};
use leaps_report::csv;

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
    let one_temperature = matches!(layers.resolve()?.kernel.kernel, Move::Kernel(_));
    if !one_temperature {
        layers.stops(&context.grid.betas)?;
    }
    let prepared = prepare(context, layers, &args.destination)?;
    if one_temperature {
        prepared.explained(prepared.spec.walkers.check_no_stops())?;
        if !context.grid.betas.is_empty() {
            return one_by_one(&prepared, &args.destination, context);
        }
    }
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

/// Chains at every inverse temperature of a range, one after the other, each with random numbers of its own.
fn one_by_one(prepared: &Prepared, destination: &Destination, context: &Context) -> Result<()> {
    if destination.out.is_some() {
        return Err(usage(
            "--out: must be left out beside a range of --beta; states of one temperature make a file",
        ));
    }
    let (mut samplers, mut computed) = (Vec::new(), Computed::on_cpu());
    for &beta in &context.grid.betas {
        let name = format!("beta {beta}");
        let problem = prepared.explained(prepared.problem.at(beta, None))?;
        let seed = prepared.spec.seed_of(&name, problem.target.sites());
        let job = Sampler::Chains(Chains::of(&prepared.spec, problem).seed(seed));
        let progress = context.progress(&name);
        let done = prepared.explained(job.run_in(&context.job(&progress)));
        drop(progress);
        let run = done?;
        Monitor::found(context, &name, &run.result);
        computed = run.computed;
        samplers.push(Compared { name, beta: Some(beta), result: run.result });
    }
    let found = Comparison { seed: prepared.spec.seed, samplers };
    let printed = context.record(&prepared.problem, &computed, &found);
    let shown = match context.globals.json {
        true => output::json(&printed),
        false => output::data(&super::compare::table(&found)),
    };
    destination.csv.write(|| csv::rows(&printed.rows()), context)?;
    shown
}
