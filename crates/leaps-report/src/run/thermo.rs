//! Sections about temperatures: the rungs of a ladder, and free energies over a grid.

use leaps::results::{FreeEnergyResult, TemperingResult, ThermoPoint};
use serde_json::Value;

use super::html::{escape, shown, table};
use crate::text::{Short, fixed, sigmas, with_error};

/// Names of quantities at the heads of tables.
const HEADS: [&str; 7] = ["log Z", "F/N", "S/N", "E/N", "C/N", "|m|", "chi/N"];

/// Keys of the quantities of a point in results, in the order of [`ThermoPoint::named`].
const KEYS: [&str; 7] = [
    "log_z",
    "free_energy_per_site",
    "entropy_per_site",
    "observables.energy_per_site",
    "observables.heat_capacity_per_site",
    "observables.abs_magnetization",
    "observables.susceptibility_per_site",
];

/// A list of points of a result, where it lies in it, and the columns before its quantities.
struct Points<'a> {
    results: &'a Value,
    place: &'a str,
    points: &'a [ThermoPoint],
}

impl Points<'_> {
    fn exact(&self) -> bool {
        self.points.iter().any(|point| point.log_z.exact.is_some())
    }

    /// The heads of the quantities, with columns for the exact log Z if it is `exact` somewhere.
    fn head(exact: bool) -> Vec<String> {
        let mut heads = vec![HEADS[0].to_owned()];
        heads.extend(["exact", "sigmas"].iter().filter(|_| exact).map(|&head| head.to_owned()));
        heads.extend(HEADS[1..].iter().map(|&head| head.to_owned()));
        heads
    }

    /// The quantities of a point.
    fn cells(&self, at: usize, exact: bool) -> Vec<String> {
        let mut cells = Vec::new();
        for ((name, e), key) in self.points[at].named().into_iter().zip(KEYS) {
            let path = |part: &str| format!("{}.{at}.{key}.{part}", self.place);
            cells.push(match e.mean.is_finite() {
                true => shown(self.results, &path("mean"), &with_error(e.mean, e.error)),
                false => "-".to_owned(),
            });
            if name == "log_z" && exact {
                let known = e.exact.map(|value| {
                    let cell = shown(self.results, &path("exact"), &fixed(value, 4));
                    [cell, sigmas(e.mean, e.error, value)]
                });
                cells.extend(known.unwrap_or_else(|| ["-".to_owned(), "-".to_owned()]));
            }
        }
        cells
    }

    /// A number of a point.
    fn number(&self, at: usize, key: &str, words: &str) -> String {
        shown(self.results, &format!("{}.{at}.{key}", self.place), words)
    }
}

/// The temperatures of a ladder: how well neighbours exchange, and what all of them together say about each.
pub fn ladder(results: &Value, tempering: &TemperingResult) -> String {
    let rungs = Points { results, place: "tempering.rungs", points: &tempering.rungs };
    let between = Points { results, place: "tempering.at_beta", points: &tempering.at_beta };
    if rungs.points.is_empty() {
        return String::new();
    }
    let exact = rungs.exact();
    let mut head = ["beta", "swaps", "overlap"].map(str::to_owned).to_vec();
    head.extend(Points::head(exact));
    let mut rows = vec![head];
    // Swaps and overlaps are those with the next rung; the first overlap is that of the hottest with infinite temperature.
    let share = |key: &str, at: usize, share: Option<&f64>| match share {
        Some(share) => shown(results, &format!("tempering.{key}.{at}"), &fixed(*share, 3)),
        None => "-".to_owned(),
    };
    for (at, rung) in rungs.points.iter().enumerate() {
        let mut row = vec![
            rungs.number(at, "beta", &fixed(rung.beta, 6)),
            share("swap_rates", at, tempering.swap_rates.get(at)),
            share("overlaps", at + 1, tempering.overlaps.get(at + 1)),
        ];
        row.extend(rungs.cells(at, exact));
        rows.push(row);
    }
    for (at, point) in between.points.iter().enumerate() {
        let beta = between.number(at, "beta", &fixed(point.beta, 6));
        let mut row = vec![beta, "-".to_owned(), "-".to_owned()];
        row.extend(between.cells(at, exact));
        rows.push(row);
    }
    let mut notes = vec!["log Z and averages by MBAR, from the states of all rungs.".to_owned()];
    if let Some(first) = tempering.overlaps.first() {
        notes.push(format!("Overlap of infinite temperature and the hottest rung: {first:.3}."));
    }
    if let Some(log_z) = tempering.log_z_by_integration {
        let path = "tempering.log_z_by_integration.mean";
        let value = shown(results, path, &with_error(log_z.mean, log_z.error));
        notes.push(format!("log Z of the last by thermodynamic integration: {value}."));
    }
    table("Temperatures of the ladder", "numbers", &rows)
        + &format!("<p class=\"note\">{}</p>\n", notes.join(" "))
}

/// Free energies and averages, point by point.
pub fn grid(results: &Value, result: &FreeEnergyResult) -> String {
    let points = Points { results, place: "points", points: &result.points };
    let fields = result.points.iter().any(|point| point.field.is_some());
    let exact = points.exact();
    let mut head = vec!["beta".to_owned()];
    head.extend(fields.then(|| "h".to_owned()));
    head.push("ESS".to_owned());
    head.extend(Points::head(exact));
    head.push("log Z merit".to_owned());
    let mut rows = vec![head];
    for (at, point) in result.points.iter().enumerate() {
        let mut row = vec![points.number(at, "beta", &escape(&point.beta.to_string()))];
        if fields {
            let field = point.field.map_or_else(String::new, |field| field.to_string());
            row.push(points.number(at, "field", &field));
        }
        row.push(points.number(at, "ess", &fixed(point.ess, 3)));
        row.extend(points.cells(at, exact));
        let merit = Short(point.log_z_merit).to_string();
        row.push(points.number(at, "log_z_merit", &merit));
        rows.push(row);
    }
    table("Free energies", "numbers", &rows)
}
