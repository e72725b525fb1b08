//! The networks of an experiment: shipped ones, or trained on the spot as `leaps train` does.

use std::path::{Path, PathBuf};

use anyhow::Result;
use leaps::store::{Metrics, Model};
use serde::Serialize;
use serde_json::{Map, Value, json};

use super::spec::{Experiment, NetworkEntry};
use crate::app::Context;
use crate::models::{self, Found};
use crate::training::{self, TrainingSession};
use leaps::device::NoProgress;
use leaps::job;
use leaps::problem::Problem;
use leaps::spec::RunSpec;

/// A network that can be sampled.
pub struct PreparedNetwork {
    pub name: String,
    /// Its directory, or its name among the models.
    pub model: PathBuf,
    /// What page and files say about it; no places.
    pub facts: Value,
    /// Validations in training: step, effective sample size.
    pub validations: Vec<(f64, f64)>,
}

/// The network of `entry`: the model it names if that is for the target, or else one trained below `root`; `None` where there is no model and the entry does
/// not say how to train one. Quick experiments are of smaller targets, and train where they can.
pub fn ready(
    experiment: &Experiment,
    entry: &NetworkEntry,
    quick: bool,
    root: &Path,
    context: &Context,
) -> Result<Option<PreparedNetwork>> {
    let mut layers = experiment.training(entry)?;
    let start = training::prepare(&mut layers, None)?;
    let config = layers.resolve()?;
    let problem = layers.problem(&config)?;
    let target = problem.described.target.clone();
    let (name, trained) = (&entry.model, entry.can_be_trained());
    let then = if trained { "a network is trained" } else { "it is left out" };
    if let Some(found) = shipped(entry, quick && trained)? {
        let model = &found.model;
        match fits(model, &config, &problem) {
            Ok(()) => {
                let own = found.description().filter(|_| model.target != target);
                if let Some(own) = &own {
                    context.say(format!("{name} was trained on {own}"));
                }
                let mut facts = facts(entry, model, &config, context, Some(name))?;
                facts["trained_on"] = own.into();
                return Ok(Some(PreparedNetwork {
                    name: entry.name.clone(),
                    model: name.into(),
                    facts,
                    validations: Vec::new(),
                }));
            }
            Err(reason) => context.say(format!("the model {name} {reason}: {then}")),
        }
    } else if !(name.is_empty() || quick && trained) {
        context.say(format!("there is no model {name}: {then}; 'leaps models' lists them"));
    }
    if !trained {
        return Ok(None);
    }
    job::check_memory(&problem, &config.walkers).map_err(|error| layers.explain(error))?;
    let mut train = described(&config.train)?;
    train.extend(described(&config.start)?);
    let settings = json!({
        "seed": config.seed, "target": target, "path": described(&config.path)?,
        "network": described(&config.network)?, "train": train,
    });
    let directory =
        root.join(format!("{}-{:08x}", slug(&entry.name), mixed(&settings.to_string())));
    let is_finished = || {
        let model = Model::load(&directory).ok();
        model.is_some_and(|model| model.training.steps >= config.train.steps)
    };
    if !is_finished() {
        let training = TrainingSession {
            layers: &layers,
            spec: &config,
            problem: &problem,
            directory: directory.clone(),
            start,
            fallback: true,
            until: None,
        };
        training.train(context)?;
    }
    let model = Model::load(&directory)?;
    let facts = facts(entry, &model, &config, context, None)?;
    let (metrics, _) = Metrics::read(&directory)?;
    let validations = metrics
        .iter()
        .filter_map(|line| Some((line.step_metrics.step as f64, line.ess?)))
        .collect();
    Ok(Some(PreparedNetwork { name: entry.name.clone(), model: directory, facts, validations }))
}

/// Whether a model is for the target: the same one, or one that differs in the size of its lattice alone, if the network fits it.
fn fits(model: &Model, config: &RunSpec, problem: &Problem) -> std::result::Result<(), String> {
    let without_size = |mut target: Value| {
        target.as_object_mut().and_then(|target| target.remove("size"));
        target
    };
    if without_size(model.target.clone()) != without_size(config.target.without_gaps()) {
        return Err("is of another target".to_owned());
    }
    match model.net(&*problem.target) {
        Ok(_) => Ok(()),
        Err(error) => Err(format!("does not fit {} ({error})", problem.description)),
    }
}

/// The model that an entry names, if there is one and it is wanted.
fn shipped(entry: &NetworkEntry, unwanted: bool) -> Result<Option<Found>> {
    if unwanted || entry.model.is_empty() {
        Ok(None)
    } else {
        models::look_up(entry.model.as_ref())
    }
}

fn facts(
    entry: &NetworkEntry,
    model: &Model,
    config: &RunSpec,
    context: &Context,
    shipped: Option<&str>,
) -> Result<Value> {
    let target = config.target.build()?;
    let net = model.net(&target)?;
    let file = model.file();
    let run = file.parent().and_then(Path::parent).and_then(Path::parent);
    let run = run.filter(|_| shipped.is_none());
    let placement = match shipped {
        Some(_) => None,
        None => Some(net.computed_on(&context.job(&NoProgress).place(model.gpu_has())?.0)),
    };
    Ok(json!({
        "name": entry.name,
        "shipped": shipped,
        "network": model.network,
        "parametrisation": model.parametrisation,
        "parameters": net.parameters() + model.free(&target)?.parameters(),
        "seed": model.training.seed,
        "steps": model.training.steps,
        "batch": model.training.settings["batch"],
        "seconds": run.and_then(job::seconds),
        "device": placement,
        "checksum": model.checksum()?,
    }))
}

/// Settings as they are kept, without what is left out.
fn described(settings: &impl Serialize) -> Result<Map<String, Value>> {
    let mut all: Map<String, Value> = serde_json::from_value(serde_json::to_value(settings)?)?;
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
