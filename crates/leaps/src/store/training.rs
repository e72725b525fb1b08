//! Training in a run directory: validation, checkpoints, stops and continuation.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use super::checkpoint::{Checkpoints, Standing};
use super::directory::RunDirectory;
use super::events::{Observer, Stop};
use super::session::{Bounded, Files, Session};
use super::setup::Setup;
use crate::Result;

/// A training run in a directory.
///
/// ```no_run
/// # fn go(setup: leaps::store::Setup) -> leaps::Result<()> {
/// use leaps::{device::NoProgress, store::{Stop, TrainingRun}};
/// let outcome = TrainingRun::new("runs/a", setup).run(&NoProgress)?;
/// assert_eq!(outcome.stop, Stop::Finished);
/// # Ok(()) }
/// ```
#[derive(Clone)]
pub struct TrainingRun {
    /// The run directory: made, or continued if it holds the same run.
    pub directory: PathBuf,
    /// What is trained, and how.
    pub setup: Setup,
    /// Text of `config.toml`.
    pub config: String,
    /// The command that started the run, for `meta.json`.
    pub command: Vec<String>,
    /// Stop at the first chance after this.
    pub until: Option<Instant>,
    /// Pass over damaged checkpoints.
    pub fallback: bool,
    /// Checkpoints to keep.
    pub keep: usize,
}

/// How a run ended; its checkpoint is valid.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    /// Why it stopped.
    pub stop: Stop,
    /// Gradient steps made in all.
    pub step: u64,
    /// The last gradient step and the last validation.
    pub standing: Standing,
    /// The newest checkpoint, which is a model directory too.
    pub checkpoint: PathBuf,
    /// Seconds of training, all sessions together.
    pub seconds: f64,
}

impl TrainingRun {
    /// A run without a limit of time that keeps 3 checkpoints.
    pub fn new(directory: impl Into<PathBuf>, setup: Setup) -> Self {
        TrainingRun {
            directory: directory.into(),
            setup,
            config: String::new(),
            command: Vec::new(),
            until: None,
            fallback: false,
            keep: 3,
        }
    }

    /// Stop at the first chance after `limit` from now.
    pub fn within(mut self, limit: Duration) -> Self {
        self.until = Instant::now().checked_add(limit);
        self
    }

    /// Train until all steps are made, the time is over or `observer` asks for a stop.
    ///
    /// Continuing gives the same bytes as never having stopped: parameters, checkpoints and metrics, but for the seconds.
    ///
    /// A gradient step that is asked to stop is given up, and made again when the run continues.
    ///
    /// # Errors
    /// [`Interrupted`](crate::Error::Interrupted) if there is a reason to stop before the reference states of a new run are ready:
    /// there is nothing to keep yet. A directory that holds another run; a checkpoint that is damaged; a file that cannot be written; a number that is not
    /// finite, after its batch has been dumped and the roll-backs allowed by
    /// [`TrainSpec::rollbacks`](crate::train::TrainSpec::rollbacks) are used up.
    pub fn run(&self, observer: &dyn Observer) -> Result<Outcome> {
        self.setup.train.check()?;
        let directory = RunDirectory::open(&self.directory)?;
        let mut checkpoints = Checkpoints::of(&self.directory);
        checkpoints.keep = self.keep;
        let found = directory.checkpoint(&checkpoints, &self.setup, self.fallback)?;
        let placement = self.setup.net.computed_on(&self.setup.placement);
        directory.keep(&self.setup.files)?;
        directory.describe(&self.config, &self.command, &placement, found.is_none())?;
        let trainer = match &found {
            Some((checkpoint, _)) => checkpoint.resume(&self.setup)?,
            None => self.setup.start(&Bounded { observer, run: self })?,
        };
        let files = Files { directory: &directory, checkpoints };
        Session::begin(self, files, trainer, found, observer)?.train()
    }

    /// A file of the run, named from its directory on.
    pub(crate) fn relative(&self, path: &Path) -> PathBuf {
        path.strip_prefix(&self.directory).unwrap_or(path).to_owned()
    }

    /// Whether the time is over.
    pub(crate) fn late(&self) -> bool {
        self.until.is_some_and(|end| Instant::now() >= end)
    }
}
