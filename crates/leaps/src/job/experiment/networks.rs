//! The networks of an experiment: models by name, or trained on the spot.

use std::path::{Path, PathBuf};

use serde::Serialize;
use serde_json::{Map, Value, json};

use super::spec::{Experiment, NetworkEntry};
use super::{Places, create};
use crate::device::NoProgress;
use crate::job::training::seconds;
use crate::job::{Context, Monitor, Start, Training, check_memory};
use crate::net::NetSpec;
use crate::problem::Problem;
use crate::rates::Parametrisation;
use crate::spec::RunSpec;
use crate::store::{Found, Metrics, Model, Shipped};
use crate::{Error, Result};

/// A network that can be sampled.
#[derive(Clone, Debug)]
pub struct PreparedNetwork {
    /// What the experiment calls it.
    pub name: String,
    /// Its directory, or its name among the models.
    pub model: PathBuf,
    /// What page and files say about it.
    pub facts: NetworkFacts,
    /// Validations in training: step, effective sample size.
    pub validations: Vec<(f64, f64)>,
}

/// What page and files say about a network; no places.
#[derive(Clone, Debug, Serialize)]
pub struct NetworkFacts {
    /// What the experiment calls it.
    pub name: String,
    /// The name of the model, if it was not trained here.
    pub shipped: Option<String>,
    /// What such a model was trained on, where that is another target.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trained_on: Option<String>,
    /// Its kind and sizes.
    pub network: NetSpec,
    /// How its outputs become rates.
    pub parametrisation: Parametrisation,
    /// Number of parameters.
    pub parameters: usize,
    /// Seed of its training.
    pub seed: Option<u64>,
    /// Gradient steps.
    pub steps: u64,
    /// Configurations of a step.
    pub batch: Option<usize>,
    /// Seconds of training.
    pub seconds: Option<f64>,
    /// What trained it.
    pub device: Option<String>,
    /// Its parameters in a few digits.
    pub checksum: String,
}

/// The network of `entry`: the model it names if that is for the target, or else one that is trained; `None` where there is no model and the entry does
/// not say how to train one. Quick experiments are of smaller targets, and train where they can.
pub fn ready(
    experiment: &Experiment,
    entry: &NetworkEntry,
    places: &Places,
    context: &Context<'_>,
    monitor: &dyn Monitor,
) -> Result<Option<PreparedNetwork>> {
    let named = |error: Error| error.within(&experiment.file());
    let (given, start) = begin(experiment, entry)?;
    let config = given.resolve().map_err(named)?;
    let problem = config.problem().map_err(named)?;
    let target = problem.described.target.clone();
    let (name, trained) = (&entry.model, entry.can_be_trained());
    let then = if trained { "a network is trained" } else { "it is left out" };
    let wanted = !(name.is_empty() || experiment.quick && trained);
    let found = if wanted { Found::look_up(name.as_ref())?.map(|found| found.model) } else { None };
    if let Some(model) = found {
        match fits(&model, &config, &problem) {
            Ok(()) => {
                let own = (model.target != target).then(|| model.problem().ok()).flatten();
                let own = own.map(|problem| problem.description);
                if let Some(own) = &own {
                    monitor.note(&format!("{name} was trained on {own}"));
                }
                let facts = facts(entry, &model, &config, None)?;
                let card = Shipped::find(name);
                let seconds = card.and_then(|model| model.card().ok()?.training.seconds);
                let shipped = Some(name.clone());
                let facts = NetworkFacts { shipped, trained_on: own, seconds, ..facts };
                return Ok(Some(PreparedNetwork {
                    name: entry.name.clone(),
                    model: name.into(),
                    facts,
                    validations: Vec::new(),
                }));
            }
            Err(reason) => monitor.note(&format!("the model {name} {reason}: {then}")),
        }
    } else if wanted {
        monitor.note(&format!("there is no model {name}: {then}"));
    }
    if !trained {
        return Ok(None);
    }
    check_memory(&problem, &config.walkers, &config.measure).map_err(named)?;
    let directory = places.networks.join(format!(
        "{}-{:08x}",
        slug(&entry.name),
        mixed(&settings(&config, &target)?.to_string())
    ));
    let is_finished = || {
        let model = Model::load(&directory).ok();
        model.is_some_and(|model| model.training.steps >= config.train.steps)
    };
    if places.done_only && !is_finished() {
        return Ok(None);
    }
    if !is_finished() {
        create(&places.networks)?;
        let observer = monitor.training(&directory);
        let mut job = Training::of(config.clone(), problem.clone()).directory(&directory);
        job.start = start;
        job.fallback = true;
        job.command.clone_from(&places.command);
        job.run_in(&context.watched_by(&*observer), &*observer).map_err(named)?;
    }
    let model = Model::load(&directory)?;
    let facts = facts(entry, &model, &config, Some(context))?;
    let (metrics, _) = Metrics::read(&directory)?;
    let validations = metrics
        .iter()
        .filter_map(|line| Some((line.step_metrics.step as f64, line.ess?)))
        .collect();
    Ok(Some(PreparedNetwork { name: entry.name.clone(), model: directory, facts, validations }))
}

