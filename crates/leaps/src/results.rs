//! Results: what jobs find, typed; `--json`, reports and experiments read and write this and nothing else.
//!
//! Names of fields are promises to scripts. Numbers that are not finite are `null` in JSON.

mod exact;
mod minimum;
mod nulls;
mod part;
mod rows;
mod thermo;
pub mod timings;

pub use exact::{ExactPoint, ExactPoints, ExactResult};
pub use minimum::{FoundResult, MinimumResult, RestartResult};
pub use part::{Laws, PartFound, PartResult};
pub use rows::{AnyResult, Row, Tabulate};
pub use thermo::{
    FreeEnergyResult, Lowest, ThermoPoint, TwoSidedResult, free_energy_per_site, log_z_merit,
};

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

pub(crate) use thermo::exact_entropy_per_site;
use thermo::{nan, unknown};

use nulls::{infinite, null_is_infinite, null_is_nan, nulls_are_infinite, nulls_are_nan};

use crate::device::Placement;
use crate::exact::{Exact, known_among};
use crate::observe::{
    ChainWarning, Correlation, Estimate, Histogram, ModeMass, Observables, symmetric,
};
use crate::problem::Problem;
use crate::sampler::{PathPoint, PathStop, WalkerWarning};
use crate::target::Target;

/// The version of the layout; grows when a field changes its meaning.
pub const SCHEMA: u32 = 2;

/// What every result says about its origin.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
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
}

/// Where something was computed, and why there.
#[derive(Clone, Debug, PartialEq)]
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
pub struct Record<T> {
    /// Where it comes from.
    #[serde(flatten)]
    pub origin: Origin,
    /// What was found.
    #[serde(flatten)]
    pub result: T,
}

/// What `sample`, `ais` and `smc` find out.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct WalkerResult {
    /// The seed.
    pub seed: u64,
    /// `events`, `euler` or `trapezoid` with a network, else `ais` or `smc`.
    pub scheme: String,
    /// The Markov kernel that mixes the walkers, `none` if nothing does.
    pub kernel: String,
    /// The directory of the network.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Number of walkers.
    pub walkers: usize,
    /// Intervals of the path.
    pub intervals: usize,
    /// How often walkers were resampled.
    pub resamplings: usize,
    /// Effective number of families: walkers at the start that still have weight.
    #[serde(deserialize_with = "null_is_nan")]
    pub families: f64,
    /// Effective sample size as a fraction of the walkers.
    #[serde(deserialize_with = "null_is_nan")]
    pub ess: f64,
    /// Its standard error.
    #[serde(deserialize_with = "null_is_nan")]
    pub ess_error: f64,
    /// Log of the normalisation.
    pub log_z: Estimate,
    /// What a second is worth for log Z, see [`log_z_merit`].
    #[serde(default = "nan", deserialize_with = "null_is_nan")]
    pub log_z_merit: f64,
    /// `-log Z / (beta N)`.
    #[serde(default = "unknown")]
    pub free_energy_per_site: Estimate,
    /// `(log Z + <U>) / N`.
    #[serde(default = "unknown")]
    pub entropy_per_site: Estimate,
    /// The estimate of log Z that walkers on their way back take part in, if there are any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub two_sided: Option<TwoSidedResult>,
    /// The lowest energy of the walkers at the end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lowest: Option<Lowest>,
    /// Mean log-weight: a lower bound of log Z.
    #[serde(deserialize_with = "null_is_nan")]
    pub elbo: f64,
    /// Averages over the target.
    pub observables: Observables,
    /// The two-point function by distance.
    pub correlation: Vec<Correlation>,
    /// The probability that a value is the most frequent one, by value.
    pub mode_masses: Vec<ModeMass>,
    /// Estimates at inverse temperatures on the way, if any were asked for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub at_beta: Vec<BetaResult>,
    /// Estimates along the path.
    pub path: Vec<PathPoint>,
    /// Reasons to doubt the numbers.
    pub warnings: Vec<WalkerWarning>,
    /// How the walkers are spread.
    pub histograms: Histograms,
    /// One walker on its way, where it can be drawn.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub snapshots: Option<Snapshots>,
    /// Passes through the network.
    #[serde(deserialize_with = "null_is_nan")]
    pub network_passes_per_walker: f64,
    /// Evaluations of the energy.
    #[serde(deserialize_with = "null_is_nan")]
    pub energy_calls_per_walker: f64,
    /// Seconds that it took.
    #[serde(deserialize_with = "null_is_nan")]
    pub seconds: f64,
    /// Effective samples of all walkers or chains together, per second.
    #[serde(deserialize_with = "null_is_nan")]
    pub effective_samples_per_second: f64,
}

