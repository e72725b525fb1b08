//! `leaps exact`: exact answers by enumeration, transfer matrix or Kaufman's formula.

use std::path::{Path, PathBuf};

use anyhow::Result;
use clap::Args;
use leaps::exact::Method;
use leaps::job::Solving;
use leaps::parse::count;
use leaps::results::ExactResult;

use crate::app::Context;
use crate::config::ProblemArgs;
use crate::error::usage;
use crate::output;
use crate::samples;

/// Flags of `exact`.
#[derive(Args, Debug)]
pub struct ExactArgs {
    #[command(flatten)]
    problem: ProblemArgs,
    /// Method: enumeration, transfer-matrix or kaufman [default: the best that applies]
    #[arg(long, value_enum, value_name = "NAME", hide_possible_values = true, help_heading = None::<&str>)]
    method: Option<Method>,
    /// Draw so many independent samples, by enumeration or transfer matrix, into the file of --out
    #[arg(long, value_name = "N", value_parser = count, requires = "out", help_heading = "Output")]
    samples: Option<usize>,
    /// File for the samples (.npz)
    #[arg(long, value_name = "FILE", requires = "samples", help_heading = "Output")]
    out: Option<PathBuf>,
}

/// Solve the target and print what is known.
pub fn run(args: &ExactArgs, context: &Context) -> Result<()> {
    let layers = args.problem.layers(context.globals.seed, &context.matches)?;
    let config = layers.resolve()?;
    let problem = layers.problem(&config)?;
    if args.samples == Some(0) {
        return Err(usage("--samples = 0: must be at least 1; leave it out for the numbers alone"));
    }
    let file = samples::open(args.out.as_deref())?;
    let samples = args.samples.unwrap_or(0);
    let job = Solving { problem, method: args.method, samples, seed: config.seed };
    let progress = context.progress("exact").titled(job.problem.description.clone());
    let run = job.run_in(&context.job(&progress))?;
    progress.announce();
    drop(progress);
    context.detail(config.target.formula());
    let printed = context.record(&job.problem, &run.computed, &run.result);
    if let Some(file) = file {
        samples::save(file, &*job.problem.target, &run.samples, &printed)?;
        let out = args.out.as_deref().unwrap_or(Path::new("")).display();
        context.say(format!("wrote {out}: {samples} independent samples, seed {}", job.seed));
    }
    if context.globals.json { output::json(&printed) } else { output::data(&table(&run)) }
}

fn table(result: &ExactResult) -> String {
    let mut rows = vec![("method", result.method.clone())];
    for (name, value) in [
        ("log_z", Some(result.log_z)),
        ("energy_per_site", Some(result.energy_per_site)),
        ("heat_capacity_per_site", Some(result.heat_capacity_per_site)),
        ("free_energy_per_site", Some(result.free_energy_per_site)),
        ("entropy_per_site", Some(result.entropy_per_site)),
        ("magnetization", result.magnetization),
        ("abs_magnetization", result.abs_magnetization),
        ("magnetization_squared", result.magnetization_squared),
        ("binder", result.binder),
        ("susceptibility_per_site", result.susceptibility_per_site),
    ] {
        if let Some(value) = value {
            rows.push((name, leaps_report::text::fixed(value, 10)));
        }
    }
    output::pairs(&rows)
}
