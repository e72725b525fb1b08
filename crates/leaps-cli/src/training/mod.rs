//! Training as the program does it: in a run directory, with a bar, limits of time, signals and a sample at the end.

mod display;
mod limit;
mod start;

use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use anyhow::Result;
use leaps::Error;
use leaps::job::{Run, Sampling, Start, Training};
use leaps::problem::Problem;
use leaps::results::WalkerResult;
use leaps::spec::RunSpec;
use leaps::store::{Model, Outcome, Stop};

use crate::app::Context;
use crate::config::{Layers, to_toml_from};
use crate::error::Failure;
pub use display::TrainingProgress;
pub use limit::{deadline, duration};
pub use start::prepare;

/// A training run that is about to start or to go on.
pub struct TrainingSession<'a> {
    pub layers: &'a Layers,
    pub spec: &'a RunSpec,
    pub problem: &'a Problem,
    /// The run directory.
    pub directory: PathBuf,
    /// What the run starts from, if it does not start afresh.
    pub start: Option<Start>,
    /// Pass over damaged checkpoints.
    pub fallback: bool,
    /// Stop at the first chance after this.
    pub until: Option<Instant>,
}

impl TrainingSession<'_> {
    /// Train until all steps are made, on smaller lattices first where that helps; a stop before that is an error with an exit code of its own.
    pub fn train(&self, context: &Context) -> Result<Outcome> {
        let whole = self.directory.display();
        let mut job =
            Training::of(self.spec.clone(), self.problem.clone()).directory(&self.directory);
        job.start = self.start.clone();
        job.fallback = self.fallback;
        job.until = self.until;
        job.command = context.command.clone();
        job.config = Some(config_text(self.layers.clone()));
        context.detail(self.spec.target.formula());
        let signals = context.catch_stops();
        let progress = TrainingProgress::new(context, &self.directory);
        let outcome = job.train_in(&context.job(&progress), &progress);
        drop(progress);
        if matches!(outcome, Err(Error::Interrupted)) {
            let text = |by: &str| {
                format!(
                    "stopped by {by} before the reference walkers were ready: there is nothing to keep, and \
                     'leaps train --out {whole}' starts again; a smaller --pool is ready earlier"
                )
            };
            if !signals.caught() {
                return Err(Failure::Stopped(text("the time limit")).into());
            }
            return Err(signals.failure(text(signals.name())));
        }
        let outcome = outcome.map_err(|error| match error {
            Error::Corrupt { path, what, reason } if !self.fallback => {
                let reason = format!("{reason}; --fallback goes on from an older checkpoint");
                Error::Corrupt { path, what, reason }
            }
            other => self.layers.explain(other),
        })?;
        let checkpoint = outcome.checkpoint.display();
        let go_on = format!("continue with 'leaps train --out {whole}'");
        let text = |by: &str| {
            format!("stopped by {by} after step {}, kept in {checkpoint}; {go_on}", outcome.step)
        };
        match outcome.stop {
            Stop::Finished => Ok(outcome),
            Stop::TimeLimit => Err(Failure::Stopped(text("the time limit")).into()),
            Stop::Interrupted => Err(signals.failure(text(signals.name()))),
        }
    }

    /// Sample with the trained network and leave `results.json` in the run directory.
    pub fn sample(&self, context: &Context) -> Result<Run<WalkerResult>> {
        let signals = context.catch_stops();
        let model = Model::load(&self.directory)?;
        let progress = context.progress("sample").until(self.until);
        let name = self.directory.display().to_string();
        let job = Sampling::of(self.spec, self.problem.clone(), model, &name);
        let done = job.run_in(&context.job(&progress));
        drop(progress);
        let late = self.until.is_some_and(|until| Instant::now() >= until);
        let text = |by: &str| {
            format!(
                "training is finished, but {by} came before the sample was; 'leaps train --out {name}' takes it"
            )
        };
        let run = match done {
            Err(Error::Interrupted) if late && !signals.caught() => {
                return Err(Failure::Stopped(text("the time limit")).into());
            }
            Err(Error::Interrupted) => return Err(signals.failure(text(signals.name()))),
            done => done.map_err(|error| self.layers.explain(error))?,
        };
        let record = context.record(self.problem, &run.computed, &run.result);
        let text = serde_json::to_string_pretty(&record)? + "\n";
        leaps::store::write_file(self.directory.join("results.json"), text.as_bytes())?;
        Ok(run)
    }
}

/// The text of `config.toml`, which names copies of files and says where values came from: as it is there, if it says the same already.
fn config_text(layers: Layers) -> leaps::job::ConfigText {
    Arc::new(move |directory: &Path, spec: &RunSpec, grown: bool| {
        let kept_in =
            |directory: &Path| RunSpec { target: spec.target.kept_in(directory), ..spec.clone() };
        let path = directory.join("config.toml");
        if let Ok(text) = leaps::file::read_text(&path) {
            let mut own = Layers::default();
            let same = own.parse_file(&text, &path).and_then(|()| own.resolve());
            if same.is_ok_and(|same| same == kept_in(directory)) {
                return text;
            }
        }
        let mut layers = layers.clone();
        if grown {
            layers.grown(spec);
        }
        to_toml_from(&kept_in(Path::new("")), &layers)
    })
}

/// Make `runs/a`, or `runs/a-2` and so on if it exists. Whoever makes a directory has it to himself: two that ask at the
/// same moment get two.
pub fn fresh(out: &Path) -> Result<PathBuf> {
    let fail = |path: &Path, source| Error::Io { path: path.into(), source };
    if let Some(parent) = out.parent().filter(|parent| !parent.as_os_str().is_empty()) {
        std::fs::create_dir_all(parent).map_err(|source| fail(parent, source))?;
    }
    let (mut path, mut n) = (out.to_owned(), 2);
    loop {
        match std::fs::create_dir(&path) {
            Ok(()) => return Ok(path),
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {
                let mut name = out.file_name().unwrap_or_default().to_owned();
                name.push(format!("-{n}"));
                path = out.with_file_name(name);
                n += 1;
            }
            Err(error) => return Err(fail(&path, error).into()),
        }
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn fresh_directories_are_never_shared() {
        let scratch = tempfile::tempdir().unwrap();
        let out = scratch.path().join("runs/a");
        let mut made: Vec<_> = std::thread::scope(|scope| {
            let all: Vec<_> = (0..8).map(|_| scope.spawn(|| super::fresh(&out).unwrap())).collect();
            all.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        made.sort();
        made.dedup();
        assert_eq!(made.len(), 8, "{made:?}");
        assert_eq!(made[0], out);
    }
}
