//! The masses of modes, how often every value is the most frequent one, and structure factors.

use leaps::job::Law;
use leaps::observe::{Estimate, ModeMass, StructureFactor};
use leaps::results::{SamplerResult, named_modes, named_waves};

use super::html::{Form, escape, shown, table};
use crate::draw::{Chart, GREY, Mark};
use crate::text::{fixed, sigmas, with_error};

/// The masses of a result.
pub fn masses(result: &SamplerResult) -> &[ModeMass] {
    match result {
        SamplerResult::Walkers(result) => &result.mode_masses,
        SamplerResult::Chains(result) => &result.mode_masses,
    }
}

/// The structure factors of a result.
pub fn structure(result: &SamplerResult) -> &[StructureFactor] {
    match result {
        SamplerResult::Walkers(result) => &result.structure_factor,
        SamplerResult::Chains(result) => &result.structure_factor,
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
pub fn listed(masses: &[ModeMass], reference: Option<&Law>) -> String {
    let short = |(name, mass): (String, Estimate)| (short(&name), mass);
    let named: Vec<_> = named_modes(masses).into_iter().map(short).collect();
    let head = ["mode", "probability", "mode_masses"];
    estimates("Masses of modes", head, &named, (reference, named_modes(&theirs(reference))))
}

/// Structure factors in numbers.
pub fn waves(waves: &[StructureFactor], reference: Option<&Law>) -> String {
    let named: Vec<_> = named_waves(waves)
        .into_iter()
        .map(|(name, value)| (name.trim_start_matches("structure_factor").to_owned(), value))
        .collect();
    let theirs = reference.map(|law| law.samples.observables().structure_factor);
    let others = named_waves(&theirs.unwrap_or_default());
    let head = ["wave vector", "S(k)", "structure_factor"];
    estimates("Structure factor", head, &named, (reference, others))
}

/// A table of estimates beside those of a reference: what the rows are, what the numbers are, and the key of the list in the results.
fn estimates(
    title: &str,
    [what, number, key]: [&str; 3],
    named: &[(String, Estimate)],
    (reference, others): (Option<&Law>, Vec<(String, Estimate)>),
) -> String {
    if named.is_empty() {
        return String::new();
    }
    let mut head = [what, number].map(str::to_owned).to_vec();
    if let Some(law) = reference {
        head.extend([escape(&law.name), "sigmas".to_owned()]);
    }
    let mut rows = vec![head];
    for (k, (name, value)) in named.iter().enumerate() {
        let own = shown(&format!("{key}.{k}.mean"), value.mean, Form::WithError(value.error));
        let mut row = vec![escape(name), own];
        if let Some(law) = reference {
            let exact = law.name == "exact";
            row.extend(match others.get(k) {
                Some((_, other)) if exact => {
                    [fixed(other.mean, 6), sigmas(value.mean, value.error, other.mean)]
                }
                Some((_, other)) => [
                    with_error(other.mean, other.error),
                    sigmas(value.mean, value.error.hypot(other.error), other.mean),
                ],
                None => ["-".to_owned(), "-".to_owned()],
            });
        }
        rows.push(row);
    }
    table(title, "numbers", &rows)
}
