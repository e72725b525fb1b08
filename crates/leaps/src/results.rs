//! Results: what jobs find, typed; `--json`, reports and experiments read and write this and nothing else.
//!
//! Names of fields are promises to scripts. Numbers that are not finite are `null` in JSON.

mod chains;
mod exact;
mod minimum;
mod nulls;
mod part;
mod rows;
mod thermo;
pub mod timings;
mod upgrade;
mod walkers;

pub use chains::{ChainObservables, ChainResult, Discs, Remembered, TemperingResult};
pub use exact::{ExactPoint, ExactPoints, ExactResult};
pub use minimum::{FoundResult, MinimumResult, RestartResult};
pub use part::{Laws, PartFound, PartResult};
pub use rows::{AnyResult, Row, Tabulate};
pub use thermo::{
    FreeEnergyResult, Lowest, ThermoPoint, TwoSidedResult, free_energy_per_site, log_z_merit,
};
pub use upgrade::{upgrade, upgrade_part};
pub use walkers::{BetaResult, Frame, HistogramResult, Histograms, Snapshots, WalkerResult};

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::device::Placement;
use crate::exact::Exact;
use crate::observe::{
    Estimate, ModeMass, Observables, OffsetCorrelation, StructureFactor, symmetric,
};
use crate::problem::Problem;
use crate::target::{Target, TargetSpec, printed};
pub(crate) use thermo::exact_entropy_per_site;

/// The version of the layout; grows when a field changes its meaning.
pub const SCHEMA: u32 = 2;

/// What every result says about its origin.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Origin {
    /// [`SCHEMA`].
    pub schema: u32,
    /// The version of the library.
    pub version: String,
    /// The command line, empty where there was none.
    pub command: Vec<String>,
    /// The target as it was described, with checksums of its files and its number of sites.
    pub target: Map<String, Value>,
    /// Where it was computed: `cpu` or `cuda`.
    pub device: String,
    /// Why it was computed on the CPU although a GPU was asked for where possible.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub device_reason: Option<String>,
}

impl Origin {
    /// The origin of a result about a problem that was computed there.
    pub fn new(problem: &Problem, computed: &Computed) -> Self {
        Origin {
            schema: SCHEMA,
            version: env!("CARGO_PKG_VERSION").to_owned(),
            command: Vec::new(),
            target: problem.origin(),
            device: computed.device.clone(),
            device_reason: computed.reason.clone(),
        }
    }

    /// Sites of the target.
    pub fn sites(&self) -> Option<usize> {
        self.target.get("sites").and_then(Value::as_u64).map(|sites| sites as usize)
    }

    /// The target, if it is one of ours; its files may have gone since.
    pub fn spec(&self) -> Option<TargetSpec> {
        printed(&self.target)
    }

    /// The same, of what this command line asked for.
    pub fn of_command(self, command: &[String]) -> Self {
        Origin { command: command.to_vec(), ..self }
    }
}

/// Where something was computed, and why there.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Computed {
    /// `cpu` or `cuda`.
    pub device: String,
    /// Why not on a GPU, where one was wanted.
    pub reason: Option<String>,
}

impl Computed {
    /// On the CPU, since nothing else was asked for.
    pub fn on_cpu() -> Self {
        Computed { device: Placement::Cpu.name().to_owned(), reason: None }
    }
}

/// A result with its origin, as it is printed and as it lies in `results.json`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Record<T> {
    /// Where it comes from.
    #[serde(flatten)]
    pub origin: Origin,
    /// What was found.
    #[serde(flatten)]
    pub result: T,
}

impl<T> Record<T> {
    /// A result, and where it comes from.
    pub fn new(origin: Origin, result: T) -> Self {
        Record { origin, result }
    }
}

/// The result of either kind of sampler.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum SamplerResult {
    /// Of weighted walkers.
    Walkers(Box<WalkerResult>),
    /// Of Markov chains.
    Chains(Box<ChainResult>),
}

impl SamplerResult {
    /// The seed.
    pub fn seed(&self) -> u64 {
        match self {
            SamplerResult::Walkers(result) => result.seed,
            SamplerResult::Chains(result) => result.seed,
        }
    }

    /// Whether the work was interrupted.
    pub fn interrupted(&self) -> bool {
        match self {
            SamplerResult::Walkers(result) => result.interrupted,
            SamplerResult::Chains(result) => result.interrupted,
        }
    }

    /// Whether it is about the target itself: walkers that were stopped on the way to it are not.
    pub fn is_of_target(&self) -> bool {
        match self {
            SamplerResult::Walkers(result) => result.reached.is_none(),
            SamplerResult::Chains(_) => true,
        }
    }

    /// Reasons to doubt the numbers, in words.
    pub fn doubts(&self) -> Vec<String> {
        match self {
            SamplerResult::Walkers(result) => {
                let both = result.two_sided.iter().flat_map(|both| both.warnings.clone());
                result.warnings.iter().map(ToString::to_string).chain(both).collect()
            }
            SamplerResult::Chains(result) => {
                result.warnings.iter().map(ToString::to_string).collect()
            }
        }
    }

    /// Log of the normalisation, where it was estimated: from both ways where walkers went back.
    pub fn log_z(&self) -> Option<Estimate> {
        match self {
            SamplerResult::Walkers(result) => Some(result.best_log_z()),
            SamplerResult::Chains(result) => result.log_z,
        }
    }

    /// What a second is worth for [`log_z`](Self::log_z).
    pub fn log_z_merit(&self) -> Option<f64> {
        match self {
            SamplerResult::Walkers(result) => Some(result.best_log_z_merit()),
            SamplerResult::Chains(result) => result.best_log_z_merit(),
        }
    }

