//! The numbers of tables and figures, out of results.

use leaps::job::experiment::Part;
use leaps::observe::{Estimate, ModeMass, Observables};
use leaps::results::{BetaResult, ChainResult, SamplerResult, WalkerResult};
use serde::Deserialize;

/// A number with its error, and with the exact one if that is known.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Measure {
    pub mean: f64,
    pub error: f64,
    pub exact: Option<f64>,
    /// The error of `exact`, where that is of a reference and not exact.
    pub exact_error: f64,
}

/// Every measure, what tables call it and what axes call it.
const KNOWN: [(&str, &str, &str); 27] = [
    ("steps", "steps", "steps"),
    ("ess", "ESS", "effective sample size per walker"),
    ("log_z", "log Z", "log Z"),
    ("log_z_off", "log Z - exact", "|log Z - exact|"),
    ("log_z_error", "error of log Z", "standard error of log Z"),
    ("log_z_merit", "merit of log Z", "1/(variance of log Z x seconds)"),
    ("entropy_per_site", "S/N", "entropy per site"),
    ("free_energy_per_site", "F/N", "free energy per site"),
    ("energy_per_site", "E/N", "energy per site"),
    ("energy_per_site_off", "E/N - exact", "|E/N - exact|"),
    ("heat_capacity_per_site", "C/N", "heat capacity per site"),
    ("abs_magnetization", "<|m|>", "<|m|>"),
    ("magnetization_squared", "<m²>", "<m²>"),
    ("binder", "Binder", "Binder cumulant"),
    ("susceptibility_per_site", "chi/N", "susceptibility per site"),
    ("network_passes", "passes", "network passes per walker"),
    ("energy_calls", "energy calls", "energy calls per walker"),
    ("seconds", "seconds", "wall time / s"),
    ("seconds_per_1000", "s/1000 walkers", "wall time for 1000 walkers / s"),
    ("effective_per_second", "effective/s", "effective samples per second"),
    ("samples_per_second", "samples/s", "effective samples per second"),
    ("ess_per_step", "ESS/step", "ESS per step"),
    ("ess_per_call", "ESS/call", "ESS per call"),
    ("distance_energy", "TV(E)", "total variation, energy"),
    ("distance_magnetization", "TV(m)", "total variation, magnetisation"),
    ("distance_abs_magnetization", "TV(|m|)", "total variation, |m|"),
    ("mode_masses", "masses of modes", "smallest mass of a mode"),
];

/// Whether there is a measure of this name.
pub fn is_known(name: &str) -> bool {
    KNOWN.iter().any(|known| known.0 == name)
}

/// The names of all measures, for messages.
pub fn names() -> String {
    format!("measures are {}", KNOWN.map(|known| known.0).join(", "))
}

/// What tables call a measure.
pub fn heading(name: &str) -> &str {
    KNOWN.iter().find(|known| known.0 == name).map_or(name, |known| known.1)
}

/// What axes call a measure.
pub fn axis(name: &str) -> &str {
    KNOWN.iter().find(|known| known.0 == name).map_or(name, |known| known.2)
}

