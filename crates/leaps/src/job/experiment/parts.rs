//! The samplers of an experiment, run one by one; what each found is kept, so that nothing is done twice.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde_json::{Map, Value, json};
use toml::Table;

use super::networks::{PreparedNetwork, slug};
use super::part_files;
use super::spec::{Experiment, RunEntry};
use super::{Part, Places, RunParts, labelled};
use crate::device::NoProgress;
use crate::job::measured::{bins, energies};
use crate::job::{Context, Monitor, NamedSampler, Run, SamplerEntry, check_memory};
use crate::observe::{Families, Histogram, Layout, LogWeights, WeightedSamples};
use crate::results::{HistogramResult, Laws, PartFound, PartResult, SamplerResult};
use crate::spec::{RunSpec, unknown};
use crate::store::NpzWriter;
use crate::{Error, Result};

/// The key that is varied with its value, and the settings of a part.
type Setting<'a> = (Option<(&'a str, toml::Value)>, Table);

impl RunEntry {
    /// The settings of its parts, with the value of the key that is varied.
    pub(super) fn entries(&self) -> Vec<Setting<'_>> {
        let Some((key, values)) = self.over.iter().next() else {
            return vec![(None, self.settings.clone())];
        };
        let with = |value: &toml::Value| {
            let mut settings = self.settings.clone();
            settings.insert(key.clone(), value.clone());
            (Some((key.as_str(), value.clone())), settings)
        };
        values.iter().map(with).collect()
    }
}

impl Experiment {
    /// How many parts its runs have.
    pub(super) fn parts(&self) -> usize {
        self.runs.iter().map(|run| run.entries().len()).sum()
    }

    /// A name with that of the target before it, where there are several.
    pub(super) fn label(&self, name: &str) -> String {
        labelled(&self.heading, name)
    }

    /// Refuse settings of networks and runs that would fail later, when much is done already.
    pub(super) fn check_settings(&self) -> Result<()> {
        let named = |error: Error| error.within(&self.file());
        // A network may start from one that is trained first; that is only known then.
        for entry in self.networks.iter().filter(|entry| !entry.train.contains_key("from")) {
            let spec = self.training(entry)?.resolve().map_err(named)?;
            spec.problem().map_err(named)?;
        }
        let shared = self.spec()?;
        let mut files = BTreeMap::new();
        for run in &self.runs {
            for (varied, table) in run.entries() {
                self.check_entry(&shared, run, table)?;
                let label = self.label(&label(run, varied.as_ref()));
                let name = slug(&label);
                let wrong = |text: &str| Error::Experiment {
                    path: self.file().into(),
                    reason: format!("run '{label}': {text}"),
                };
                if name.is_empty() {
                    return Err(wrong("name: must have a letter or a digit"));
                }
                if let Some(other) = files.insert(name, label.clone()) {
                    let text = format!("must have another file than run '{other}'; rename one");
                    return Err(wrong(&text));
                }
            }
        }
        Ok(())
    }

    /// Check the settings of a part as the part itself does; the model of `sample` may not be there yet.
    fn check_entry(&self, shared: &RunSpec, run: &RunEntry, mut table: Table) -> Result<()> {
        let place = self.place(run);
        let named = |error| self.name_key(error);
        // These the run says itself.
        if let Some(key) = ["sampler", "name", "model"].iter().find(|key| table.contains_key(**key))
        {
            return Err(unknown(&format!("sample.{key}")).within(&place));
        }
        if run.sampler == "sample" {
            let entry = SamplerEntry { place: &place, table, model: None };
            let spec = entry.spec(shared).map_err(named)?;
            let problem = spec.problem().map_err(named)?;
            check_memory(&problem, &spec.walkers, &spec.measure).map_err(named)?;
            let stops = spec.walkers.stops(&problem.path, problem.beta);
            return stops.map(drop).map_err(|error| named(error.within(&place)));
        }
        table.insert("sampler".to_owned(), run.sampler.clone().into());
        let entry = SamplerEntry { place: &place, table, model: None };
        entry.job(shared, &|_| false).map(drop).map_err(named)
    }

