//! The masses of modes: how often every value is the most frequent one.

use leaps::job::Law;
use leaps::observe::ModeMass;
use leaps::results::{SamplerResult, named_modes};
use serde_json::Value;

use super::html::{escape, shown, table};
use crate::draw::{Chart, GREY, Mark};
use crate::text::{fixed, sigmas, with_error};

/// The masses of a result.
pub fn masses(result: &SamplerResult) -> &[ModeMass] {
    match result {
        SamplerResult::Walkers(result) => &result.mode_masses,
        SamplerResult::Chains(result) => &result.mode_masses,
    }
}

/// Those of a reference.
fn theirs(reference: Option<&Law>) -> Vec<ModeMass> {
    reference.map(|law| law.samples.observables().mode_masses).unwrap_or_default()
}

/// A name short enough for an axis.
fn short(name: &str) -> String {
    name.trim_start_matches("mass of ").to_owned()
}

/// A bar for every mode; nothing if they are many.
pub fn chart(masses: &[ModeMass], reference: Option<&Law>) -> Chart {
    let named = named_modes(masses);
    let bars = named.iter().enumerate().map(|(k, (_, mass))| (k as f64, mass.mean, mass.error));
    let names = named.iter().map(|(name, _)| short(name)).collect();
    let others = named_modes(&theirs(reference)).into_iter().enumerate();
    let exact = reference.is_some_and(|law| law.name == "exact");
    let dots =
        others.map(|(k, (_, mass))| (k as f64, mass.mean, if exact { 0.0 } else { mass.error }));
    let chart = Chart::new("Masses of modes", "mode", "probability");
    if named.is_empty() {
        return chart;
    }
    let chart =
        chart.columns(names).y_between(0.0, 1.0).series("this run", Mark::Bars, bars.collect());
    match reference {
        Some(law) => chart.coloured(&law.name, Mark::Dots, dots.collect(), GREY),
        None => chart,
    }
}

/// The same in numbers.
pub fn listed(results: &Value, masses: &[ModeMass], reference: Option<&Law>) -> String {
    let named = named_modes(masses);
    if named.is_empty() {
        return String::new();
    }
    let others = named_modes(&theirs(reference));
    let mut head = ["mode", "probability"].map(str::to_owned).to_vec();
    if let Some(law) = reference {
        head.extend([escape(&law.name), "sigmas".to_owned()]);
    }
    let mut rows = vec![head];
    for (k, (name, mass)) in named.iter().enumerate() {
        let path = format!("mode_masses.{k}.mean");
        let own = shown(results, &path, &with_error(mass.mean, mass.error));
        let mut row = vec![escape(&short(name)), own];
        if let Some(law) = reference {
            let exact = law.name == "exact";
            row.extend(match others.get(k) {
                Some((_, other)) if exact => {
                    [fixed(other.mean, 6), sigmas(mass.mean, mass.error, other.mean)]
                }
                Some((_, other)) => [
                    with_error(other.mean, other.error),
                    sigmas(mass.mean, mass.error.hypot(other.error), other.mean),
                ],
                None => ["-".to_owned(), "-".to_owned()],
            });
        }
        rows.push(row);
    }
    table("Masses of modes", "numbers", &rows)
}
