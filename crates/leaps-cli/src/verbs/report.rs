//! `leaps report`: one self-contained page about a run or a result.

use std::path::{Path, PathBuf};

use anyhow::Result;
use clap::Args;

use crate::app::Context;
use crate::error::usage;
use crate::models::{self, Found};
use leaps::Error;
use leaps::device::NoProgress;
use leaps::job::Sampling;
use leaps::results::SamplerResult;
use leaps::store::write_file;
use leaps_report::run::{Source, page};

/// Flags of `report`.
#[derive(Args, Debug)]
pub struct ReportArgs {
    /// Run directory, directory with results.json, file printed by --json, or name of a model, which is sampled
    #[arg(value_name = "DIR|FILE|NAME")]
    source: PathBuf,
    /// The page [default: report.html in DIR, FILE.html for FILE.json, or NAME.html]
    #[arg(long, value_name = "FILE.html")]
    out: Option<PathBuf>,
}

/// What the user named.
pub enum Origin {
    /// A directory or a file.
    Path,
    /// A model, which is sampled.
    Model(Box<Found>),
}

impl Origin {
    /// Files come before models of the same name.
    pub fn find(named: &Path) -> Result<Self> {
        let found = if named.exists() { None } else { models::look_up(named)? };
        Ok(found.map_or(Origin::Path, |found| Origin::Model(Box::new(found))))
    }

    /// What it has to say.
    pub fn read(&self, named: &Path, context: &Context) -> Result<Source> {
        match self {
            Origin::Path => Ok(Source::read(named)?),
            Origin::Model(found) => sampled(found, context),
        }
    }
}

/// Read what there is and write the page.
pub fn run(args: &ReportArgs, context: &Context) -> Result<()> {
    let origin = Origin::find(&args.source)?;
    let out = args.out.clone().unwrap_or_else(|| match (&origin, args.source.is_dir()) {
        (Origin::Model(found), _) => format!("{}.html", found.name).into(),
        (Origin::Path, true) => args.source.join("report.html"),
        (Origin::Path, false) => beside(&args.source),
    });
    if out.extension().is_none_or(|end| end != "html") {
        return Err(usage(format!("--out = {}: must end in .html", out.display())));
    }
    let source = origin.read(&args.source, context)?;
    write(&source, &out, context)?;
    context.say(format!("wrote {}", out.display()));
    Ok(())
}

/// Write the page of a run or a result.
pub fn write(source: &Source, out: &Path, context: &Context) -> Result<()> {
    let page = page(source, &context.job(&NoProgress), context)?;
    Ok(write_file(out, page.as_bytes())?)
}

/// The page of a file of results: files in one folder have pages of their own.
fn beside(file: &Path) -> PathBuf {
    let name = file.file_name().unwrap_or_default().to_string_lossy();
    let name = name.strip_suffix(".json").unwrap_or(&name);
    file.with_file_name(format!("{name}.html"))
}

/// What a sample of a model says, as `leaps sample --model NAME --json` prints it.
fn sampled(found: &Found, context: &Context) -> Result<Source> {
    let mut layers = found.layers()?;
    layers.seed(context.globals.seed, &context.matches)?;
    let config = layers.resolve()?;
    let problem = layers.problem(&config)?;
    let progress = context.progress("sample").titled(problem.description.clone());
    let job = Sampling::of(&config, problem, found.model.clone(), &found.name);
    let done = job.run_in(&context.job(&progress));
    drop(progress);
    let run = done.map_err(|error| layers.explain(error))?;
    if run.interrupted {
        // A page is of the target itself.
        return Err(Error::Interrupted.into());
    }
    let result = SamplerResult::Walkers(Box::new(run.result));
    Ok(Source::of(found.name.clone(), &context.record(&job.problem, &run.computed, result)))
}