/// Numbers of walkers, of chains, or of walkers at an inverse temperature that they passed.
#[derive(Clone, Copy)]
pub enum Numbers<'a> {
    Walkers(&'a WalkerResult),
    Chains(&'a ChainResult),
    Stop(&'a BetaResult),
}

impl<'a> From<&'a SamplerResult> for Numbers<'a> {
    fn from(result: &'a SamplerResult) -> Self {
        match result {
            SamplerResult::Walkers(result) => Numbers::Walkers(result),
            SamplerResult::Chains(result) => Numbers::Chains(result),
        }
    }
}

impl From<Estimate> for Measure {
    fn from(estimate: Estimate) -> Self {
        let Estimate { mean, error, exact } = estimate;
        Measure { mean, error, exact, exact_error: 0.0 }
    }
}

/// A number without an error, if it is finite.
fn sure(mean: f64) -> Option<Measure> {
    let measure = Measure { mean, error: 0.0, exact: None, exact_error: 0.0 };
    mean.is_finite().then_some(measure)
}

fn known(estimate: Estimate) -> Option<Measure> {
    estimate.mean.is_finite().then(|| estimate.into())
}

/// How far an estimate is from the exact value.
fn off(found: Measure) -> Option<Measure> {
    Some(Measure { mean: found.mean - found.exact?, exact: None, ..found })
}

impl Numbers<'_> {
    fn observables(&self) -> Observables {
        match self {
            Numbers::Walkers(result) => result.observables.clone(),
            Numbers::Chains(result) => result.estimates(),
            Numbers::Stop(result) => result.observables.clone(),
        }
    }

    fn ess(&self) -> (f64, f64) {
        match self {
            Numbers::Walkers(result) => (result.ess, result.ess_error),
            Numbers::Chains(result) => (result.ess, result.ess_error),
            Numbers::Stop(result) => (result.ess, result.ess_error),
        }
    }

    fn log_z(&self) -> Option<Measure> {
        match self {
            Numbers::Walkers(result) => known(result.best_log_z()),
            Numbers::Chains(result) => known(result.log_z?),
            Numbers::Stop(result) => known(result.log_z),
        }
    }

    fn log_z_merit(&self) -> Option<f64> {
        match self {
            Numbers::Walkers(result) => Some(result.best_log_z_merit()),
            Numbers::Chains(result) => result.best_log_z_merit(),
            Numbers::Stop(_) => None,
        }
    }

    /// Free energy and entropy per site.
    fn thermodynamics(&self) -> [Option<Estimate>; 2] {
        match self {
            Numbers::Walkers(r) => [Some(r.free_energy_per_site), Some(r.entropy_per_site)],
            Numbers::Chains(r) => [r.free_energy_per_site, r.entropy_per_site],
            Numbers::Stop(r) => [Some(r.free_energy_per_site), Some(r.entropy_per_site)],
        }
    }

    fn steps(&self) -> Option<usize> {
        match self {
            Numbers::Walkers(result) => Some(result.intervals),
            Numbers::Chains(result) => Some(result.steps),
            Numbers::Stop(_) => None,
        }
    }

    /// Walkers or chains, and seconds.
    fn work(&self) -> Option<(usize, f64)> {
        match self {
            Numbers::Walkers(result) => Some((result.walkers, result.all_seconds())),
            Numbers::Chains(result) => Some((result.chains, result.seconds)),
            Numbers::Stop(_) => None,
        }
    }

    fn effective_per_second(&self) -> Option<f64> {
        match self {
            Numbers::Walkers(result) => Some(result.effective_samples_per_second),
            Numbers::Chains(result) => Some(result.effective_samples_per_second),
            Numbers::Stop(_) => None,
        }
    }

    /// Passes through the network and evaluations of the energy, where there are any.
    fn cost(&self) -> [Option<f64>; 2] {
        let (passes, calls) = match self {
            Numbers::Walkers(r) => (r.network_passes_per_walker, r.energy_calls_per_walker),
            Numbers::Chains(r) => (r.network_passes_per_walker, r.energy_calls_per_walker),
            Numbers::Stop(_) => return [None, None],
        };
        [passes, calls].map(|number| Some(number).filter(|number| *number > 0.0))
    }

    /// The probabilities of modes.
    fn modes(&self) -> &[ModeMass] {
        match self {
            Numbers::Walkers(result) => &result.mode_masses,
            Numbers::Chains(result) => &result.mode_masses,
            Numbers::Stop(result) => &result.mode_masses,
        }
    }

    /// The measure of this name, if the result has it.
    pub fn measure(&self, name: &str) -> Option<Measure> {
        let energy = || known(self.observables().energy_per_site);
        let [passes, calls] = self.cost();
        let discs = match self {
            Numbers::Chains(result) => Some(&result.discs),
            _ => None,
        };
        let (ess, error) = self.ess();
        match name {
            "steps" => sure(self.steps()? as f64),
            "ess" => sure(ess).map(|found| Measure { error, ..found }),
            "log_z" => self.log_z(),
            "energy_per_site" => energy(),
            "free_energy_per_site" => known(self.thermodynamics()[0]?),
            "entropy_per_site" => known(self.thermodynamics()[1]?),
            "log_z_off" => off(self.log_z()?),
            "log_z_error" => sure(self.log_z()?.error),
            "log_z_merit" => sure(self.log_z_merit()?),
            "energy_per_site_off" => off(energy()?),
            "network_passes" => sure(passes?),
            "energy_calls" => sure(calls?),
            "seconds" => sure(self.work()?.1),
            "seconds_per_1000" => self.work().and_then(|(n, s)| sure(1000.0 * s / n as f64)),
            // Of chains: as DISCS counts. Of walkers: as the paper does, a walker for a step, its passes for calls.
            // Of chains: by the slowest of energy, |m| and the distance to a random state, which knows of modes.
            "effective_per_second" => {
                let distance = discs.map_or(f64::INFINITY, |discs| discs.ess_per_second);
                sure(self.effective_per_second()?.min(distance))
            }
            "samples_per_second" => {
                sure(discs.map_or(self.effective_per_second()?, |discs| discs.ess_per_second))
            }
            "ess_per_step" => sure(discs.map_or(ess, |discs| discs.ess_per_step)),
            "ess_per_call" => match discs {
                Some(discs) => sure(discs.ess_per_call),
                None => sure(ess / passes.or(calls)?),
            },
            "mode_masses" => {
                let masses = self.modes().iter().filter_map(|mode| known(mode.mass));
                masses.min_by(|a, b| a.mean.total_cmp(&b.mean))
            }
            _ => {
                let all = leaps::results::named(&self.observables());
                known(all.into_iter().find(|(other, _)| *other == name)?.1)
            }
        }
    }
}

