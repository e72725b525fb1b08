//! Events of a training run, for its files and for whoever looks on.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::checkpoint::Validation;
use super::lines;
use super::meta::Machine;
use crate::device::{NoProgress, Progress};
use crate::observe::Estimate;
use crate::train::StepMetrics;
use crate::{Error, Result};

/// Why a run stopped with a valid checkpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Stop {
    /// All steps are made.
    Finished,
    /// Its time was over.
    #[serde(rename = "time limit")]
    TimeLimit,
    /// [`Progress::stopped`] said so.
    Interrupted,
}

impl Stop {
    /// As files have it.
    pub fn name(self) -> &'static str {
        match self {
            Stop::Finished => "finished",
            Stop::TimeLimit => "time limit",
            Stop::Interrupted => "interrupted",
        }
    }
}

/// A line of `metrics.jsonl`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Metrics {
    /// The gradient step.
    #[serde(flatten)]
    pub step_metrics: StepMetrics,
    /// Seconds of training so far, all sessions together.
    pub seconds: f64,
    /// Effective sample size as a fraction, if the network was validated after this step.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ess: Option<f64>,
    /// log Z, if the network was validated after this step.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub log_z: Option<Estimate>,
}

impl Metrics {
    /// Read `metrics.jsonl` of a run directory, which may be growing. Damaged lines are left out; the second says which.
    pub fn read(run: impl AsRef<Path>) -> Result<(Vec<Self>, Option<Error>)> {
        lines::read(&run.as_ref().join("metrics.jsonl"))
    }
}

/// A line of `events.jsonl`: an event, and when it happened.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct TimedEvent {
    /// Seconds since 1970.
    pub time: f64,
    /// What happened.
    #[serde(flatten)]
    pub event: Event,
}

/// Something that happens to a run. Files are named from the run directory on, which may be moved.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Event {
    /// A run begins.
    Started {
        /// 0.
        step: u64,
        /// Steps to make.
        steps: u64,
    },
    /// A run goes on.
    Resumed {
        /// Steps made so far.
        step: u64,
        /// Steps to make in all.
        steps: u64,
        /// The checkpoint.
        checkpoint: PathBuf,
        /// What was wrong with newer checkpoints that were passed over.
        #[serde(default)]
        passed_over: Vec<String>,
        /// The command of this session.
        #[serde(default)]
        command: Vec<String>,
        /// The machine of this session.
        #[serde(default)]
        machine: Machine,
    },
    /// The averaged network was tried out.
    Validated(Validation),
    /// A checkpoint was written.
    Checkpointed {
        /// Steps made.
        step: u64,
        /// Its directory.
        checkpoint: PathBuf,
    },
    /// A number was not finite, and the run went back to a checkpoint with half the learning rate.
    RolledBack {
        /// The step that failed.
        step: u64,
        /// The step of the checkpoint.
        to: u64,
        /// Factor of the learning rate from here on.
        rate_factor: f64,
        /// What was not finite.
        error: String,
        /// Where the batch was written.
        dump: PathBuf,
    },
    /// A number was not finite.
    Failed {
        /// The step that failed.
        step: u64,
        /// What was not finite.
        error: String,
        /// Where the batch was written.
        dump: PathBuf,
    },
    /// The run stopped with a valid checkpoint.
    Stopped {
        /// Steps made.
        step: u64,
        /// Why.
        reason: Stop,
    },
    /// What another version of the library wrote and this one does not know.
    #[serde(other)]
    Unknown,
}

impl Event {
    /// Read `events.jsonl` of a run directory, which may be growing. Damaged lines are left out; the second says which.
    pub fn read(run: impl AsRef<Path>) -> Result<(Vec<TimedEvent>, Option<Error>)> {
        lines::read(&run.as_ref().join("events.jsonl"))
    }

    /// Steps that count as made after it.
    pub fn step(&self) -> Option<u64> {
        match self {
            Event::Started { step, .. }
            | Event::Resumed { step, .. }
            | Event::Validated(Validation { step, .. })
            | Event::Checkpointed { step, .. }
            | Event::RolledBack { to: step, .. }
            | Event::Failed { step, .. }
            | Event::Stopped { step, .. } => Some(*step),
            Event::Unknown => None,
        }
    }

    /// Steps to make in all, where it says so.
    pub fn steps(&self) -> Option<u64> {
        match self {
            Event::Started { steps, .. } | Event::Resumed { steps, .. } => Some(*steps),
            _ => None,
        }
    }
}

/// Somebody who looks on while a network is trained, such as a terminal; as a [`Progress`] it can also ask for a stop, and learns the
/// number of steps.
pub trait Observer: Progress {
    /// Something that is worth knowing before training begins.
    fn note(&self, text: &str) {
        let _ = text;
    }

    /// Training begins in this run directory; log Z is known to be `exact`.
    fn begins(&self, directory: &Path, exact: Option<f64>) {
        let _ = (directory, exact);
    }

    /// A gradient step was made, and a validation after it if one was due.
    fn measured(&self, metrics: &Metrics) {
        let _ = metrics;
    }

    /// Something happened.
    fn happened(&self, event: &Event) {
        let _ = event;
    }
}

impl Observer for NoProgress {}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn events_of_other_versions_are_read_as_far_as_they_are_known() {
        let folder = tempfile::tempdir().unwrap();
        let stopped = Event::Stopped { step: 7, reason: Stop::TimeLimit };
        let known = TimedEvent { time: 1.5, event: stopped.clone() };
        let lines = [
            serde_json::to_string(&known).unwrap(),
            r#"{"time":2.5,"event":"paused","step":8,"until":"noon"}"#.to_owned(),
            r#"{"time":3.5,"event":"resumed","step":7,"steps":9,"checkpoint":"c","mood":1}"#
                .to_owned(),
            r#"{"time":4.5,"event":"stopped","step":9}"#.to_owned(),
            r#"{"time":5.5}"#.to_owned(),
        ];
        fs::write(folder.path().join("events.jsonl"), lines.join("\n") + "\n").unwrap();
        let (read, damaged) = Event::read(folder.path()).unwrap();
        let resumed = Event::Resumed {
            step: 7,
            steps: 9,
            checkpoint: "c".into(),
            passed_over: Vec::new(),
            command: Vec::new(),
            machine: Machine::default(),
        };
        let found = read.iter().map(|line| (line.time, line.event.clone())).collect::<Vec<_>>();
        assert_eq!(found, [(1.5, stopped), (2.5, Event::Unknown), (3.5, resumed)]);
        let steps = read.iter().map(|line| (line.event.step(), line.event.steps()));
        assert_eq!(
            steps.collect::<Vec<_>>(),
            [(Some(7), None), (None, None), (Some(7), Some(9))],
            "steps made, and steps to make"
        );
        let damaged = damaged.unwrap().to_string();
        assert!(damaged.contains("line 4") && damaged.contains("1 more damaged"), "{damaged}");
    }
}
