//! Define what `--json` prints; field names are promises to scripts.

use leaps::exact::{self, Exact};
use leaps::observe::{
    ChainWarning, Correlation, Estimate, Histogram, ModeMass, Observables, symmetric,
};
use leaps::sampler::{PathPoint, PathStop, WalkerWarning};
use leaps::target::{Pairwise, Target};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::app::Context;
use crate::config::{Config, Problem};

/// The version of the layout; grows when a field changes its meaning.
pub const SCHEMA: u32 = 2;

/// What every result says about its origin.
#[derive(Clone, Debug, Serialize)]
pub struct Origin {
    pub schema: u32,
    pub version: &'static str,
    pub command: Vec<String>,
    pub target: Map<String, Value>,
    pub device: &'static str,
}

impl Origin {
    /// The origin of a result of this command.
    pub fn new(context: &Context, config: &Config, problem: &Problem) -> Self {
        let mut target = match serde_json::to_value(&config.target) {
            Ok(Value::Object(target)) => target,
            _ => Map::new(),
        };
        target.retain(|_, value| !value.is_null());
        let sums =
            problem.checksums.iter().map(|(key, sum)| ((*key).to_owned(), sum.clone().into()));
        target.extend(sums);
        target.insert("sites".to_owned(), problem.target.sites().into());
        Origin {
            schema: SCHEMA,
            version: env!("CARGO_PKG_VERSION"),
            command: context.command.clone(),
            target,
            device: context.device_used(),
        }
    }
}

/// What `exact` prints; the moments of the magnetisation where they are known.
#[derive(Clone, Debug, Serialize)]
pub struct ExactResult {
    #[serde(flatten)]
    pub origin: Origin,
    pub method: String,
    pub log_z: f64,
    pub energy_per_site: f64,
    pub heat_capacity_per_site: f64,
    pub free_energy_per_site: f64,
    pub entropy_per_site: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub magnetization: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub abs_magnetization: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub magnetization_squared: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub binder: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub susceptibility_per_site: Option<f64>,
    pub seconds: f64,
}

/// What `sample`, `ais` and `smc` find out.
#[derive(Clone, Debug, Serialize)]
pub struct WalkerResult {
    pub seed: u64,
    /// `events`, `euler` or `trapezoid` with a network, else `ais` or `smc`.
    pub scheme: &'static str,
    /// The Markov kernel that mixes the walkers, `none` if nothing does.
    pub kernel: String,
    /// The directory of the network.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    pub walkers: usize,
    pub intervals: usize,
    pub resamplings: usize,
    /// Effective number of families: walkers at the start that still have weight.
    pub families: f64,
    /// Effective sample size as a fraction of the walkers.
    pub ess: f64,
    pub ess_error: f64,
    pub log_z: Estimate,
    pub elbo: f64,
    pub observables: Observables,
    pub correlation: Vec<Correlation>,
    /// The probability that a value is the most frequent one, by value.
    pub mode_masses: Vec<ModeMass>,
    /// Estimates at inverse temperatures on the way, if any were asked for.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub at_beta: Vec<BetaResult>,
    /// Estimates along the path.
    pub path: Vec<PathPoint>,
    pub warnings: Vec<WalkerWarning>,
    pub histograms: Histograms,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub snapshots: Option<Snapshots>,
    pub network_passes_per_walker: f64,
    pub energy_calls_per_walker: f64,
    pub seconds: f64,
    pub effective_samples_per_second: f64,
}

/// What walkers say about an inverse temperature that they pass.
#[derive(Clone, Debug, Serialize)]
pub struct BetaResult {
    pub beta: f64,
    /// The time of the path at which it is reached.
    pub t: f64,
    pub ess: f64,
    pub ess_error: f64,
    pub log_z: Estimate,
    /// `-log Z / (beta N)`.
    pub free_energy_per_site: Estimate,
    pub observables: Observables,
    pub mode_masses: Vec<ModeMass>,
}

