//! The charts of a page: training, the path, weights, energies, order, correlations.

use leaps::observe::{Bins, Histogram, Layout};
use leaps::store::Metrics;
use serde_json::Value;

use super::html::number;
use crate::draw::{Chart, Mark};
use leaps::job::{Law, energies};

/// Most points of a line: more cannot be seen.
const MOST_POINTS: usize = 600;

/// Loss, effective sample size and log Z over the steps of training.
pub fn training(metrics: &[Metrics], exact: Option<f64>) -> Vec<Chart> {
    let every = metrics.len().div_ceil(MOST_POINTS).max(1);
    let loss: Vec<(f64, f64, f64)> = metrics
        .chunks(every)
        .map(|lines| {
            let mean =
                lines.iter().map(|line| line.step_metrics.loss).sum::<f64>() / lines.len() as f64;
            (lines[lines.len() / 2].step_metrics.step as f64, mean, 0.0)
        })
        .collect();
    let step = |line: &Metrics| line.step_metrics.step as f64;
    let ess = metrics.iter().filter_map(|line| Some((step(line), line.ess?, 0.0))).collect();
    let log_z: Vec<(f64, f64, f64)> = metrics
        .iter()
        .filter_map(|line| line.log_z.map(|log_z| (step(line), log_z.mean, log_z.error)))
        .collect();
    let rate = metrics.iter().step_by(every).map(|line| (step(line), line.step_metrics.rate, 0.0));
    let log_z =
        Chart::new("log Z in training", "gradient step", "log Z").series("", Mark::Dots, log_z);
    let log_z = match exact {
        Some(exact) => log_z.rule(exact, "exact"),
        None => log_z,
    };
    let charts = [
        Chart::new("Loss", "gradient step", "mean squared residual")
            .series("", Mark::Line, loss)
            .logarithmic(),
        Chart::new("Effective sample size in training", "gradient step", "ESS")
            .series("", Mark::Dots, ess)
            .y_between(0.0, 1.0),
        log_z,
        Chart::new("Learning rate", "gradient step", "learning rate").series(
            "",
            Mark::Line,
            rate.collect(),
        ),
    ];
    let last = metrics.last().map_or(1.0, step);
    charts.map(|chart| chart.x_between(0.0, last)).into()
}

/// Effective sample size and energy along the annealing time.
pub fn path(results: &Value) -> Vec<Chart> {
    let points = results["path"].as_array().map(Vec::as_slice).unwrap_or_default();
    let line = |key: &str, error: &str| -> Vec<(f64, f64, f64)> {
        points
            .iter()
            .filter_map(|p| {
                Some((p["t"].as_f64()?, number(p, key)?, number(p, error).unwrap_or(0.0)))
            })
            .collect()
    };
    // All walkers are equal at the start.
    let mut ess = vec![(0.0, 1.0, 0.0)];
    ess.extend(line("ess", ""));
    if points.is_empty() {
        ess.clear();
    }
    vec![
        Chart::new("Effective sample size along the path", "annealing time t", "ESS")
            .series("", Mark::Joined, ess)
            .x_between(0.0, 1.0)
            .y_between(0.0, 1.0),
        Chart::new("Energy along the path", "annealing time t", "energy per site")
            .series("", Mark::Dots, line("energy_per_site.mean", "energy_per_site.error"))
            .x_between(0.0, 1.0),
    ]
}

/// The spread of the log-weights, of the energy and of the order parameter, and the two-point function.
pub fn histograms(results: &Value, reference: Option<&Law>) -> Vec<Chart> {
    let all = &results["histograms"];
    let own = |key: &str| bars(&all[key]);
    let weights = Chart::new("Log-weights", "log-weight - log mean weight", "share of walkers")
        .series("", Mark::Steps, own("log_weight"));
    let energy = Chart::new("Energy", "energy per site", "probability").series(
        "this run",
        Mark::Steps,
        own("energy_per_site"),
    );
    let order = Chart::new("Order parameter", "m", "probability").series(
        "this run",
        Mark::Steps,
        own("magnetization"),
    );
    let correlation = correlation(results, reference);
    let Some(reference) = reference else { return vec![weights, energy, order, correlation] };
    let other = |key: &str, values: Vec<f64>| {
        let histogram = bins(&all[key]).map(|bins| {
            Histogram::new(bins, &values, reference.weights.relative(), &reference.families)
        });
        histogram.map(|histogram| outline(&histogram)).unwrap_or_default()
    };
    let energies = other("energy_per_site", energies(&reference.samples));
    let orders = other("magnetization", reference.samples.column(Layout::M));
    vec![
        weights,
        energy.series(&reference.name, Mark::Dashes, energies),
        order.series(&reference.name, Mark::Dashes, orders),
        correlation,
    ]
}

/// The two-point function.
fn correlation(results: &Value, reference: Option<&Law>) -> Chart {
    let list = results["correlation"].as_array().map(Vec::as_slice).unwrap_or_default();
    let points: Vec<(f64, f64, f64)> = list
        .iter()
        .filter_map(|c| {
            Some((c["r"].as_f64()?, c["mean"].as_f64()?, c["error"].as_f64().unwrap_or(0.0)))
        })
        .collect();
    let distances = points.len();
    let other = |reference: &Law| {
        let correlation = reference.samples.observables().correlation;
        correlation.iter().map(|c| (c.r as f64, c.value.mean, 0.0)).collect()
    };
    let chart = Chart::new("Correlation", "distance r", "G(r)");
    let chart = chart.series("this run", Mark::Dots, points);
    match reference.filter(|_| distances > 0) {
        Some(found) => chart.series(&found.name, Mark::Dashes, other(found)),
        None => chart,
    }
}

fn bins(histogram: &Value) -> Option<Bins> {
    let count = histogram["mass"].as_array()?.len();
    Bins::new(histogram["low"].as_f64()?, histogram["high"].as_f64()?, count).ok()
}

/// The middle of every bin with its share and error.
fn bars(histogram: &Value) -> Vec<(f64, f64, f64)> {
    let Some(bins) = bins(histogram) else { return Vec::new() };
    let width = (bins.high() - bins.low()) / bins.count() as f64;
    (0..bins.count())
        .filter_map(|bin| {
            let error = histogram["error"][bin].as_f64().unwrap_or(0.0);
            Some((bins.low() + (bin as f64 + 0.5) * width, histogram["mass"][bin].as_f64()?, error))
        })
        .collect()
}

/// The outline of a histogram as a line with corners.
fn outline(histogram: &Histogram) -> Vec<(f64, f64, f64)> {
    let bins = histogram.bins;
    let width = (bins.high() - bins.low()) / bins.count() as f64;
    let edges = histogram.mass.iter().enumerate().flat_map(|(bin, mass)| {
        let left = bins.low() + bin as f64 * width;
        [(left, mass.mean, 0.0), (left + width, mass.mean, 0.0)]
    });
    edges.collect()
}
