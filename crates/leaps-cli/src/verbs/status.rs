//! Say where training runs stand, one line each, from their files alone.

use std::fs::{File, TryLockError};
use std::path::{Path, PathBuf};

use anyhow::Result;
use clap::Args;
use leaps::Error;
use leaps::observe::Estimate;
use leaps::run::{Checkpoints, Metrics};
use leaps::train::Ranges;
use serde::Serialize;
use serde_json::Value;

use crate::app::Context;
use crate::error::usage;
use crate::output::{self, Table, with_error};
use crate::tables::{Short, span};
use crate::training;

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

/// Print a line for every run.
pub fn run(args: &StatusArgs, context: &Context) -> Result<()> {
    let runs: Result<Vec<Status>> =
        args.runs.iter().flat_map(|run| within(run)).map(|run| status(&run, context)).collect();
    let runs = runs?;
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
fn within(folder: &Path) -> Vec<PathBuf> {
    if let Some(run) = training::begun(folder) {
        return vec![run];
    }
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let mut runs: Vec<PathBuf> =
        entries.filter_map(|entry| training::begun(&entry.path())).collect();
    runs.sort();
    if runs.is_empty() { vec![folder.to_owned()] } else { runs }
}

/// Steps over which loss and rate are taken.
const RECENT: usize = 100;

fn status(run: &Path, context: &Context) -> Result<Status> {
    let events = run.join("events.jsonl");
    if run.is_dir() && !events.exists() {
        let run = run.display();
        return Err(usage(format!(
            "DIR = {run}: must be the directory of a training run, or of several side by side"
        )));
    }
    let text = std::fs::read_to_string(&events)
        .map_err(|source| Error::Io { path: run.to_owned(), source })?;
    let events: Vec<Value> =
        text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
    let measured = run.join("metrics.jsonl").is_file();
    let (metrics, damaged) = if measured { Metrics::read(run)? } else { (Vec::new(), None) };
    if let Some(error) = damaged {
        context.say(format!("warning: {error}"));
    }
    let steps = events.iter().rev().find_map(|event| event["steps"].as_u64()).unwrap_or(0);
    let step = metrics.last().map_or(0, |last| last.progress.step).max(made(&events));
    let recent = &metrics[metrics.len().saturating_sub(RECENT)..];
    let loss: f64 = recent.iter().map(|line| line.progress.loss).sum();
    let rate = match (recent.first(), recent.last()) {
        (Some(first), Some(last)) if last.seconds > first.seconds => {
            let made = last.progress.step.saturating_sub(first.progress.step);
            Some(made as f64 / (last.seconds - first.seconds))
        }
        _ => None,
    };
    let left = rate.filter(|rate| *rate > 0.0).map(|rate| steps.saturating_sub(step) as f64 / rate);
    Ok(Status {
        run: run.display().to_string(),
        step,
        steps,
        loss: (!recent.is_empty()).then(|| loss / recent.len() as f64),
        ess: metrics.iter().rev().find_map(|line| line.ess),
        log_z: metrics.iter().rev().find_map(|line| line.log_z),
        rate,
        left: left.filter(|_| step < steps),
        state: state(run, &events),
        family: Checkpoints::of(run).identity().and_then(|run| run.train.ranges()),
    })
}

/// Steps that were made as the last event has it. Not every step has a line of metrics: one that is to be validated has none before
/// that is done, and long runs leave lines out.
fn made(events: &[Value]) -> u64 {
    let step = |event: &Value| event["to"].as_u64().or(event["step"].as_u64());
    events.iter().rev().find_map(step).unwrap_or(0)
}

/// Running, or how it ended.
fn state(run: &Path, events: &[Value]) -> String {
    // Whoever trains holds the lock; the operating system lets go of it however the process ends.
    let lock = File::open(run.join(".lock"));
    if lock.is_ok_and(|lock| matches!(lock.try_lock_shared(), Err(TryLockError::WouldBlock))) {
        return "running".to_owned();
    }
    let last = events.iter().rev().find(|event| event["event"].is_string());
    let word =
        |key: &str| last.and_then(|event| event[key].as_str()).unwrap_or_default().to_owned();
    match word("event").as_str() {
        "stopped" if word("reason") == "finished" => "finished".to_owned(),
        "stopped" => format!("stopped ({})", word("reason")),
        "failed" => format!("failed ({})", word("error")),
        _ => "killed".to_owned(),
    }
}
