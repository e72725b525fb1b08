//! The result of one sampler of an experiment at one setting, as it is kept on the disk.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{HistogramResult, SamplerResult};
use crate::observe::{Bins, Distance, Estimate, Histogram};

/// A part of an experiment.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct PartResult {
    /// What it is called.
    pub name: String,
    /// Why there is nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub absent: Option<String>,
    /// What was found.
    #[serde(flatten)]
    pub found: Option<PartFound>,
}

/// What a sampler found, and the settings that it found it with.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct PartFound {
    /// Everything that the numbers depend on: with other settings the part is run again.
    pub settings: Value,
    /// What computed, in words.
    pub device: String,
    /// The numbers.
    pub result: SamplerResult,
    /// The laws of observables, where there is a reference to hold them against.
    pub histograms: Option<Laws>,
}

/// The laws of observables.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Laws {
    /// Of the energy per site.
    pub energy_per_site: HistogramResult,
    /// Of the order parameter.
    pub magnetization: HistogramResult,
    /// Of its size.
    pub abs_magnetization: HistogramResult,
}

impl Laws {
    /// The laws by the names of their observables.
    pub fn named(&self) -> [(&'static str, &HistogramResult); 3] {
        [
            ("energy_per_site", &self.energy_per_site),
            ("magnetization", &self.magnetization),
            ("abs_magnetization", &self.abs_magnetization),
        ]
    }

    /// How far they are from others, by observable.
    pub fn distances(&self, other: &Laws) -> Vec<(&'static str, Distance)> {
        let pairs = self.named().into_iter().zip(other.named());
        let distance = |own: &HistogramResult, other: &HistogramResult| {
            own.histogram()?.distance(&other.histogram()?).ok()
        };
        pairs.filter_map(|((name, own), (_, other))| Some((name, distance(own, other)?))).collect()
    }
}

impl HistogramResult {
    /// The histogram that was written.
    pub fn histogram(&self) -> Option<Histogram> {
        let bins = Bins::new(self.low, self.high, self.mass.len()).ok()?;
        let pairs = self.mass.iter().zip(&self.error);
        let mass = pairs.map(|(&mean, &error)| Estimate::new(mean, error)).collect();
        Some(Histogram { bins, mass })
    }
}

impl PartResult {
    /// The numbers, if there are any.
    pub fn result(&self) -> Option<&SamplerResult> {
        self.found.as_ref().map(|found| &found.result)
    }

    /// The laws, if there are any.
    pub fn laws(&self) -> Option<&Laws> {
        self.found.as_ref()?.histograms.as_ref()
    }
}
