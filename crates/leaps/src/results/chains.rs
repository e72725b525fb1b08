//! Results of Markov chains, and how well they mix.

use serde::{Deserialize, Serialize};

use super::nulls::{infinite, null_is_infinite, null_is_nan, nulls_are_nan};
use super::thermo::nan;
use super::{Lowest, ThermoPoint, log_z_merit};
use crate::observe::{
    ChainWarning, Correlation, Estimate, ModeMass, Observables, OffsetCorrelation, StructureFactor,
};

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
    #[serde(default = "nan", deserialize_with = "null_is_nan")]
    pub r_hat: f64,
    /// Each with its autocorrelation time in steps and its R-hat, where they are measured.
    pub observables: ChainObservables,
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
    /// Share of proposals that were accepted.
    #[serde(deserialize_with = "null_is_nan")]
    pub acceptance: f64,
    /// Effective sample sizes as the DISCS benchmark reports them.
    pub discs: Discs,
    /// Log of the normalisation, from all temperatures of a ladder together (MBAR), if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub log_z: Option<Estimate>,
    /// What a second is worth for log Z, see [`log_z_merit`](super::log_z_merit).
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
    #[serde(default = "nan", deserialize_with = "null_is_nan")]
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
    /// See [`Observables::density`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub density: Option<Estimate>,
    /// See [`Observables::quadrupole`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quadrupole: Option<Estimate>,
    /// See [`Observables::polarization`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub polarization: Option<Estimate>,
}

impl ChainResult {
    /// What a second is worth for log Z, if there is one; files of older versions do not say it, but all that it is made of.
    pub fn best_log_z_merit(&self) -> Option<f64> {
        self.log_z_merit.or_else(|| Some(log_z_merit(self.log_z?, self.seconds)))
    }

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
            density: own.density,
            quadrupole: own.quadrupole,
            polarization: own.polarization,
            correlation: self.correlation.clone(),
            structure_factor: self.structure_factor.clone(),
            structure_factor_map: self.structure_factor_map.clone(),
            correlation_map: self.correlation_map.clone(),
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