    /// What errors call a run.
    fn place(&self, run: &RunEntry) -> String {
        format!("{}: run '{}'", self.file(), run.name)
    }

    /// An error of what all runs share with the name of the file.
    fn name_key(&self, error: Error) -> Error {
        match &error {
            Error::Invalid { key, .. } if !key.contains(':') => error.within(&self.file()),
            _ => error,
        }
    }
}

/// What a part is called.
fn label(run: &RunEntry, varied: Option<&(&str, toml::Value)>) -> String {
    match varied {
        Some((key, value)) => format!("{}, {key} {value}", run.name),
        None => run.name.clone(),
    }
}

/// Where parts are kept and what they share.
pub(super) struct PartRunner<'a> {
    pub experiment: &'a Experiment,
    pub networks: &'a [PreparedNetwork],
    pub places: &'a Places,
    /// The folder of the parts.
    pub folder: PathBuf,
    pub context: &'a Context<'a>,
    pub monitor: &'a dyn Monitor,
}

impl PartRunner<'_> {
    /// Run what was not run before; the reference, if there is one, first. `done` parts come before, out of `all`.
    pub fn run(&self, done: usize, all: usize) -> Result<Vec<RunParts>> {
        let mut order: Vec<&RunEntry> = self.experiment.runs.iter().collect();
        order.sort_by_key(|run| !run.reference);
        let mut finished: Vec<RunParts> = Vec::new();
        let (mut references, mut number) = (Vec::new(), done);
        for run in order {
            let mut parts = Vec::new();
            for (varied, settings) in run.entries() {
                number += 1;
                let at = varied.as_ref().and_then(|(_, value)| as_number(value));
                let label = self.experiment.label(&label(run, varied.as_ref()));
                let place = format!("[{number}/{all}] {label}");
                let kept = self.part(run, &label, settings, references.first(), &place)?;
                let label = match &kept.absent {
                    Some(reason) => format!("{label}, {reason}"),
                    None => label,
                };
                let (distances, reference) = (BTreeMap::new(), Map::new());
                parts.push(Part { at, label, kept, distances, reference });
            }
            if run.reference {
                references.extend(parts.first().map(|part| part.kept.clone()));
            }
            let Experiment { heading, group, .. } = self.experiment.clone();
            finished.push(RunParts { heading, group, run: run.clone(), parts });
        }
        let place = |run: &RunEntry| self.experiment.runs.iter().position(|r| r.name == run.name);
        finished.sort_by_key(|one| place(&one.run));
        for part in finished.iter_mut().flat_map(|one| &mut one.parts) {
            part.compare(&references);
        }
        Ok(finished)
    }

    /// One part: what was kept if the settings are the same, else a new run.
    fn part(
        &self,
        run: &RunEntry,
        label: &str,
        mut table: Table,
        reference: Option<&PartResult>,
        place: &str,
    ) -> Result<PartResult> {
        let (experiment, monitor) = (self.experiment, self.monitor);
        let network = run
            .network
            .as_ref()
            .and_then(|name| self.networks.iter().find(|network| &network.name == name));
        if run.network.is_some() && network.is_none() {
            monitor.note(&format!("{place}: not trained here"));
            let absent = Some("not trained here".to_owned());
            return Ok(PartResult { name: label.to_owned(), absent, found: None });
        }
        let asked = json!(table);
        table.insert("sampler".to_owned(), run.sampler.clone().into());
        table.insert("name".to_owned(), label.into());
        let shared = experiment.spec()?;
        let errors = experiment.place(run);
        let model = network.map(|network| network.model.clone());
        let entry = SamplerEntry { place: &errors, table: table.clone(), model: model.clone() };
        let named = |error| experiment.name_key(error);
        let job = entry.job(&shared, &|_| false).map_err(named)?;
        let quiet = self.context.watched_by(&NoProgress);
        let placement = job.sampler.placement(&quiet).map_err(named)?;
        let called = job.sampler.computed_on(&placement).map_err(named)?;
        let mut settings = json!({
            "version": env!("CARGO_PKG_VERSION"),
            "seed": job.spec.seed,
            "target": experiment.target,
            "path": experiment.path,
            "sample": experiment.sample,
            "run": asked,
            "sampler": run.sampler,
            "network": network.map(|network| &network.facts.checksum),
            "device": called,
            "reference": reference.and_then(|part| Some(&part.found.as_ref()?.settings["run"])),
        });
        // The files of a target may change under their names.
        if let Some(files) = job.sampler.problem().described.checksums() {
            settings["files"] = files;
        }
        let file = self.folder.join(format!("{}.json", slug(label)));
        let old = if self.places.fresh { None } else { self.kept(&file) };
        let same = |old: &PartResult| {
            let Some(found) = &old.found else { return false };
            let mut settings = settings.clone();
            if self.places.done_only {
                settings["device"].clone_from(&found.settings["device"]);
            }
            says_the_same(&found.settings, &settings)
        };
        if let Some(old) = old.filter(same) {
            monitor.note(&format!("{place}: done before"));
            return Ok(old);
        }
        if self.places.done_only {
            monitor.note(&format!("{place}: not run"));
            let absent = Some("not run".to_owned());
            return Ok(PartResult { name: label.to_owned(), absent, found: None });
        }
        monitor.note(place);
        if placement.name() != "cpu" {
            // Kernels are compiled for a GPU when they are first used, which is no part of the time of this run.
            let few = match run.sampler.as_str() {
                "mcmc" => [("chains", 64), ("steps", 100), ("burn_in", 0), ("thin", 1)].as_slice(),
                _ => &[("walkers", 256), ("intervals", 4)],
            };
            table.extend(few.iter().map(|&(key, n)| (key.to_owned(), n.into())));
            let few = SamplerEntry { place: &errors, table, model };
            let few = few.job(&shared, &|_| false).map_err(named)?;
            let progress = monitor.progress("kernels");
            few.sampler.run_whole(&self.context.watched_by(&*progress))?;
        }
        let laws_wanted = experiment.runs.iter().any(|run| run.reference);
        let found = self.sample(&job, label, laws_wanted || run.keep).map_err(named)?;
        let histograms = match laws_wanted {
            true => Some(laws(&job, &found, reference)?),
            false => None,
        };
        let samples = found.samples;
        let result = without_places(found.result);
        let found = PartFound { settings, device: called, result, histograms };
        let part = PartResult { name: label.to_owned(), absent: None, found: Some(found) };
        let (written, times) = part_files::split(&part)?;
        if run.keep {
            let name = format!("{}-{}.npz", experiment.name, slug(label));
            let mut file = NpzWriter::create(self.places.out.join(name))?;
            samples.write(&mut file, &*job.sampler.problem().target, &written)?;
            file.finish()?;
        }
        part_files::write(&file, &written, &times)?;
        Ok(part)
    }

    fn sample(&self, job: &NamedSampler, label: &str, keep: bool) -> Result<Run<SamplerResult>> {
        let mut sampler = job.sampler.clone();
        sampler.keep(keep);
        let progress = self.monitor.progress(label);
        let found = sampler.run_whole(&self.context.watched_by(&*progress))?;
        drop(progress);
        self.monitor.found(label, &found.result);
        Ok(found)
    }

    /// What is kept in a file; a damaged one is as good as none, and is warned about.
    fn kept(&self, file: &Path) -> Option<PartResult> {
        if !file.exists() {
            return None;
        }
        let found = part_files::read(file);
        if let Err(reason) = &found {
            let shown = file.display();
            self.monitor.warn(&format!("{shown}: {reason}; this part is run again"));
        }
        found.ok()
    }
}

