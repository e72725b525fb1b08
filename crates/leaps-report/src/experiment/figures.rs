//! The figures of an experiment, from what its parts found.

use leaps::job::experiment::{
    Experiment, FigureEntry, FigureKind, Part, PreparedNetwork, RunEntry, RunParts,
};
use leaps::results::{HistogramResult, SamplerResult};

use super::means::{Mean, means};
use super::measures::{Numbers, axis, measure};
use crate::draw::{Chart, GREY, Mark};

/// The size of a figure.
const SIZE: (f64, f64) = (540.0, 340.0);

type Points = Vec<(f64, f64, f64)>;

/// Why a figure has nothing to show.
pub fn why_empty(figure: &FigureEntry) -> &'static str {
    match figure.kind {
        FigureKind::Training => "no network was trained here",
        FigureKind::Temperatures => {
            "none of its runs was measured on the way: at_beta asks for that, of ais, smc or sample"
        }
        FigureKind::Difference => "there is no reference, or nothing to hold against it",
        _ => "its runs do not have these numbers",
    }
}

/// The chart of every figure, empty if it has nothing to show.
pub fn figures<'e>(
    experiment: &'e Experiment,
    networks: &[PreparedNetwork],
    runs: &[RunParts],
) -> Vec<(&'e FigureEntry, Chart)> {
    let draw = |figure: &'e FigureEntry| {
        let own: Vec<&RunParts> = runs
            .iter()
            .filter(|one| figure.runs.is_empty() || figure.runs.contains(&one.run.name))
            .filter(|one| {
                figure.target.is_empty() || [&one.heading, &one.group].contains(&&figure.target)
            })
            .collect();
        let chart = match figure.kind {
            FigureKind::Training => training(figure, networks),
            FigureKind::Histogram => histograms(figure, &own),
            FigureKind::Difference => differences(figure, &own, runs),
            FigureKind::Correlation => correlation(figure, &own, experiment),
            FigureKind::Sweep => sweep(figure, &own),
            FigureKind::Rows => rows(figure, &own, &experiment.theirs),
            FigureKind::Temperatures => temperatures(figure, &own),
        };
        (figure, chart)
    };
    experiment.figures.iter().map(draw).collect()
}

fn training(figure: &FigureEntry, networks: &[PreparedNetwork]) -> Chart {
    let mut chart = Chart::new(&figure.title, "gradient step", axis("ess"))
        .sized(SIZE.0, SIZE.1)
        .y_between(0.0, 1.0);
    for network in networks {
        let points = network.validations.iter().map(|&(step, ess)| (step, ess, 0.0)).collect();
        chart = chart.series(&network.name, Mark::Joined, points);
    }
    chart
}

fn observable(name: &str) -> &'static str {
    match name {
        "energy_per_site" => "energy per site E/N",
        _ => "magnetisation per site m",
    }
}

/// The middle of every bin with its share.
fn bars(part: &Part, name: &str) -> Points {
    let laws = part.kept.laws().map(|laws| laws.named());
    let own = laws.into_iter().flatten().find(|(other, _)| *other == name);
    let law = own.and_then(|(_, law)| HistogramResult::histogram(law));
    let Some(law) = law else { return Vec::new() };
    let width = (law.bins.high() - law.bins.low()) / law.bins.count() as f64;
    let middle = |bin: usize| law.bins.low() + (bin as f64 + 0.5) * width;
    law.mass.iter().enumerate().map(|(bin, mass)| (middle(bin), mass.mean, mass.error)).collect()
}

/// The runs with the reference, which lies below the others, first; and the colour of each, the same in every figure.
fn coloured<'a>(runs: &[&'a RunParts]) -> Vec<(usize, &'a RunEntry, &'a Part)> {
    let mut number = 0;
    let mut all = Vec::new();
    for RunParts { run, parts, .. } in runs {
        for part in parts {
            all.push((if run.reference { GREY } else { number % GREY }, run, part));
            number += usize::from(!run.reference);
        }
    }
    all.sort_by_key(|(_, run, _)| !run.reference);
    all
}

