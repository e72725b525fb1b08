//! `leaps status`: where training runs stand, one line each, from their files alone.

use std::fs::{DirEntry, TryLockError};
use std::path::{Path, PathBuf};

use anyhow::Result;
use clap::Args;
use leaps::Error;
use leaps::file::{if_any, open};
use leaps::observe::Estimate;
use leaps::path::Ranges;
use leaps::store::{Checkpoints, Event, Metrics};
use serde::Serialize;
use serde_json::Value;

use crate::app::Context;
use crate::error::{one_line, usage};
use crate::output;
use leaps::job;
use leaps_report::text::{Short, Table, span, with_error};

/// Flags of `status`.
#[derive(Args, Debug)]
pub struct StatusArgs {
    /// Run directories, or folders of them
    #[arg(value_name = "DIR", required = true)]
    runs: Vec<PathBuf>,
}

/// Where a run stands.
#[derive(Debug, Serialize)]
struct Status {
    run: String,
    step: u64,
    steps: u64,
    loss: Option<f64>,
    ess: Option<f64>,
    log_z: Option<Estimate>,
    /// Gradient steps per second.
    rate: Option<f64>,
    /// Seconds.
    left: Option<f64>,
    state: String,
    /// Ranges that one network is trained over.
    #[serde(skip_serializing_if = "Option::is_none")]
    family: Option<Ranges>,
}

/// All runs that were asked for.
#[derive(Debug, Serialize)]
struct Statuses {
    runs: Vec<Status>,
}

/// Print a line for every run. One that cannot be read does not hide the others, and is an error in the end.
pub fn run(args: &StatusArgs, context: &Context) -> Result<()> {
    let found = args.runs.iter().flat_map(|run| within(run));
    let found = found.map(|run| run.and_then(|run| status(&run, context)));
    let (runs, failures): (Vec<_>, Vec<_>) = found.partition(Result::is_ok);
    let runs: Vec<Status> = runs.into_iter().flatten().collect();
    let mut failures = failures.into_iter().filter_map(Result::err);
    if !runs.is_empty() {
        print(runs, context)?;
    }
    let Some(first) = failures.next() else { return Ok(()) };
    for other in failures {
        context.say(format!("warning: {}", one_line(&other)));
    }
    Err(first)
}

fn print(runs: Vec<Status>, context: &Context) -> Result<()> {
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

/// Whether a folder has what training leaves, even if some of it is lost.
fn is_run(folder: &Path) -> bool {
    ["events.jsonl", "metrics.jsonl", "meta.json"].iter().any(|file| folder.join(file).exists())
}

/// Steps over which loss and rate are taken.
const RECENT: usize = 100;

fn status(run: &Path, context: &Context) -> Result<Status> {
    if run.is_dir() && !is_run(run) {
        let run = run.display();
        return Err(usage(format!(
            "DIR = {run}: must be the directory of a training run, or of several side by side"
        )));
    }
    let (events, torn) = match if_any(Event::read(run))? {
        Some((events, None)) if events.is_empty() => {
            context.say(format!("warning: {}: is empty", run.join("events.jsonl").display()));
            (events, None)
        }
        Some(read) => read,
        None => {
            context.say(format!("warning: {}: has no events.jsonl", run.display()));
            Default::default()
        }
    };
    let (metrics, damaged) = if_any(Metrics::read(run))?.unwrap_or_default();
    let lost = torn.is_some();
    for error in torn.into_iter().chain(damaged) {
        context.say(format!("warning: {error}"));
    }
    let identity = Checkpoints::of(run).identity();
    let planned = || identity.as_ref().map(|run| run.train.steps);
    let steps = events.iter().rev().find_map(|event| event["steps"].as_u64());
    let steps = steps.or_else(planned).unwrap_or(0);
    let step = metrics.last().map_or(0, |last| last.step_metrics.step).max(made(&events));
    let recent = &metrics[metrics.len().saturating_sub(RECENT)..];
    let loss: f64 = recent.iter().map(|line| line.step_metrics.loss).sum();
    let rate = match (recent.first(), recent.last()) {
        (Some(first), Some(last)) if last.seconds > first.seconds => {
            let made = last.step_metrics.step.saturating_sub(first.step_metrics.step);
            Some(made as f64 / (last.seconds - first.seconds))
        }
        _ => None,
    };
    let left = rate.filter(|rate| *rate > 0.0).map(|rate| steps.saturating_sub(step) as f64 / rate);
    let status = Status {
        run: run.display().to_string(),
        step,
        steps,
        loss: (!recent.is_empty()).then(|| loss / recent.len() as f64),
        ess: metrics.iter().rev().find_map(|line| line.ess),
        log_z: metrics.iter().rev().find_map(|line| line.log_z),
        rate,
        left: left.filter(|_| step < steps),
        state: state(run, &events, lost, step >= steps)?,
        family: identity.and_then(|run| run.train.ranges()),
    };
    job::still_there(run)?;
    Ok(status)
}

/// Steps that were made as the last event has it. Not every step has a line of metrics: one that is to be validated has none before
/// that is done, and long runs leave lines out.
fn made(events: &[Value]) -> u64 {
    let step = |event: &Value| event["to"].as_u64().or(event["step"].as_u64());
    events.iter().rev().find_map(step).unwrap_or(0)
}

/// Running, or how it ended, if events that are lost would not say so; `made` says whether all steps are.
fn state(run: &Path, events: &[Value], lost: bool, made: bool) -> Result<String> {
    // Whoever trains holds the lock; the operating system lets go of it however the process ends.
    let lock = if_any(open(&run.join(".lock")))?;
    if lock.is_some_and(|lock| matches!(lock.try_lock_shared(), Err(TryLockError::WouldBlock))) {
        return Ok("running".to_owned());
    }
    let last = events.iter().rev().find(|event| event["event"].is_string());
    let word =
        |key: &str| last.and_then(|event| event[key].as_str()).unwrap_or_default().to_owned();
    Ok(match word("event").as_str() {
        "stopped" if word("reason") == "finished" => "finished".to_owned(),
        "stopped" => format!("stopped ({})", word("reason")),
        "failed" => format!("failed ({})", word("error")),
        // Results are written when training has ended, whatever has become of the events since.
        "" if run.join("results.json").exists() => "finished".to_owned(),
        _ if lost && made && run.join("results.json").exists() => "finished".to_owned(),
        _ if lost => "unknown (events.jsonl is damaged)".to_owned(),
        _ => "killed".to_owned(),
    })
}
