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
use crate::results::{Computed, Origin, PartResult, Row};
use crate::{Error, Result};
use parts::PartRunner;

pub use networks::{NetworkFacts, PreparedNetwork};
pub use shipped::EXPERIMENTS;
pub use spec::{Experiment, FigureEntry, FigureKind, Instances, NetworkEntry, RunEntry};

/// Where an experiment is run.
pub struct Places {
    /// The folder of results: parts in a folder below it, kept states beside.
    pub out: PathBuf,
    /// The folder of the networks that are trained; experiments may share it.
    pub networks: PathBuf,
    /// Do again what was done before, but for the training of networks.
    pub fresh: bool,
    /// Do nothing: take what was done before, on whatever device.
    pub done_only: bool,
    /// The command that started it, for the files of networks.
    pub command: Vec<String>,
}

/// A run of an experiment and what its parts found.
#[derive(Clone, Debug)]
pub struct RunParts {
    /// The name of its target, where the file has several, with that of the instance.
    pub heading: String,
    /// The name of its target, which instances share.
    pub group: String,
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
    /// Whether all of it was done before, perhaps on another machine.
    pub done_before: bool,
}

impl ExperimentRun {
    /// Every part with its run.
    pub fn parts(&self) -> impl Iterator<Item = (&RunEntry, &Part)> {
        self.runs.iter().flat_map(|one| one.parts.iter().map(move |part| (&one.run, part)))
    }

    /// The numbers of every part as rows of a table, whose source is the experiment.
    ///
    /// # Errors
    /// Targets of the experiment that cannot be made.
    pub fn rows(&self, experiment: &Experiment) -> Result<Vec<Row>> {
        let mut rows = Vec::new();
        for one in experiment.each() {
            let problem = one.spec()?.resolve()?.problem()?;
            let origin = Origin::new(&problem, &Computed::on_cpu());
            let own = self.runs.iter().filter(|run| run.heading == one.heading);
            for part in own.flat_map(|run| &run.parts) {
                let found = part.kept.result().map(|found| found.rows_as(&part.label, &origin));
                rows.extend(
                    found
                        .into_iter()
                        .flatten()
                        .map(|row| Row { source: Some(experiment.name.clone()), ..row }),
                );
            }
        }
        Ok(rows)
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
        if !places.done_only {
            create(&folder)?;
        }
        monitor.note(&format!("{name}: {}", self.title));
        let all = self.each().iter().map(|one| one.networks.len() + one.parts()).sum();
        let (mut ready, mut runs, mut done) = (Vec::new(), Vec::new(), 0);
        let mut targets: Vec<(String, Option<Instances>)> = Vec::new();
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
            for network in networks {
                let name = labelled(&one.group, &network.name);
                // Instances share theirs.
                if !ready.iter().any(|known: &PreparedNetwork| known.name == name) {
                    ready.push(PreparedNetwork { name, ..network });
                }
            }
            targets.push((one.spec()?.resolve()?.problem()?.description, one.instances));
        }
        context.progress.check()?;
        let found = |one: &RunParts| one.parts.iter().any(|part| part.kept.found.is_some());
        if places.done_only && !runs.iter().any(found) {
            let reason = format!("nothing of it was run in {}", folder.display());
            return Err(Error::Experiment { path: self.file().into(), reason });
        }
        let mut descriptions = Vec::new();
        let mut rest = targets.into_iter();
        while let Some((description, instances)) = rest.next() {
            let Some(instances) = instances else {
                descriptions.push(description);
                continue;
            };
            descriptions.push(format!("{description} and {} more instances", instances.count - 1));
            // The others of the same target.
            rest.by_ref().take(instances.count as usize - 1).for_each(drop);
        }
        Ok(ExperimentRun {
            target: descriptions.join("; "),
            networks: ready,
            runs,
            done_before: places.done_only,
        })
    }
}

/// A name with that of the target before it, where there is one.
fn labelled(target: &str, name: &str) -> String {
    if target.is_empty() { name.to_owned() } else { format!("{target}, {name}") }
}

fn create(folder: &Path) -> Result<()> {
    let fail = |source| Error::Io { path: folder.into(), source };
    std::fs::create_dir_all(folder).map_err(fail)
}
