//! Layers of a configuration: defaults, a file, `--set` and flags, and where each value came from.

mod layers;
mod render;
mod schema;

use std::path::PathBuf;

use anyhow::Result;
use clap::{ArgMatches, Args};
use leaps::parse::number;
use leaps::target::TargetSpec;

pub use layers::{Layers, settings_meant};
pub use render::{to_toml, to_toml_from};

use crate::error::usage;

/// The target, and the configuration that the other flags override.
#[derive(Args, Clone, Debug)]
pub struct ProblemArgs {
    #[command(flatten)]
    pub target: TargetSpec,
    /// Temperature T, in place of --beta 1/T
    #[arg(long, value_name = "T", value_parser = number, conflicts_with = "beta", help_heading = "Target")]
    pub temperature: Option<f64>,
    /// Configuration file in place of a target (- reads standard input); flags override it
    #[arg(long, value_name = "FILE", conflicts_with = "kind", help_heading = "Configuration")]
    pub config: Option<PathBuf>,
    /// Override a key of the configuration, such as sample.walkers=2000; repeatable, not beside its flag
    #[arg(long = "set", value_name = "KEY=VALUE", help_heading = "Configuration")]
    pub set: Vec<String>,
}

impl ProblemArgs {
    /// Lay the file, `--set`, the seed and the target's flags over each other.
    pub fn layers(&self, seed: u64, matches: &ArgMatches) -> Result<Layers> {
        let mut layers = Layers::default();
        match (&self.config, self.target.kind) {
            (Some(path), _) => layers.read_file(path)?,
            (None, Some(_)) => {}
            (None, None) => {
                let kinds = "ising, potts, spin-glass, rbm, file PATH, maxcut PATH, independent-set PATH, blume-capel, clock, baxter-wu, \
                             lattice-gas or ashkin-teller";
                return Err(usage(format!("no TARGET: name {kinds}, or give --config run.toml")));
            }
        }
        layers.set(&self.set)?;
        layers.seed(seed, matches)?;
        layers.flags("target", &self.target, matches)?;
        layers.temperature(self.temperature)?;
        Ok(layers)
    }
}

#[cfg(test)]
mod tests;
