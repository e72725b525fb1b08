//! Run the samplers of an experiment one by one, and keep what each found so that nothing is done twice.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::Result;
use leaps::Error;
use leaps::observe::LogWeights;
use leaps::observe::{Bins, Distance, Estimate, Families, Histogram, Layout, WeightedSamples};
use leaps::store::NpzWriter;
use serde_json::{Map, Value, json};
use toml::Table;

use super::kept;
use super::networks::{PreparedNetwork, slug};
use super::spec::{Experiment, RunEntry};
use crate::app::Context;
use crate::config::Layers;
use crate::error::{Failure, usage};
use crate::samples;
use crate::timings;
use crate::verbs::compare::{Job, doubts};
use leaps::job::{self, Run, bins, energies};
use leaps::results::{HistogramResult, SamplerResult};

/// The observables whose laws are compared.
const OBSERVABLES: [&str; 3] = ["energy_per_site", "magnetization", "abs_magnetization"];

/// What one sampler found at one setting.
#[derive(Clone, Debug)]
pub struct Part {
    /// The value of the key that is varied.
    pub at: Option<f64>,
    pub label: String,
    /// What is kept on the disk: `settings`, `result`, `histograms`, `placement`; or why there is nothing, `absent`.
    pub kept: Value,
}

impl RunEntry {
    /// The settings of its parts, with the value of the key that is varied.
    pub fn entries(&self) -> Vec<(Option<(&str, toml::Value)>, Table)> {
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

/// How many parts the runs of an experiment have.
pub fn count(experiment: &Experiment) -> usize {
    experiment.runs.iter().map(|run| run.entries().len()).sum()
}

impl Experiment {
    /// A name with that of the target before it, where there are several.
    pub fn label(&self, name: &str) -> String {
        if self.heading.is_empty() { name.to_owned() } else { format!("{}, {name}", self.heading) }
    }

    /// Refuse settings of networks and runs that would fail later, when much is done already.
    pub fn check_settings(&self) -> Result<()> {
        // A network may start from one that is trained first; that is only known then.
        for entry in self.networks.iter().filter(|entry| !entry.train.contains_key("from")) {
            let layers = self.training(entry)?;
            layers.problem(&layers.resolve()?)?;
        }
        let layers = self.layers()?;
        let mut files = BTreeMap::new();
        for (number, run) in (1..).zip(&self.runs) {
            for (varied, entry) in run.entries() {
                check_entry(&layers, number, run, entry)
                    .map_err(|error| self.name_run(error, number, &run.name))?;
                let label = self.label(&label(run, varied.as_ref()));
                let name = slug(&label);
                let wrong = |text| usage(format!("{}.toml: run '{label}': {text}", self.name));
                if name.is_empty() {
                    return Err(wrong("name: must have a letter or a digit".to_owned()));
                }
                if let Some(other) = files.insert(name, label.clone()) {
                    let text = format!("must have another file than run '{other}'; rename one");
                    return Err(wrong(text));
                }
            }
        }
        Ok(())
    }

    /// Name a run of the experiment's file in an error, which knows entries of `[[compare]]` only.
    fn name_run(&self, error: anyhow::Error, number: usize, run: &str) -> anyhow::Error {
        let entry = format!("compare entry {number}:");
        let rename =
            |text: &str| text.replace(&entry, &format!("{}.toml: run '{run}':", self.name));
        if let Some(Failure::Usage(text)) = error.downcast_ref() {
            return usage(rename(text));
        }
        match error.downcast() {
            Ok(Error::Invalid { key, value, condition, advice }) => {
                Error::Invalid { key: rename(&key), value, condition, advice }.into()
            }
            Ok(other) => other.into(),
            Err(error) => error,
        }
    }
}

/// Check the settings of a part as the part itself does; the model of `sample` may not be there yet.
fn check_entry(layers: &Layers, number: usize, run: &RunEntry, mut entry: Table) -> Result<()> {
    let own = layers.with_comparison(number, &entry)?;
    if run.sampler == "sample" {
        let config = own.resolve()?;
        let problem = own.problem(&config)?;
        job::check_memory(&problem, &config.walkers).map_err(|error| own.explain(error))?;
        let stops = config.walkers.stops(&problem.path, problem.beta);
        stops.map_err(|error| own.explain(error))?;
    } else {
        entry.insert("sampler".to_owned(), run.sampler.clone().into());
        Job::new(layers, number, entry)?;
    }
    Ok(())
}

/// What a part is called.
fn label(run: &RunEntry, varied: Option<&(&str, toml::Value)>) -> String {
    match varied {
        Some((key, value)) => format!("{}, {key} {value}", run.name),
        None => run.name.clone(),
    }
}

/// Where parts are kept and what they share.
pub struct PartRunner<'a> {
    pub experiment: &'a Experiment,
    pub networks: &'a [PreparedNetwork],
    /// The folder of the page, and that of the parts.
    pub out: &'a Path,
    pub folder: PathBuf,
    pub context: &'a Context,
    /// Do again what was done.
    pub fresh: bool,
}

impl PartRunner<'_> {
    /// Run what was not run before; the reference, if there is one, first. `done` parts come before, out of `all`.
    pub fn run(&self, done: usize, all: usize) -> Result<Vec<(RunEntry, Vec<Part>)>> {
        let mut order: Vec<&RunEntry> = self.experiment.runs.iter().collect();
        order.sort_by_key(|run| !run.reference);
        let mut finished: Vec<(RunEntry, Vec<Part>)> = Vec::new();
        let (mut references, mut number) = (Vec::new(), done);
        for run in order {
            let mut parts = Vec::new();
            for (varied, settings) in run.entries() {
                number += 1;
                let at = varied.as_ref().and_then(|(_, value)| as_number(value));
                let label = self.experiment.label(&label(run, varied.as_ref()));
                let place = format!("[{number}/{all}] {label}");
                let kept = self.part(run, &label, settings, references.first(), &place)?;
                let label = match kept["absent"].as_str() {
                    Some(reason) => format!("{label}, {reason}"),
                    None => label,
                };
                parts.push(Part { at, label, kept });
            }
            if run.reference {
                references.extend(parts.first().map(|part| part.kept.clone()));
            }
            finished.push((run.clone(), parts));
        }
        let place = |run: &RunEntry| self.experiment.runs.iter().position(|r| r.name == run.name);
        finished.sort_by_key(|(run, _)| place(run));
        for (_, parts) in &mut finished {
            for part in parts {
                compare_laws(&mut part.kept, references.first());
                compare_means(&mut part.kept, &references);
            }
        }
        Ok(finished)
    }