    /// Seconds of everything that [`log_z`](Self::log_z) is made of.
    pub fn seconds(&self) -> f64 {
        match self {
            SamplerResult::Walkers(result) => result.all_seconds(),
            SamplerResult::Chains(result) => result.seconds,
        }
    }
}

/// One sampler of a comparison and what it found.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Compared {
    /// What it is called.
    pub name: String,
    /// Its inverse temperature, where it is not the target's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub beta: Option<f64>,
    /// Its uniform field, where it is not the target's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub field: Option<f64>,
    /// What it found.
    #[serde(flatten)]
    pub result: SamplerResult,
}

impl Compared {
    /// What a sampler of this name found, at `beta` and in `field` where they are not the target's.
    pub fn new(
        name: String,
        (beta, field): (Option<f64>, Option<f64>),
        result: SamplerResult,
    ) -> Self {
        Compared { name, beta, field, result }
    }
}

/// Several samplers on one target.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Comparison {
    /// The seed that the samplers' seeds are made of.
    pub seed: u64,
    /// Whether the work was interrupted.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub interrupted: bool,
    /// How many samplers were asked for, if the work was interrupted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asked: Option<usize>,
    /// The samplers; those that there are, if the work was interrupted.
    pub samplers: Vec<Compared>,
}

impl Comparison {
    /// What samplers found whose seeds are made of this one.
    pub fn new(seed: u64, samplers: Vec<Compared>) -> Self {
        Comparison { seed, interrupted: false, asked: None, samplers }
    }
}

/// Put exact values at the weights `lambda` of the energy terms beside estimates.
pub fn attach_exact(
    observables: &mut Observables,
    exact: &Exact,
    target: &dyn Target,
    lambda: &[f64],
) {
    let (sites, beta) = (target.sites(), lambda.first().copied().unwrap_or(0.0));
    let symmetric = symmetric(target, lambda);
    let put = |estimate: &mut Estimate, value: Option<f64>| {
        if let Some(value) = value {
            *estimate = estimate.with_exact(value);
        }
    };
    put(&mut observables.energy_per_site, Some(exact.energy_per_site(sites)));
    put(&mut observables.heat_capacity_per_site, Some(exact.heat_capacity_per_site(sites)));
    put(&mut observables.magnetization, exact.order.map(|order| order.m));
    put(&mut observables.abs_magnetization, exact.order.map(|order| order.abs));
    put(&mut observables.magnetization_squared, exact.order.map(|order| order.squared));
    put(&mut observables.binder, exact.binder());
    let chi = exact.susceptibility_per_site(sites, beta, symmetric);
    put(&mut observables.susceptibility_per_site, chi);
}

/// The observables by the names they are printed under.
pub fn named(observables: &Observables) -> Vec<(&'static str, Estimate)> {
    let mut all = vec![
        ("energy_per_site", observables.energy_per_site),
        ("heat_capacity_per_site", observables.heat_capacity_per_site),
        ("magnetization", observables.magnetization),
        ("abs_magnetization", observables.abs_magnetization),
        ("magnetization_squared", observables.magnetization_squared),
        ("binder", observables.binder),
        ("susceptibility_per_site", observables.susceptibility_per_site),
    ];
    // Where the correlation changes its sign from site to site there is none.
    let length = observables.correlation_length.filter(|length| length.mean.is_finite());
    all.extend(length.map(|length| ("correlation_length", length)));
    let means = [
        ("density", observables.density),
        ("quadrupole", observables.quadrupole),
        ("polarization", observables.polarization),
    ];
    all.extend(means.into_iter().filter_map(|(name, mean)| Some((name, mean?))));
    all
}

/// Structure factors by the names they are written under.
pub fn named_waves(waves: &[StructureFactor]) -> Vec<(String, Estimate)> {
    waves.iter().map(|wave| (wave.to_string(), wave.value)).collect()
}

/// Correlations by the names they are printed under.
pub fn named_offsets(correlations: &[OffsetCorrelation]) -> Vec<(String, Estimate)> {
    let name = |own: &OffsetCorrelation| {
        let steps: Vec<String> = own.offset.iter().map(i64::to_string).collect();
        (format!("correlation({})", steps.join(" ")), own.value)
    };
    correlations.iter().map(name).collect()
}

/// Those of order that is stronger than that of equal values, by more than the errors.
pub fn strong_waves(waves: &[StructureFactor]) -> Vec<(String, Estimate)> {
    let Some((zero, others)) = waves.split_first() else { return Vec::new() };
    let reach = zero.value.mean + zero.value.error;
    let strong = |wave: &&StructureFactor| wave.value.mean - wave.value.error > reach;
    others.iter().filter(strong).map(|wave| (wave.to_string(), wave.value)).collect()
}

/// More modes than this are left out of tables.
const MANY_MODES: usize = 8;

/// The masses of modes by the names they are printed under; none if they are many.
pub fn named_modes(masses: &[ModeMass]) -> Vec<(String, Estimate)> {
    let spins = masses.len() == 2;
    let name = |mode: &ModeMass| match (spins, mode.value) {
        (true, 0) => "mass of m < 0".to_owned(),
        (true, _) => "mass of m > 0".to_owned(),
        (false, site_value) => format!("mass of mode {site_value}"),
    };
    let shown = if masses.len() > MANY_MODES { &[] } else { masses };
    shown.iter().map(|mode| (name(mode), mode.mass)).collect()
}
