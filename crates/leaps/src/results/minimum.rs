//! The lowest energy of a target: what `minimize` finds out.

use serde::{Deserialize, Serialize};

use super::Lowest;
use super::nulls::{null_is_nan, nulls_are_nan};

/// What `minimize` finds out.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct MinimumResult {
    /// The seed.
    pub seed: u64,
    /// `annealing`, `tempering`, `houdayer`, `network` or `exact`.
    pub method: String,
    /// The directory of the network.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Walkers of a restart, or ladders of temperatures.
    pub walkers: usize,
    /// Sweeps of each walker or temperature in a restart.
    pub sweeps: usize,
    /// Temperatures of each ladder.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub temperatures: Option<usize>,
    /// The hottest inverse temperature at which time is spent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub beta_hot: Option<f64>,
    /// The coldest inverse temperature.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub beta_cold: Option<f64>,
    /// The lowest energy and a state that has it; the energy is that of the state, computed from it.
    pub lowest: Lowest,
    /// The weight of the state's cut, for a maximum cut.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cut: Option<f64>,
    /// The size of the state's set, which was seen to be independent, for a maximum independent set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub set_size: Option<usize>,
    /// How often it was found.
    pub found: FoundResult,
    /// Whether no state can have a lower energy.
    pub proven: bool,
    /// What proves it, or what is known to be lower: `enumeration`, `elimination`, or `bound` if every bond and every field is at its best.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub proof: Option<String>,
    /// The lowest energy of all states, where it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub optimum: Option<f64>,
    /// The energy that was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target_energy: Option<f64>,
    /// Why the work ended: `restarts`, `time-limit`, `target-energy`, `exact` or `interrupted`.
    pub ended_by: String,
    /// What every restart found.
    pub restarts: Vec<RestartResult>,
    /// Seconds of every restart.
    #[serde(deserialize_with = "nulls_are_nan")]
    pub seconds_of_restarts: Vec<f64>,
    /// Seconds after which the lowest energy was known.
    #[serde(deserialize_with = "null_is_nan")]
    pub seconds_to_best: f64,
    /// Seconds that it took.
    #[serde(deserialize_with = "null_is_nan")]
    pub seconds: f64,
}

impl MinimumResult {
    /// Whether a signal ended the work.
    pub fn interrupted(&self) -> bool {
        self.ended_by == "interrupted"
    }
}

/// How often the lowest energy was found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct FoundResult {
    /// Restarts that found it.
    pub restarts: usize,
    /// Walkers that found it.
    pub walkers: usize,
    /// All walkers of all restarts.
    pub of_walkers: usize,
}

impl FoundResult {
    /// So many restarts and walkers of so many.
    pub fn new(restarts: usize, walkers: usize, of_walkers: usize) -> Self {
        FoundResult { restarts, walkers, of_walkers }
    }
}

/// What one restart found.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct RestartResult {
    /// Its own seed.
    pub seed: u64,
    /// Its lowest energy.
    #[serde(deserialize_with = "null_is_nan")]
    pub energy: f64,
    /// How many of its walkers found that.
    pub found: usize,
    /// Its walkers.
    pub walkers: usize,
    /// Whether it was cut short.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub unfinished: bool,
}

impl RestartResult {
    /// The lowest energy of a finished restart, which so many of its walkers found.
    pub fn new(seed: u64, energy: f64, found: usize, walkers: usize) -> Self {
        RestartResult { seed, energy, found, walkers, unfinished: false }
    }
}
