//! The charts of a page: training, the path, weights, energies, order, correlations, modes, comparisons; each with its name.

use leaps::job::{Law, energies};
use leaps::observe::{Histogram, Layout};
use leaps::results::{Comparison, HistogramResult, MinimumResult, SamplerResult, WalkerResult};
use leaps::store::Metrics;

use crate::draw::{Chart, Mark};

/// Most points of a line: more cannot be seen.
const MOST_POINTS: usize = 600;

/// The energy that every restart of a search found, and the lowest of all states where it is known.
pub fn restarts(search: &MinimumResult) -> Chart {
    let found = search.restarts.iter().enumerate();
    let points = found.map(|(k, restart)| ((k + 1) as f64, restart.energy, 0.0)).collect();
    let chart = Chart::new("What every restart found", "restart", "lowest energy").series(
        "",
        Mark::Dots,
        points,
    );
    match search.optimum {
        Some(optimum) => chart.rule(optimum, "optimum"),
        None => chart,
    }
}

/// Loss, effective sample size and log Z over the steps of training.
pub fn training(metrics: &[Metrics], exact: Option<f64>) -> Vec<(&'static str, Chart)> {
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
    let names = ["loss", "training-ess", "training-log-z", "learning-rate"];
    names.into_iter().zip(charts.map(|chart| chart.x_between(0.0, last))).collect()
}

/// Effective sample size along the annealing time.
pub fn path(result: &WalkerResult) -> (&'static str, Chart) {
    let points = &result.path;
    // All walkers are equal at the start.
    let start = points.first().map(|_| (0.0, 1.0, 0.0));
    let ess = start.into_iter().chain(points.iter().map(|p| (p.t, p.ess, 0.0)));
    let chart = Chart::new("Effective sample size along the path", "annealing time t", "ESS")
        .series("", Mark::Joined, ess.collect())
        .x_between(0.0, 1.0)
        .y_between(0.0, 1.0);
    ("path-ess", chart)
}

/// The spread of the log-weights, of the energy and of the order parameter, and the two-point function.
pub fn histograms(result: &SamplerResult, reference: Option<&Law>) -> Vec<(&'static str, Chart)> {
    let last = [
        ("correlation", correlation(result, reference)),
        ("modes", super::modes::chart(super::modes::masses(result), reference)),
    ];
    let SamplerResult::Walkers(result) = result else { return last.into() };
    let all = &result.histograms;
    // Both ways cross where the log-weight is log Z.
    let weights = match &result.two_sided {
        None => Chart::new("Log-weights", "log-weight - log mean weight", "share of walkers")
            .series("", Mark::Steps, bars(&all.log_weight)),
        Some(both) => {
            Chart::new("Log-weights of both ways", "log-weight - log Z/Z0", "share of walkers")
                .series("there", Mark::Steps, bars(&both.forward))
                .series("back", Mark::Steps, bars(&both.reversed))
        }
    };
    let energy = Chart::new("Energy", "energy per site", "probability").series(
        "this run",
        Mark::Steps,
        bars(&all.energy_per_site),
    );
    let order = Chart::new("Order parameter", "m", "probability").series(
        "this run",
        Mark::Steps,
        bars(&all.magnetization),
    );
    let named = |energy: Chart, order: Chart| {
        let first =
            [("log-weights", weights), ("energy-law", energy), ("magnetization-law", order)];
        first.into_iter().chain(last).collect()
    };
    let Some(reference) = reference else { return named(energy, order) };
    let other = |own: &HistogramResult, values: Vec<f64>| {
        let law = |own: Histogram| {
            Histogram::new(own.bins, &values, reference.weights.relative(), &reference.families)
        };
        own.histogram().map(|own| outline(&law(own))).unwrap_or_default()
    };
    let energies = other(&all.energy_per_site, energies(&reference.samples));
    let orders = other(&all.magnetization, reference.samples.column(Layout::M));
    named(
        energy.series(&reference.name, Mark::Dashes, energies),
        order.series(&reference.name, Mark::Dashes, orders),
    )
}

/// Both measures of merit of samplers that were compared.
pub fn compared(comparison: &Comparison) -> Vec<(&'static str, Chart)> {
    let rows: Vec<(&str, [f64; 2])> =
        comparison.samplers.iter().map(|one| (one.name.as_str(), merits(&one.result))).collect();
    let titles = [
        (
            "samples-per-second",
            "What a second is worth for averages",
            "effective samples per second",
        ),
        ("merit", "What a second is worth for log Z", "log Z merit, 1/(variance x seconds)"),
    ];
    let chart = |(which, (name, title, label)): (usize, (&'static str, &str, &str))| {
        let known: Vec<(&str, f64)> = rows
            .iter()
            .map(|(name, merits)| (*name, merits[which]))
            .filter(|(_, merit)| *merit > 0.0 && merit.is_finite())
            .collect();
        let points = known.iter().enumerate().map(|(k, (_, merit))| (*merit, -(k as f64), 0.0));
        let names: Vec<String> = known.iter().map(|(name, _)| (*name).to_owned()).collect();
        let height = 84.0 + 24.0 * names.len() as f64;
        let chart = Chart::new(title, label, "").sized(Chart::SIZE.0, height).rows(names);
        (name, chart.logarithmic_x().series("", Mark::Dots, points.collect()).unjoined())
    };
    titles.into_iter().enumerate().map(chart).collect()
}

/// Effective samples per second, and the merit of log Z if it was estimated.
pub fn merits(result: &SamplerResult) -> [f64; 2] {
    let samples = match result {
        SamplerResult::Walkers(r) => r.effective_samples_per_second,
        SamplerResult::Chains(r) => r.effective_samples_per_second,
    };
    [samples, result.log_z_merit().unwrap_or(f64::NAN)]
}

/// The two-point function.
fn correlation(result: &SamplerResult, reference: Option<&Law>) -> Chart {
    let list = match result {
        SamplerResult::Walkers(result) => &result.correlation,
        SamplerResult::Chains(result) => &result.correlation,
    };
    let points = list.iter().map(|c| (c.r as f64, c.value.mean, c.value.error)).collect();
    let other = |reference: &Law| {
        let correlation = reference.samples.observables().correlation;
        correlation.iter().map(|c| (c.r as f64, c.value.mean, 0.0)).collect()
    };
    let chart = Chart::new("Correlation", "distance r", "G(r)");
    let chart = chart.series("this run", Mark::Dots, points);
    match reference.filter(|_| !list.is_empty()) {
        Some(found) => chart.series(&found.name, Mark::Dashes, other(found)),
        None => chart,
    }
}

/// The middle of every bin with its share and error.
fn bars(histogram: &HistogramResult) -> Vec<(f64, f64, f64)> {
    let Some(Histogram { bins, mass }) = histogram.histogram() else { return Vec::new() };
    let width = (bins.high() - bins.low()) / bins.count() as f64;
    let middle = |bin: usize| bins.low() + (bin as f64 + 0.5) * width;
    mass.iter().enumerate().map(|(bin, mass)| (middle(bin), mass.mean, mass.error)).collect()
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
