//! Reports: everything about a run or a result on one page that needs nothing but itself, and its figures one by one.

mod along;
mod charts;
mod figures;
mod found;
mod html;
mod maps;
mod modes;
mod page;
mod pictures;
mod source;
mod tables;
mod thermo;

use leaps::Result;
use leaps::job::{Context, Monitor, Reference};
use leaps::problem::Problem;
use leaps::results::{MinimumResult, SamplerResult};
use leaps::target::TargetSpec;

use crate::figure::Figure;
use along::Curve;
use page::Page;

pub use page::POLICY;
pub use source::Source;

/// The page of a run or a result, as HTML that needs no other file. What the result is compared with is computed first.
///
/// All that changes while a run goes on is inside one `<main>` element; the script of the page listens on the document, so that it goes on working
/// when the contents of that element are exchanged.
///
/// # Errors
/// Settings or targets that cannot be read, and a stop on the way.
pub fn page(source: &Source, context: &Context<'_>, monitor: &dyn Monitor) -> Result<String> {
    if let Some(error) = &source.damaged {
        monitor.warn(&error.to_string());
    }
    let (config, problem) = source.problem()?;
    // Free energies over a grid have their exact values beside them.
    let compared = source.free_energy.is_none();
    // A run that is trained still has nothing to be compared yet.
    let trained = source.text.is_none() && source.compared.is_none();
    let reference = match &problem {
        _ if !compared => Reference::none("each point has its exact value where it is known"),
        Ok(_) if trained => Reference::none("there are no results yet"),
        Ok(problem) => Reference::find(&config, problem, context, monitor)?,
        Err(why) => Reference::none(why),
    };
    if compared && !trained && reference.law.is_none() {
        monitor.note(&reference.sentence());
    }
    let problem = problem.as_ref().ok();
    let curve = curve(source, problem, monitor);
    Ok(Page { source, config: &config, problem, reference, curve }.html())
}

/// The figures of a run or a result; of all, or where only the one called `wanted` is looked at, with what that one is compared with.
///
/// # Errors
/// As for [`page`].
pub fn figures(
    source: &Source,
    wanted: Option<&str>,
    context: &Context<'_>,
    monitor: &dyn Monitor,
) -> Result<Vec<Figure>> {
    let (config, problem) = source.problem()?;
    let referred = wanted.is_none_or(figures::needs_reference) && source.result.is_some();
    let reference = match &problem {
        Ok(problem) if referred => Reference::find(&config, problem, context, monitor)?,
        Ok(_) => Reference::none("not looked for"),
        Err(why) => Reference::none(why),
    };
    let problem = problem.as_ref().ok();
    let curve = curve(source, problem, monitor);
    let title = page::description(source, &config, problem);
    Ok(figures::figures(source, &title, reference.law.as_ref(), &curve))
}

fn curve(source: &Source, problem: Option<&Problem>, monitor: &dyn Monitor) -> Curve {
    match (&source.result, problem) {
        (Some(SamplerResult::Walkers(result)), Some(problem)) => {
            Curve::find(result, problem, monitor)
        }
        _ => Curve::default(),
    }
}

/// The figures of a search: what every restart found, and the state of lowest energy where `target` is a plane.
pub fn minimum_figures(search: &MinimumResult, target: Option<&TargetSpec>) -> Vec<Figure> {
    figures::of_minimum(search, target)
}

/// The figures of a sampler's result alone: ESS along the path, and laws at its end.
pub fn result_figures(result: &SamplerResult) -> Vec<Figure> {
    figures::of_result(result)
}
