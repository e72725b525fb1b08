//! The standing of a training run, read from its files alone.

use std::fs::TryLockError;
use std::path::Path;

use anyhow::Result;
use leaps::file::{if_any, open};
use leaps::job;
use leaps::observe::Estimate;
use leaps::path::Ranges;
use leaps::store::{Checkpoints, Event, Metrics, Stop, TimedEvent};
use leaps_report::text::{Short, fixed, sigmas, span, with_error};
use serde::Serialize;

use crate::error::usage;

/// Where a run stands.
#[derive(Clone, Debug, Serialize)]
pub struct Standing {
    /// The directory.
    pub run: String,
    /// Gradient steps made.
    pub step: u64,
    /// Gradient steps to make.
    pub steps: u64,
    /// Mean of the last lines of metrics.
    pub loss: Option<f64>,
    /// The last validation's effective sample size.
    pub ess: Option<f64>,
    /// The last validation's log Z.
    pub log_z: Option<Estimate>,
    /// Gradient steps per second.
    pub rate: Option<f64>,
    /// Seconds.
    pub left: Option<f64>,
    /// Running, or how it ended.
    pub state: String,
    /// Ranges that one network is trained over.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub family: Option<Ranges>,
    /// Random instances that one network is trained on at a time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub instances: Option<usize>,
    /// The lines of metrics, for whoever draws them.
    #[serde(skip)]
    pub metrics: Vec<Metrics>,
}

/// Whether a folder has what training leaves, even if some of it is lost.
pub fn is_run(folder: &Path) -> bool {
    ["events.jsonl", "metrics.jsonl", "meta.json"].iter().any(|file| folder.join(file).exists())
}

/// The state of a run in which a process trains.
const RUNNING: &str = "running";

/// Steps over which loss and rate are taken.
const RECENT: usize = 100;

impl Standing {
    /// Read the files of a run; the second is what is wrong with those that are read in part.
    ///
    /// # Errors
    /// A directory without a run, and files that cannot be read at all.
    pub fn read(run: &Path) -> Result<(Standing, Vec<String>)> {
        let mut warnings = Vec::new();
        if run.is_dir() && !is_run(run) {
            let run = run.display();
            return Err(usage(format!(
                "DIR = {run}: must be the directory of a training run, or of several side by side"
            )));
        }
        let (events, torn) = match if_any(Event::read(run))? {
            Some((events, None)) if events.is_empty() => {
                warnings.push(format!("{}: is empty", run.join("events.jsonl").display()));
                (events, None)
            }
            Some(read) => read,
            None => {
                warnings.push(format!("{}: has no events.jsonl", run.display()));
                Default::default()
            }
        };
        let (metrics, damaged) = if_any(Metrics::read(run))?.unwrap_or_default();
        let lost = torn.is_some();
        warnings.extend(torn.into_iter().chain(damaged).map(|error| error.to_string()));
        let identity = Checkpoints::of(run).identity();
        let planned = || identity.as_ref().map(|run| run.train.steps);
        let steps = events.iter().rev().find_map(|line| line.event.steps());
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
        let left =
            rate.filter(|rate| *rate > 0.0).map(|rate| steps.saturating_sub(step) as f64 / rate);
        let standing = Standing {
            run: run.display().to_string(),
            step,
            steps,
            loss: (!recent.is_empty()).then(|| loss / recent.len() as f64),
            ess: metrics.iter().rev().find_map(|line| line.ess),
            log_z: metrics.iter().rev().find_map(|line| line.log_z),
            rate,
            left: left.filter(|_| step < steps),
            state: state(run, &events, lost, step >= steps)?,
            family: identity.as_ref().and_then(|run| run.train.ranges()),
            instances: identity.and_then(|run| run.train.instances()),
            metrics,
        };
        job::still_there(run)?;
        Ok((standing, warnings))
    }

    /// Steps, and while it goes on speed and time left.
    pub fn pace(&self) -> String {
        let mut words = vec![format!("step {}/{}", self.step, self.steps)];
        if self.is_running() {
            words.extend(self.rate.map(|rate| format!("{} steps/s", Short(rate))));
            words.extend(self.left.map(|left| format!("{} left", span(left))));
        }
        words.join(", ")
    }

    /// Loss, effective sample size and log Z beside its exact value, if that is known.
    pub fn numbers(&self, exact: Option<f64>) -> String {
        let mut words = Vec::new();
        words.extend(self.loss.map(|loss| format!("loss {}", Short(loss))));
        words.extend(self.ess.map(|ess| format!("ESS {ess:.4}")));
        if let Some(log_z) = self.log_z {
            words.push(format!("log Z {}", with_error(log_z.mean, log_z.error)));
            words.extend(exact.map(|exact| {
                let off = sigmas(log_z.mean, log_z.error, exact);
                format!("exact {} ({off} σ)", fixed(exact, 4))
            }));
        } else {
            words.extend(exact.map(|exact| format!("exact log Z {}", fixed(exact, 4))));
        }
        let seconds = self.metrics.last().map(|line| line.seconds);
        words.extend(seconds.map(|seconds| format!("{} of training", span(seconds))));
        words.extend(self.family.as_ref().map(|ranges| ranges.describe()));
        words.extend(self.instances.map(|count| format!("{count} random instances at a time")));
        words.join(", ")
    }

    /// Whether a process trains in it.
    pub fn is_running(&self) -> bool {
        self.state == RUNNING
    }
}

/// Steps that were made as the last event has it. Not every step has a line of metrics: one that is to be validated has none before
/// that is done, and long runs leave lines out.
fn made(events: &[TimedEvent]) -> u64 {
    events.iter().rev().find_map(|line| line.event.step()).unwrap_or(0)
}

/// Running, or how it ended, if events that are lost would not say so; `made` says whether all steps are.
fn state(run: &Path, events: &[TimedEvent], lost: bool, made: bool) -> Result<String> {
    // Whoever trains holds the lock; the operating system lets go of it however the process ends.
    let lock = if_any(open(&run.join(".lock")))?;
    if lock.is_some_and(|lock| matches!(lock.try_lock_shared(), Err(TryLockError::WouldBlock))) {
        return Ok(RUNNING.to_owned());
    }
    Ok(match events.last().map(|line| &line.event) {
        Some(Event::Stopped { reason: Stop::Finished, .. }) => "finished".to_owned(),
        Some(Event::Stopped { reason, .. }) => format!("stopped ({})", reason.name()),
        Some(Event::Failed { error, .. }) => format!("failed ({error})"),
        // Results are written when training has ended, whatever has become of the events since.
        None if run.join("results.json").exists() => "finished".to_owned(),
        _ if lost && made && run.join("results.json").exists() => "finished".to_owned(),
        _ if lost => "unknown (events.jsonl is damaged)".to_owned(),
        _ => "killed".to_owned(),
    })
}
