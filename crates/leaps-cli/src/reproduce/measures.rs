//! The numbers of tables and figures, out of results.

use serde_json::Value;

use super::json::number;

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
const KNOWN: [(&str, &str, &str); 24] = [
    ("steps", "steps", "steps"),
    ("ess", "ESS", "effective sample size per walker"),
    ("log_z", "log Z", "log Z"),
    ("log_z_off", "log Z - exact", "|log Z - exact|"),
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

/// A measure of a part: what a run found, as it is kept on the disk.
pub fn measure(part: &Value, name: &str) -> Option<Measure> {
    let result = &part["result"];
    let plain = |path: &str| number(result, path);
    let sure = |mean: f64| Measure { mean, error: 0.0, exact: None, exact_error: 0.0 };
    let estimate = |path: &str| {
        Some(Measure {
            mean: plain(&format!("{path}.mean"))?,
            error: plain(&format!("{path}.error")).unwrap_or(f64::INFINITY),
            exact: plain(&format!("{path}.exact")),
            exact_error: 0.0,
        })
    };
    let off =
        |found: Measure| Some(Measure { mean: found.mean - found.exact?, exact: None, ..found });
    let beside = |found: Measure| {
        let reference = &part["reference"][name];
        let exact = found.exact.or_else(|| reference["mean"].as_f64());
        let exact_error =
            if found.exact.is_some() { 0.0 } else { reference["error"].as_f64().unwrap_or(0.0) };
        Measure { exact, exact_error, ..found }
    };
    let walkers = || plain("walkers").or_else(|| plain("chains"));
    match name {
        "steps" => plain("intervals").or_else(|| plain("steps")).map(sure),
        "ess" => {
            let error = plain("ess_error").unwrap_or(f64::INFINITY);
            Some(Measure { mean: plain("ess")?, error, exact: None, exact_error: 0.0 })
        }
        "log_z" => estimate(name).map(beside),
        "energy_per_site" => estimate("observables.energy_per_site").map(beside),
        "free_energy_per_site" => estimate(name),
        "log_z_off" => estimate("log_z").and_then(off),
        "energy_per_site_off" => estimate("observables.energy_per_site").and_then(off),
        "network_passes" => plain("network_passes_per_walker").filter(|n| *n > 0.0).map(sure),
        "energy_calls" => plain("energy_calls_per_walker").filter(|n| *n > 0.0).map(sure),
        "seconds" => plain("seconds").map(sure),
        "seconds_per_1000" => Some(sure(1000.0 * plain("seconds")? / walkers()?)),
        // Of chains: as DISCS counts. Of walkers: as the paper does, a walker for a step, its passes for calls.
        // Of chains: by the slowest of energy, |m| and the distance to a random state, which knows of modes.
        "effective_per_second" => {
            let distance = plain("discs.ess_per_second").unwrap_or(f64::INFINITY);
            plain("effective_samples_per_second").map(|rate| sure(rate.min(distance)))
        }
        "samples_per_second" => plain("discs.ess_per_second")
            .or_else(|| plain("effective_samples_per_second"))
            .map(sure),
        "ess_per_step" => plain("discs.ess_per_step").or_else(|| plain("ess")).map(sure),
        "ess_per_call" => {
            let calls = || {
                let passes = plain("network_passes_per_walker").filter(|n| *n > 0.0);
                Some(plain("ess")? / passes.or_else(|| plain("energy_calls_per_walker"))?)
            };
            plain("discs.ess_per_call").or_else(calls).map(sure)
        }
        "distance_energy" => distance(part, "energy_per_site"),
        "distance_magnetization" => distance(part, "magnetization"),
        "distance_abs_magnetization" => distance(part, "abs_magnetization"),
        "mode_masses" => modes(part).into_iter().min_by(|a, b| a.mean.total_cmp(&b.mean)),
        _ => estimate(&format!("observables.{name}")),
    }
}

/// The total variation from the reference; its error is what noise alone gives.
fn distance(part: &Value, observable: &str) -> Option<Measure> {
    let found = &part["distances"][observable];
    let mean = found["total_variation"].as_f64()?;
    Some(Measure { mean, error: found["noise"].as_f64()?, exact: None, exact_error: 0.0 })
}

/// The masses of all modes.
pub fn modes(part: &Value) -> Vec<Measure> {
    let mass = |mode: &Value| {
        let error = mode["error"].as_f64().unwrap_or(f64::INFINITY);
        Some(Measure { mean: mode["mean"].as_f64()?, error, exact: None, exact_error: 0.0 })
    };
    part["result"]["mode_masses"].as_array().into_iter().flatten().filter_map(mass).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn references_stand_where_nothing_is_exact() {
        let mut part = json!({"result": {"log_z": {"mean": 3.5, "error": 0.1, "exact": 3.0}},
            "reference": {"log_z": {"mean": 3.2, "error": 0.2}}});
        let known = measure(&part, "log_z").unwrap();
        assert_eq!((known.exact, known.exact_error), (Some(3.0), 0.0));
        part["result"]["log_z"]["exact"].take();
        let known = measure(&part, "log_z").unwrap();
        assert_eq!((known.exact, known.exact_error), (Some(3.2), 0.2));
    }

    #[test]
    fn walkers_and_chains_are_counted_as_the_paper_does() {
        let walkers = json!({"result": {"walkers": 500, "intervals": 100, "ess": 0.2, "ess_error": 0.01, "seconds": 2.0,
            "network_passes_per_walker": 100.0, "energy_calls_per_walker": 7.0,
            "log_z": {"mean": 3.5, "error": 0.1, "exact": 3.0}}});
        let mean = |name: &str| measure(&walkers, name).unwrap().mean;
        assert_eq!(mean("ess_per_step"), 0.2);
        assert!((mean("ess_per_call") - 2e-3).abs() < 1e-15);
        assert_eq!(mean("log_z_off"), 0.5);
        assert_eq!(mean("seconds_per_1000"), 4.0);
        let chains =
            json!({"result": {"steps": 50, "discs": {"ess_per_step": 1e-4, "ess_per_call": 5e-5}}});
        assert_eq!(measure(&chains, "ess_per_step").unwrap().mean, 1e-4);
        // By the slower of energy and |m|, and by the distance to a random state: the slowest counts.
        let both = json!({"result": {"effective_samples_per_second": 9.0, "discs": {"ess_per_second": 4.0}}});
        assert_eq!(measure(&both, "effective_per_second").unwrap().mean, 4.0);
        assert_eq!(measure(&both, "samples_per_second").unwrap().mean, 4.0);
        let slow = json!({"result": {"effective_samples_per_second": 3.0, "discs": {"ess_per_second": 4.0}}});
        assert_eq!(measure(&slow, "effective_per_second").unwrap().mean, 3.0);
        let walkers = json!({"result": {"effective_samples_per_second": 5.0}});
        assert_eq!(measure(&walkers, "effective_per_second").unwrap().mean, 5.0);
        assert_eq!(measure(&chains, "log_z"), None);
        assert_eq!(measure(&chains, "network_passes"), None);
    }
}
