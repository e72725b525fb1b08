//! `leaps plot`: figures of a run, a result or an experiment, as files.

use std::path::{Path, PathBuf};

use anyhow::Result;
use clap::Args;
use leaps::Error;
use leaps::device::NoProgress;
use leaps::store::write_file;
use leaps_report::experiment::figures_of;
use leaps_report::figure::{Figure, Format, named};
use leaps_report::run::figures;
use serde_json::json;

use super::report::Origin;
use crate::app::Context;
use crate::error::usage;
use crate::output;

/// Flags of `plot`.
#[derive(Args, Debug)]
pub struct PlotArgs {
    /// Run directory, file printed by --json, raw numbers of an experiment, or name of a model, which is sampled
    #[arg(value_name = "DIR|FILE|NAME")]
    source: PathBuf,
    /// The figure; --list names them all
    #[arg(value_name = "FIGURE", conflicts_with = "list")]
    figure: Option<String>,
    /// The file, which ends in .svg, .png or .pdf; without FIGURE a folder for all of them [default: FIGURE.svg]
    #[arg(long, value_name = "FILE|DIR", conflicts_with = "list")]
    out: Option<PathBuf>,
    /// The kind of files in a folder, or of a file that --out does not name
    #[arg(long, value_name = "KIND", value_parser = format, conflicts_with = "list")]
    format: Option<Format>,
    /// Only name the figures there are
    #[arg(long)]
    list: bool,
}

/// Read a kind of files; what is wrong with it otherwise.
fn format(text: &str) -> std::result::Result<Format, String> {
    let all = Format::ALL.into_iter().find(|format| format.extension() == text);
    all.ok_or_else(|| "svg, png or pdf".to_owned())
}

/// Where figures go.
enum Place {
    /// Nowhere: their names are printed.
    Names,
    /// One of them into a file.
    File(PathBuf, Format),
    /// All of them into a folder.
    Folder(PathBuf, Format),
}

impl PlotArgs {
    fn place(&self) -> Result<Place> {
        if self.list {
            return Ok(Place::Names);
        }
        let kind = self.format.unwrap_or_default();
        let file = |name: &str| PathBuf::from(format!("{name}.{}", kind.extension()));
        match (&self.figure, &self.out) {
            (None, None) => Err(usage(
                "FIGURE: is missing; --list names the figures, and --out DIR writes all of them",
            )),
            (None, Some(out)) => match Format::of(out) {
                Some(_) => Err(usage(format!(
                    "--out = {}: one file is for one FIGURE; --list names them, and --out DIR writes all",
                    out.display()
                ))),
                None => Ok(Place::Folder(out.clone(), kind)),
            },
            (Some(name), None) => Ok(Place::File(file(name), kind)),
            (Some(name), Some(out)) if out.is_dir() => Ok(Place::File(out.join(file(name)), kind)),
            (Some(_), Some(out)) => match Format::of(out) {
                None => {
                    Err(usage(format!("--out = {}: must end in .svg, .png or .pdf", out.display())))
                }
                Some(named) if self.format.is_some_and(|kind| kind != named) => {
                    let flag = kind.extension();
                    Err(usage(format!(
                        "--format = {flag}: --out = {} says {}; leave --format out",
                        out.display(),
                        named.extension()
                    )))
                }
                Some(named) => Ok(Place::File(out.clone(), named)),
            },
        }
    }
}

/// Draw what is asked for.
pub fn run(args: &PlotArgs, context: &Context) -> Result<()> {
    let place = args.place()?;
    let wanted = match &place {
        Place::Names => Some(""),
        Place::File(..) => args.figure.as_deref(),
        Place::Folder(..) => None,
    };
    let figures = found(&args.source, wanted, context)?;
    match place {
        Place::Names => print(&figures, context),
        Place::File(path, format) => {
            let name = args.figure.as_deref().unwrap_or_default();
            write(named(&figures, name)?, &path, format, context)
        }
        Place::Folder(folder, format) => {
            if figures.is_empty() {
                let source = args.source.display();
                return Err(usage(format!("{source}: has no figures; there is nothing to draw")));
            }
            let fail = |source| Error::Io { path: folder.clone(), source };
            std::fs::create_dir_all(&folder).map_err(fail)?;
            for figure in &figures {
                let path = folder.join(format!("{}.{}", figure.name, format.extension()));
                write(figure, &path, format, context)?;
            }
            Ok(())
        }
    }
}

fn write(figure: &Figure, path: &Path, format: Format, context: &Context) -> Result<()> {
    write_file(path, &figure.encode(format)?)?;
    context.say(format!("wrote {}", path.display()));
    Ok(())
}

fn print(figures: &[Figure], context: &Context) -> Result<()> {
    if context.globals.json {
        let all = figures.iter().map(|figure| json!({"name": figure.name, "title": figure.title}));
        return output::json(&all.collect::<Vec<_>>());
    }
    let width = figures.iter().map(|figure| figure.name.len()).max().unwrap_or(0);
    let lines = figures.iter().map(|figure| format!("{:<width$}  {}\n", figure.name, figure.title));
    output::data(&lines.collect::<String>())
}

/// The figures of what the user named; what is not `wanted` has no reference.
fn found(source: &Path, wanted: Option<&str>, context: &Context) -> Result<Vec<Figure>> {
    let origin = Origin::find(source)?;
    if let Origin::Path = origin
        && source.is_file()
        && let Ok(text) = std::fs::read_to_string(source)
        && let Ok(numbers) = serde_json::from_str(&text)
        && let Some(figures) = figures_of(&numbers)
    {
        return Ok(figures);
    }
    let source = origin.read(source, context)?;
    Ok(figures(&source, wanted, &context.job(&NoProgress), context)?)
}
