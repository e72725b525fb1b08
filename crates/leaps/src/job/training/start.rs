//! Starting points of training runs that do not start afresh.

use std::path::Path;

use toml::{Table, Value};

use crate::net::NetSpec;
use crate::path::Ranges;
use crate::rates::Parametrisation;
use crate::store::{Model, Origin, START, WarmStart};
use crate::{Error, Result};

/// What a run starts from.
#[derive(Clone, Debug)]
pub struct Start {
    /// The model as the user knows it.
    pub name: String,
    /// The model; a run that goes on does not need it any more.
    model: Option<Model>,
    /// What the run's checkpoints say it started from.
    begun: Option<Origin>,
}

impl Start {
    /// A trained model.
    pub fn model(name: impl Into<String>, model: Model) -> Self {
        Start { name: name.into(), model: Some(model), begun: None }
    }

    /// The run on a smaller lattice, in the part [`START`] of a run's directory.
    pub(super) fn part(directory: &Path) -> Result<Self> {
        Ok(Self::model(START, Model::load(directory)?))
    }

    /// The keys of `[network]` that a network takes from the model called `name`, where those that are `given` leave them open.
    ///
    /// # Errors
    /// An imported network, and a kind or parametrisation that is given and differs.
    pub fn complete(
        name: &str,
        network: &NetSpec,
        parametrisation: Parametrisation,
        given: &Table,
    ) -> Result<Table> {
        let Ok(Value::Table(mut open)) = Value::try_from(network) else { return Ok(Table::new()) };
        if open.remove("imported") == Some(true.into()) {
            let condition = "a network of leaps";
            let advice = "imported ones compute as their authors' code does and are not trained on";
            return Err(Error::invalid("train.from", name, condition, advice));
        }
        if let Ok(value) = Value::try_from(parametrisation) {
            open.insert("parametrisation".to_owned(), value);
        }
        let plain = |value: &Value| value.as_str().unwrap_or("another").to_owned();
        for key in ["kind", "parametrisation"] {
            let pair = given.get(key).zip(open.get(key));
            if let Some((now, then)) = pair.filter(|(now, then)| now != then) {
                let condition = format!("{}, as in the model {name}", plain(then));
                let key = format!("network.{key}");
                return Err(Error::invalid(key, plain(now), condition, "leave it out"));
            }
        }
        open.retain(|key, _| !given.contains_key(key));
        Ok(open)
    }

    /// What a run that goes on has started from.
    pub fn begun(from: Origin) -> Self {
        Start { name: from.name.clone(), model: None, begun: Some(from) }
    }

    /// What the files say about where the run comes from, and the parameters it starts with.
    pub(super) fn parameters(
        &self,
        fit: impl Fn(&Model) -> Result<WarmStart>,
    ) -> Result<(Option<Origin>, Option<WarmStart>)> {
        let warm = self.model.as_ref().map(fit).transpose()?;
        let origin = warm
            .as_ref()
            .map(|warm| Origin { name: self.name.clone(), checksum: warm.checksum.clone() });
        Ok((origin.or_else(|| self.begun.clone()), warm))
    }

    /// What goes over, in words.
    pub(super) fn words(&self, warm: &WarmStart, ranges: Option<Ranges>) -> String {
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
                "; that was {}: conditioned on places within its ranges, it takes the members of other ranges for other ones at first",
                trained.describe()
            );
        }
        text
    }
}
