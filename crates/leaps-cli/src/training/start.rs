//! The model that a run starts from: `--from`.

use std::path::Path;

use anyhow::Result;
use leaps::job::Start;
use leaps::store::Checkpoints;
use serde_json::Value;

use crate::config::Layers;
use crate::error::usage;
use crate::models;

/// Find the model that `train.from` names, and take what is left open about the network from it. Where `run` holds a run that started
/// from a model of this name, that run has all there is to know.
pub fn prepare(layers: &mut Layers, run: Option<&Path>) -> Result<Option<Start>> {
    let given = layers.given()?;
    let Some(path) = given.start.from else { return Ok(None) };
    let name = path.display().to_string();
    let begun = run.and_then(|run| Checkpoints::of(run).identity());
    let begun = begun.filter(|run| run.from.as_ref().is_some_and(|from| from.name == name));
    let (start, network, parametrisation) = match begun {
        Some(begun) => {
            let (network, parametrisation) = (begun.network, begun.parametrisation);
            (begun.from.map(Start::begun), network, parametrisation)
        }
        None => {
            let model = models::find(&layers.name("train.from"), &path)?.model;
            let (network, parametrisation) = (model.network.clone(), model.parametrisation);
            (Some(Start::model(name, model)), network, parametrisation)
        }
    };
    let Some(start) = start else { return Ok(None) };
    let Value::Object(mut open) = serde_json::to_value(network)? else {
        return Ok(Some(start));
    };
    if open.remove("imported") == Some(true.into()) {
        return Err(usage(format!(
            "{} = {}: must be a network of leaps; imported ones compute as their authors' code does and are not trained on",
            layers.name("train.from"),
            start.name
        )));
    }
    open.retain(|_, value| !value.is_null());
    open.insert("parametrisation".to_owned(), serde_json::to_value(parametrisation)?);
    let given = serde_json::to_value(given.network)?;
    for key in ["kind", "parametrisation"] {
        let path = format!("network.{key}");
        if layers.source(&path).is_some() && given[key] != open[key] {
            let (named, name) = (layers.name(&path), &start.name);
            let (now, then) = (plain(&given[key]), plain(&open[key]));
            return Err(usage(format!(
                "{named} = {now}: must be {then}, as in the model {name}; leave it out"
            )));
        }
    }
    layers.complete("network", &open, &start.name)?;
    Ok(Some(start))
}

fn plain(value: &Value) -> &str {
    value.as_str().unwrap_or("another")
}
