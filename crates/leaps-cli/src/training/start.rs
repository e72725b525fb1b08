//! Start a run from a trained model: `--from`.

use std::path::Path;

use anyhow::Result;
use leaps::path::Ranges;
use leaps::run::{Checkpoints, Model, Origin, START, WarmStart};
use serde_json::Value;

use crate::config::{Layers, NetworkSpec, TrainingSpec, keys};
use crate::error::usage;
use crate::models;

/// What a run starts from.
pub struct Start {
    name: String,
    /// The model; a run that goes on does not need it any more.
    model: Option<Model>,
    /// What the run's checkpoints say it started from.
    begun: Option<Origin>,
}

impl Start {
    /// The run on a smaller lattice, in the part [`START`] of a run's directory.
    pub fn part(directory: &Path) -> Result<Self> {
        let model = Some(Model::load(directory)?);
        Ok(Start { name: START.to_owned(), model, begun: None })
    }

    /// What a run that goes on has started from.
    pub fn begun(from: Origin) -> Self {
        Start { name: from.name.clone(), model: None, begun: Some(from) }
    }

    /// Find the model that `train.from` names, and take what is left open about the network from it. Where `run` holds a run that started
    /// from a model of this name, that run has all there is to know.
    pub fn prepare(layers: &mut Layers, run: Option<&Path>) -> Result<Option<Self>> {
        let train: TrainingSpec = layers.group("train", &keys::<TrainingSpec>())?;
        let Some(path) = train.from else { return Ok(None) };
        let name = path.display().to_string();
        let begun = run.and_then(|run| Checkpoints::of(run).identity());
        let begun = begun.filter(|run| run.from.as_ref().is_some_and(|from| from.name == name));
        let (start, network, parametrisation) = match begun {
            Some(begun) => {
                let start = Start { name, model: None, begun: begun.from };
                (start, begun.network, begun.parametrisation)
            }
            None => {
                let model = models::find(&layers.name("train.from"), &path)?.model;
                let (network, parametrisation) = (model.network.clone(), model.parametrisation);
                (Start { name, model: Some(model), begun: None }, network, parametrisation)
            }
        };
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
        let given =
            serde_json::to_value(layers.group::<NetworkSpec>("network", &keys::<NetworkSpec>())?)?;
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

    /// What the files say about where the run comes from, and the parameters it starts with.
    pub fn parameters(
        &self,
        fit: impl Fn(&Model) -> leaps::Result<WarmStart>,
    ) -> leaps::Result<(Option<Origin>, Option<WarmStart>)> {
        let warm = self.model.as_ref().map(fit).transpose()?;
        let origin = warm
            .as_ref()
            .map(|warm| Origin { name: self.name.clone(), checksum: warm.checksum.clone() });
        Ok((origin.or_else(|| self.begun.clone()), warm))
    }

    /// What goes over, in words.
    pub fn words(&self, warm: &WarmStart, ranges: Option<Ranges>) -> String {
        let steps = self.model.as_ref().map_or(0, |model| model.training.steps);
        let name = if self.name == START { "the smaller lattice" } else { &self.name };
        let mut text = format!("starts from {name}, trained for {steps} steps");
        match warm.new_layers {
            0 => {}
            1 => text += ", with 1 more layer that changes nothing yet",
            n => text += &format!(", with {n} more layers that change nothing yet"),
        }
        if !warm.free_energy {
            text += "; its free energy is of another kind and starts afresh";
        }
        let trained = self.model.as_ref().and_then(|model| model.family);
        if let Some(trained) = trained.filter(|own| Some(*own) != ranges) {
            text += &format!(
                "; that was {}: told places within its ranges, it takes the members of other ranges for other ones at first",
                trained.describe()
            );
        }
        text
    }
}

fn plain(value: &Value) -> &str {
    value.as_str().unwrap_or("another")
}
