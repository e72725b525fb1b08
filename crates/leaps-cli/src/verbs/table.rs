//! `leaps table`: the results of many runs as one table.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use anyhow::Result;
use clap::Args;
use leaps::Error;
use leaps::job;
use leaps::path::Strength;
use leaps::results::{AnyResult, Record, Row, SCHEMA};
use leaps_report::csv;
use leaps_report::text::{Short, Table, fixed, with_error};
use serde::Serialize;

use crate::app::Context;
use crate::csv::CsvArgs;
use crate::error::usage;
use crate::output;

/// Quantities that are shown where none are named.
const QUANTITIES: &str = "log_z,energy_per_site";

/// Flags of `table`.
#[derive(Args, Debug)]
#[command(
    after_help = "Example: for s in 1 2 3; do leaps smc ising --size 8 --seed $s --json > smc-$s.json; done; leaps table ."
)]
pub struct TableArgs {
    /// Run directories, files printed by --json, or folders of either
    #[arg(value_name = "DIR|FILE", required = true)]
    sources: Vec<PathBuf>,
    /// Quantities, by the names that tables have, with commas between them; or all
    #[arg(long, value_name = "NAME,...", default_value = QUANTITIES, value_delimiter = ',')]
    quantity: Vec<String>,
    #[command(flatten)]
    csv: CsvArgs,
}

/// What `--json` prints.
#[derive(Serialize)]
struct Gathered<'a> {
    schema: u32,
    version: &'static str,
    command: &'a [String],
    rows: &'a [Row],
}

/// Read every result and print one table. What cannot be read is named and left out; nothing at all is an error.
pub fn run(args: &TableArgs, context: &Context) -> Result<()> {
    args.csv.check()?;
    let (mut rows, mut failures) = (Vec::new(), Vec::new());
    for source in &args.sources {
        for found in within(source) {
            match found.and_then(|path| read(&path)) {
                Ok(own) => rows.extend(own),
                Err(error) => failures.push(error),
            }
        }
    }
    let mut failures = failures.into_iter();
    let fatal = if rows.is_empty() { failures.next() } else { None };
    for failure in failures {
        context.say(format!("warning: left out: {failure}"));
    }
    if let Some(first) = fatal {
        return Err(first.into());
    }
    let rows = chosen(rows, &args.quantity)?;
    let shown = if context.globals.json {
        let version = env!("CARGO_PKG_VERSION");
        let command = &context.command;
        output::json(&Gathered { schema: SCHEMA, version, command, rows: &rows })
    } else {
        output::data(&table(&rows))
    };
    args.csv.write(|| csv::rows(&rows), context)?;
    shown
}

/// Files of results: the file itself, those of a run, or those of everything in a folder.
fn within(source: &Path) -> Vec<leaps::Result<PathBuf>> {
    if !source.is_dir() {
        return vec![Ok(source.to_owned())];
    }
    if is_run(source) {
        return of_run(source);
    }
    let fail = |error| Err(Error::Io { path: source.to_owned(), source: error });
    let entries = match std::fs::read_dir(source) {
        Ok(entries) => entries,
        Err(error) => return vec![fail(error)],
    };
    let (mut paths, mut found) = (Vec::new(), Vec::new());
    for entry in entries {
        match entry {
            Ok(entry) => paths.push(entry.path()),
            Err(error) => found.push(fail(error)),
        }
    }
    paths.sort();
    for path in paths {
        let results = path.join("results.json");
        match path.is_dir() {
            true if is_run(&path) => found.extend(of_run(&path)),
            true if results.is_file() => found.push(Ok(results)),
            false if path.extension().is_some_and(|end| end == "json") => found.push(Ok(path)),
            _ => {}
        }
    }
    if found.is_empty() {
        let advice = "verbs print results with --json, and runs have results.json";
        found.push(Err(nothing(source, "a folder with results or runs", advice)));
    }
    found
}

/// Whether training has begun here.
fn is_run(folder: &Path) -> bool {
    job::begun(folder).is_some() || folder.join("meta.json").is_file()
}

