//! What results of all kinds may have: the same numbers and words, whatever found them.

use leaps::observe::{Estimate, Observables};
use leaps::results::{Lowest, SamplerResult, TwoSidedResult};

use super::source::Source;

/// See the [module](self); what a result does not have is `None`.
#[derive(Default)]
pub struct Found<'a> {
    pub method: Option<&'a str>,
    pub scheme: Option<&'a str>,
    pub kernel: Option<&'a str>,
    pub model: Option<&'a str>,
    pub walkers: Option<usize>,
    pub intervals: Option<usize>,
    pub resamplings: Option<usize>,
    pub chains: Option<usize>,
    pub steps: Option<usize>,
    pub interrupted: bool,
    pub seed: Option<u64>,
    pub log_z: Option<Estimate>,
    pub free_energy: Option<Estimate>,
    pub entropy: Option<Estimate>,
    /// Effective sample size as a fraction.
    pub ess: Option<Estimate>,
    pub elbo: Option<f64>,
    pub network_passes: Option<f64>,
    pub energy_calls: Option<f64>,
    /// Effective samples per second.
    pub samples: Option<f64>,
    pub log_z_merit: Option<f64>,
    pub two_sided: Option<&'a TwoSidedResult>,
    pub seconds: Option<f64>,
    pub lowest: Option<&'a Lowest>,
    pub observables: Option<Observables>,
}

impl<'a> Found<'a> {
    /// What the results of a source have.
    pub fn of(source: &'a Source) -> Self {
        match &source.result {
            Some(SamplerResult::Walkers(own)) => {
                return Found {
                    scheme: Some(&own.scheme),
                    kernel: Some(&own.kernel),
                    model: own.model.as_deref(),
                    walkers: Some(own.walkers),
                    intervals: Some(own.intervals),
                    resamplings: Some(own.resamplings),
                    interrupted: own.interrupted,
                    seed: Some(own.seed),
                    log_z: Some(own.log_z),
                    free_energy: Some(own.free_energy_per_site),
                    entropy: Some(own.entropy_per_site),
                    ess: Some(Estimate::new(own.ess, own.ess_error)),
                    elbo: Some(own.elbo),
                    network_passes: Some(own.network_passes_per_walker),
                    energy_calls: Some(own.energy_calls_per_walker),
                    samples: Some(own.effective_samples_per_second),
                    log_z_merit: Some(own.log_z_merit),
                    two_sided: own.two_sided.as_ref(),
                    seconds: Some(own.seconds),
                    lowest: own.lowest.as_ref(),
                    observables: Some(own.observables.clone()),
                    ..Found::default()
                };
            }
            Some(SamplerResult::Chains(own)) => {
                return Found {
                    scheme: Some(&own.scheme),
                    kernel: Some(&own.kernel),
                    chains: Some(own.chains),
                    steps: Some(own.steps),
                    interrupted: own.interrupted,
                    seed: Some(own.seed),
                    log_z: own.log_z,
                    free_energy: own.free_energy_per_site,
                    entropy: own.entropy_per_site,
                    ess: Some(Estimate::new(own.ess, own.ess_error)),
                    network_passes: Some(own.network_passes_per_walker),
                    energy_calls: Some(own.energy_calls_per_walker),
                    samples: Some(own.effective_samples_per_second),
                    log_z_merit: own.log_z_merit,
                    seconds: Some(own.seconds),
                    lowest: own.lowest.as_ref(),
                    observables: Some(own.estimates()),
                    ..Found::default()
                };
            }
            None => {}
        }
        if let Some(own) = &source.free_energy {
            return Found {
                method: Some(&own.method),
                model: own.model.as_deref(),
                interrupted: own.interrupted,
                seed: Some(own.seed),
                seconds: Some(own.seconds),
                lowest: own.lowest.as_ref(),
                ..Found::default()
            };
        }
        if let Some(own) = &source.minimum {
            return Found {
                method: Some(&own.method),
                model: own.model.as_deref(),
                walkers: Some(own.walkers),
                seed: Some(own.seed),
                seconds: Some(own.seconds),
                lowest: Some(&own.lowest),
                ..Found::default()
            };
        }
        source.exact.as_ref().map_or_else(Found::default, |own| Found {
            method: Some(&own.method),
            seconds: Some(own.seconds),
            lowest: own.lowest.as_ref(),
            ..Found::default()
        })
    }

    /// What was set, by the keys of results.
    pub fn settings(&self) -> Vec<(&'static str, String)> {
        let words = [
            ("method", self.method),
            ("scheme", self.scheme),
            ("kernel", self.kernel),
            ("model", self.model),
        ];
        let counts = [
            ("walkers", self.walkers),
            ("intervals", self.intervals),
            ("resamplings", self.resamplings),
            ("chains", self.chains),
            ("steps", self.steps),
        ];
        let words = words.into_iter().filter_map(|(key, word)| Some((key, word?.to_owned())));
        let counts = counts.into_iter().filter_map(|(key, n)| Some((key, n?.to_string())));
        words.chain(counts).collect()
    }
}
