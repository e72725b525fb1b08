//! Train a network in a run directory: validate, keep checkpoints, stop and go on.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use serde::Serialize;
use serde_json::Value;

use super::checkpoint::{Checkpoint, Checkpoints, Standing, Validation};
use super::directory::{RunDirectory, machine, now};
use super::dump;
use super::events::{Event, Metrics, Observer, Stop};
use super::lines::Lines;
use super::setup::Setup;
use crate::device::Watch;
use crate::train::{Progress, Trainer};
use crate::{Error, Result};

/// A training run in a directory.
///
/// ```no_run
/// # fn go(setup: leaps::run::Setup<'_>) -> leaps::Result<()> {
/// use leaps::{device::Unwatched, run::{Stop, TrainingRun}};
/// let outcome = TrainingRun::new("runs/a", setup).run(&Unwatched)?;
/// assert_eq!(outcome.stop, Stop::Finished);
/// # Ok(()) }
/// ```
#[derive(Clone)]
pub struct TrainingRun<'a> {
    /// The run directory: made, or continued if it holds the same run.
    pub directory: PathBuf,
    /// What is trained, and how.
    pub setup: Setup<'a>,
    /// Text of `config.toml`.
    pub config: String,
    /// The command that started the run, for `meta.json`.
    pub command: Vec<String>,
    /// Stop at the first chance after this moment.
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

/// Lines of `metrics.jsonl` in the longest runs, about.
const LINES: u64 = 10_000;

/// A run in progress.
struct Session<'r, 'a> {
    run: &'r TrainingRun<'a>,
    observer: &'r dyn Observer,
    checkpoints: Checkpoints,
    metrics: Lines,
    events: Lines,
    trainer: Trainer<'a>,
    standing: Standing,
    /// The newest checkpoint, if it is of the present step.
    saved: Option<PathBuf>,
    since: Instant,
    before: f64,
}

impl<'a> TrainingRun<'a> {
    /// A run without a limit of time that keeps 3 checkpoints.
    pub fn new(directory: impl Into<PathBuf>, setup: Setup<'a>) -> Self {
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
    /// # Errors
    /// A directory that holds another run; a checkpoint that is damaged; a file that cannot be written; a number that is not
    /// finite, after its batch has been dumped and the roll-backs allowed by
    /// [`TrainSpec::rollbacks`](crate::train::TrainSpec::rollbacks) are used up.
    pub fn run(&self, observer: &dyn Observer) -> Result<Outcome> {
        self.setup.train.check()?;
        let directory = RunDirectory::open(&self.directory)?;
        let mut checkpoints = Checkpoints::of(&self.directory);
        checkpoints.keep = self.keep;
        let found = directory.checkpoint(&checkpoints, &self.setup, self.fallback)?;
        directory.describe(&self.config, &self.command, found.is_none())?;
        let trainer = match &found {
            Some((checkpoint, _)) => checkpoint.resume(&self.setup)?,
            None => self.setup.start()?,
        };
        let mut session = Session {
            run: self,
            observer,
            checkpoints,
            metrics: Lines::open(self.directory.join("metrics.jsonl"))?,
            events: Lines::open(self.directory.join("events.jsonl"))?,
            trainer,
            standing: Standing::default(),
            saved: None,
            since: Instant::now(),
            before: 0.0,
        };
        session.begin(found)?;
        session.train()
    }

    fn late(&self) -> bool {
        self.until.is_some_and(|end| Instant::now() >= end)
    }
}

impl Session<'_, '_> {
    fn begin(&mut self, found: Option<(Checkpoint, Vec<Error>)>) -> Result<()> {
        let (steps, step) = (self.run.setup.train.steps, self.trainer.steps());
        self.observer.total(steps);
        self.observer.advance(step);
        let Some((checkpoint, damaged)) = found else {
            self.metrics.keep(0)?;
            self.event(Event::Started { step, steps })?;
            return self.save();
        };
        let last = self.take_over(&checkpoint)?;
        self.before = last.and_then(|line| line["seconds"].as_f64()).unwrap_or(0.0);
        self.event(Event::Resumed {
            step,
            steps,
            checkpoint: checkpoint.directory,
            passed_over: damaged.iter().map(Error::to_string).collect(),
            command: self.run.command.clone(),
            machine: machine(),
        })
    }

    /// Put files and bookkeeping where they were at a checkpoint; returns the last line of the metrics.
    fn take_over(&mut self, checkpoint: &Checkpoint) -> Result<Option<Value>> {
        self.standing = checkpoint.manifest.standing;
        // One whose validation is due is written again once that is done.
        self.saved = (!self.standing.due).then(|| checkpoint.directory.clone());
        self.metrics.keep(checkpoint.manifest.step)
    }

