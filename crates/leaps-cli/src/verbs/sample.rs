//! `leaps sample`: walkers that follow a trained network.

use std::path::PathBuf;

use anyhow::Result;
use clap::Args;
use serde::Serialize;

use super::sampling::{Destination, conclude, one_by_one, prepare};
use crate::app::Context;
use crate::error::usage;
use crate::grid::Grid;
use crate::models;
use leaps::job::{Sampler, Sampling};
use leaps::observe::MeasureSpec;
use leaps::parse::{number, text_path};
use leaps::sampler::{ResampleSpec, SchemeSpec, WalkerSpec};
use leaps::target::Field;

/// Flags of `sample`.
#[derive(Args, Debug)]
pub struct SampleArgs {
    /// Model directory, run directory, or name of a model: shipped ('leaps models' lists them) or in LEAPS_MODELS
    #[arg(long, value_name = "DIR|NAME")]
    model: PathBuf,
    #[command(flatten)]
    scheme: SchemeSpec,
    #[command(flatten)]
    walkers: WalkerSpec,
    #[command(flatten)]
    resample: ResampleSpec,
    #[command(flatten)]
    measure: MeasureSpec,
    #[command(flatten)]
    destination: Destination,
    #[command(flatten)]
    member: MemberSpec,
    /// File of an instance to sample in place of the model's target, for a network that was trained over instances
    #[arg(long, value_name = "PATH", value_parser = text_path, help_heading = "Target")]
    target_file: Option<PathBuf>,
    /// Override a key of the model's configuration, such as target.beta=0.43 or target.size=24; repeatable, not beside its flag
    #[arg(long = "set", value_name = "KEY=VALUE", help_heading = "Configuration")]
    set: Vec<String>,
}

/// Which target of those that the network was trained for.
#[derive(Args, Debug, Serialize)]
#[command(next_help_heading = "Target")]
pub struct MemberSpec {
    /// Inverse temperature, within the range that the network was trained over if it was [default: the model's]
    #[arg(long, value_name = "BETA", value_parser = number)]
    beta: Option<f64>,
    /// Temperature T, in place of --beta 1/T
    #[arg(long, value_name = "T", value_parser = number, conflicts_with = "beta")]
    #[serde(skip)]
    temperature: Option<f64>,
    /// Field h, within the range that the network was trained over if it was [default: the model's]
    #[arg(long, value_name = "H", allow_hyphen_values = true)]
    field: Option<Field>,
    /// Chemical potential mu (or --mu) of a lattice-gas, within the range that the network was trained over if it was [default: the model's]
    #[arg(long, alias = "mu", value_name = "MU", value_parser = number)]
    chemical_potential: Option<f64>,
    /// Crystal field of blume-capel, within the range that the network was trained over if it was [default: the model's]
    #[arg(long, value_name = "D", value_parser = number)]
    crystal_field: Option<f64>,
}

/// Let walkers follow the network and print what they say.
pub fn run(args: &SampleArgs, context: &Context) -> Result<()> {
    let found = models::find("--model", &args.model)?;
    let mut layers = found.layers()?;
    let (name, steps) = (&found.name, found.model.training.steps);
    context.detail(format!("{name}: trained for {steps} steps"));
    for word in &args.set {
        if ["network.", "train."].iter().any(|section| word.trim_start().starts_with(section)) {
            return Err(usage(format!(
                "--set {word}: belongs to training; the model has its network"
            )));
        }
    }
    layers.set(&args.set)?;
    layers.instance(args.target_file.as_deref())?;
    layers.seed(context.globals.seed, &context.matches)?;
    layers.flags("target", &args.member, &context.matches)?;
    layers.temperature(args.member.temperature)?;
    layers.flags("sample", &args.scheme, &context.matches)?;
    layers.flags("sample", &args.walkers, &context.matches)?;
    layers.flags("sample", &args.resample, &context.matches)?;
    layers.flags("sample", &args.measure, &context.matches)?;
    // A network for a range of temperatures knows a path to each; another passes them on its own.
    let each = found.model.family.is_some_and(|family| family.beta.is_some());
    let betas = if each { &context.grid.betas[..] } else { &[] };
    if !each {
        layers.stops(&context.grid.betas)?;
    }
    let prepared = prepare(context, layers, &args.destination)?;
    if !(betas.is_empty() && context.grid.fields.is_empty()) {
        let places = Grid::places(betas, &context.grid.fields);
        return one_by_one(context, &prepared, &places, |problem, seed| {
            let (model, name) = (found.model.clone(), &found.name);
            Sampler::Network(Box::new(
                Sampling::of(&prepared.spec, problem, model, name).seed(seed),
            ))
        });
    }
    let problem = &prepared.problem;
    let job = Sampling::of(&prepared.spec, problem.clone(), found.model.clone(), &found.name);
    prepared.explained(job.check_memory())?;
    context.catch_stops();
    let file = prepared.open()?;
    let progress = prepared.progress(context, "sample");
    let done = job.run_in(&context.job(&progress));
    drop(progress);
    let run = prepared.or_stopped(context, done)?;
    if found.model.target != problem.described.target
        && let Some(own) = found.description()
    {
        let family = found.model.family.map(|ranges| format!(", for {}", ranges.describe()));
        let instances = found.model.instances();
        let instances = instances.map(|count| format!(", over {count} random instances at a time"));
        let more = family.or(instances).unwrap_or_default();
        context.say(format!("{name} was trained on {own}{more}"));
    }
    conclude(context, &prepared, file, &run)
}
