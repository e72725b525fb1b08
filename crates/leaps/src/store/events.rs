//! Events of a training run, for its files and for whoever looks on.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::checkpoint::Validation;
use super::lines;
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

/// A line of `events.jsonl`, which also has the `time` in seconds since 1970. Files are named from the run directory on, which may be moved.
#[derive(Clone, Debug, PartialEq, Serialize)]
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
        passed_over: Vec<String>,
        /// The command of this session.
        command: Vec<String>,
        /// The machine of this session.
        machine: serde_json::Value,
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
}

impl Event {
    /// Read `events.jsonl` of a run directory, which may be growing. Damaged lines are left out; the second says which.
    pub fn read(run: impl AsRef<Path>) -> Result<(Vec<Value>, Option<Error>)> {
        lines::read(&run.as_ref().join("events.jsonl"))
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
