//! Sections about temperatures: the rungs of a ladder, and free energies over a grid.

use leaps::results::{FreeEnergyResult, TemperingResult, ThermoPoint};

use super::html::{Form, estimated, shown, table};
use crate::text::sigmas;

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
            let path = format!("{}.{at}.{key}", self.place);
            cells.push(estimated(&path, e));
            if name == "log_z" && exact {
                let known = e.exact.map(|value| {
                    let cell = shown(&format!("{path}.exact"), value, Form::Fixed(4));
                    [cell, sigmas(e.mean, e.error, value)]
                });
                cells.extend(known.unwrap_or_else(|| ["-".to_owned(), "-".to_owned()]));
            }
        }
        cells
    }

    /// A number of a point.
    fn number(&self, at: usize, key: &str, value: f64, form: Form) -> String {
        shown(&format!("{}.{at}.{key}", self.place), value, form)
    }

    /// The inverse temperature of a point.
    fn beta(&self, at: usize, form: Form) -> String {
        self.number(at, "beta", self.points[at].beta, form)
    }
}

/// The temperatures of a ladder: how well neighbours exchange, and what all of them together say about each.
pub fn ladder(tempering: &TemperingResult) -> String {
    let rungs = Points { place: "tempering.rungs", points: &tempering.rungs };
    let between = Points { place: "tempering.at_beta", points: &tempering.at_beta };
    if rungs.points.is_empty() {
        return String::new();
    }
    let exact = rungs.exact();
    let mut head = ["beta", "swaps", "overlap"].map(str::to_owned).to_vec();
    head.extend(Points::head(exact));
    let mut rows = vec![head];
    // Swaps and overlaps are those with the next rung; the first overlap is that of the hottest with infinite temperature.
    let share = |key: &str, all: &[f64], at: usize| {
        let value = all.get(at).copied().unwrap_or(f64::NAN);
        shown(&format!("tempering.{key}.{at}"), value, Form::Fixed(3))
    };
    for at in 0..rungs.points.len() {
        let mut row = vec![
            rungs.beta(at, Form::Fixed(6)),
            share("swap_rates", &tempering.swap_rates, at),
            share("overlaps", &tempering.overlaps, at + 1),
        ];
        row.extend(rungs.cells(at, exact));
        rows.push(row);
    }
    for at in 0..between.points.len() {
        let beta = between.beta(at, Form::Fixed(6));
        let mut row = vec![beta, "-".to_owned(), "-".to_owned()];
        row.extend(between.cells(at, exact));
        rows.push(row);
    }
    let mut notes = vec!["log Z and averages by MBAR, from the states of all rungs.".to_owned()];
    if let Some(first) = tempering.overlaps.first() {
        notes.push(format!("Overlap of infinite temperature and the hottest rung: {first:.3}."));
    }
    if let Some(log_z) = tempering.log_z_by_integration {
        let value = estimated("tempering.log_z_by_integration", log_z);
        notes.push(format!("log Z of the last by thermodynamic integration: {value}."));
    }
    table("Temperatures of the ladder", "numbers", &rows)
        + &format!("<p class=\"note\">{}</p>\n", notes.join(" "))
}

/// Free energies and averages, point by point.
pub fn grid(result: &FreeEnergyResult) -> String {
    let points = Points { place: "points", points: &result.points };
    let fields = result.points.iter().any(|point| point.field.is_some());
    let exact = points.exact();
    let mut head = vec!["beta".to_owned()];
    head.extend(fields.then(|| result.of.symbol().to_owned()));
    head.push("ESS".to_owned());
    head.extend(Points::head(exact));
    head.push("log Z merit".to_owned());
    let mut rows = vec![head];
    for (at, point) in result.points.iter().enumerate() {
        let mut row = vec![points.beta(at, Form::Full)];
        let field = point.field.unwrap_or(f64::NAN);
        row.extend(fields.then(|| points.number(at, "field", field, Form::Full)));
        row.push(points.number(at, "ess", point.ess, Form::Fixed(3)));
        row.extend(points.cells(at, exact));
        row.push(points.number(at, "log_z_merit", point.log_z_merit, Form::Short));
        rows.push(row);
    }
    table("Free energies", "numbers", &rows)
}