/// The settings that train a network, and the model it starts from, from which it takes what the entry leaves open.
fn begin(experiment: &Experiment, entry: &NetworkEntry) -> Result<(RunSpec, Option<Start>)> {
    let given = experiment.training(entry)?;
    let Some(path) = given.start.from.clone() else { return Ok((given, None)) };
    let name = path.display().to_string();
    let named = |error: Error| error.within(&experiment.file());
    let Some(Found { model, .. }) = Found::look_up(&path)? else {
        let condition = "a model directory, a run directory, or the name of a model";
        let advice = "networks start from what is trained before them";
        return Err(named(Error::invalid("train.from", name, condition, advice)));
    };
    let open = Start::complete(&name, &model.network, model.parametrisation, &entry.network);
    let open = toml::Table::from_iter([("network".to_owned(), open.map_err(named)?.into())]);
    Ok((given.with(&open).map_err(named)?, Some(Start::model(name, model))))
}

/// What tells the trainings of different settings apart.
fn settings(config: &RunSpec, target: &Value) -> Result<Value> {
    let mut train = described(&config.train)?;
    train.extend(described(&config.start)?);
    Ok(json!({
        "seed": config.seed, "target": target, "path": described(&config.path)?,
        "network": described(&config.network)?, "train": train,
    }))
}

/// Whether a model is for the target: the same one, or one that differs in the size of its lattice alone, or in what the model has a range of, if the
/// network fits it. One that was trained over random instances is for all of them.
fn fits(model: &Model, config: &RunSpec, problem: &Problem) -> std::result::Result<(), String> {
    let ranges = model.family.unwrap_or_default();
    let free = [
        ("size", true),
        ("beta", ranges.beta.is_some()),
        (ranges.of.name(), ranges.field.is_some()),
        ("disorder_seed", model.instances().is_some()),
    ];
    let rest = |mut target: Value| {
        if let Some(target) = target.as_object_mut() {
            target.retain(|key, _| !free.contains(&(key.as_str(), true)));
        }
        target
    };
    if rest(model.target.clone()) != rest(config.target.without_gaps()) {
        return Err("is of another target".to_owned());
    }
    config.target.condition(&ranges).map_err(|error| format!("does not reach it ({error})"))?;
    match model.net(&*problem.target) {
        Ok(_) => Ok(()),
        Err(error) => Err(format!("does not fit {} ({error})", problem.description)),
    }
}

/// What is said about a model; of one that was trained here, also where and how long.
fn facts(
    entry: &NetworkEntry,
    model: &Model,
    config: &RunSpec,
    trained: Option<&Context<'_>>,
) -> Result<NetworkFacts> {
    let target = config.target.build()?;
    let net = model.net(&*target)?;
    let file = model.file();
    let run = file.parent().and_then(Path::parent).and_then(Path::parent);
    let place = |context: &Context<'_>| -> Result<String> {
        let quiet = context.watched_by(&NoProgress);
        Ok(net.computed_on(&quiet.place(Ok(()))?.0))
    };
    Ok(NetworkFacts {
        name: entry.name.clone(),
        shipped: None,
        trained_on: None,
        network: model.network.clone(),
        parametrisation: model.parametrisation,
        parameters: net.parameters() + model.free(&*target)?.parameters(),
        seed: model.training.seed,
        steps: model.training.steps,
        batch: model.training.settings.as_ref().map(|settings| settings.batch),
        seconds: run.filter(|_| trained.is_some()).and_then(seconds),
        device: trained.map(place).transpose()?,
        checksum: model.checksum()?,
    })
}

/// Settings as they are kept, without what is left out.
fn described(settings: &impl Serialize) -> Result<Map<String, Value>> {
    let fail = |error: serde_json::Error| {
        Error::invalid("network", "(settings)", "settings that can be written", error.to_string())
    };
    let Value::Object(mut all) = serde_json::to_value(settings).map_err(fail)? else {
        return Ok(Map::new());
    };
    all.retain(|_, value| !value.is_null());
    Ok(all)
}

/// A name for files: small letters, digits and dashes.
pub fn slug(name: &str) -> String {
    let mut out = String::new();
    for letter in name.chars().map(|c| c.to_ascii_lowercase()) {
        match letter {
            'a'..='z' | '0'..='9' => out.push(letter),
            _ if out.ends_with('-') || out.is_empty() => {}
            _ => out.push('-'),
        }
    }
    out.trim_end_matches('-').to_owned()
}

/// A number that differs for different texts (FNV-1a, 32 bits).
fn mixed(text: &str) -> u32 {
    text.bytes().fold(0x811c_9dc5, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_have_plain_names() {
        assert_eq!(slug("LEC, 3 layers"), "lec-3-layers");
        assert_eq!(slug("AIS, intervals 1000"), "ais-intervals-1000");
        assert_eq!(slug("../x y/"), "x-y");
        assert_ne!(mixed("a"), mixed("b"));
    }
}
