//! Describe how to train, once for the command line and for the configuration file.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use leaps::path::Ranges;
use leaps::train::TrainSpec;
use leaps::{Error, Result};
use serde::{Deserialize, Serialize};

use super::value::{count, number, range, text_path};

/// How the learning rate falls after warm-up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum DecayName {
    Cosine,
    Step,
    None,
}

/// Where reference states come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ReferenceName {
    Pool,
    Policy,
    Buffer,
}

/// The library's defaults.
fn usual() -> TrainSpec {
    TrainSpec::default()
}

/// How to train: the fields of [`TrainSpec`].
#[derive(Clone, Debug, PartialEq, Args, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[command(next_help_heading = "Training")]
pub struct TrainingSpec {
    /// Gradient steps
    #[arg(long, value_name = "N", value_parser = count, default_value_t = usual().steps as usize)]
    pub steps: usize,
    /// Configurations of a gradient step
    #[arg(long, value_name = "N", value_parser = count, default_value_t = usual().batch)]
    pub batch: usize,
    /// Largest learning rate
    #[arg(long, value_name = "X", value_parser = number, default_value_t = usual().lr)]
    pub lr: f64,
    /// Steps over which the learning rate rises from 0
    #[arg(long, value_name = "N", value_parser = count, default_value_t = usual().warmup as usize)]
    #[arg(hide_short_help = true)]
    pub warmup: usize,
    /// Fall of the learning rate: cosine (to 1 %), step or none
    #[arg(long, value_enum, value_name = "HOW", default_value = "cosine")]
    #[arg(hide_possible_values = true, hide_short_help = true)]
    pub decay: DecayName,
    /// Factor of the step decay
    #[arg(long, value_name = "X", value_parser = number, default_value_t = usual().decay_factor)]
    #[arg(hide_short_help = true)]
    pub decay_factor: f64,
    /// Steps between two factors of the step decay
    #[arg(long, value_name = "N", value_parser = count, default_value_t = usual().decay_every as usize)]
    #[arg(hide_short_help = true)]
    pub decay_every: usize,
    /// Adam's memory of the gradient
    #[arg(long, value_name = "X", value_parser = number, default_value_t = usual().beta1)]
    #[arg(hide_short_help = true)]
    pub beta1: f64,
    /// Adam's memory of the gradient's square
    #[arg(long, value_name = "X", value_parser = number, default_value_t = usual().beta2)]
    #[arg(hide_short_help = true)]
    pub beta2: f64,
    /// Norm beyond which the gradient is scaled down
    #[arg(long, value_name = "X", value_parser = number, default_value_t = usual().clip)]
    #[arg(hide_short_help = true)]
    pub clip: f64,
    /// Decay per step of the averaged parameters, which sampling uses
    #[arg(long, value_name = "X", value_parser = number, default_value_t = usual().ema)]
    #[arg(hide_short_help = true)]
    pub ema: f64,
    /// Reference states: pool (in equilibrium), policy or buffer (rollouts of the network)
    #[arg(long, value_enum, value_name = "WHERE", default_value = "pool")]
    #[arg(hide_possible_values = true)]
    pub reference: ReferenceName,
    /// Walkers of the pool
    #[arg(long, value_name = "N", value_parser = count, default_value_t = usual().pool)]
    #[arg(hide_short_help = true)]
    pub pool: usize,
    /// Heat-bath sweeps of a reference walker each time it is used
    #[arg(id = "train.sweeps", long = "reference-sweeps", value_name = "N", value_parser = count)]
    #[arg(default_value_t = usual().sweeps as usize, hide_short_help = true)]
    pub sweeps: usize,
    /// Walkers of a rollout
    #[arg(long, value_name = "N", value_parser = count, default_value_t = usual().rollout_walkers)]
    #[arg(hide_short_help = true)]
    pub rollout_walkers: usize,
    /// Steps of a rollout
    #[arg(long, value_name = "N", value_parser = count, default_value_t = usual().rollout_steps)]
    #[arg(hide_short_help = true)]
    pub rollout_steps: usize,
    /// Rollouts that the buffer holds
    #[arg(long, value_name = "N", value_parser = count, default_value_t = usual().buffer)]
    #[arg(hide_short_help = true)]
    pub buffer: usize,
    /// Gradient steps between two rollouts
    #[arg(long, value_name = "N", value_parser = count, default_value_t = usual().rollout_every as usize)]
    #[arg(hide_short_help = true)]
    pub rollout_every: usize,
    /// Gradient steps over which rollouts grow from their first step to the whole path
    #[arg(long, value_name = "N", value_parser = count, default_value_t = usual().anneal as usize)]
    #[arg(hide_short_help = true)]
    pub anneal: usize,
    /// Gradient steps between two validations; 0 is never
    #[arg(long, value_name = "N", value_parser = count, default_value_t = usual().validate_every as usize)]
    pub validate_every: usize,
    /// Walkers of a validation
    #[arg(long, value_name = "N", value_parser = count, default_value_t = usual().validate_walkers)]
    #[arg(hide_short_help = true)]
    pub validate_walkers: usize,
    /// Intervals of a validation
    #[arg(long, value_name = "N", value_parser = count, default_value_t = usual().validate_intervals)]
    #[arg(hide_short_help = true)]
    pub validate_intervals: usize,
    /// Gradient steps between two checkpoints
    #[arg(long, value_name = "N", value_parser = count, default_value_t = usual().checkpoint_every as usize)]
    pub checkpoint_every: usize,
    /// Times that a loss which is not finite may send training back to the last checkpoint
    #[arg(long, value_name = "N", value_parser = count, default_value_t = usual().rollbacks as usize)]
    #[arg(hide_short_help = true)]
    pub rollbacks: usize,
    /// Train one network for all inverse temperatures from LOW to HIGH; 'leaps sample --beta' chooses one
    #[arg(long, value_name = "LOW,HIGH", value_parser = range, allow_hyphen_values = true)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub beta_range: Option<[f64; 2]>,
    /// Train one network for all uniform fields from LOW to HIGH; 'leaps sample --field' chooses one
    #[arg(long, value_name = "LOW,HIGH", value_parser = range, allow_hyphen_values = true)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub field_range: Option<[f64; 2]>,
    /// Targets of the ranges that are trained on [default: 64]
    #[arg(long, value_name = "N", value_parser = count, hide_short_help = true)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub members: Option<usize>,
    /// Start from the parameters of this model or run in place of fresh ones, whatever the size of its lattice
    #[arg(long, value_name = "DIR|NAME", value_parser = text_path())]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from: Option<PathBuf>,
    /// Train on a smaller lattice first (Ising and Potts models on planes with sides of at least 21) [default: true]
    #[arg(long, value_name = "BOOL", hide_short_help = true)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub grow: Option<bool>,
}

impl Default for TrainingSpec {
    fn default() -> Self {
        super::defaults()
    }
}

impl TrainingSpec {
    /// The library's settings, checked.
    pub fn build(&self) -> Result<TrainSpec> {
        let fail = |error: &dyn std::fmt::Display| {
            Error::invalid("train", "(given)", "settings of training", error.to_string())
        };
        // JSON has no word for numbers that are not finite.
        Ranges { beta: self.beta_range, field: self.field_range }.check()?;
        let here = TrainingSpec { from: None, grow: None, ..self.clone() };
        let values = serde_json::to_value(here).map_err(|error| fail(&error))?;
        let spec: TrainSpec = serde_json::from_value(values).map_err(|error| fail(&error))?;
        spec.check()?;
        Ok(spec)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_setting_of_the_library_is_a_key() {
        let ours = serde_json::to_value(TrainingSpec::default()).unwrap();
        let theirs = serde_json::to_value(TrainSpec::default()).unwrap();
        assert_eq!(ours, theirs);
        assert_eq!(TrainingSpec::default().build().unwrap(), TrainSpec::default());
    }
}
