//! Thermodynamics at one temperature, however it was found.

use serde::{Deserialize, Serialize};

use super::nulls::null_is_nan;
use super::{BetaResult, HistogramResult, attach_exact};
use crate::exact::{self, Exact};
use crate::observe::{Estimate, Layout, Mbar, Observables};
use crate::path::Strength;
use crate::sampler::PathStop;
use crate::target::Target;

/// An estimate that nobody has made, as in files of older versions.
pub(super) fn unknown() -> Estimate {
    Estimate::new(f64::NAN, f64::INFINITY)
}

/// A number that nobody has computed.
pub(super) fn nan() -> f64 {
    f64::NAN
}

/// What a second of an estimator of log Z is worth: one over the variance times the seconds.
///
/// Independent repetitions add up: half the error takes four times the seconds, at the same merit.
pub fn log_z_merit(log_z: Estimate, seconds: f64) -> f64 {
    1.0 / (log_z.error * log_z.error * seconds)
}

/// The lowest of some energies, and a state that has it: of walkers at the end of their way, or of the states that chains keep.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Lowest {
    /// Energy of the whole system.
    #[serde(deserialize_with = "null_is_nan")]
    pub energy: f64,
    /// The same per site.
    #[serde(deserialize_with = "null_is_nan")]
    pub energy_per_site: f64,
    /// Values of the sites, in their order: digits, or numbers with commas between them if a value may have two digits.
    pub state: String,
}

impl Lowest {
    /// A state and its energy.
    pub fn new(energy: f64, x: &[u8], q: usize) -> Self {
        let values: Vec<String> = x.iter().map(u8::to_string).collect();
        let state = values.join(if q <= 10 { "" } else { "," });
        Lowest { energy, energy_per_site: energy / x.len() as f64, state }
    }

    /// The lowest of some states `[state * sites + site]` with their energies.
    pub fn among(energies: &[f64], states: &[u8], target: &dyn Target) -> Option<Self> {
        let (at, &energy) = energies.iter().enumerate().min_by(|a, b| a.1.total_cmp(b.1))?;
        let x = states.get(at * target.sites()..(at + 1) * target.sites())?;
        Some(Lowest::new(energy, x, target.q()))
    }
}

/// Free energy, entropy and observables at one inverse temperature.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ThermoPoint {
    /// The inverse temperature.
    #[serde(deserialize_with = "null_is_nan")]
    pub beta: f64,
    /// The uniform field, where several are looked at.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub field: Option<f64>,
    /// Effective sample size: as a fraction of the walkers, or of the states of all temperatures.
    #[serde(default = "nan", deserialize_with = "null_is_nan")]
    pub ess: f64,
    /// Log of the normalisation.
    pub log_z: Estimate,
    /// `-log Z / (beta N)`.
    pub free_energy_per_site: Estimate,
    /// `(log Z + <U>) / N`.
    pub entropy_per_site: Estimate,
    /// Averages.
    pub observables: Observables,
    /// What a second is worth, [`log_z_merit`]; seconds that several temperatures share count in full for each.
    #[serde(default = "nan", deserialize_with = "null_is_nan")]
    pub log_z_merit: f64,
    /// The lowest energy of the run that the point is of, which points of the same field may share.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lowest: Option<Lowest>,
}

impl ThermoPoint {
    /// What a ladder says about an inverse temperature within it, with the exact answer beside it where it is known.
    pub fn of_ladder(target: &dyn Target, beta: f64, mbar: &Mbar, exact: Option<&Exact>) -> Self {
        let sites = target.sites() as f64;
        let lambda = vec![beta; target.terms()];
        let layout = Layout {
            sites: target.sites(),
            beta,
            distances: 0,
            sides: Vec::new(),
            q: target.q(),
            modes: 0,
            symmetric: crate::observe::symmetric(target, &lambda),
            equivalent: false,
            site_means: Vec::new(),
            waves: Vec::new(),
            steps: Vec::new(),
        };
        let at = mbar.at(beta);
        let entropy = at.estimate(|m| (m[Mbar::LOG_Z] + m[Layout::POTENTIAL]) / sites);
        let point = ThermoPoint {
            beta,
            field: None,
            ess: mbar.effective_share(beta),
            log_z: at.mean(Mbar::LOG_Z),
            free_energy_per_site: unknown(),
            entropy_per_site: entropy,
            observables: Observables::new(&layout, &at),
            log_z_merit: f64::NAN,
            lowest: None,
        };
        point.beside(target, &lambda, exact)
    }

    /// What walkers say about an inverse temperature that they pass.
    pub fn of_stop(target: &dyn Target, beta: f64, stop: &PathStop, exact: Option<&Exact>) -> Self {
        let point = ThermoPoint {
            beta,
            field: None,
            ess: stop.ess.mean,
            log_z: stop.log_z,
            free_energy_per_site: unknown(),
            entropy_per_site: per_site(stop.entropy, target.sites() as f64),
            observables: stop.observables.clone(),
            log_z_merit: f64::NAN,
            lowest: None,
        };
        point.beside(target, &stop.lambda, exact)
    }

    /// What walkers said about an inverse temperature that they passed.
    pub fn of_beta(found: &BetaResult) -> Self {
        ThermoPoint {
            beta: found.beta,
            field: None,
            ess: found.ess,
            log_z: found.log_z,
            free_energy_per_site: found.free_energy_per_site,
            entropy_per_site: found.entropy_per_site,
            observables: found.observables.clone(),
            log_z_merit: f64::NAN,
            lowest: None,
        }
    }

