//! Reports: everything about a run or a result on one page that needs nothing but itself.

mod charts;
mod html;
mod page;
mod pictures;
mod source;
mod thermo;

use leaps::Result;
use leaps::job::{Context, Monitor, Reference};
use leaps::results::SamplerResult;

use page::Page;

pub use source::Source;

/// The page of a run or a result, as HTML that needs no other file. What the result is compared with is computed first.
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
    let reference = match &problem {
        _ if !compared => Reference::none("each point has its exact value where it is known"),
        Ok(problem) => Reference::find(&config, problem, context, monitor)?,
        Err(why) => Reference::none(why),
    };
    if compared && reference.law.is_none() {
        monitor.note(&reference.sentence());
    }
    let problem = problem.as_ref().ok();
    Ok(Page { source, config: &config, problem, reference }.html())
}

/// The figures of a sampler's result, as SVG text without its name space.
pub fn figures(result: &SamplerResult) -> Vec<String> {
    let path = match result {
        SamplerResult::Walkers(result) => charts::path(result),
        _ => Vec::new(),
    };
    let all = path.into_iter().chain(charts::histograms(result, None));
    all.filter(|chart| !chart.is_empty()).map(|chart| chart.svg()).collect()
}