    /// One part: what was kept if the settings are the same, else a new run.
    fn part(
        &self,
        run: &RunEntry,
        label: &str,
        mut entry: Table,
        reference: Option<&Value>,
        place: &str,
    ) -> Result<Value> {
        let network = run
            .network
            .as_ref()
            .and_then(|name| self.networks.iter().find(|network| &network.name == name));
        if run.network.is_some() && network.is_none() {
            self.context.say(format!("{place}: not trained here"));
            return Ok(json!({ "name": label, "absent": "not trained here" }));
        }
        let asked = json!(entry);
        entry.insert("sampler".to_owned(), run.sampler.clone().into());
        entry.insert("name".to_owned(), label.into());
        let model = || network.map(|network| network.model.clone());
        let layers = self.experiment.layers()?;
        let number = self.experiment.runs.iter().position(|r| r.name == run.name).unwrap_or(0) + 1;
        let named = |error| self.experiment.name_run(error, number, &run.name);
        let mut job =
            Job::of(&layers, number, entry.clone(), model(), &|_| false).map_err(named)?;
        let own = job.layers.clone();
        let explained = |error| named(own.explain(error).into());
        let quiet = self.context.progress("");
        let placement = job.sampler.placement(&self.context.job(&quiet)).map_err(&explained)?;
        let called = job.sampler.computed_on(&placement).map_err(&explained)?;
        let mut described = json!({
            "version": env!("CARGO_PKG_VERSION"),
            "seed": job.spec.seed,
            "target": self.experiment.target,
            "path": self.experiment.path,
            "sample": self.experiment.sample,
            "run": asked,
            "sampler": run.sampler,
            "network": network.map(|network| &network.facts["checksum"]),
            "device": called,
            "reference": reference.map(|part| &part["settings"]["run"]),
        });
        // The files of a target may change under their names.
        if let Some(files) = job.sampler.problem().described.checksums() {
            described["files"] = files;
        }
        let file = self.folder.join(format!("{}.json", slug(label)));
        let old = if self.fresh { None } else { self.kept(&file) };
        if let Some(old) = old.filter(|old| same(&old["settings"], &described)) {
            self.context.say(format!("{place}: done before"));
            return Ok(old);
        }
        self.context.say(place);
        if placement.name() != "cpu" {
            // Kernels are compiled for a GPU when they are first used, which is no part of the time of this run.
            entry.extend(
                [("walkers", 256), ("intervals", 4)].map(|(k, n)| (k.to_owned(), n.into())),
            );
            let few = Job::of(&layers, number, entry, model(), &|_| false)?;
            few.sampler.run_in(&self.context.job(&self.context.progress("kernels")))?;
        }
        let progress = self.context.progress(label);
        let laws_wanted = self.experiment.runs.iter().any(|run| run.reference);
        job.sampler.keep(laws_wanted || run.keep);
        let done = job.sampler.run_in(&self.context.job(&progress));
        drop(progress);
        let found = done.map_err(explained)?;
        for doubt in doubts(&found) {
            self.context.say(format!("warning: {label}: {doubt}"));
        }
        let mut result = serde_json::to_value(&found.result)?;
        if let Some(result) = result.as_object_mut() {
            result.remove("snapshots");
            result.remove("model");
        }
        let histograms = match laws_wanted {
            true => laws(&job, &found, reference)?,
            false => Value::Null,
        };
        let times = timings::take(&mut result);
        let mut kept = json!({
            "name": label, "settings": described, "device": called, "result": result, "histograms": histograms,
        });
        if run.keep {
            let name = format!("{}-{}.npz", self.experiment.name, slug(label));
            let file = NpzWriter::create(self.out.join(name))?;
            samples::save(file, &*job.sampler.problem().target, &found.samples, &kept)?;
        }
        kept::write(&file, &kept, &times)?;
        timings::put(&mut kept["result"], &times);
        Ok(kept)
    }

