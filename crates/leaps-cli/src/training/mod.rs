//! Train a network as a configuration says, in a run directory, and sample with it at the end.

mod display;
mod grow;
mod limit;
mod start;

use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::Result;
use leaps::run::{Model, Outcome, Setup, Stop, TrainingRun};
use leaps::{Error, exact};
use serde_json::Value;

use crate::app::Context;
use crate::config::{Config, Described, Layers, Problem, ScheduleName, to_toml_from};
use crate::error::Failure;
use crate::results::{Origin, Printed, WalkerResult};
use crate::samplers::{Samples, run_flow};
use display::TrainingWatch;

pub use grow::{begun, seconds, sizes, still_there};
pub use limit::{deadline, duration};
pub use start::Start;

/// A training run that is about to start or to go on.
pub struct Training<'a> {
    pub layers: &'a Layers,
    pub config: &'a Config,
    pub problem: &'a Problem,
    /// The run directory.
    pub directory: PathBuf,
    /// The run that this one is a part of, itself if of none: the one that users know of.
    pub whole: PathBuf,
    /// What the run starts from, if it does not start afresh.
    pub start: Option<Start>,
    /// Pass over damaged checkpoints.
    pub fallback: bool,
    /// Stop at the first chance after this moment.
    pub until: Option<Instant>,
}

impl Training<'_> {
    /// Train until all steps are made, on smaller lattices first where that helps; a stop before that is an error with an exit code of its own.
    pub fn train(&self, context: &Context) -> Result<Outcome> {
        self.check()?;
        context.placement_of(self.config.ranges().as_ref())?;
        let Some(start) = self.grown(context)? else {
            return self.train_here(self.start.as_ref(), context);
        };
        self.train_here(Some(&start), context)
    }

    /// Refuse now what would be refused only when training on smaller lattices, or all of it, is done.
    fn check(&self) -> Result<()> {
        let named = |error: Error| self.layers.explain(error);
        let (config, problem) = (self.config, self.problem);
        let members = config.family().map_err(named)?;
        let target = members.as_ref().map_or(&problem.target, |members| &members.target);
        config.net(target).map_err(named)?;
        config.check_reference_memory(target).map_err(named)?;
        config.walkers.stops(&problem.path, problem.beta).map_err(named)?;
        Ok(())
    }

    fn train_here(&self, start: Option<&Start>, context: &Context) -> Result<Outcome> {
        let (config, problem) = (self.config, self.problem);
        if config.path.schedule == ScheduleName::Adaptive {
            let advice = "an adaptive schedule chooses the steps of ais and smc";
            let condition = "linear, trigonometric, geometric or piecewise to train on";
            let error = Error::invalid("path.schedule", "adaptive", condition, advice);
            return Err(self.layers.explain(error).into());
        }
        let named = |error: Error| self.layers.explain(error);
        let members = config.family().map_err(named)?;
        let (target, path) = match &members {
            Some(members) => (&members.target, &members.path),
            None => (&problem.target, &problem.path),
        };
        let net = config.net(target).map_err(named)?;
        let free = config.free(target)?;
        let fit = |model: &Model| model.warm_start(&net, &free, config.seed).map_err(named);
        let (from, warm) = match start {
            Some(start) => start.parameters(fit)?,
            None => (None, None),
        };
        let Described { target: described_target, files } = config.target.described()?;
        let setup = Setup {
            from,
            parameters: warm.as_ref().map(|warm| warm.parameters.clone()),
            target,
            path,
            family: members.as_ref().map(|members| members.family.clone()),
            net: &net,
            free: &free,
            parametrisation: config.network.parametrisation.into(),
            train: config.train.build().map_err(named)?,
            seed: config.seed,
            placement: context.placement_of(config.ranges().as_ref())?,
            described_target,
            files,
            described_path: described(&config.path),
        };
        let (directory, whole) = (self.directory.display(), self.whole.display());
        context.say(format!("{}, seed {}", problem.description, config.seed));
        context.detail(config.formula());
        if let (Some(ranges), Some(members)) = (config.ranges(), &members) {
            let count = members.family.members.len();
            context.say(format!("one network for {}: {count} targets", ranges.describe()));
        }
        let parameters = net.parameters() + free.parameters();
        let precision = match net.precision_on(&setup.placement) {
            Some(precision) => format!(" in {}", precision.name()),
            None => String::new(),
        };
        context.say(format!(
            "{} with {parameters} parameters{precision}, {} steps in {directory}",
            config.network.describe(),
            config.train.steps
        ));
        if let (Some(start), Some(warm)) = (start, &warm) {
            context.say(start.words(warm, config.ranges()));
        }
        let run = TrainingRun {
            config: self.config_text()?,
            command: context.command.clone(),
            until: self.until,
            fallback: self.fallback,
            ..TrainingRun::new(&self.directory, setup)
        };
        let exact = exact::known(&problem.target, problem.path.ends());
        let signals = context.catch_stops();
        let progress = TrainingWatch::new(context, &self.directory, exact.map(|exact| exact.log_z));
        let outcome = run.run(&progress);
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
            other => named(other),
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
    pub fn sample(&self, context: &Context) -> Result<(WalkerResult, Samples)> {
        let signals = context.catch_stops();
        let model = Model::load(&self.directory)?;
        let progress = context.progress("sample").until(self.until);
        let name = self.directory.display().to_string();
        let placement = context.placement_of(model.family.as_ref())?;
        let done = run_flow(self.config, self.problem, &model, &name, &placement, &progress);
        drop(progress);
        let late = self.until.is_some_and(|until| Instant::now() >= until);
        let text = |by: &str| {
            format!(
                "training is finished, but {by} came before the sample was; 'leaps train --out {name}' takes it"
            )
        };
        let (result, samples) = match done {
            Err(Error::Interrupted) if late && !signals.caught() => {
                return Err(Failure::Stopped(text("the time limit")).into());
            }
            Err(Error::Interrupted) => return Err(signals.failure(text(signals.name()))),
            done => done.map_err(|error| self.layers.explain(error))?,
        };
        let origin = Origin::new(context, self.config, self.problem);
        let printed = Printed { origin, result: &result };
        let text = serde_json::to_string_pretty(&printed)? + "\n";
        leaps::run::write_file(self.directory.join("results.json"), text.as_bytes())?;
        Ok((result, samples))
    }

    /// The text of `config.toml`, which names copies of files: as it is there, if it says the same already.
    fn config_text(&self) -> Result<String> {
        let kept_in = |directory: &Path| Config {
            target: self.config.target.kept_in(directory),
            ..self.config.clone()
        };
        let path = self.directory.join("config.toml");
        if let Ok(text) = leaps::file::read_text(&path) {
            let mut layers = Layers::default();
            let same = layers.parse_file(&text, &path).and_then(|()| Config::resolve(&layers));
            if same.is_ok_and(|config| config == kept_in(&self.directory)) {
                return Ok(text);
            }
        }
        Ok(to_toml_from(&kept_in(Path::new("")), self.layers))
    }
}

/// A section as it is written into files, without what is left out.
pub fn described(section: &impl serde::Serialize) -> Value {
    let mut value = serde_json::to_value(section).unwrap_or_default();
    if let Some(entries) = value.as_object_mut() {
        entries.retain(|_, value| !value.is_null());
    }
    value
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
