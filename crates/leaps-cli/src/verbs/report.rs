//! Write one self-contained page about a run or a result.

use std::path::PathBuf;

use anyhow::Result;
use clap::Args;

use crate::app::Context;
use crate::error::usage;
use crate::report::{Source, write};

/// Flags of `report`.
#[derive(Args, Debug)]
pub struct ReportArgs {
    /// Run directory, directory with results.json, or file printed by --json
    #[arg(value_name = "DIR|FILE")]
    source: PathBuf,
    /// The page [default: report.html in DIR or beside FILE]
    #[arg(long, value_name = "FILE.html")]
    out: Option<PathBuf>,
}

/// Read what there is and write the page.
pub fn run(args: &ReportArgs, context: &Context) -> Result<()> {
    let source = Source::read(&args.source)?;
    let out = args.out.clone().unwrap_or_else(|| match args.source.is_dir() {
        true => args.source.join("report.html"),
        false => args.source.with_file_name("report.html"),
    });
    if out.extension().is_none_or(|end| end != "html") {
        return Err(usage(format!("--out = {}: must end in .html", out.display())));
    }
    write(&source, &out, context)?;
    context.say(format!("wrote {}", out.display()));
    Ok(())
}
