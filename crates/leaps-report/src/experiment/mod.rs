//! Pages of experiments: figures, a table with exact and published numbers beside ours, and the raw numbers.

mod figures;
mod means;
mod measures;
mod page;

use std::path::{Path, PathBuf};

use leaps::device::Device;
use leaps::job::experiment::{Experiment, ExperimentRun, FigureKind};
use leaps::store::write_file;
use leaps::{Error, Result};
use serde_json::Value;

use crate::draw::Chart;
use crate::figure::Figure;
use crate::markdown::wrapped;
use page::Page;

/// What was written about an experiment.
#[derive(Clone, Debug)]
pub struct Written {
    /// Where the page is.
    pub page: PathBuf,
    /// The raw numbers.
    pub numbers: Value,
    /// The table of the page, for a terminal.
    pub table: String,
    /// Titles of figures that have nothing to show, and why.
    pub undrawn: Vec<(String, String)>,
}

/// Refuse columns and axes of figures that are no measures, before anything is run.
///
/// # Errors
/// The first of them, with the names of all measures.
pub fn check(experiment: &Experiment) -> Result<()> {
    let wrong = |text: String| Error::Experiment {
        path: format!("{}.toml", experiment.name).into(),
        reason: format!("{text} is not known; {}", measures::names()),
    };
    if let Some(unknown) = experiment.columns.iter().find(|name| !measures::is_known(name)) {
        return Err(wrong(format!("columns: '{unknown}'")));
    }
    for figure in &experiment.figures {
        let axes = match figure.kind {
            FigureKind::Sweep => vec![&figure.x, &figure.y],
            FigureKind::Rows => vec![&figure.x],
            FigureKind::Temperatures => vec![&figure.y],
            _ => Vec::new(),
        };
        if let Some(unknown) = axes.into_iter().find(|name| !measures::is_known(name)) {
            return Err(wrong(format!("figure '{}': '{unknown}'", figure.name)));
        }
    }
    Ok(())
}

/// The figures in the raw numbers of an experiment; `None` if it is not a file of one.
pub fn figures_of(numbers: &Value) -> Option<Vec<Figure>> {
    numbers.get("experiment")?;
    let drawn = numbers.get("figures")?.as_array()?.iter().filter_map(|figure| {
        let chart = Chart::read(figure).filter(|chart| !chart.is_empty())?;
        Some(Figure::of(figure["name"].as_str()?, "", &chart))
    });
    Some(drawn.collect())
}

/// Write page, figures and raw numbers of an experiment into a folder; `device` is the one that was asked for.
///
/// # Errors
/// Files that cannot be written.
pub fn write(
    experiment: &Experiment,
    run: &ExperimentRun,
    device: Device,
    out: &Path,
) -> Result<Written> {
    let name = &experiment.name;
    let all = figures::figures(experiment, &run.networks, &run.runs);
    let (empty, figures): (Vec<_>, Vec<_>) =
        all.into_iter().partition(|(_, chart)| chart.is_empty());
    let undrawn: Vec<(&str, &str)> = empty
        .iter()
        .map(|(figure, _)| (figure.title.as_str(), figures::why_empty(figure)))
        .collect();
    for (figure, chart) in &figures {
        let file = |end: &str| out.join(format!("{name}-{}.{end}", figure.name));
        write_file(file("svg"), chart.svg_file().as_bytes())?;
        write_file(file("png"), &chart.png()?)?;
    }
    let page = Page { experiment, run, figures: &figures, undrawn: &undrawn, device };
    let numbers = page.numbers();
    write_file(out.join(format!("{name}.json")), format!("{numbers:#}\n").as_bytes())?;
    let file = out.join(format!("{name}.md"));
    write_file(&file, wrapped(&page.markdown()).as_bytes())?;
    let table = page.text();
    let own = |&(title, why): &(&str, &str)| (title.to_owned(), why.to_owned());
    Ok(Written { page: file, numbers, table, undrawn: undrawn.iter().map(own).collect() })
}