/// What walkers say about an inverse temperature that they pass.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct BetaResult {
    /// The inverse temperature.
    #[serde(deserialize_with = "null_is_nan")]
    pub beta: f64,
    /// The time of the path at which it is reached.
    #[serde(deserialize_with = "null_is_nan")]
    pub t: f64,
    /// Effective sample size as a fraction.
    #[serde(deserialize_with = "null_is_nan")]
    pub ess: f64,
    /// Its standard error.
    #[serde(deserialize_with = "null_is_nan")]
    pub ess_error: f64,
    /// Log of the normalisation.
    pub log_z: Estimate,
    /// `-log Z / (beta N)`.
    pub free_energy_per_site: Estimate,
    /// `(log Z + <U>) / N`.
    #[serde(default = "unknown")]
    pub entropy_per_site: Estimate,
    /// Averages over the target.
    pub observables: Observables,
    /// The probability that a value is the most frequent one, by value.
    pub mode_masses: Vec<ModeMass>,
}

impl BetaResult {
    /// The numbers of a stop, one of so many, with exact ones beside them where they are quickly known.
    pub fn new(target: &dyn Target, beta: f64, stop: &PathStop, stops: usize) -> Self {
        let exact = known_among(target, &stop.lambda, stops);
        let point = ThermoPoint::of_stop(target, beta, stop, exact.as_ref());
        BetaResult {
            beta,
            t: stop.t,
            ess: stop.ess.mean,
            ess_error: stop.ess.error,
            log_z: point.log_z,
            free_energy_per_site: point.free_energy_per_site,
            entropy_per_site: point.entropy_per_site,
            mode_masses: point.observables.mode_masses.clone(),
            observables: point.observables,
        }
    }
}

/// How the walkers are spread at the end of the path.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Histograms {
    /// Log-weights relative to the log mean weight, every walker counted once.
    pub log_weight: HistogramResult,
    /// Energy per site.
    pub energy_per_site: HistogramResult,
    /// The order parameter, signed for two values.
    pub magnetization: HistogramResult,
}

/// The probability of bins of equal width between `low` and `high`, with errors.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct HistogramResult {
    /// Where the first bin begins.
    #[serde(deserialize_with = "null_is_nan")]
    pub low: f64,
    /// Where the last bin ends.
    #[serde(deserialize_with = "null_is_nan")]
    pub high: f64,
    /// Probabilities of the bins.
    #[serde(deserialize_with = "nulls_are_nan")]
    pub mass: Vec<f64>,
    /// Their errors.
    #[serde(deserialize_with = "nulls_are_infinite")]
    pub error: Vec<f64>,
}

impl HistogramResult {
    /// The numbers of a histogram.
    pub fn new(histogram: &Histogram) -> Self {
        HistogramResult {
            low: histogram.bins.low(),
            high: histogram.bins.high(),
            mass: histogram.mass.iter().map(|bin| bin.mean).collect(),
            error: histogram.mass.iter().map(|bin| bin.error).collect(),
        }
    }
}

/// States on a lattice of two dimensions: one walker on its way, and some of the sample.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Snapshots {
    /// Sides of the lattice.
    pub shape: Vec<usize>,
    /// Values of a site.
    pub q: usize,
    /// One walker from the start of the path to its end.
    pub frames: Vec<Frame>,
    /// States of the target: walkers at the end, each as often as its weight says; files of older versions have none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sample: Vec<String>,
}

