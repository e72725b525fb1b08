//! Reports: everything about a run or a result on one page that needs nothing but itself.

mod charts;
pub mod html;
mod page;
mod pictures;
mod reference;
mod source;

use std::path::Path;

use anyhow::Result;

use crate::app::Context;
use page::Page;
use reference::{Reference, reference};

pub use source::Source;

/// Compute what the results are compared with, and write the page.
pub fn write(source: &Source, out: &Path, context: &Context) -> Result<()> {
    if let Some(error) = &source.damaged {
        context.say(format!("warning: {error}"));
    }
    let (config, problem) = source.problem()?;
    // Other random numbers than any run with a small seed.
    let found = match &problem {
        Ok(problem) => reference(&config, problem, 0x0005_EED0_F4EF, context)?,
        Err(why) => Reference::none(why),
    };
    if found.law.is_none() {
        context.say(found.sentence());
    }
    let problem = problem.as_ref().ok();
    let page = Page { source, config: &config, problem, reference: found };
    Ok(leaps::store::write_file(out, page.html().as_bytes())?)
}
