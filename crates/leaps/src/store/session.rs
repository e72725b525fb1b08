//! A training run step by step, with files such that it can go on after any of them.

use std::path::PathBuf;
use std::time::Instant;

use super::checkpoint::{Checkpoint, Checkpoints, Standing, Validation};
use super::directory::{RunDirectory, now};
use super::dump;
use super::events::{Event, Metrics, Observer, Stop, TimedEvent};
use super::lines::Lines;
use super::meta::Machine;
use super::snapshot::Snapshot;
use super::tensorboard::Tensorboard;
use super::training::{Outcome, TrainingRun};
use crate::device::Progress;
use crate::train::{StepMetrics, Trainer};
use crate::{Error, Result};

/// Lines of `metrics.jsonl` in the longest runs, about.
const LINES: u64 = 10_000;

/// The files of a run.
pub(crate) struct Files<'r> {
    pub(crate) directory: &'r RunDirectory,
    pub(crate) checkpoints: Checkpoints,
}

/// A run in progress.
pub(crate) struct Session<'r> {
    run: &'r TrainingRun,
    files: Files<'r>,
    observer: &'r dyn Observer,
    metrics: Lines,
    events: Lines,
    board: Option<Tensorboard>,
    trainer: Trainer,
    standing: Standing,
    /// The newest checkpoint, if it is of the present step.
    saved: Option<PathBuf>,
    since: Instant,
    before: f64,
}

impl<'r> Session<'r> {
    /// Start, or go on from the checkpoint that was found and from which `trainer` was made.
    pub(crate) fn begin(
        run: &'r TrainingRun,
        files: Files<'r>,
        trainer: Trainer,
        found: Option<(Checkpoint, Vec<Error>)>,
        observer: &'r dyn Observer,
    ) -> Result<Self> {
        let (steps, step) = (run.setup.train.steps, trainer.steps());
        let mut session = Session {
            run,
            files,
            observer,
            metrics: Lines::open(run.directory.join("metrics.jsonl"))?,
            events: Lines::open(run.directory.join("events.jsonl"))?,
            board: None,
            trainer,
            standing: Standing::default(),
            saved: None,
            since: Instant::now(),
            before: 0.0,
        };
        observer.total(steps);
        observer.advance(step);
        let Some((checkpoint, damaged)) = found else {
            session.metrics.keep::<Metrics>(0)?;
            session.begin_board()?;
            session.event(Event::Started { step, steps })?;
            session.save()?;
            return Ok(session);
        };
        let last = session.take_over(&checkpoint)?;
        session.before = last.map_or(0.0, |line| line.seconds);
        session.event(Event::Resumed {
            step,
            steps,
            checkpoint: run.relative(&checkpoint.directory),
            passed_over: damaged.iter().map(Error::to_string).collect(),
            command: run.command.clone(),
            machine: Machine::own(),
        })?;
        Ok(session)
    }

    /// Put files and bookkeeping where they were at a checkpoint; returns the last line of the metrics.
    fn take_over(&mut self, checkpoint: &Checkpoint) -> Result<Option<Metrics>> {
        self.standing = checkpoint.manifest.standing;
        // One whose validation is due is written again once that is done.
        self.saved = (!self.standing.due).then(|| checkpoint.directory.clone());
        let last = self.metrics.keep(checkpoint.manifest.step)?;
        self.begin_board()?;
        Ok(last)
    }

    /// Begin a file for TensorBoard with the metrics up to here, if it is asked for.
    fn begin_board(&mut self) -> Result<()> {
        if self.run.setup.train.tensorboard {
            let (lines, _) = Metrics::read(&self.run.directory)?;
            self.board = Some(Tensorboard::begin(&self.run.directory, &lines)?);
        }
        Ok(())
    }