fn histograms(figure: &FigureEntry, runs: &[&RunParts]) -> Chart {
    let mut chart = Chart::new(&figure.title, observable(&figure.y), "probability of a bin")
        .sized(SIZE.0, SIZE.1)
        .dodged();
    for (colour, run, part) in coloured(runs) {
        let points = bars(part, &figure.y);
        chart = match run.reference {
            true => {
                let points = points.into_iter().map(|(x, y, _)| (x, y, 0.0)).collect();
                chart.coloured(&part.label, Mark::Steps, points, colour)
            }
            false => chart.coloured(&part.label, Mark::Dots, points, colour),
        };
    }
    chart
}

fn differences(figure: &FigureEntry, runs: &[&RunParts], all: &[RunParts]) -> Chart {
    let reference = all.iter().find(|one| one.run.reference).and_then(|one| one.parts.first());
    let mut chart = Chart::new(&figure.title, observable(&figure.y), "p - p of the reference")
        .sized(SIZE.0, SIZE.1)
        .dodged();
    let Some(reference) = reference else { return chart };
    let truth = bars(reference, &figure.y);
    for (colour, _, part) in coloured(runs).into_iter().filter(|(_, run, _)| !run.reference) {
        let own = bars(part, &figure.y);
        let pairs = own.iter().zip(&truth);
        let points = pairs.map(|(a, b)| (a.0, a.1 - b.1, a.2.hypot(b.2))).collect();
        chart = chart.coloured(&part.label, Mark::Dots, points, colour);
    }
    if chart.is_empty() { chart } else { chart.rule(0.0, "no difference") }
}

fn correlation(figure: &FigureEntry, runs: &[&RunParts], experiment: &Experiment) -> Chart {
    let mut chart = Chart::new(&figure.title, "distance r / lattice spacings", "G(r)")
        .sized(SIZE.0, SIZE.1)
        .dodged();
    let mut exact = Vec::new();
    for (colour, run, part) in coloured(runs) {
        let (list, energy) = match part.kept.result() {
            Some(SamplerResult::Walkers(r)) => (&r.correlation, r.observables.energy_per_site),
            Some(SamplerResult::Chains(r)) => {
                (&r.correlation, r.observables.energy_per_site.estimate)
            }
            None => continue,
        };
        // At distance 0 it is 1 by definition.
        let beyond = list.iter().filter(|c| c.r > 0 && c.value.mean.is_finite());
        let error = |error: f64| if run.reference || !error.is_finite() { 0.0 } else { error };
        let points = beyond.map(|c| (c.r as f64, c.value.mean, error(c.value.error))).collect();
        let mark = if run.reference { Mark::Dashes } else { Mark::Dots };
        chart = chart.coloured(&part.label, mark, points, colour);
        exact = neighbours(experiment, energy.exact).map(|g| (1.0, g, 0.0)).into_iter().collect();
    }
    chart.coloured("exact G(1), from the energy", Mark::Open, exact, GREY)
}

/// The exact correlation of neighbours on a periodic square lattice of Ising spins without a field: E/N = -2 J G(1).
fn neighbours(experiment: &Experiment, energy: Option<f64>) -> Option<f64> {
    let target = &experiment.target;
    let plain = ["field", "dimensions", "boundary"].iter().all(|key| !target.contains_key(*key));
    let ising = target.get("kind").and_then(toml::Value::as_str) == Some("ising");
    let coupling = target.get("coupling").and_then(toml::Value::as_float).unwrap_or(1.0);
    energy.filter(|_| ising && plain).map(|energy| -energy / (2.0 * coupling))
}

fn sweep(figure: &FigureEntry, runs: &[&RunParts]) -> Chart {
    let mut chart =
        Chart::new(&figure.title, axis(&figure.x), axis(&figure.y)).sized(SIZE.0, SIZE.1);
    if figure.log_x {
        chart = chart.logarithmic_x();
    }
    if figure.log_y {
        chart = chart.logarithmic();
    }
    if figure.y == "ess" && !figure.log_y {
        chart = chart.y_between(0.0, 1.0);
    }
    let off = figure.y.ends_with("_off");
    if off {
        chart = chart.dodged();
    }
    let mut bounds = (f64::INFINITY, 0.0_f64);
    for (colour, RunParts { run, parts, .. }) in runs.iter().enumerate() {
        let point = |part: &Part| {
            let (x, y) = (measure(part, &figure.x)?, measure(part, &figure.y)?);
            Some((x.mean, if off { y.mean.abs() } else { y.mean }, y.error))
        };
        let points: Points = parts.iter().filter_map(point).collect();
        for &(_, y, error) in points.iter().filter(|p| p.2 > 0.0 && p.2.is_finite()) {
            bounds = (bounds.0.min(error), bounds.1.max(y + error));
        }
        chart = chart.coloured(&run.name, Mark::Joined, points, colour);
        if figure.x == "steps" {
            let name = format!("{}, the paper", run.name);
            chart = chart.coloured(&name, Mark::Open, published(run, &figure.y), colour);
        }
    }
    // How far below its error a deviation happens to be says nothing: the axis ends there.
    match off && figure.log_y && bounds.0 < bounds.1 {
        true => chart.y_between(0.5 * bounds.0, 1.5 * bounds.1),
        false => chart,
    }
}

