//! `leaps train`: a network trained in a run directory, from the start or from where it stopped.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::Result;
use clap::{Arg, Args, ValueEnum};

use crate::app::Context;
use crate::config::{Layers, ProblemArgs, settings_meant};
use crate::csv::CsvArgs;
use crate::error::usage;
use crate::output;
use crate::tables::Report;
use crate::training::{self, TrainingSession};
use leaps::job::check_memory;
use leaps::net::NetworkOptions;
use leaps::path::PathSpec;
use leaps::store::shipped_settings;
use leaps::target::Kind;
use leaps::train::{StartSpec, TrainSpec};
use leaps_report::csv;

/// Flags of `train`.
#[derive(Args, Debug)]
pub struct TrainArgs {
    #[command(flatten)]
    problem: ProblemArgs,
    #[command(flatten)]
    path: PathSpec,
    #[command(flatten)]
    network: NetworkOptions,
    #[command(flatten)]
    train: TrainSpec,
    #[command(flatten)]
    start: StartSpec,
    #[command(flatten)]
    run: RunArgs,
    #[command(flatten)]
    csv: CsvArgs,
}

/// Where a run is kept and when it stops.
#[derive(Args, Debug)]
#[command(next_help_heading = "Run")]
pub struct RunArgs {
    /// Run directory; continued if it exists [default: the run whose directory is given in place of FILE]
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Start over, in DIR-2 and so on if DIR exists
    #[arg(long)]
    fresh: bool,
    /// Stop with a checkpoint and exit code 75 after this time, such as 30m or 1h
    #[arg(long, value_name = "TIME", value_parser = training::duration)]
    time_limit: Option<Duration>,
    /// Go on from an older checkpoint if the newest is damaged
    #[arg(long)]
    fallback: bool,
}

/// Let the first word be the name of a configuration as well as that of a target.
pub fn first_word(arg: Arg) -> Arg {
    let parse = |word: &str| {
        if let Ok(kind) = Kind::from_str(word, false) {
            return Ok(kind);
        }
        let is_file = word == "-"
            || word.contains(['.', '/'])
            || std::path::Path::new(word).exists()
            || shipped_settings(word).is_some();
        // Which file it is, is found out from the word itself.
        is_file.then_some(Kind::File).ok_or_else(|| {
            let meant = settings_meant(word).map(|name| format!("; did you mean {name}?"));
            format!(
                "a configuration such as run.toml, shipped settings such as ising-15-critical, \
                 a run directory, or one of ising, potts, spin-glass, rbm, file, maxcut, independent-set{}",
                meant.unwrap_or_default()
            )
        })
    };
    arg.value_parser(parse)
        .value_name("FILE|DIR|TARGET")
        .help("Configuration file or name of shipped settings, run directory, or what to sample: ising, potts, spin-glass, rbm, file, maxcut or independent-set")
}

/// Train, sample with the network and print what it says.
pub fn run(args: &TrainArgs, context: &Context) -> Result<()> {
    args.csv.check()?;
    let (mut layers, mut directory) = layers(args, context)?;
    let start = training::prepare(&mut layers, (!args.run.fresh).then_some(&directory))?;
    let config = layers.resolve()?;
    let problem = layers.problem(&config)?;
    check_memory(&problem, &config.walkers, &config.measure)
        .map_err(|error| layers.explain(error))?;
    let claimed = args.run.fresh;
    if claimed {
        directory = training::fresh(&directory)?;
    }
    let training = TrainingSession {
        layers: &layers,
        spec: &config,
        problem: &problem,
        directory,
        start,
        fallback: args.run.fallback,
        until: training::deadline(args.run.time_limit),
    };
    if let Err(error) = training.train(context) {
        if claimed {
            // Unless it holds something.
            let _ = std::fs::remove_dir(&training.directory);
        }
        return Err(error);
    }
    let run = training.sample(context)?;
    let result = &run.result;
    for doubt in result.doubts() {
        context.say(format!("warning: {doubt}"));
    }
    let (shown, written) = (training.directory.display(), training.directory.join("results.json"));
    context.say(format!("wrote {}; next: 'leaps report {shown}'", written.display()));
    let printed = context.record(&problem, &run.computed, result);
    args.csv.write(|| csv::rows(&printed.rows()), context)?;
    if context.globals.json {
        return output::json(&printed);
    }
    context.say(result.summary());
    output::data(&result.table())
}

/// The configuration (a file, a target in words, or that of a run) and the run directory.
fn layers(args: &TrainArgs, context: &Context) -> Result<(Layers, PathBuf)> {
    let (mut problem, matches) = (args.problem.clone(), &context.matches);
    let mut directory = args.run.out.clone();
    let word = matches.get_raw("kind").and_then(|mut words| words.next());
    if let Some(word) =
        word.filter(|word| word.to_str().is_none_or(|word| Kind::from_str(word, false).is_err()))
    {
        if problem.target.path.is_some() {
            return Err(usage("PATH: must be left out after a configuration file"));
        }
        let word = PathBuf::from(word);
        let own = word.join("config.toml");
        if word.is_dir() && !own.exists() {
            return Err(usage(format!(
                "FILE|DIR|TARGET = {}: must be a file, or a run's directory with its config.toml",
                word.display()
            )));
        }
        problem.config = Some(if word.is_dir() { own } else { word.clone() });
        if word.is_dir() {
            directory = directory.or(Some(word));
        }
        problem.target.kind = None;
    } else if problem.target.kind.is_none()
        && problem.config.is_none()
        && let Some(directory) = &directory
    {
        let own = directory.join("config.toml");
        if !own.exists() {
            return Err(usage(format!(
                "no configuration: write 'leaps train run.toml --out DIR', or give a target; \
                 there is no run in {} to continue",
                directory.display()
            )));
        }
        problem.config = Some(own);
    }
    let Some(directory) = directory else {
        return Err(usage("--out: must be given; write 'leaps train run.toml --out DIR'"));
    };
    let mut layers = problem.layers(context.globals.seed, matches)?;
    layers.flags("path", &args.path, matches)?;
    layers.flags("network", &args.network, matches)?;
    layers.flags("train", &args.train, matches)?;
    layers.flags("train", &args.start, matches)?;
    Ok((layers, directory))
}