    fn train(&mut self) -> Result<Outcome> {
        let spec = &self.run.setup.train;
        loop {
            let done = self.advance().and_then(|stop| stop.map(|stop| self.stop(stop)).transpose());
            let failure = match done {
                Ok(Some(outcome)) => return Ok(outcome),
                Ok(None) => continue,
                Err(error @ (Error::NonFinite { .. } | Error::Weights(_))) => error,
                Err(other) => return Err(other),
            };
            let step = self.trainer.steps();
            let dump = dump::write(&self.run.directory, &self.run.setup, &self.trainer, &failure)?;
            let error = failure.to_string();
            // The factor is a power of 1/2 and so counts roll-backs.
            if -self.trainer.rate_factor.log2() >= f64::from(spec.rollbacks) {
                self.event(Event::Failed { step, error, dump })?;
                return Err(failure);
            }
            let rate_factor = 0.5 * self.trainer.rate_factor;
            let Some(good) = self.checkpoints.regular(step, spec.checkpoint_every)? else {
                return Err(failure); // somebody removed them all
            };
            let checkpoint = Checkpoint::load(good)?;
            self.trainer = checkpoint.resume(&self.run.setup)?;
            self.trainer.rate_factor = rate_factor;
            self.take_over(&checkpoint)?;
            let to = self.trainer.steps();
            self.event(Event::RolledBack { step, to, rate_factor, error, dump })?;
        }
    }

    /// Do what is to be done after a step, and the next step; says whether to stop instead.
    fn advance(&mut self) -> Result<Option<Stop>> {
        let spec = &self.run.setup.train;
        if self.standing.due {
            match self.validate() {
                Err(Error::Interrupted) => return Ok(Some(self.reason())),
                done => done?,
            }
        }
        let step = self.trainer.steps();
        if step.is_multiple_of(spec.checkpoint_every) && self.saved.is_none() {
            self.save()?;
        }
        if step >= spec.steps {
            return Ok(Some(Stop::Finished));
        }
        if self.observer.stopped() || self.run.late() {
            return Ok(Some(self.reason()));
        }
        let progress = self.trainer.step()?;
        self.saved = None;
        let (step, every) = (progress.step, spec.validate_every);
        let due = every > 0 && (step.is_multiple_of(every) || step == spec.steps);
        self.standing = Standing { last: Some(progress), due, ..self.standing };
        if !due {
            self.measure(&progress, None)?;
        }
        self.observer.advance(1);
        Ok(None)
    }

    fn reason(&self) -> Stop {
        if self.observer.stopped() { Stop::Interrupted } else { Stop::TimeLimit }
    }

    fn validate(&mut self) -> Result<()> {
        let spec = &self.run.setup.train;
        let bounded = Bounded { observer: self.observer, run: self.run };
        let ensemble =
            self.trainer.validate(spec.validate_walkers, spec.validate_intervals, &bounded)?;
        let step = self.trainer.steps();
        let validation = Validation { step, ess: ensemble.weights.ess(), log_z: ensemble.log_z() };
        self.standing = Standing { validation: Some(validation), due: false, ..self.standing };
        if let Some(last) = self.standing.last {
            self.measure(&last, Some(&validation))?;
        }
        self.event(Event::Validated(validation))
    }

    fn measure(&mut self, progress: &Progress, validation: Option<&Validation>) -> Result<()> {
        let (step, steps) = (progress.step, self.run.setup.train.steps);
        let metrics = Metrics {
            progress: *progress,
            seconds: self.seconds(),
            ess: validation.map(|v| v.ess),
            log_z: validation.map(|v| v.log_z),
        };
        let every = steps.div_ceil(LINES);
        if validation.is_some() || step == 1 || step == steps || step.is_multiple_of(every) {
            self.metrics.append(&metrics)?;
        }
        self.observer.measured(&metrics);
        Ok(())
    }

    /// Write a checkpoint of the present step.
    fn save(&mut self) -> Result<()> {
        dump::check_parameters(&self.run.setup, &self.trainer)?;
        // A checkpoint promises the lines up to its step.
        self.metrics.sync()?;
        let written = self.checkpoints.write(&self.run.setup, &self.trainer, &self.standing)?;
        self.saved = Some(written.clone());
        self.event(Event::Checkpointed { step: self.trainer.steps(), checkpoint: written })
    }

    fn stop(&mut self, reason: Stop) -> Result<Outcome> {
        if self.saved.is_none() {
            self.save()?;
        }
        let step = self.trainer.steps();
        self.event(Event::Stopped { step, reason })?;
        self.events.sync()?;
        Ok(Outcome {
            stop: reason,
            step,
            standing: self.standing,
            checkpoint: self.saved.clone().unwrap_or_default(),
            seconds: self.seconds(),
        })
    }

    fn event(&mut self, event: Event) -> Result<()> {
        #[derive(Serialize)]
        struct Line<'e> {
            time: f64,
            #[serde(flatten)]
            event: &'e Event,
        }
        self.events.append(&Line { time: now(), event: &event })?;
        self.observer.happened(&event);
        Ok(())
    }

    fn seconds(&self) -> f64 {
        self.before + self.since.elapsed().as_secs_f64()
    }
}

/// Stops a validation when the run should stop, without counting its steps as the run's.
struct Bounded<'r> {
    observer: &'r dyn Observer,
    run: &'r TrainingRun<'r>,
}

impl Watch for Bounded<'_> {
    fn stopped(&self) -> bool {
        self.observer.stopped() || self.run.late()
    }
}
