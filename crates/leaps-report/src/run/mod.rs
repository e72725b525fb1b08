//! Reports: everything about a run or a result on one page that needs nothing but itself.

mod charts;
mod html;
mod page;
mod pictures;
mod source;
mod thermo;

use leaps::Result;
use leaps::job::{Context, Monitor, Reference};

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
    // A run that is trained still has nothing to be compared yet.
    let trained = source.results.is_null() && source.comparison.is_null();
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
    Ok(Page { source, config: &config, problem, reference }.html())
}
