//! Thermodynamics along the path: free energy, entropy, energy, heat capacity and order against the inverse temperature.

use leaps::exact::{Exact, known_at};
use leaps::job::Monitor;
use leaps::observe::Estimate;
use leaps::problem::Problem;
use leaps::results::WalkerResult;

use crate::draw::{Chart, GREY, Mark};

type Points = Vec<(f64, f64, f64)>;

/// Points of an exact curve.
const CURVE: usize = 48;

/// What walkers said about one inverse temperature that they passed.
struct Stop {
    t: f64,
    beta: f64,
    log_z: Estimate,
    entropy: Option<Estimate>,
    energy: Estimate,
    heat_capacity: Estimate,
    order: Option<Estimate>,
}

/// Every temperature that was measured, in the order of the path; none if the energy terms grow at different paces, so that there is no one temperature.
fn stops(result: &WalkerResult) -> Vec<Stop> {
    let equal = |lambda: &[f64]| lambda.windows(2).all(|pair| pair[0] == pair[1]);
    if !result.path.iter().all(|point| equal(&point.lambda)) {
        return Vec::new();
    }
    let on_the_way = result.path.iter().filter_map(|point| {
        Some(Stop {
            t: point.t,
            beta: *point.lambda.first()?,
            log_z: point.log_z,
            entropy: point.entropy_per_site,
            energy: point.energy_per_site,
            heat_capacity: point.heat_capacity_per_site,
            order: point.abs_magnetization,
        })
    });
    let asked_for = result.at_beta.iter().map(|stop| Stop {
        t: stop.t,
        beta: stop.beta,
        log_z: stop.log_z,
        entropy: Some(stop.entropy_per_site),
        energy: stop.observables.energy_per_site,
        heat_capacity: stop.observables.heat_capacity_per_site,
        order: Some(stop.observables.abs_magnetization),
    });
    let mut all: Vec<Stop> = asked_for.chain(on_the_way).filter(|stop| stop.beta != 0.0).collect();
    all.sort_by(|a, b| a.t.total_cmp(&b.t));
    // Of two at the same time the one that was asked for is the first.
    all.dedup_by(|later, first| (later.t - first.t).abs() < 1e-9);
    all
}

/// Exact answers at inverse temperatures along the path.
#[derive(Default)]
pub struct Curve {
    /// Evenly from hot to cold.
    even: Vec<(f64, Exact)>,
    /// At those that were measured.
    measured: Vec<(f64, Exact)>,
}

impl Curve {
    /// The curve of a result, where it takes some seconds at most.
    pub fn find(result: &WalkerResult, problem: &Problem, monitor: &dyn Monitor) -> Self {
        let stops = stops(result);
        let Some(last) = stops.last().map(|stop| stop.beta) else { return Curve::default() };
        let target = &*problem.target;
        let effort = (10.0 / (CURVE + stops.len()) as f64).min(1.0);
        let progress = monitor.progress("exact curve");
        let exact = |beta: f64| {
            let lambda = vec![beta; target.terms()];
            known_at(target, &lambda, effort, &*progress).map(|exact| (beta, exact))
        };
        // Where one answer is too much work the others are.
        let measured: Option<Vec<_>> = stops.iter().rev().map(|stop| exact(stop.beta)).collect();
        let Some(measured) = measured else { return Curve::default() };
        let betas = (1..=CURVE).map(|k| last * k as f64 / CURVE as f64);
        Curve { even: betas.filter_map(exact).collect(), measured }
    }

    fn line(&self, value: impl Fn(f64, &Exact) -> Option<f64>) -> Points {
        let point = |(beta, exact): &(f64, Exact)| Some((*beta, value(*beta, exact)?, 0.0));
        self.even.iter().filter_map(point).collect()
    }

    fn log_z(&self, beta: f64) -> Option<f64> {
        self.measured.iter().find(|(other, _)| *other == beta).map(|(_, exact)| exact.log_z)
    }
}

/// The charts over the inverse temperature, each with its name.
pub fn charts(result: &WalkerResult, sites: f64, curve: &Curve) -> Vec<(&'static str, Chart)> {
    let stops = stops(result);
    let Some(last) = stops.last().map(|stop| stop.beta) else { return Vec::new() };
    let points = |value: &dyn Fn(&Stop) -> Option<Estimate>| -> Points {
        let known = stops.iter().filter_map(|stop| Some((stop.beta, value(stop)?)));
        let finite = known.filter(|(_, e)| e.mean.is_finite());
        finite.map(|(beta, e)| (beta, e.mean, e.error)).collect()
    };
    let chart = |title: &str, label: &str, line: Points, own: Points| {
        let chart = Chart::new(title, "inverse temperature beta", label)
            .x_between(0f64.min(last), 0f64.max(last));
        if own.is_empty() {
            return chart;
        }
        chart.coloured("exact", Mark::Line, line, GREY).coloured("this run", Mark::Dots, own, 0)
    };
    // F itself grows without bounds towards infinite temperature.
    let reduced = |log_z: Estimate| Estimate::new(-log_z.mean / sites, log_z.error / sites);
    let mut all = vec![
        (
            "free-energy",
            chart(
                "Free energy along the path",
                "beta F / N = -log Z / N",
                curve.line(|_, exact| Some(-exact.log_z / sites)),
                points(&|stop| Some(reduced(stop.log_z))),
            ),
        ),
        (
            "entropy",
            chart(
                "Entropy along the path",
                "entropy per site S / N",
                curve.line(|beta, exact| Some((exact.log_z + beta * exact.energy) / sites)),
                points(&|stop| stop.entropy),
            ),
        ),
        (
            "energy",
            chart(
                "Energy along the path",
                "energy per site E / N",
                curve.line(|_, exact| Some(exact.energy / sites)),
                points(&|stop| Some(stop.energy)),
            ),
        ),
        (
            "heat-capacity",
            chart(
                "Heat capacity along the path",
                "heat capacity per site C / N",
                curve.line(|_, exact| Some(exact.heat_capacity_per_site(sites as usize))),
                points(&|stop| Some(stop.heat_capacity)),
            ),
        ),
        (
            "abs-magnetization",
            chart(
                "Order along the path",
                "|m|",
                curve.line(|_, exact| exact.order.map(|order| order.abs)),
                points(&|stop| stop.order),
            ),
        ),
    ];
    let off = points(&|stop| {
        let exact = stop.log_z.exact.or_else(|| curve.log_z(stop.beta))?;
        Some(Estimate::new(stop.log_z.mean - exact, stop.log_z.error))
    });
    if off.len() > 1 {
        let title = "log Z along the path, less the exact one";
        let own = chart(title, "log Z - exact", Vec::new(), off).rule(0.0, "exact");
        all.push(("log-z-difference", own));
    }
    all
}
