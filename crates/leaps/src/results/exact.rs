//! Exact answers, at one point or over a grid of temperatures and fields.

use serde::{Deserialize, Serialize};

use super::Lowest;
use super::nulls::null_is_nan;
use crate::path::Strength;

/// What `exact` prints; the moments of the magnetisation where they are known.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ExactResult {
    /// By which method.
    pub method: String,
    /// Log of the normalisation.
    #[serde(deserialize_with = "null_is_nan")]
    pub log_z: f64,
    /// Energy per site.
    #[serde(deserialize_with = "null_is_nan")]
    pub energy_per_site: f64,
    /// Heat capacity per site.
    #[serde(deserialize_with = "null_is_nan")]
    pub heat_capacity_per_site: f64,
    /// `-log Z / (beta N)`.
    #[serde(deserialize_with = "null_is_nan")]
    pub free_energy_per_site: f64,
    /// Entropy per site.
    #[serde(deserialize_with = "null_is_nan")]
    pub entropy_per_site: f64,
    /// Mean order parameter.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub magnetization: Option<f64>,
    /// Mean of its size.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub abs_magnetization: Option<f64>,
    /// Mean of its square.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub magnetization_squared: Option<f64>,
    /// Binder's cumulant.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub binder: Option<f64>,
    /// Susceptibility per site.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub susceptibility_per_site: Option<f64>,
    /// The lowest energy of all states and one that has it, where that is quickly known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lowest: Option<Lowest>,
    /// Seconds that it took.
    #[serde(deserialize_with = "null_is_nan")]
    pub seconds: f64,
}

impl ExactResult {
    /// The quantities that are known, by the names they are printed under.
    pub fn named(&self) -> Vec<(&'static str, f64)> {
        let all = [
            ("log_z", Some(self.log_z)),
            ("energy_per_site", Some(self.energy_per_site)),
            ("heat_capacity_per_site", Some(self.heat_capacity_per_site)),
            ("free_energy_per_site", Some(self.free_energy_per_site)),
            ("entropy_per_site", Some(self.entropy_per_site)),
            ("magnetization", self.magnetization),
            ("abs_magnetization", self.abs_magnetization),
            ("magnetization_squared", self.magnetization_squared),
            ("binder", self.binder),
            ("susceptibility_per_site", self.susceptibility_per_site),
            ("lowest_energy_per_site", self.lowest.as_ref().map(|own| own.energy_per_site)),
        ];
        all.into_iter().filter_map(|(name, value)| Some((name, value?))).collect()
    }
}

/// The exact answer at one point of a grid.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ExactPoint {
    /// The inverse temperature.
    pub beta: f64,
    /// The uniform field, where several are looked at.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub field: Option<f64>,
    /// The answer.
    #[serde(flatten)]
    pub result: ExactResult,
}

impl ExactPoint {
    /// The answer at `beta`, in `field` where several are looked at.
    pub fn new(beta: f64, field: Option<f64>, result: ExactResult) -> Self {
        ExactPoint { beta, field, result }
    }
}

/// Exact answers over a grid of temperatures and fields.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ExactPoints {
    /// What stands as the `field` of the points: the field, a chemical potential or a crystal field.
    #[serde(default, skip_serializing_if = "Strength::is_field")]
    pub of: Strength,
    /// Field by field.
    pub points: Vec<ExactPoint>,
}

impl ExactPoints {
    /// Answers whose `field` is a value of that strength.
    pub fn new(of: Strength, points: Vec<ExactPoint>) -> Self {
        ExactPoints { of, points }
    }
}
