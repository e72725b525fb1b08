//! Training on a smaller lattice first.
//!
//! What a hollow convolution has learnt on a small lattice holds on a large one, where every step costs more: decision 12. A run on a large lattice
//! therefore starts from one on about two thirds of its sides, kept in `start/` of the run's directory, which may start from a smaller one in the same
//! way. The configuration of the large one determines both.

use std::path::{Path, PathBuf};

use super::{Start, Training};
use crate::job::Context;
use crate::problem::Problem;
use crate::spec::RunSpec;
use crate::store::{self, Checkpoints, Metrics, Observer, START};
use crate::target::Size;
use crate::{Error, Result};

/// The sizes of the smaller lattices that training goes through first, the smallest first.
pub fn sizes(config: &RunSpec) -> Vec<Size> {
    config.smaller_sizes()
}

impl Training {
    /// The same on a smaller lattice, in a part of the run's directory, if that is worth while.
    fn smaller(&self) -> Result<Option<(Size, Training)>> {
        let Some(size) = self.settings.smaller(None) else { return Ok(None) };
        let mut settings = self.settings.clone();
        settings.start.grow = settings.start.grow.and_then(|_| settings.grow_of_smaller(&size));
        settings.target.size = Some(size.clone());
        if let Some(depth) = shallower(&settings, &size) {
            settings.network.depth = Some(depth);
        }
        let settings = settings.resolve()?;
        let problem = Problem::of(&settings.target, &self.problem.path_spec)?;
        let directory = self.directory.as_ref().map(|directory| directory.join(START));
        let smaller = Training {
            problem,
            settings,
            directory,
            grown: true,
            start: None,
            config: self.config.clone(),
            command: self.command.clone(),
            ..*self
        };
        Ok(Some((size, smaller)))
    }

    /// Train on a smaller lattice, if that is worth while: what the run then starts from.
    pub(super) fn grow(&self, context: &Context<'_>, observer: &dyn Observer) -> Result<Grown> {
        let start = &self.settings.start;
        let Some((size, smaller)) = self.smaller()? else {
            let begun = |run: &Path| Checkpoints::of(run).identity().is_some();
            if self.directory.as_deref().is_some_and(begun) {
                return Ok(Grown::Start(self.start.clone().map(Box::new)));
            }
            let first = self.directory.as_ref().map(|directory| directory.join(START));
            if start.from.is_none() && first.as_deref().is_some_and(begun) {
                let given = start.grow.map_or("(left out)".to_owned(), |grow| grow.to_string());
                let condition = "as it was: the run has begun on a smaller lattice";
                let advice = "use the settings that it was begun with, or give a new name";
                return Err(Error::invalid("train.grow", given, condition, advice));
            }
            if start.grow == Some(true) {
                self.settings.smaller_as_asked(None)?;
            }
            return Ok(Grown::Start(self.start.clone().map(Box::new)));
        };
        let Some(directory) = &self.directory else {
            observer.note(&format!("first on a lattice of {size}"));
            let trained = smaller.in_memory(context, observer)?;
            if trained.interrupted {
                return Err(Error::Interrupted);
            }
            return Ok(Grown::Start(Some(Box::new(Start::model(START, trained.model)))));
        };
        if let Some(begun) = Checkpoints::of(directory).identity() {
            // A run that goes on knows what it started from; one that `train.from` started is another run.
            let from = begun.from.filter(|from| from.name == START);
            let start = from.map(Start::begun).or_else(|| self.start.clone());
            return Ok(Grown::Start(start.map(Box::new)));
        }
        let part = directory.join(START);
        let fail = |source| Error::Io { path: directory.clone(), source };
        std::fs::create_dir_all(directory).map_err(fail)?;
        store::check_directory(directory)?;
        // What was begun is not to be overwritten by settings that may be refused.
        if Checkpoints::of(&part).identity().is_none() {
            store::write_file(
                directory.join("config.toml"),
                self.config_text(directory).as_bytes(),
            )?;
        }
        observer.note(&format!("first on a lattice of {size} (train.grow = false goes without)"));
        let outcome = smaller.train_in(context, observer).map_err(|error| match error {
            Error::Invalid { key, value, condition, advice } => {
                let what = format!("{key} = {value}: must be {condition}; {advice}");
                let condition = "a run with these settings";
                let advice = format!(
                    "its first part, on {size} in {START}, says {what}; or give a new name"
                );
                Error::invalid("out", directory.display(), condition, advice)
            }
            other => other,
        })?;
        match outcome.stop {
            store::Stop::Finished => Ok(Grown::Start(Some(Box::new(Start::part(&part)?)))),
            _ => Ok(Grown::Stopped(outcome)),
        }
    }
}

/// What came of training on a smaller lattice first.
#[allow(clippy::large_enum_variant)] // there is one of them in a run
pub(super) enum Grown {
    /// The run starts from this.
    Start(Option<Box<Start>>),
    /// There was a reason to stop before.
    Stopped(store::Outcome),
}

/// The depth that fits a smaller lattice, if the one that was asked for does not.
fn shallower(config: &RunSpec, Size(sides): &Size) -> Option<usize> {
    let reach = config.network.rows.unwrap_or(3).saturating_sub(1).max(1);
    let deepest = sides.iter().min()?.saturating_sub(2) / reach;
    (config.network.depth? > deepest).then_some(deepest)
}

/// Seconds of training, on smaller lattices too.
pub fn seconds(run: &Path) -> Option<f64> {
    let last = Metrics::read(run).ok()?.0.last()?.seconds;
    let from = Checkpoints::of(run).identity().and_then(|begun| begun.from);
    let grown = from.is_some_and(|from| from.name == START);
    let before = grown.then(|| seconds(&run.join(START))).flatten();
    Some(last + before.unwrap_or(0.0))
}

/// Refuse a run that went away while its files were read: what was missing by then was taken for never having been.
pub fn still_there(run: &Path) -> Result<()> {
    let gone = |source| Error::Io { path: run.into(), source };
    std::fs::metadata(run).map(drop).map_err(gone)
}

/// The run, or the one on a smaller lattice that it is about to start from.
pub fn begun(run: &Path) -> Option<PathBuf> {
    if run.join("events.jsonl").exists() {
        return Some(run.to_owned());
    }
    let part = run.join(START);
    if part.is_dir() { begun(&part) } else { None }
}
