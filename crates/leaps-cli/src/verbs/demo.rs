//! `leaps demo`: a network trained in a minute, sampled, and compared with the exact answer.

use std::path::{Path, PathBuf};

use anyhow::Result;
use clap::Args;
use leaps::{Error, exact};

use super::compare::{compare, table, verdict};
use super::report::write as write_report;
use crate::app::Context;
use crate::config::Layers;
use crate::csv::CsvArgs;
use crate::output;
use crate::training::{self, TrainingSession};
use leaps::parse::text_path;
use leaps::results::{Comparison, SamplerResult};
use leaps_report::csv;
use leaps_report::run::Source;

/// Flags of `demo`.
#[derive(Args, Debug)]
pub struct DemoArgs {
    /// Directory for the run, the comparison and the report
    #[arg(long, value_name = "DIR", default_value = "leaps-demo", value_parser = text_path)]
    out: PathBuf,
    /// Override a key of the demonstration, such as train.steps=3000; repeatable, not beside its flag
    #[arg(long = "set", value_name = "KEY=VALUE")]
    set: Vec<String>,
    #[command(flatten)]
    csv: CsvArgs,
}

/// What is trained and compared; `@RUN@` stands for the run directory.
const SPECIFICATION: &str = include_str!("demo.toml");

/// Train on the critical 8x8 Ising model, and compare with annealing and with the exact answer.
pub fn run(args: &DemoArgs, context: &Context) -> Result<()> {
    args.csv.check()?;
    let out = &args.out;
    std::fs::create_dir_all(out).map_err(|source| Error::Io { path: out.clone(), source })?;
    let mut run = out.join("run");
    let layers = layers(&run, args, context)?;
    let config = layers.resolve()?;
    let problem = layers.problem(&config)?;
    let mut training = TrainingSession {
        layers: &layers,
        spec: &config,
        problem: &problem,
        directory: run.clone(),
        fallback: true,
        start: None,
        until: None,
    };
    let exact = exact::known(&*problem.target, problem.path.ends());
    if let Some(exact) = &exact {
        let log_z = leaps_report::text::fixed(exact.log_z, 6);
        context.say(format!("the answer is known: log Z = {log_z} ({})", exact.method));
    }
    if let Err(error) = training.train(context) {
        // A run with other settings, left by another version, is not ours to continue.
        let other = matches!(error.downcast_ref(), Some(Error::Invalid { .. }));
        if !other || !run.join("config.toml").exists() {
            return Err(error);
        }
        run = training::fresh(&run)?;
        training.directory.clone_from(&run);
        training.train(context)?;
    }

    let specification = specification(&run, context);
    leaps::store::write_file(out.join("compare.toml"), specification.as_bytes())?;
    let (problem, compared) = compare(&self::layers(&run, args, context)?, context)?;
    let (comparison, computed) = (&compared.result, &compared.computed);
    if comparison.interrupted {
        // The same command goes on from the network that there is.
        output::data(&table(comparison))?;
        return verdict(comparison, context);
    }
    let record = context.record(&problem, computed, comparison);
    keep(&run.join("comparison.json"), &record)?;
    if let Some(network) = network(comparison) {
        keep(&run.join("results.json"), &context.record(&problem, computed, network))?;
    }
    let page = out.join("report.html");
    write_report(&Source::read(&run)?, &page, context)?;
    args.csv.write(|| csv::rows(&record.rows()), context)?;
    if context.globals.json {
        return output::json(&record);
    }
    output::data(&table(comparison))?;
    context.say(format!("wrote {}: open it in a browser", page.display()));
    let (run, spec) = (run.display(), out.join("compare.toml"));
    let spec = spec.display();
    context.say(format!("next: 'leaps sample --model {run}', 'leaps compare {spec}'"));
    Ok(())
}

/// The specification with its run directory and the seed filled in.
fn specification(run: &Path, context: &Context) -> String {
    let quoted = toml::Value::String(run.display().to_string()).to_string();
    let seed = format!("seed = {}", context.globals.seed);
    SPECIFICATION.replace("\"@RUN@\"", &quoted).replace("seed = 1", &seed)
}

fn layers(run: &Path, args: &DemoArgs, context: &Context) -> Result<Layers> {
    let mut layers = Layers::default();
    layers.parse_file(&specification(run, context), "demo.toml".as_ref())?;
    layers.set(&args.set)?;
    Ok(layers)
}

/// The result of the network among those of a comparison.
fn network(comparison: &Comparison) -> Option<&impl serde::Serialize> {
    comparison.samplers.iter().find_map(|sampler| match &sampler.result {
        SamplerResult::Walkers(result) if result.model.is_some() => Some(result),
        _ => None,
    })
}

fn keep(path: &Path, value: &impl serde::Serialize) -> Result<()> {
    let text = serde_json::to_string_pretty(value)? + "\n";
    Ok(leaps::store::write_file(path, text.as_bytes())?)
}
