//! The model that a run starts from: `--from`.

use std::path::Path;

use anyhow::Result;
use leaps::job::Start;
use leaps::store::Checkpoints;

use crate::config::Layers;
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
    let open = Start::complete(&start.name, &network, parametrisation, &layers.section("network"));
    let open = open.map_err(|error| layers.explain(error))?;
    layers.complete("network", &open, &start.name)?;
    Ok(Some(start))
}
