//! `leaps exact`: exact answers by enumeration, transfer matrix or Kaufman's formula.

use std::path::{Path, PathBuf};

use anyhow::Result;
use clap::Args;
use leaps::exact::Method;
use leaps::job::Solving;
use leaps::parse::count;
use leaps::path::Strength;
use leaps::problem::Problem;
use leaps::results::{Computed, ExactPoint, ExactPoints, ExactResult};
use leaps_report::csv;
use leaps_report::text::{Table, fixed};

use crate::app::Context;
use crate::config::ProblemArgs;
use crate::csv::CsvArgs;
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
    #[command(flatten)]
    csv: CsvArgs,
}

/// Solve the target and print what is known.
pub fn run(args: &ExactArgs, context: &Context) -> Result<()> {
    let layers = args.problem.layers(context.globals.seed, &context.matches)?;
    let config = layers.resolve()?;
    let problem = layers.problem(&config)?;
    if args.samples == Some(0) {
        return Err(usage("--samples = 0: must be at least 1; leave it out for the numbers alone"));
    }
    args.csv.check()?;
    if !context.grid.is_empty() {
        return over_grid(args, &problem, context);
    }
    let file = samples::open(args.out.as_deref())?;
    let samples = args.samples.unwrap_or(0);
    let job = Solving { method: args.method, samples, seed: config.seed, ..Solving::new(problem) };
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
    let shown = match context.globals.json {
        true => output::json(&printed),
        false => output::data(&table(&run)),
    };
    args.csv.write(|| csv::rows(&printed.rows()), context)?;
    shown
}

fn table(result: &ExactResult) -> String {
    let mut rows = vec![("method", result.method.clone())];
    rows.extend(result.named().into_iter().map(|(name, value)| (name, fixed(value, 10))));
    output::pairs(&rows)
}

/// What is known at every inverse temperature and field of a range.
fn over_grid(args: &ExactArgs, problem: &Problem, context: &Context) -> Result<()> {
    if args.samples.is_some() {
        return Err(usage("--samples: must be left out beside a range"));
    }
    let betas = match context.grid.betas.is_empty() {
        true => vec![problem.beta],
        false => context.grid.betas.clone(),
    };
    let fields = match context.grid.fields.is_empty() {
        true => vec![None],
        false => context.grid.fields.iter().map(|&field| Some(field)).collect(),
    };
    let of = context.grid.of;
    let (mut points, mut computed) = (Vec::new(), Computed::on_cpu());
    for &field in &fields {
        for &beta in &betas {
            let job = Solving {
                method: args.method,
                // It is the same at all temperatures.
                ground: false,
                ..Solving::new(problem.at_strength(beta, of, field)?)
            };
            let progress = context.progress("exact").titled(job.problem.description.clone());
            let run = job.run_in(&context.job(&progress))?;
            computed = run.computed;
            points.push(ExactPoint::new(beta, field, run.result));
        }
    }
    let printed = context.record(problem, &computed, ExactPoints::new(of, points));
    let shown = match context.globals.json {
        true => output::json(&printed),
        false => output::data(&grid_table(&printed.result.points, of)),
    };
    args.csv.write(|| csv::rows(&printed.rows()), context)?;
    shown
}

fn grid_table(points: &[ExactPoint], of: Strength) -> String {
    let mut table = Table::default();
    let mut head = vec!["beta"];
    head.extend(points.first().and_then(|point| point.field).map(|_| of.name()));
    head.extend(["log_z", "free_energy_per_site", "entropy_per_site", "energy_per_site"]);
    head.extend(["heat_capacity_per_site", "abs_magnetization", "susceptibility_per_site"]);
    table.row(head);
    for ExactPoint { beta, field, result, .. } in points {
        let mut cells = vec![beta.to_string()];
        cells.extend(field.map(|field| field.to_string()));
        let known = [
            Some(result.log_z),
            Some(result.free_energy_per_site),
            Some(result.entropy_per_site),
            Some(result.energy_per_site),
            Some(result.heat_capacity_per_site),
            result.abs_magnetization,
            result.susceptibility_per_site,
        ];
        cells.extend(known.map(|value| value.map_or("-".to_owned(), |value| fixed(value, 8))));
        table.row(cells);
    }
    table.text()
}
