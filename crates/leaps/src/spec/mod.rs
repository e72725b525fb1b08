//! Configurations: the sections of a `run.toml`, each described in the room that it belongs to.

mod family;
mod growth;
mod jobs;
mod keys;
mod overlay;
mod seeds;

pub use family::FamilyProblem;
pub use jobs::{JOBS, keys_of_job};
pub use keys::{SECTIONS, is_known, keys_of, unknown};

use serde::Serialize;
use toml::{Table, Value};

use crate::Result;
use crate::mcmc::{ChainSpec, KernelSpec};
use crate::net::{FreeEnergy, FreeEnergySpec, Net, NetworkKind, NetworkOptions};
use crate::observe::MeasureSpec;
use crate::path::PathSpec;
use crate::problem::Problem;
use crate::sampler::{ResampleSpec, SchemeSpec, UpdateSpec, WalkerSpec};
use crate::target::{Kind, Target, TargetSpec};
use crate::train::{StartSpec, TrainSpec};

/// The seed of every run that does not ask for another.
pub const SEED: u64 = 1;

/// All settings of a run; a sampler or a training uses some of them.
#[derive(Clone, Debug, PartialEq)]
pub struct RunSpec {
    /// Seed of everything random.
    pub seed: u64,
    /// What to sample.
    pub target: TargetSpec,
    /// The way to it.
    pub path: PathSpec,
    /// Which network, and how large.
    pub network: NetworkOptions,
    /// How to train it.
    pub train: TrainSpec,
    /// What training starts from.
    pub start: StartSpec,
    /// How walkers follow a network.
    pub scheme: SchemeSpec,
    /// How many walkers, and how they are measured.
    pub walkers: WalkerSpec,
    /// When walkers are resampled.
    pub resample: ResampleSpec,
    /// How a Markov chain moves.
    pub kernel: KernelSpec,
    /// Moves smaller than a sweep.
    pub updates: UpdateSpec,
    /// How many chains, and how long.
    pub chains: ChainSpec,
    /// What is measured beside the usual.
    pub measure: MeasureSpec,
}

impl Default for RunSpec {
    fn default() -> Self {
        RunSpec {
            seed: SEED,
            target: TargetSpec::default(),
            path: PathSpec::default(),
            network: NetworkOptions::default(),
            train: TrainSpec::default(),
            start: StartSpec::default(),
            scheme: SchemeSpec::default(),
            walkers: WalkerSpec::default(),
            resample: ResampleSpec::default(),
            kernel: KernelSpec::default(),
            updates: UpdateSpec::default(),
            chains: ChainSpec::default(),
            measure: MeasureSpec::default(),
        }
    }
}

impl RunSpec {
    /// The same with every default written out, after checking all that can be checked before the target is built.
    pub fn resolve(self) -> Result<Self> {
        let target = self.target.filled()?;
        self.path.check()?;
        let (lattice, uniform) = target.placement()?;
        let network = self.network_asked_for().resolve(lattice.as_ref(), uniform)?;
        let network = NetworkOptions::of(&network, self.network.parametrisation);
        let grows = RunSpec { target: target.clone(), network: network.clone(), ..self.clone() };
        let depth = network.depth.or_else(|| grows.depth_that_grows());
        let network = NetworkOptions { depth, ..network };
        self.train.check()?;
        self.walkers.check()?;
        self.scheme.check()?;
        self.updates.check()?;
        self.resample.check()?;
        self.chains.check(target.beta.unwrap_or(1.0))?;
        Ok(RunSpec { target, network, ..self })
    }

    /// The target with its path.
    pub fn problem(&self) -> Result<Problem> {
        Problem::of(&self.target, &self.path)
    }

    /// The network for the target.
    pub fn net(&self, target: &dyn Target) -> Result<Net> {
        let file = self.target.kind == Some(Kind::File);
        let uniform = match target.pairwise().filter(|_| file) {
            Some(model) => model.is_uniform(),
            None => self.target.is_uniform(),
        };
        let spec = self.network_asked_for().resolve(target.lattice(), uniform)?;
        Net::conditioned_on(&spec, target, self.conditions())
    }

    /// The network; over instances it is one that is shown the couplings, unless another is asked for.
    fn network_asked_for(&self) -> NetworkOptions {
        let shown = self.train.instances().map(|_| NetworkKind::Glass);
        NetworkOptions { kind: self.network.kind.or(shown), ..self.network.clone() }
    }

    /// The free energy that is learnt with the network.
    pub fn free(&self, target: &dyn Target) -> Result<FreeEnergy> {
        let spec = match self.train.instances() {
            Some(_) => FreeEnergySpec::None,
            None => FreeEnergySpec::Rate,
        };
        FreeEnergy::new(&spec, target.sites())?.conditioned_on(self.conditions())
    }

    /// Numbers that the network is conditioned on beside the time.
    fn conditions(&self) -> usize {
        self.ranges().map_or(0, |ranges| ranges.conditions())
    }

    /// All values by section, as in a `run.toml`.
    pub fn table(&self) -> Table {
        let section = |groups: &[Value]| {
            let all = groups.iter().filter_map(Value::as_table).flatten();
            let all = all.map(|(key, value)| (key.clone(), value.clone()));
            Value::Table(all.collect())
        };
        let sample = section(&[
            to_value(&self.scheme),
            to_value(&self.walkers),
            to_value(&self.resample),
            to_value(&self.kernel),
            to_value(&self.updates),
            to_value(&self.chains),
            to_value(&self.measure),
        ]);
        Table::from_iter([
            ("seed".to_owned(), to_value(&self.seed)),
            ("target".to_owned(), to_value(&self.target)),
            ("path".to_owned(), to_value(&self.path)),
            ("network".to_owned(), to_value(&self.network)),
            ("train".to_owned(), section(&[to_value(&self.train), to_value(&self.start)])),
            ("sample".to_owned(), sample),
        ])
    }

    /// The text of a `run.toml`.
    pub fn to_toml(&self) -> String {
        self.table().to_string()
    }
}

fn to_value(value: &impl Serialize) -> Value {
    Value::try_from(value).unwrap_or_else(|error| unreachable!("settings are TOML: {error}"))
}