/// What a run has found, and what other samplers found beside it.
fn of_run(run: &Path) -> Vec<leaps::Result<PathBuf>> {
    let files = ["results.json", "comparison.json"].map(|name| run.join(name));
    let there: Vec<_> = files.into_iter().filter(|path| path.is_file()).map(Ok).collect();
    if there.is_empty() {
        let advice = "'leaps status' shows how far it is";
        return vec![Err(nothing(run, "a run that has ended", advice))];
    }
    there
}

fn nothing(folder: &Path, condition: &str, advice: &str) -> Error {
    Error::invalid("DIR", folder.display(), condition, advice)
}

fn read(path: &Path) -> leaps::Result<Vec<Row>> {
    // Names in the working directory need not say so.
    let source = path.strip_prefix(".").unwrap_or(path).display().to_string();
    let rows = Record::<AnyResult>::read(path)?.rows();
    Ok(rows.into_iter().map(|row| row.read_from(&source)).collect())
}

/// The rows of the quantities that were asked for; each must be there.
fn chosen(mut rows: Vec<Row>, wanted: &[String]) -> Result<Vec<Row>> {
    if wanted.iter().any(|name| name == "all") {
        return Ok(rows);
    }
    for name in wanted {
        if !rows.iter().any(|row| row.quantity == *name) {
            let known: BTreeSet<&str> = rows.iter().map(|row| row.quantity.as_str()).collect();
            let known: Vec<&str> = known.into_iter().collect();
            return Err(usage(format!(
                "--quantity = {name}: must be all, or of what the results have: {}",
                known.join(", ")
            )));
        }
    }
    rows.retain(|row| wanted.contains(&row.quantity));
    Ok(rows)
}

/// The rows for people: columns that would say the same in every row are left out, but for those that name it.
fn table(rows: &[Row]) -> String {
    let differ = |same: &dyn Fn(&Row, &Row) -> bool| rows.windows(2).any(|w| !same(&w[0], &w[1]));
    let sources = differ(&|a, b| a.source == b.source);
    let fields = differ(&|a, b| a.field.unwrap_or(0.0) == b.field.unwrap_or(0.0));
    // Where some are fields and others are not, their name stands with each.
    let of = rows.first().map(|row| row.of).filter(|of| rows.iter().all(|row| row.of == *of));
    let field = |row: &Row| {
        let value = short(row.field?);
        Some(if of.is_some() { value } else { format!("{} {value}", row.of.symbol()) })
    };
    let exact = rows.iter().any(|row| row.exact.is_some());
    let mut table = Table::default();
    let mut head = vec!["target", "beta"];
    head.extend(fields.then_some(of.map_or("field", Strength::name)));
    head.extend(["seed", "sampler", "quantity", "value"]);
    head.extend(["exact", "sigmas"].iter().filter(|_| exact));
    head.extend(sources.then_some("source"));
    table.row(head);
    let or_dash = |text: Option<String>| text.unwrap_or_else(|| "-".to_owned());
    for row in rows {
        let mut cells = vec![row.target.clone(), short(row.beta)];
        cells.extend(fields.then(|| or_dash(field(row))));
        cells.extend([
            or_dash(row.seed.map(|seed| seed.to_string())),
            row.sampler.clone(),
            row.quantity.clone(),
            match (row.error, row.exact) {
                (Some(error), _) => with_error(row.value, error),
                (None, Some(_)) => fixed(row.value, DECIMALS),
                (None, None) => Short(row.value).to_string(),
            },
        ]);
        if exact {
            cells.push(or_dash(row.exact.map(|exact| fixed(exact, DECIMALS))));
            cells.push(or_dash(row.sigmas.map(|sigmas| format!("{sigmas:+.1}"))));
        }
        cells.extend(sources.then(|| or_dash(row.source.clone())));
        table.row(cells);
    }
    table.text()
}

/// Decimals of exact numbers.
const DECIMALS: usize = 6;

/// A setting as it was written, or with six decimals if it was computed.
fn short(value: f64) -> String {
    let text = value.to_string();
    if text.len() > "-0.".len() + DECIMALS { fixed(value, DECIMALS) } else { text }
}
