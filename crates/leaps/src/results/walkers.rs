//! Results of weighted walkers, and how they are spread.

use serde::{Deserialize, Serialize};

use super::nulls::{null_is_nan, nulls_are_infinite, nulls_are_nan};
use super::thermo::{nan, unknown};
use super::{Lowest, ThermoPoint, TwoSidedResult, log_z_merit};
use crate::exact::known_among;
use crate::observe::{
    Correlation, Estimate, Histogram, ModeMass, Observables, OffsetCorrelation, StructureFactor,
};
use crate::sampler::{PathPoint, PathStop, Reached, WalkerWarning};
use crate::target::Target;

/// What `sample`, `ais` and `smc` find out.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct WalkerResult {
    /// Whether the work was interrupted.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub interrupted: bool,
    /// Where on the path the walkers are that a stop kept from its end: everything here is for there, not for the target.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reached: Option<Reached>,
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
    /// Steps of an interval at which energies followed the path, if more than one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub substeps: Option<usize>,
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
    /// What a second is worth for log Z, see [`log_z_merit`](super::log_z_merit).
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
    /// The lowest energy of the walkers at the end, at points of the trace and at inverse temperatures on the way.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lowest: Option<Lowest>,
    /// Mean log-weight: a lower bound of log Z.
    #[serde(deserialize_with = "null_is_nan")]
    pub elbo: f64,
    /// Averages over the target.
    pub observables: Observables,
    /// The two-point function by distance.
    pub correlation: Vec<Correlation>,
    /// The structure factor at the wave vectors of commensurate order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub structure_factor: Vec<StructureFactor>,
    /// The structure factor at all wave vectors, if they were asked for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub structure_factor_map: Vec<StructureFactor>,
    /// The two-point function at all offsets, if they were asked for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub correlation_map: Vec<OffsetCorrelation>,
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

impl WalkerResult {
    /// Log of the normalisation: from both ways where walkers went back, which whoever sends them wants.
    pub fn best_log_z(&self) -> Estimate {
        self.two_sided.as_ref().map_or(self.log_z, |both| both.log_z)
    }

    /// What a second is worth for [`best_log_z`](Self::best_log_z); files of older versions do not say it, but all that it is made of.
    pub fn best_log_z_merit(&self) -> f64 {
        let said = self.two_sided.as_ref().map_or(self.log_z_merit, |both| both.log_z_merit);
        if said.is_nan() { log_z_merit(self.best_log_z(), self.all_seconds()) } else { said }
    }

    /// Seconds of all ways that walkers went.
    pub fn all_seconds(&self) -> f64 {
        self.two_sided.as_ref().map_or(self.seconds, |both| both.seconds)
    }
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
    /// The structure factor at the wave vectors of commensurate order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub structure_factor: Vec<StructureFactor>,
    /// The probability that a value is the most frequent one, by value.
    pub mode_masses: Vec<ModeMass>,
}

impl WalkerResult {
    /// The observables with the lists that files keep beside them.
    pub fn estimates(&self) -> Observables {
        Observables {
            correlation: self.correlation.clone(),
            structure_factor: self.structure_factor.clone(),
            structure_factor_map: self.structure_factor_map.clone(),
            correlation_map: self.correlation_map.clone(),
            mode_masses: self.mode_masses.clone(),
            ..self.observables.clone()
        }
    }
}

impl BetaResult {
    /// The observables with the lists that files keep beside them.
    pub fn estimates(&self) -> Observables {
        Observables {
            structure_factor: self.structure_factor.clone(),
            mode_masses: self.mode_masses.clone(),
            ..self.observables.clone()
        }
    }

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
            structure_factor: point.observables.structure_factor.clone(),
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