    /// What is kept in a file; a damaged one is as good as none, and is warned about.
    fn kept(&self, file: &Path) -> Option<Value> {
        if !file.exists() {
            return None;
        }
        let found = kept::read(file);
        if let Err(reason) = &found {
            let shown = file.display();
            self.context.say(format!("warning: {shown}: {reason}; this part is run again"));
        }
        found.ok()
    }
}

/// Whether two descriptions say the same once they are text, as on the disk.
fn same(old: &Value, new: &Value) -> bool {
    serde_json::from_str::<Value>(&new.to_string()).is_ok_and(|new| *old == new)
}

fn as_number(value: &toml::Value) -> Option<f64> {
    value.as_float().or_else(|| value.as_integer().map(|n| n as f64))
}

/// The laws of the observables, in the bins of the reference.
fn laws(job: &Job, found: &Run<SamplerResult>, reference: Option<&Value>) -> Result<Value> {
    let (problem, samples) = (job.sampler.problem(), &found.samples);
    let (target, lambda) = (&*problem.target, problem.path.ends());
    let families = match &found.result {
        SamplerResult::Walkers(_) => Families::separate(samples.log_weights.len()),
        SamplerResult::Chains(result) => samples.by_chain(result.chains),
    };
    let weights = LogWeights::new(samples.log_weights.clone())?;
    let measured = WeightedSamples::new(target, lambda, &samples.states, &weights, &families)?;
    let mut all = Map::new();
    for (name, values) in OBSERVABLES.into_iter().zip([
        energies(&measured),
        measured.column(Layout::M),
        measured.column(Layout::ABS_M),
    ]) {
        let bins = match reference.and_then(|part| histogram(&part["histograms"][name])) {
            Some(shared) => shared.bins,
            None => bins(&values)?,
        };
        let law = Histogram::new(bins, &values, weights.relative(), &families);
        all.insert(name.to_owned(), serde_json::to_value(HistogramResult::new(&law))?);
    }
    Ok(Value::Object(all))
}

/// A histogram as it is kept.
pub fn histogram(kept: &Value) -> Option<Histogram> {
    let numbers = |key: &str| -> Option<Vec<f64>> {
        kept[key].as_array()?.iter().map(Value::as_f64).collect()
    };
    let (mass, error) = (numbers("mass")?, numbers("error")?);
    let bins = Bins::new(kept["low"].as_f64()?, kept["high"].as_f64()?, mass.len()).ok()?;
    let mass =
        mass.into_iter().zip(error).map(|(mean, error)| Estimate::new(mean, error)).collect();
    Some(Histogram { bins, mass })
}

/// Put the distances from the laws of the reference beside those of a part.
fn compare_laws(part: &mut Value, reference: Option<&Value>) {
    let mut distances = Map::new();
    for name in OBSERVABLES {
        let own = histogram(&part["histograms"][name]);
        let other = reference.and_then(|part| histogram(&part["histograms"][name]));
        let found: Option<Distance> =
            own.zip(other).and_then(|(own, other)| own.distance(&other).ok());
        distances.extend(
            found.and_then(|found| Some((name.to_owned(), serde_json::to_value(found).ok()?))),
        );
    }
    if let Some(part) = part.as_object_mut()
        && !distances.is_empty()
        && reference.is_some_and(|reference| reference["name"] != part["name"])
    {
        part.insert("distances".to_owned(), Value::Object(distances));
    }
}

/// Put energy and log Z of the references beside those of a part, for where nothing exact is known.
fn compare_means(part: &mut Value, references: &[Value]) {
    let mut beside = Map::new();
    for (name, path) in
        [("energy_per_site", "/result/observables/energy_per_site"), ("log_z", "/result/log_z")]
    {
        let found = references.iter().find_map(|reference| reference.pointer(path));
        beside.extend(found.map(|found| (name.to_owned(), found.clone())));
    }
    let own = references.iter().any(|reference| reference["name"] == part["name"]);
    if let Some(part) = part.as_object_mut().filter(|_| !own && !beside.is_empty()) {
        part.insert("reference".to_owned(), Value::Object(beside));
    }
}