/// A state, one digit a site.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Frame {
    /// The time.
    #[serde(deserialize_with = "null_is_nan")]
    pub t: f64,
    /// The state.
    pub x: String,
}

/// What `mcmc` finds out.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ChainResult {
    /// The seed.
    pub seed: u64,
    /// `mcmc`.
    pub scheme: String,
    /// The kernel.
    pub kernel: String,
    /// Number of chains.
    pub chains: usize,
    /// Steps of each chain after burn-in: those that were made, if the work was interrupted.
    pub steps: usize,
    /// Steps that were asked for, if the work was interrupted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asked: Option<usize>,
    /// Whether the work was interrupted.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub interrupted: bool,
    /// Steps that were dropped at the start of each chain.
    pub burn_in: usize,
    /// Steps between two measurements.
    pub thin: usize,
    /// Effective samples of the slower of energy and |m|, as a fraction of the kept states.
    #[serde(deserialize_with = "null_is_nan")]
    pub ess: f64,
    /// Its standard error.
    #[serde(deserialize_with = "null_is_nan")]
    pub ess_error: f64,
    /// The largest R-hat of energy, m, |m| and the distance to a random state.
    #[serde(deserialize_with = "null_is_nan")]
    pub r_hat: f64,
    /// Each with its autocorrelation time in steps and its R-hat, where they are measured.
    pub observables: ChainObservables,
    /// The two-point function by distance.
    pub correlation: Vec<Correlation>,
    /// The probability that a value is the most frequent one, by value.
    pub mode_masses: Vec<ModeMass>,
    /// Share of proposals that were accepted.
    #[serde(deserialize_with = "null_is_nan")]
    pub acceptance: f64,
    /// Effective sample sizes as the DISCS benchmark reports them.
    pub discs: Discs,
    /// Log of the normalisation, from all temperatures of a ladder together (MBAR), if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub log_z: Option<Estimate>,
    /// What a second is worth for log Z, see [`log_z_merit`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub log_z_merit: Option<f64>,
    /// `-log Z / (beta N)`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub free_energy_per_site: Option<Estimate>,
    /// `(log Z + <U>) / N`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub entropy_per_site: Option<Estimate>,
    /// The lowest energy that was met at a kept state.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lowest: Option<Lowest>,
    /// How the ladder of temperatures did, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tempering: Option<TemperingResult>,
    /// Reasons to doubt the numbers.
    pub warnings: Vec<ChainWarning>,
    /// Passes through the network.
    #[serde(deserialize_with = "null_is_nan")]
    pub network_passes_per_walker: f64,
    /// Evaluations of the energy.
    #[serde(deserialize_with = "null_is_nan")]
    pub energy_calls_per_walker: f64,
    /// Seconds that it took.
    #[serde(deserialize_with = "null_is_nan")]
    pub seconds: f64,
    /// Effective samples of all walkers or chains together, per second.
    #[serde(deserialize_with = "null_is_nan")]
    pub effective_samples_per_second: f64,
}

/// An estimate of Markov chains, with what is known about their memory of it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Remembered {
    /// The estimate.
    #[serde(flatten)]
    pub estimate: Estimate,
    /// The integrated autocorrelation time in steps.
    #[serde(deserialize_with = "null_is_nan")]
    pub autocorrelation_time: f64,
    /// Its error.
    #[serde(default = "infinite", deserialize_with = "null_is_infinite")]
    pub autocorrelation_time_error: f64,
    /// Split R-hat.
    #[serde(deserialize_with = "null_is_nan")]
    pub r_hat: f64,
}

impl Remembered {
    /// The integrated autocorrelation time in steps.
    pub fn time(&self) -> Estimate {
        Estimate::new(self.autocorrelation_time, self.autocorrelation_time_error)
    }
}

