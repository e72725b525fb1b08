//! Free energies over temperatures and fields: curves and maps.

use leaps::path::Strength;
use leaps::results::{FreeEnergyResult, ThermoPoint};

use crate::draw::{Chart, GREY, HeatMap, Mark, Svg};
use crate::figure::Figure;

/// Panels of one figure, from left to right and from top to bottom: key, name and label.
const QUANTITIES: [(&str, &str, &str); 6] = [
    ("free_energy_per_site", "free-energy", "Free energy per site"),
    ("entropy_per_site", "entropy", "Entropy per site"),
    ("energy_per_site", "energy", "Energy per site"),
    ("heat_capacity_per_site", "heat-capacity", "Heat capacity per site"),
    ("abs_magnetization", "abs-magnetization", "|m|"),
    ("susceptibility_per_site", "susceptibility", "Susceptibility per site"),
];
/// The key of the effective sample size, which is no average.
const ESS: &str = "ess";
const ACROSS: usize = 2;
/// More curves than this cannot be told apart: then fields are an axis.
const MOST_CURVES: usize = 5;

/// A figure for every quantity: curves over the inverse temperature, or maps if there are many fields.
pub(crate) fn panels(section: &'static str, points: &[ThermoPoint], of: Strength) -> Vec<Figure> {
    QUANTITIES.iter().map(|quantity| panel(section, quantity, points, of)).collect()
}

/// The same for the effective sample size.
pub(crate) fn ess(section: &'static str, points: &[ThermoPoint], of: Strength) -> Figure {
    panel(section, &(ESS, ESS, "Effective sample size"), points, of)
}

fn panel(
    section: &'static str,
    &(key, name, label): &(&str, &str, &str),
    points: &[ThermoPoint],
    of: Strength,
) -> Figure {
    let mut fields: Vec<Option<f64>> = points.iter().map(|point| point.field).collect();
    fields.dedup();
    let mapped = fields.len() > MOST_CURVES && points.len() > fields.len();
    Figure {
        name: name.to_owned(),
        title: label.to_owned(),
        section,
        element: match mapped {
            true => map(key, label, points, of),
            false => curves(key, label, points, (of, &fields)),
        },
    }
}

/// One figure of all quantities. SVG text without its name space.
pub fn figure(title: &str, result: &FreeEnergyResult) -> String {
    whole(title, &panels("", &result.points, result.of))
}

/// Several panels side by side.
pub(crate) fn whole(title: &str, panels: &[Figure]) -> String {
    let (width, height) = Chart::SIZE;
    let rows = panels.len().div_ceil(ACROSS);
    let mut svg = Svg::new(ACROSS as f64 * width, rows as f64 * height, title, "");
    for (k, panel) in panels.iter().enumerate() {
        let place = ((k % ACROSS) as f64 * width, (k / ACROSS) as f64 * height);
        svg.nest(place, Chart::SIZE, &panel.element);
    }
    svg.finish()
}

/// The value of a quantity, its error, and its exact value.
fn value(point: &ThermoPoint, key: &str) -> (f64, f64, Option<f64>) {
    if key == ESS {
        return (point.ess, 0.0, None);
    }
    let found = point.named().into_iter().find(|(name, _)| *name == key);
    found.map_or((f64::NAN, 0.0, None), |(_, e)| (e.mean, e.error, e.exact))
}

fn curves(
    key: &str,
    label: &str,
    points: &[ThermoPoint],
    (of, fields): (Strength, &[Option<f64>]),
) -> String {
    let mut chart = Chart::new(label, "beta", label);
    let mut exact_named = false;
    for (colour, &field) in fields.iter().enumerate() {
        let own = || points.iter().filter(move |point| point.field == field);
        let name = field.map_or_else(String::new, |field| format!("{} = {field}", of.symbol()));
        let exact: Vec<_> =
            own().filter_map(|p| value(p, key).2.map(|exact| (p.beta, exact, 0.0))).collect();
        let found = own().map(|point| {
            let (mean, error, _) = value(point, key);
            (point.beta, mean, error)
        });
        chart = chart.coloured(&name, Mark::Joined, found.collect(), colour);
        if exact.len() > 1 {
            let name = if exact_named { "" } else { "exact" };
            exact_named = true;
            chart = chart.coloured(name, Mark::Dashes, exact, GREY);
        }
    }
    chart.svg()
}

fn map(key: &str, label: &str, points: &[ThermoPoint], of: Strength) -> String {
    let cells =
        points.iter().map(|point| (point.beta, point.field.unwrap_or(0.0), value(point, key).0));
    let across = format!("{} {}", of.words(), of.symbol());
    HeatMap::new(label, "beta", &across, cells.collect()).svg()
}