    /// The free energy of log Z, and exact values at the weights `lambda`.
    pub(super) fn beside(
        mut self,
        target: &dyn Target,
        lambda: &[f64],
        exact: Option<&Exact>,
    ) -> Self {
        let sites = target.sites() as f64;
        if let Some(exact) = exact {
            self.log_z = self.log_z.with_exact(exact.log_z);
            if let Some(entropy) = exact_entropy_per_site(exact, lambda, sites) {
                self.entropy_per_site = self.entropy_per_site.with_exact(entropy);
            }
            attach_exact(&mut self.observables, exact, target, lambda);
        }
        self.free_energy_per_site = free_energy_per_site(self.log_z, self.beta, sites);
        self
    }

    /// Several temperatures of a ladder, each with its exact values where they are quickly known.
    pub fn along_ladder(target: &dyn Target, betas: &[f64], mbar: &Mbar) -> Vec<Self> {
        let point = |&beta: &f64| {
            let exact = exact::known_among(target, &vec![beta; target.terms()], betas.len());
            ThermoPoint::of_ladder(target, beta, mbar, exact.as_ref())
        };
        betas.iter().map(point).collect()
    }

    /// The quantities by the names they are printed under.
    pub fn named(&self) -> [(&'static str, Estimate); 7] {
        [
            ("log_z", self.log_z),
            ("free_energy_per_site", self.free_energy_per_site),
            ("entropy_per_site", self.entropy_per_site),
            ("energy_per_site", self.observables.energy_per_site),
            ("heat_capacity_per_site", self.observables.heat_capacity_per_site),
            ("abs_magnetization", self.observables.abs_magnetization),
            ("susceptibility_per_site", self.observables.susceptibility_per_site),
        ]
    }
}

/// `(log Z + <U>) / N` of an exact answer, known where all weights are the same, so that `<U> = beta <H>`.
pub(crate) fn exact_entropy_per_site(exact: &Exact, lambda: &[f64], sites: f64) -> Option<f64> {
    let &beta = lambda.first()?;
    let equal = lambda.iter().all(|weight| *weight == beta);
    equal.then(|| (exact.log_z + beta * exact.energy) / sites)
}

fn per_site(whole: Estimate, sites: f64) -> Estimate {
    Estimate::new(whole.mean / sites, whole.error / sites)
}

/// `-log Z / (beta N)`.
pub fn free_energy_per_site(log_z: Estimate, beta: f64, sites: f64) -> Estimate {
    let scale = beta * sites;
    let free = Estimate::new(-log_z.mean / scale, log_z.error / scale.abs());
    log_z.exact.map_or(free, |exact| free.with_exact(-exact / scale))
}

/// An estimate of log Z from walkers that went along the path and from others that went back.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct TwoSidedResult {
    /// Log of the normalisation.
    pub log_z: Estimate,
    /// What a second is worth, see [`log_z_merit`]: those of both ways, and of the samples that the way back starts from.
    #[serde(default = "nan", deserialize_with = "null_is_nan")]
    pub log_z_merit: f64,
    /// What the log-weights of both ways have in common, 1/2 at the most.
    #[serde(deserialize_with = "null_is_nan")]
    pub overlap: f64,
    /// Where the samples of the target come from.
    pub starts: String,
    /// The log-weights of the way there, about the estimate.
    pub forward: HistogramResult,
    /// Those of the way back, with the opposite sign.
    pub reversed: HistogramResult,
    /// Reasons to doubt it, in words.
    #[serde(default)]
    pub warnings: Vec<String>,
    /// Seconds that it took, the way there included.
    #[serde(deserialize_with = "null_is_nan")]
    pub seconds: f64,
}

/// Less in common than this is too little.
const OVERLAP: f64 = 0.03;

impl TwoSidedResult {
    /// What is to be said of an overlap.
    pub(crate) fn doubt(overlap: f64) -> Option<String> {
        (overlap.is_nan() || overlap < OVERLAP).then(|| {
            format!("log-weights of the way there and of the way back overlap by {overlap:.3}, below 0.03; use more intervals or sweeps")
        })
    }
}

/// Free energies over a grid of temperatures and fields.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct FreeEnergyResult {
    /// The seed that the seeds of the points are made of.
    pub seed: u64,
    /// How they were found: `network`, `ais`, `smc` or `tempering`.
    pub method: String,
    /// The network, where there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// What stands as the `field` of the points: the field, a chemical potential or a crystal field.
    #[serde(default, skip_serializing_if = "Strength::is_field")]
    pub of: Strength,
    /// Field by field from hot to cold; those that there are, if the work was interrupted.
    pub points: Vec<ThermoPoint>,
    /// How many points were asked for, if the work was interrupted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asked: Option<usize>,
    /// Whether the work was interrupted; the last points of ladders are then from fewer steps.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub interrupted: bool,
    /// The lowest energy of all points: of walkers at the end of their way, or of the states that ladders keep. Fields are parts of energies.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lowest: Option<Lowest>,
    /// Reasons to doubt the numbers, in words.
    #[serde(default)]
    pub warnings: Vec<String>,
    /// Seconds that it took.
    #[serde(deserialize_with = "null_is_nan")]
    pub seconds: f64,
}
