//! Every figure of a run or a result, with its name and the part of the page it belongs to.

use leaps::job::Law;
use leaps::path::Strength;
use leaps::results::{MinimumResult, Record, SamplerResult, ThermoPoint};
use leaps::target::TargetSpec;

use super::along::{self, Curve};
use super::source::Source;
use super::{charts, maps, pictures};
use crate::draw::{Chart, Mark};
use crate::figure::Figure;
use crate::free_energy;

/// Parts of the page that hold figures.
pub const GRID: &str = "Over temperatures and fields";
pub const TRAINING: &str = "Training";
pub const PATH: &str = "Along the path";
pub const END: &str = "At the end of the path";
pub const LADDER: &str = "Over the temperatures of the ladder";
pub const LATTICE: &str = "Lattice";
pub const COMPARISON: &str = "Comparison";
pub const SEARCH: &str = "Search for the lowest energy";

/// Figures that a reference has a part in.
const REFERRED: [&str; 5] =
    ["energy-law", "magnetization-law", "correlation", "modes", "log-weights"];

/// Whether a figure shows states of a reference beside those of the run.
pub fn needs_reference(name: &str) -> bool {
    REFERRED.contains(&name)
}

/// All figures that have something to show; `title` is that of the page.
pub fn figures(source: &Source, title: &str, law: Option<&Law>, curve: &Curve) -> Vec<Figure> {
    let mut all = Vec::new();
    let mut add = |section: &'static str, charts: Vec<(&'static str, Chart)>| {
        let drawn = charts.iter().filter(|(_, chart)| !chart.is_empty());
        let drawn: Vec<Figure> =
            drawn.map(|(name, chart)| Figure::of(name, section, chart)).collect();
        all.extend(drawn);
    };
    add(TRAINING, charts::training(&source.metrics, source.exact_log_z()));
    if let Some(SamplerResult::Walkers(walkers)) = &source.result {
        let sites = source.sites().map_or(f64::NAN, |sites| sites as f64);
        add(PATH, vec![charts::path(walkers)]);
        add(PATH, along::charts(walkers, sites, curve));
    }
    if let Some(result) = &source.result {
        add(END, charts::histograms(result, law));
    }
    if let Some(SamplerResult::Chains(chains)) = &source.result
        && let Some(tempering) = &chains.tempering
    {
        let betas = tempering.rungs.iter().map(|rung| rung.beta);
        let swaps = betas.zip(&tempering.swap_rates).map(|(beta, rate)| (beta, *rate, 0.0));
        let chart = Chart::new("Swaps with the next temperature", "beta", "share that is accepted")
            .series("", Mark::Joined, swaps.collect())
            .y_between(0.0, 1.0);
        add(LADDER, vec![("swaps", chart)]);
        let mut points: Vec<ThermoPoint> = tempering.rungs.clone();
        points.extend(tempering.at_beta.iter().cloned());
        points.sort_by(|a, b| a.beta.total_cmp(&b.beta));
        points.dedup_by_key(|point| point.beta);
        if points.len() > 1 {
            all.extend(free_energy::panels(LADDER, &points, Strength::Field));
        }
    }
    if let Some(result) = &source.result {
        all.extend(maps::figures(END, result));
    }
    if let Some(grid) = &source.free_energy {
        let panels = free_energy::panels(GRID, &grid.points, grid.of);
        let (name, element) = ("all".to_owned(), free_energy::whole(title, &panels));
        all.extend(panels);
        all.push(free_energy::ess(GRID, &grid.points, grid.of));
        all.push(Figure { name, title: title.to_owned(), section: "", element });
    }
    if let Some(SamplerResult::Walkers(walkers)) = &source.result
        && let Some(snapshots) = &walkers.snapshots
    {
        all.extend(pictures::figures(LATTICE, snapshots));
    }
    if let Some(search) = &source.minimum {
        let target = source.origin.as_ref().and_then(|origin| origin.spec());
        all.extend(of_minimum(search, target.as_ref()));
    }
    if let Some(Record { result: comparison, .. }) = &source.compared {
        let drawn = charts::compared(comparison).into_iter();
        let drawn = drawn.filter(|(_, chart)| !chart.is_empty());
        all.extend(drawn.map(|(name, chart)| Figure::of(name, COMPARISON, &chart)));
    }
    all
}

/// The figures of a search for the lowest energy of a target.
pub fn of_minimum(search: &MinimumResult, target: Option<&TargetSpec>) -> Vec<Figure> {
    let chart = charts::restarts(search);
    let restarts = (!chart.is_empty()).then(|| Figure::of("restarts", SEARCH, &chart));
    let lowest = target.and_then(|target| pictures::lowest(SEARCH, search, target));
    restarts.into_iter().chain(lowest).collect()
}

/// The figures of a result that need nothing beside it.
pub fn of_result(result: &SamplerResult) -> Vec<Figure> {
    let path = match result {
        SamplerResult::Walkers(walkers) => vec![charts::path(walkers)],
        _ => Vec::new(),
    };
    let all = path.into_iter().chain(charts::histograms(result, None));
    let drawn = all.filter(|(_, chart)| !chart.is_empty());
    let drawn = drawn.map(|(name, chart)| Figure::of(name, END, &chart));
    drawn.chain(maps::figures(END, result)).collect()
}