/// Pictures are no part of an experiment, nor is the place of a model.
fn without_places(mut result: SamplerResult) -> SamplerResult {
    if let SamplerResult::Walkers(result) = &mut result {
        (result.snapshots, result.model) = (None, None);
    }
    result
}

/// Whether two descriptions say the same once they are text, as on the disk.
fn says_the_same(old: &Value, new: &Value) -> bool {
    serde_json::from_str::<Value>(&new.to_string()).is_ok_and(|new| *old == new)
}

fn as_number(value: &toml::Value) -> Option<f64> {
    value.as_float().or_else(|| value.as_integer().map(|n| n as f64))
}

/// The laws of the observables, in the bins of the reference.
fn laws(
    job: &NamedSampler,
    found: &Run<SamplerResult>,
    reference: Option<&PartResult>,
) -> Result<Laws> {
    let (problem, samples) = (job.sampler.problem(), &found.samples);
    let (target, lambda) = (&*problem.target, problem.path.ends());
    let families = match &found.result {
        SamplerResult::Walkers(_) => Families::separate(samples.log_weights.len()),
        SamplerResult::Chains(result) => samples.by_chain(result.chains),
    };
    let weights = LogWeights::new(samples.log_weights.clone())?;
    let measured = WeightedSamples::new(target, lambda, &samples.states, &weights, &families)?;
    let shared = reference.and_then(PartResult::laws);
    let law = |values: Vec<f64>, shared: Option<&HistogramResult>| -> Result<HistogramResult> {
        let bins = match shared.and_then(HistogramResult::histogram) {
            Some(shared) => shared.bins,
            None => bins(&values)?,
        };
        let law = Histogram::new(bins, &values, weights.relative(), &families);
        Ok(HistogramResult::new(&law))
    };
    Ok(Laws {
        energy_per_site: law(energies(&measured), shared.map(|laws| &laws.energy_per_site))?,
        magnetization: law(measured.column(Layout::M), shared.map(|laws| &laws.magnetization))?,
        abs_magnetization: law(
            measured.column(Layout::ABS_M),
            shared.map(|laws| &laws.abs_magnetization),
        )?,
    })
}

