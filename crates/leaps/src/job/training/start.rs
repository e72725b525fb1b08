//! What a training run starts from, if it does not start afresh.

use std::path::Path;

use crate::Result;
use crate::path::Ranges;
use crate::store::{Model, Origin, START, WarmStart};

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