/// [`Observables`] of Markov chains.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ChainObservables {
    /// See [`Observables::energy_per_site`].
    pub energy_per_site: Remembered,
    /// See [`Observables::magnetization`].
    pub magnetization: Remembered,
    /// See [`Observables::abs_magnetization`].
    pub abs_magnetization: Remembered,
    /// See [`Observables::magnetization_squared`].
    pub magnetization_squared: Estimate,
    /// See [`Observables::binder`].
    pub binder: Estimate,
    /// See [`Observables::heat_capacity_per_site`].
    pub heat_capacity_per_site: Estimate,
    /// See [`Observables::susceptibility_per_site`].
    pub susceptibility_per_site: Estimate,
    /// See [`Observables::correlation_length`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub correlation_length: Option<Estimate>,
}

impl ChainResult {
    /// The observables as walkers have them.
    pub fn estimates(&self) -> Observables {
        let own = &self.observables;
        Observables {
            energy_per_site: own.energy_per_site.estimate,
            magnetization: own.magnetization.estimate,
            abs_magnetization: own.abs_magnetization.estimate,
            magnetization_squared: own.magnetization_squared,
            binder: own.binder,
            heat_capacity_per_site: own.heat_capacity_per_site,
            susceptibility_per_site: own.susceptibility_per_site,
            correlation_length: own.correlation_length,
            correlation: self.correlation.clone(),
            mode_masses: self.mode_masses.clone(),
        }
    }

    /// Autocorrelation times in steps, by observable.
    pub fn times(&self) -> [(&'static str, Estimate); 3] {
        [
            ("energy_per_site", self.observables.energy_per_site.time()),
            ("magnetization", self.observables.magnetization.time()),
            ("abs_magnetization", self.observables.abs_magnetization.time()),
        ]
    }
}

/// The columns of the DISCS benchmark: autocorrelation effective sample size of the distance to a random
/// state, mean over chains.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Discs {
    /// Per step after burn-in.
    #[serde(deserialize_with = "null_is_nan")]
    pub ess_per_step: f64,
    /// Per energy evaluation, charged as DISCS does.
    #[serde(deserialize_with = "null_is_nan")]
    pub ess_per_call: f64,
    /// Per second, of all chains together.
    #[serde(deserialize_with = "null_is_nan")]
    pub ess_per_second: f64,
}

/// How well temperatures exchanged their states.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct TemperingResult {
    /// Inverse temperatures, hottest first.
    pub betas: Vec<f64>,
    /// Share of exchanges between neighbours that were accepted.
    #[serde(deserialize_with = "nulls_are_nan")]
    pub swap_rates: Vec<f64>,
    /// Trips of states from one end of the ladder to the other and back.
    pub round_trips: u64,
    /// What the states of neighbours have in common, first of infinite temperature and the hottest, see
    /// [`Mbar::overlaps`](crate::observe::Mbar::overlaps).
    #[serde(default, deserialize_with = "nulls_are_nan")]
    pub overlaps: Vec<f64>,
    /// Log of the normalisation by thermodynamic integration.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub log_z_by_integration: Option<Estimate>,
    /// Free energy and observables at every temperature, from the states of all of them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rungs: Vec<ThermoPoint>,
    /// The same at inverse temperatures between them, if any were asked for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub at_beta: Vec<ThermoPoint>,
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

    /// Reasons to doubt the numbers, in words.
    pub fn doubts(&self) -> Vec<String> {
        match self {
            SamplerResult::Walkers(result) => {
                result.warnings.iter().map(ToString::to_string).collect()
            }
            SamplerResult::Chains(result) => {
                result.warnings.iter().map(ToString::to_string).collect()
            }
        }
    }
}

/// One sampler of a comparison and what it found.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Compared {
    /// What it is called.
    pub name: String,
    /// Its inverse temperature, where it is not the target's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub beta: Option<f64>,
    /// What it found.
    #[serde(flatten)]
    pub result: SamplerResult,
}

/// Several samplers on one target.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Comparison {
    /// The seed that the samplers' seeds are made of.
    pub seed: u64,
    /// The samplers.
    pub samplers: Vec<Compared>,
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
    all
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