impl Part {
    /// Put the distances from the laws of the reference beside the part, and energy and log Z of references, for where nothing exact is
    /// known.
    fn compare(&mut self, references: &[PartResult]) {
        if let Some(first) = references.first().filter(|first| first.name != self.kept.name)
            && let Some((own, other)) = self.kept.laws().zip(first.laws())
        {
            self.distances = own.distances(other).into_iter().collect();
        }
        if references.iter().any(|reference| reference.name == self.kept.name) {
            return;
        }
        let results = || references.iter().filter_map(PartResult::result);
        let energy = results().next().map(|result| match result {
            SamplerResult::Walkers(result) => json!(result.observables.energy_per_site),
            SamplerResult::Chains(result) => json!(result.observables.energy_per_site),
        });
        let log_z = results().find_map(|result| match result {
            SamplerResult::Walkers(result) => Some(json!(result.log_z)),
            SamplerResult::Chains(_) => None,
        });
        self.reference.extend(energy.map(|value| ("energy_per_site".to_owned(), value)));
        self.reference.extend(log_z.map(|value| ("log_z".to_owned(), value)));
    }
}

impl Part {
    /// The part as it stands among the raw numbers of an experiment, with the name of its run.
    pub fn numbers(&self, run: &RunEntry) -> Value {
        let mut all = json!(self.kept);
        if let Some(all) = all.as_object_mut() {
            if !self.distances.is_empty() {
                all.insert("distances".to_owned(), json!(self.distances));
            }
            if !self.reference.is_empty() {
                all.insert("reference".to_owned(), Value::Object(self.reference.clone()));
            }
            all.insert("run".to_owned(), run.name.clone().into());
            all.insert("paper".to_owned(), json!(run.paper));
        }
        all
    }
}