/// A measure at every inverse temperature that walkers passed, and the exact values there, which all runs share.
fn temperatures(figure: &FigureEntry, runs: &[&RunParts]) -> Chart {
    let mut chart = Chart::new(&figure.title, "inverse temperature beta", axis(&figure.y))
        .sized(SIZE.0, SIZE.1);
    if figure.y == "ess" {
        chart = chart.y_between(0.0, 1.0);
    }
    let mut exact: Points = Vec::new();
    for (colour, _, part) in coloured(runs) {
        let mut points: Points = Vec::new();
        let Some(SamplerResult::Walkers(result)) = part.kept.result() else { continue };
        for stop in &result.at_beta {
            let Some(found) = Numbers::Stop(stop).measure(&figure.y) else { continue };
            points.push((stop.beta, found.mean, found.error));
            exact.extend(found.exact.map(|value| (stop.beta, value, 0.0)));
        }
        chart = chart.coloured(&part.label, Mark::Dots, points, colour);
    }
    exact.sort_by(|a, b| a.0.total_cmp(&b.0));
    exact.dedup_by_key(|point| point.0);
    chart.coloured("exact", Mark::Line, exact, GREY)
}

/// What the paper has over the values of the key that is varied.
fn published(run: &RunEntry, name: &str) -> Points {
    let number = |value: &toml::Value| value.as_float().or(value.as_integer().map(|n| n as f64));
    let pair = |value: &toml::Value| Some((number(value.get(0)?)?, number(value.get(1)?)?, 0.0));
    let list = run.paper.get(name).and_then(toml::Value::as_array);
    list.into_iter().flatten().filter_map(pair).collect()
}

/// What the paper has for a part.
pub fn paper(run: &RunEntry, part: &Part, name: &str) -> Option<f64> {
    let value = run.paper.get(name)?;
    if let Some(number) = value.as_float() {
        return Some(number);
    }
    let at = part.at?;
    published(run, name).into_iter().find(|point| (point.0 - at).abs() < 1e-9 * at).map(|p| p.1)
}

/// One measure, a row for every run at every setting but those of references and those that have neither ours nor theirs; averages over instances,
/// where there are any.
fn rows(figure: &FigureEntry, runs: &[&RunParts], theirs_are: &str) -> Chart {
    let mut all = means(runs.iter().copied());
    let theirs = |mean: &Mean<'_>| paper(mean.run, mean.parts.first()?, &figure.x);
    all.retain(|mean| {
        !mean.run.reference && (mean.measure(&figure.x).is_some() || theirs(mean).is_some())
    });
    let names: Vec<String> = all.iter().map(|mean| mean.name.clone()).collect();
    let place = |k: usize| -(k as f64);
    let own = |(k, mean): (usize, &Mean<'_>)| Some((mean.measure(&figure.x)?.mean, place(k), 0.0));
    let published = |(k, mean): (usize, &Mean<'_>)| Some((theirs(mean)?, place(k), 0.0));
    let height = 84.0 + 20.0 * names.len() as f64;
    let chart = Chart::new(&figure.title, axis(&figure.x), "").sized(SIZE.0, height).rows(names);
    let chart = if figure.log_x { chart.logarithmic_x() } else { chart };
    chart
        .series("ours", Mark::Dots, all.iter().enumerate().filter_map(own).collect())
        .series(theirs_are, Mark::Open, all.iter().enumerate().filter_map(published).collect())
        .unjoined()
}
