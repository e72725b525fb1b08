//! `leaps status`: where training runs stand, one line each, from their files alone.

use std::fs::DirEntry;
use std::path::{Path, PathBuf};

use anyhow::Result;
use clap::Args;
use leaps::Error;
use leaps::job;
use serde::Serialize;

use crate::app::Context;
use crate::csv::CsvArgs;
use crate::error::one_line;
use crate::output;
use crate::standing::{Standing, is_run};
use leaps_report::csv;
use leaps_report::text::{Short, Table, span, with_error};

/// Flags of `status`.
#[derive(Args, Debug)]
pub struct StatusArgs {
    /// Run directories, or folders of them
    #[arg(value_name = "DIR", required = true)]
    runs: Vec<PathBuf>,
    #[command(flatten)]
    csv: CsvArgs,
}

/// All runs that were asked for.
#[derive(Debug, Serialize)]
struct Statuses {
    runs: Vec<Standing>,
}

/// Print a line for every run. One that cannot be read does not hide the others, and is an error in the end.
pub fn run(args: &StatusArgs, context: &Context) -> Result<()> {
    args.csv.check()?;
    let found = args.runs.iter().flat_map(|run| within(run));
    let found = found.map(|run| run.and_then(|run| status(&run, context)));
    let (runs, failures): (Vec<_>, Vec<_>) = found.partition(Result::is_ok);
    let runs: Vec<Standing> = runs.into_iter().flatten().collect();
    let mut failures = failures.into_iter().filter_map(Result::err);
    if !runs.is_empty() {
        args.csv.write(|| table(&runs), context)?;
        print(runs, context)?;
    }
    let Some(first) = failures.next() else { return Ok(()) };
    for other in failures {
        context.say(format!("warning: {}", one_line(&other)));
    }
    Err(first)
}

/// The runs with all digits.
fn table(runs: &[Standing]) -> String {
    let line = |run: &Standing| {
        let family = run.family.map(|ranges| ranges.describe()).unwrap_or_default();
        vec![
            run.run.as_str().into(),
            (run.step as f64).into(),
            (run.steps as f64).into(),
            run.loss.into(),
            run.ess.into(),
            run.log_z.map(|log_z| log_z.mean).into(),
            run.log_z.map(|log_z| log_z.error).into(),
            run.log_z.and_then(|log_z| log_z.exact).into(),
            run.rate.into(),
            run.left.into(),
            run.state.as_str().into(),
            family.as_str().into(),
        ]
    };
    csv::cells(csv::Head::Runs, runs.iter().map(line))
}

fn print(runs: Vec<Standing>, context: &Context) -> Result<()> {
    if context.globals.json {
        return output::json(&Statuses { runs });
    }
    let mut table = Table::default();
    let families = runs.iter().any(|run| run.family.is_some());
    let mut heading = vec!["run", "step", "loss", "ess", "log_z", "steps/s", "left", "state"];
    heading.extend(families.then_some("family"));
    table.row(heading);
    let or_dash = |text: Option<String>| text.unwrap_or_else(|| "-".to_owned());
    for run in runs {
        let mut row = vec![
            run.run,
            format!("{}/{}", run.step, run.steps),
            or_dash(run.loss.map(|loss| Short(loss).to_string())),
            or_dash(run.ess.map(|ess| format!("{ess:.3}"))),
            or_dash(run.log_z.map(|log_z| with_error(log_z.mean, log_z.error))),
            or_dash(run.rate.map(|rate| Short(rate).to_string())),
            or_dash(run.left.map(span)),
            run.state,
        ];
        row.extend(families.then(|| or_dash(run.family.map(|ranges| ranges.describe()))));
        table.row(row);
    }
    output::data(&table.text())
}

/// The run itself, or the runs in a folder of runs.
fn within(folder: &Path) -> Vec<Result<PathBuf>> {
    if let Some(run) = job::begun(folder) {
        return vec![Ok(run)];
    }
    let fail = |source| Err(Error::Io { path: folder.to_owned(), source }.into());
    let entries = match std::fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(source) => return vec![fail(source)],
    };
    let mut runs: Vec<Result<PathBuf>> = entries
        .filter_map(|entry| match entry {
            Ok(entry) => begun(&entry).transpose(),
            Err(source) => Some(fail(source)),
        })
        .collect();
    runs.sort_by(|a, b| a.as_ref().ok().cmp(&b.as_ref().ok()));
    if runs.is_empty() { vec![Ok(folder.to_owned())] } else { runs }
}

/// The run in an entry of a folder, if there is one. A directory that has gone since, or a link to one, may have been a run.
fn begun(entry: &DirEntry) -> Result<Option<PathBuf>> {
    let path = entry.path();
    if entry.file_type().is_ok_and(|kind| kind.is_dir() || kind.is_symlink()) {
        job::still_there(&path)?;
    }
    Ok(job::begun(&path).or_else(|| is_run(&path).then_some(path)))
}

fn status(run: &Path, context: &Context) -> Result<Standing> {
    let (mut standing, warnings) = Standing::read(run)?;
    standing.metrics = Vec::new(); // there may be thousands of runs
    for warning in warnings {
        context.say(format!("warning: {warning}"));
    }
    Ok(standing)
}