/// The measure of this name of a part, beside the reference where nothing exact is known.
pub fn measure(part: &Part, name: &str) -> Option<Measure> {
    let distance = |observable: &str| {
        let found = part.distances.get(observable)?;
        sure(found.total_variation).map(|measure| Measure { error: found.noise, ..measure })
    };
    match name {
        "distance_energy" => return distance("energy_per_site"),
        "distance_magnetization" => return distance("magnetization"),
        "distance_abs_magnetization" => return distance("abs_magnetization"),
        _ => {}
    }
    let found = Numbers::from(part.kept.result()?).measure(name)?;
    let reference = part.reference.get(name).and_then(|value| Estimate::deserialize(value).ok());
    Some(match reference.filter(|_| found.exact.is_none()) {
        Some(reference) => {
            let error = if reference.error.is_finite() { reference.error } else { 0.0 };
            Measure { exact: Some(reference.mean), exact_error: error, ..found }
        }
        None => found,
    })
}

/// The masses of all modes.
pub fn modes(part: &Part) -> Vec<Measure> {
    let numbers = part.kept.result().map(Numbers::from);
    let masses = numbers.iter().flat_map(|numbers| numbers.modes());
    masses.filter_map(|mode| known(mode.mass)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use leaps::prelude::*;
    use serde_json::json;

    fn part(result: SamplerResult) -> Part {
        let kept = json!({
            "name": "part", "settings": {}, "device": "the CPU", "result": result, "histograms": null,
        });
        Part {
            at: None,
            label: "part".to_owned(),
            kept: serde_json::from_value(kept).unwrap(),
            distances: Default::default(),
            reference: Default::default(),
        }
    }

    fn walkers() -> WalkerResult {
        let job = Annealing::ais(Ising::square(2).beta(0.3).unwrap()).walkers(50).intervals(4);
        let mut result = job.run().unwrap().result;
        (result.ess, result.seconds, result.walkers) = (0.2, 2.0, 500);
        (result.network_passes_per_walker, result.energy_calls_per_walker) = (100.0, 7.0);
        result.effective_samples_per_second = 5.0;
        result.log_z = Estimate { mean: 3.5, error: 0.1, exact: Some(3.0) };
        result
    }

    #[test]
    fn results_of_older_versions_have_a_merit_all_the_same() {
        let mut result = walkers();
        result.log_z_merit = f64::NAN;
        let merit = |result: &WalkerResult| {
            let part = part(SamplerResult::Walkers(Box::new(result.clone())));
            measure(&part, "log_z_merit").unwrap().mean
        };
        // An error of 0.1 after 2 seconds.
        assert!((merit(&result) - 50.0).abs() < 1e-9);
        result.log_z_merit = 7.0;
        assert_eq!(merit(&result), 7.0);
    }

    #[test]
    fn references_stand_where_nothing_is_exact() {
        let mut result = walkers();
        let mut with = |exact: Option<f64>| {
            result.log_z.exact = exact;
            let mut part = part(SamplerResult::Walkers(Box::new(result.clone())));
            part.reference.insert("log_z".to_owned(), json!({"mean": 3.2, "error": 0.2}));
            let known = measure(&part, "log_z").unwrap();
            (known.exact, known.exact_error)
        };
        assert_eq!(with(Some(3.0)), (Some(3.0), 0.0));
        assert_eq!(with(None), (Some(3.2), 0.2));
    }

    #[test]
    fn walkers_and_chains_are_counted_as_the_paper_does() {
        let own = part(SamplerResult::Walkers(Box::new(walkers())));
        let mean = |name: &str| measure(&own, name).unwrap().mean;
        assert_eq!(mean("ess_per_step"), 0.2);
        assert!((mean("ess_per_call") - 2e-3).abs() < 1e-15);
        assert_eq!(mean("log_z_off"), 0.5);
        assert_eq!(mean("seconds_per_1000"), 4.0);
        assert_eq!(mean("effective_per_second"), 5.0);
        let job = Chains::new(Ising::square(2).beta(0.3).unwrap()).steps(20);
        let mut chains = job.run().unwrap().result;
        (chains.discs.ess_per_step, chains.discs.ess_per_second) = (1e-4, 4.0);
        // By the slower of energy and |m|, and by the distance to a random state: the slowest counts.
        for (rate, slowest) in [(9.0, 4.0), (3.0, 3.0)] {
            chains.effective_samples_per_second = rate;
            let part = part(SamplerResult::Chains(Box::new(chains.clone())));
            assert_eq!(measure(&part, "effective_per_second").unwrap().mean, slowest);
            assert_eq!(measure(&part, "samples_per_second").unwrap().mean, 4.0);
            assert_eq!(measure(&part, "ess_per_step").unwrap().mean, 1e-4);
            assert_eq!(measure(&part, "log_z"), None);
            assert_eq!(measure(&part, "network_passes"), None);
        }
    }
}
