//! Experiments: networks and samplers on one target or several, described in a file, with everything that was found kept on the disk.

mod mistakes;
mod networks;
mod overlay;
mod part_files;
mod parts;
mod shipped;
mod spec;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde_json::{Map, Value};

use super::{Context, Monitor};
use crate::observe::Distance;
use crate::results::PartResult;
use crate::{Error, Result};
use parts::PartRunner;

pub use networks::{NetworkFacts, PreparedNetwork};
pub use shipped::EXPERIMENTS;
pub use spec::{Experiment, FigureEntry, FigureKind, NetworkEntry, RunEntry};

/// Where an experiment is run.
pub struct Places {
    /// The folder of results: parts in a folder below it, kept states beside.
    pub out: PathBuf,
    /// The folder of the networks that are trained; experiments may share it.
    pub networks: PathBuf,
    /// Do again what was done before, but for the training of networks.
    pub fresh: bool,
    /// The command that started it, for the files of networks.
    pub command: Vec<String>,
}

/// A run of an experiment and what its parts found.
#[derive(Clone, Debug)]
pub struct RunParts {
    /// The run.
    pub run: RunEntry,
    /// One part, or one for each value of the key that is varied.
    pub parts: Vec<Part>,
}

/// What one sampler found at one setting, and how it stands beside the reference.
#[derive(Clone, Debug)]
pub struct Part {
    /// The value of the key that is varied.
    pub at: Option<f64>,
    /// What tables and legends call it.
    pub label: String,
    /// What is kept on the disk.
    pub kept: PartResult,
    /// How far its laws are from those of the reference, by observable.
    pub distances: BTreeMap<&'static str, Distance>,
    /// Energy and log Z of the references.
    pub reference: Map<String, Value>,
}

/// Everything that an experiment found.
#[derive(Clone, Debug)]
pub struct ExperimentRun {
    /// The targets in a few words.
    pub target: String,
    /// The networks.
    pub networks: Vec<PreparedNetwork>,
    /// The runs, in the order of the file.
    pub runs: Vec<RunParts>,
}

impl ExperimentRun {
    /// Every part with its run.
    pub fn parts(&self) -> impl Iterator<Item = (&RunEntry, &Part)> {
        self.runs.iter().flat_map(|one| one.parts.iter().map(move |part| (&one.run, part)))
    }
}

impl Experiment {
    /// Do what is not done yet: train networks, run samplers, keep what they find.
    ///
    /// # Errors
    /// Settings that are refused, before anything runs; and [`Error::Interrupted`] after a stop, when finished parts are kept.
    pub fn run_in(
        &self,
        places: &Places,
        context: &Context<'_>,
        monitor: &dyn Monitor,
    ) -> Result<ExperimentRun> {
        for one in self.each() {
            one.check_settings()?;
        }
        let name = &self.name;
        let folder = if self.quick { format!("{name}-quick") } else { name.clone() };
        let folder = places.out.join("parts").join(folder);
        create(&folder)?;
        monitor.note(&format!("{name}: {}", self.title));
        let all = self.each().iter().map(|one| one.networks.len() + one.parts()).sum();
        let (mut ready, mut runs, mut done) = (Vec::new(), Vec::new(), 0);
        let mut targets = Vec::new();
        for one in self.each() {
            let mut networks = Vec::new();
            for entry in &one.networks {
                done += 1;
                let shown = one.label(&entry.name);
                monitor.note(&format!("[{done}/{all}] network {shown}"));
                networks.extend(networks::ready(one, entry, places, context, monitor)?);
            }
            let folder = folder.clone();
            let runner = PartRunner {
                experiment: one,
                networks: &networks,
                places,
                folder,
                context,
                monitor,
            };
            runs.extend(runner.run(done, all)?);
            done += one.parts();
            ready.extend(
                networks
                    .into_iter()
                    .map(|network| PreparedNetwork { name: one.label(&network.name), ..network }),
            );
            targets.push(one.spec()?.resolve()?.problem()?.description);
        }
        context.progress.check()?;
        Ok(ExperimentRun { target: targets.join("; "), networks: ready, runs })
    }
}

fn create(folder: &Path) -> Result<()> {
    let fail = |source| Error::Io { path: folder.into(), source };
    std::fs::create_dir_all(folder).map_err(fail)
}
