//! Make one checked configuration of defaults, a file, `--set` and flags.

mod build;
mod family;
mod files;
mod layers;
mod memory;
mod moves;
mod network;
mod path;
mod render;
mod sample;
mod schema;
mod seeds;
mod target;
mod train;
mod value;

use std::path::PathBuf;

use anyhow::Result;
use clap::{ArgMatches, Args};
use leaps::Error;
use leaps::net::{FreeEnergy, FreeEnergySpec, Net};
use leaps::path::Path;
use leaps::target::{Pairwise, Target};

pub use files::{Described, undescribed, unprinted};
pub use layers::Layers;
pub use memory::{Work, training_memory};
pub use moves::{Move, kernels_help};
pub use network::{NetworkKind, NetworkSpec};
pub use path::{PathSpec, ScheduleName};
pub use render::{to_toml, to_toml_from};
pub use sample::{ChainSpec, FlowSpec, KernelSpec, ResampleSpec, UpdateSpec, WalkerSpec};
pub use target::{BoundaryName, Kind, TargetSpec};
pub use train::TrainingSpec;
pub use value::{Field, Size, count, number, seed, text, text_path};

use layers::Source;
use schema::defaults;
pub use schema::keys;

use crate::error::usage;

/// The seed of every run that does not ask for another.
pub const SEED: u64 = 1;

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
                let kinds = "ising, potts, spin-glass, rbm or file PATH";
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

/// A complete configuration: every value checked, defaults written out.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    pub seed: u64,
    pub target: TargetSpec,
    pub path: PathSpec,
    pub network: NetworkSpec,
    pub train: TrainingSpec,
    pub flow: FlowSpec,
    pub walkers: WalkerSpec,
    pub resample: ResampleSpec,
    pub kernel: KernelSpec,
    pub updates: UpdateSpec,
    pub chains: ChainSpec,
}

/// A configuration's target, ready to be sampled.
#[derive(Clone, Debug)]
pub struct Problem {
    pub target: Pairwise,
    /// From the uniform distribution to `beta` times the energy.
    pub path: Path,
    pub beta: f64,
    /// The target in a few words.
    pub description: String,
    /// Checksums of the files it was read from.
    pub checksums: Vec<(&'static str, String)>,
}

impl Config {
    /// Check everything that can be checked before the target is built.
    pub fn resolve(layers: &Layers) -> Result<Self> {
        let target: TargetSpec = layers.group("target", &keys::<TargetSpec>())?;
        let config = Config {
            seed: layers.top("seed")?.unwrap_or(SEED),
            target: target.placed(|key, path| layers.folder(&format!("target.{key}")).join(path)),
            path: layers.group("path", &keys::<PathSpec>())?,
            network: layers.group("network", &keys::<NetworkSpec>())?,
            train: layers.group("train", &keys::<TrainingSpec>())?,
            flow: layers.group("sample", &keys::<FlowSpec>())?,
            kernel: layers.group("sample", &keys::<KernelSpec>())?,
            updates: layers.group("sample", &keys::<UpdateSpec>())?,
            walkers: layers.group("sample", &keys::<WalkerSpec>())?,
            resample: layers.group("sample", &keys::<ResampleSpec>())?,
            chains: layers.group("sample", &keys::<ChainSpec>())?,
        };
        config.checked(layers).map_err(|error| layers.explain(error).into())
    }

    fn checked(self, layers: &Layers) -> leaps::Result<Self> {
        let target = self.target.filled()?;
        self.path.check()?;
        let network = self.network.filled(target.lattice()?.as_ref(), target.is_uniform())?;
        self.train.build()?;
        self.walkers.check()?;
        self.flow.check()?;
        self.updates.check()?;
        self.resample.check()?;
        self.chains.check(target.beta.unwrap_or(1.0))?;
        let flag = |key: &str| layers.source(key) == Some(&Source::Flag);
        if self.path.adaptive().is_some() && flag("sample.intervals") {
            return Err(Error::invalid(
                "sample.intervals",
                self.walkers.intervals,
                "left out for the schedule adaptive",
                "--conditional-ess sets the number of intervals",
            ));
        }
        if flag("sample.times") && flag("sample.intervals") {
            return Err(Error::invalid(
                "sample.intervals",
                self.walkers.intervals,
                "given without --times",
                "the times say how many intervals there are",
            ));
        }
        if flag("sample.updates") && flag("sample.sweeps") {
            return Err(Error::invalid(
                "sample.updates",
                self.updates.updates,
                "given without --sweeps",
                "a sweep is one update for each site",
            ));
        }
        for (key, schedule, word) in [
            ("path.ratio", ScheduleName::Geometric, "geometric"),
            ("path.table", ScheduleName::Piecewise, "piecewise"),
            ("path.conditional_ess", ScheduleName::Adaptive, "adaptive"),
        ] {
            // In a file all keys may stand side by side; a flag without effect is a mistake.
            if flag(key) && !self.path.uses(schedule) {
                let given = format!("{:?}", self.path.schedule).to_lowercase();
                return Err(Error::invalid(
                    key,
                    "(given)",
                    format!("left out for the schedule {given}"),
                    format!("add --schedule {word}"),
                ));
            }
        }
        Ok(Config { target, network, ..self })
    }

    /// Build the target and its path, naming keys of `layers` in errors.
    pub fn problem(&self, layers: &Layers) -> Result<Problem> {
        let build = || -> leaps::Result<Problem> {
            let target = self.target.build()?;
            let beta = self.target.beta.unwrap_or(1.0);
            let path = self.path.build(&target, beta)?;
            let description = self.describe(target.sites());
            let checksums = self.target.checksums()?;
            Ok(Problem { target, path, beta, description, checksums })
        };
        build().map_err(|error| layers.explain(error).into())
    }

    /// The network for the target.
    pub fn net(&self, target: &Pairwise) -> leaps::Result<Net> {
        Net::conditioned_on(
            &self.network.build()?,
            target,
            self.ranges().map_or(0, |r| r.conditions()),
        )
    }

    /// The free energy that is learnt with the network.
    pub fn free(&self, target: &Pairwise) -> leaps::Result<FreeEnergy> {
        let conditions = self.ranges().map_or(0, |ranges| ranges.conditions());
        FreeEnergy::new(&FreeEnergySpec::Rate, target.sites())?.conditioned_on(conditions)
    }

    /// The target, which has so many sites, in a few words.
    pub fn describe(&self, sites: usize) -> String {
        render::describe(&self.target, sites)
    }

    /// The energy as a formula with its numbers.
    pub fn formula(&self) -> String {
        render::formula(&self.target)
    }
}

#[cfg(test)]
mod tests;