impl BetaResult {
    /// The numbers of a stop, one of so many, with exact ones beside them where they are quickly known.
    pub fn new(target: &Pairwise, beta: f64, stop: &PathStop, stops: usize) -> Self {
        let (mut log_z, mut observables) = (stop.log_z, stop.observables.clone());
        if let Some(exact) = exact::known_among(target, &stop.lambda, stops) {
            log_z = log_z.with_exact(exact.log_z);
            attach_exact(&mut observables, &exact, target, &stop.lambda);
        }
        let scale = beta * target.sites() as f64;
        let free = Estimate::new(-log_z.mean / scale, log_z.error / scale.abs());
        BetaResult {
            beta,
            t: stop.t,
            ess: stop.ess.mean,
            ess_error: stop.ess.error,
            log_z,
            free_energy_per_site: log_z.exact.map_or(free, |exact| free.with_exact(-exact / scale)),
            mode_masses: observables.mode_masses.clone(),
            observables,
        }
    }
}

/// How the walkers are spread at the end of the path.
#[derive(Clone, Debug, Serialize)]
pub struct Histograms {
    /// Log-weights relative to the log mean weight, every walker counted once.
    pub log_weight: HistogramResult,
    pub energy_per_site: HistogramResult,
    /// The order parameter, signed for two values.
    pub magnetization: HistogramResult,
}

/// The probability of bins of equal width between `low` and `high`, with errors.
#[derive(Clone, Debug, Serialize)]
pub struct HistogramResult {
    pub low: f64,
    pub high: f64,
    pub mass: Vec<f64>,
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

/// One walker on its way, on a lattice of two dimensions.
#[derive(Clone, Debug, Serialize)]
pub struct Snapshots {
    pub shape: Vec<usize>,
    pub q: usize,
    pub frames: Vec<Frame>,
}

/// A state, one digit a site.
#[derive(Clone, Debug, Serialize)]
pub struct Frame {
    pub t: f64,
    pub x: String,
}

/// What `mcmc` finds out.
#[derive(Clone, Debug, Serialize)]
pub struct ChainResult {
    pub seed: u64,
    pub scheme: &'static str,
    pub kernel: String,
    pub chains: usize,
    /// Steps of each chain after burn-in: those that were made, if the work was interrupted.
    pub steps: usize,
    #[serde(skip)]
    pub asked: usize,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub interrupted: bool,
    pub burn_in: usize,
    pub thin: usize,
    /// Effective samples of the slower of energy and |m|, as a fraction of the kept states.
    pub ess: f64,
    pub ess_error: f64,
    /// The largest R-hat of energy, m, |m| and the distance to a random state.
    pub r_hat: f64,
    /// Each with its autocorrelation time in steps and its R-hat, where they are measured.
    pub observables: Map<String, Value>,
    pub correlation: Vec<Correlation>,
    /// The probability that a value is the most frequent one, by value.
    pub mode_masses: Vec<ModeMass>,
    pub acceptance: f64,
    /// Effective sample sizes as the DISCS benchmark reports them.
    pub discs: Discs,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tempering: Option<TemperingResult>,
    pub warnings: Vec<ChainWarning>,
    pub network_passes_per_walker: f64,
    pub energy_calls_per_walker: f64,
    pub seconds: f64,
    pub effective_samples_per_second: f64,
    #[serde(skip)]
    pub estimates: Observables,
    /// Autocorrelation times in steps, by observable.
    #[serde(skip)]
    pub times: Vec<(&'static str, Estimate)>,
}

/// The columns of the DISCS benchmark: autocorrelation effective sample size of the distance to a random
/// state, mean over chains.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Discs {
    /// Per step after burn-in.
    pub ess_per_step: f64,
    /// Per energy evaluation, charged as DISCS does.
    pub ess_per_call: f64,
    /// Per second, of all chains together.
    pub ess_per_second: f64,
}

/// How well temperatures exchanged their states.
#[derive(Clone, Debug, Serialize)]
pub struct TemperingResult {
    pub betas: Vec<f64>,
    pub swap_rates: Vec<f64>,
    pub round_trips: u64,
}

/// A warning of a result as it is said on the terminal.
pub fn said(warning: &Value) -> String {
    let of_walkers = WalkerWarning::deserialize(warning).map(|warning| warning.to_string());
    of_walkers
        .or_else(|_| ChainWarning::deserialize(warning).map(|warning| warning.to_string()))
        .unwrap_or_else(|_| warning.to_string())
}

/// A result with its origin, as it is printed.
#[derive(Clone, Debug, Serialize)]
pub struct Printed<'a, T> {
    #[serde(flatten)]
    pub origin: Origin,
    #[serde(flatten)]
    pub result: &'a T,
}

/// Put exact values at the weights `lambda` of the energy terms beside estimates.
pub fn attach_exact(
    observables: &mut Observables,
    exact: &Exact,
    target: &Pairwise,
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