    /// Train until there is a reason to stop.
    pub(crate) fn train(&mut self) -> Result<Outcome> {
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
            self.trainer.sync()?;
            let dump = dump::write(&self.run.directory, &self.run.setup, &self.trainer, &failure)?;
            let dump = self.run.relative(&dump);
            let error = failure.to_string();
            // The factor is a power of 1/2 and so counts roll-backs.
            if -self.trainer.state.rate_factor.log2() >= spec.rollbacks as f64 {
                self.event(Event::Failed { step, error, dump })?;
                return Err(failure);
            }
            let rate_factor = 0.5 * self.trainer.state.rate_factor;
            let Some(good) = self.files.checkpoints.regular(step, spec.checkpoint_every)? else {
                return Err(failure); // somebody removed them all
            };
            let checkpoint = Checkpoint::load(good)?;
            self.trainer = checkpoint.resume(&self.run.setup)?;
            self.trainer.state.rate_factor = rate_factor;
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
        let bounded = Bounded { observer: self.observer, run: self.run };
        let metrics = match self.trainer.step(&bounded) {
            // Nothing of the step is kept.
            Err(Error::Interrupted) => return Ok(Some(self.reason())),
            done => done?,
        };
        self.saved = None;
        let (step, every) = (metrics.step, spec.validate_every);
        let due = every > 0 && (step.is_multiple_of(every) || step == spec.steps);
        self.standing = Standing { last: Some(metrics), due, ..self.standing };
        if !due {
            self.measure(&metrics, None)?;
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
        if let Some(state) = Snapshot::of(&*self.run.setup.target, &ensemble.states, step) {
            state.write(&self.run.directory)?;
        }
        let validation = Validation { step, ess: ensemble.weights.ess(), log_z: ensemble.log_z() };
        self.standing = Standing { validation: Some(validation), due: false, ..self.standing };
        if let Some(last) = self.standing.last {
            self.measure(&last, Some(&validation))?;
        }
        self.event(Event::Validated(validation))
    }

    fn measure(&mut self, metrics: &StepMetrics, validation: Option<&Validation>) -> Result<()> {
        let (step, steps) = (metrics.step, self.run.setup.train.steps);
        let metrics = Metrics {
            step_metrics: *metrics,
            seconds: self.seconds(),
            ess: validation.map(|v| v.ess),
            log_z: validation.map(|v| v.log_z),
        };
        let every = steps.div_ceil(LINES);
        if validation.is_some() || step == 1 || step == steps || step.is_multiple_of(every) {
            self.metrics.append(&metrics)?;
            if let Some(board) = &mut self.board {
                board.add(&metrics)?;
            }
        }
        self.observer.measured(&metrics);
        Ok(())
    }

    /// Write a checkpoint of the present step.
    fn save(&mut self) -> Result<()> {
        self.files.directory.check()?;
        self.trainer.sync()?;
        dump::check_parameters(&self.run.setup, &self.trainer)?;
        // A checkpoint promises the lines up to its step.
        self.metrics.sync()?;
        let written =
            self.files.checkpoints.write(&self.run.setup, &self.trainer, &self.standing)?;
        let checkpoint = self.run.relative(&written);
        self.saved = Some(written);
        self.event(Event::Checkpointed { step: self.trainer.steps(), checkpoint })
    }

    fn stop(&mut self, reason: Stop) -> Result<Outcome> {
        match self.saved {
            Some(_) => self.files.directory.check()?,
            None => self.save()?,
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
        let line = TimedEvent { time: now(), event };
        self.events.append(&line)?;
        self.observer.happened(&line.event);
        Ok(())
    }

    fn seconds(&self) -> f64 {
        self.before + self.since.elapsed().as_secs_f64()
    }
}

/// Stops a part of the run when that should stop, without counting the part's steps as the run's.
pub(crate) struct Bounded<'r> {
    pub(crate) observer: &'r dyn Observer,
    pub(crate) run: &'r TrainingRun,
}

impl Progress for Bounded<'_> {
    fn stopped(&self) -> bool {
        self.observer.stopped() || self.run.late()
    }
}
