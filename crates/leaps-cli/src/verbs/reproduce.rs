//! `leaps reproduce`: the paper's experiments, a page each, with figures and numbers.

use std::path::{Path, PathBuf};

use anyhow::Result;
use clap::Args;
use leaps::Error;
use leaps::job::experiment::{EXPERIMENTS, Experiment, Places};
use leaps::results::Row;
use leaps_report::csv;
use leaps_report::experiment::{self as page, Written};
use serde_json::json;

use crate::app::Context;
use crate::csv::CsvArgs;
use crate::error::usage;
use crate::output;

/// Flags of `reproduce`.
#[derive(Args, Debug)]
pub struct ReproduceArgs {
    /// Experiment, file of one that ends in .toml, or all [default with --quick: all]
    #[arg(value_name = "NAME|FILE")]
    name: Option<String>,
    /// Print the experiments and what they repeat; nothing is run
    #[arg(long, conflicts_with = "name")]
    list: bool,
    /// Smaller lattices and networks: minutes on two cores, to see that everything works
    #[arg(long)]
    quick: bool,
    /// Folder of the page; with all, of a folder for each [default: results/NAME]
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Run samplers again whose results are there; trained networks are kept
    #[arg(long)]
    fresh: bool,
    /// Write the page anew from what was run before, on whatever device; nothing is run
    #[arg(long, conflicts_with = "fresh")]
    page: bool,
    #[command(flatten)]
    csv: CsvArgs,
}

/// Where results go.
const RESULTS: &str = "results";

/// Run one experiment or all of them.
pub fn run(args: &ReproduceArgs, context: &Context) -> Result<()> {
    args.csv.check()?;
    if args.list {
        return list(args, context);
    }
    let name = match (&args.name, args.quick) {
        (Some(name), _) => name.as_str(),
        (None, true) => "all",
        (None, false) => {
            return Err(usage(
                "no NAME: 'leaps reproduce --list' prints them; all runs all of them",
            ));
        }
    };
    if context.matches.value_source("seed") == Some(clap::parser::ValueSource::CommandLine) {
        return Err(usage("--seed: must be left out; the experiment's file says its seed"));
    }
    let all = name == "all";
    let names: Vec<&str> =
        if all { EXPERIMENTS.map(|(name, _)| name).to_vec() } else { vec![name] };
    // Everything is read before anything runs.
    let experiments: Vec<Experiment> = names
        .iter()
        .map(|name| Experiment::find(name, args.quick))
        .collect::<leaps::Result<_>>()?;
    experiments.iter().try_for_each(page::check)?;
    context.interrupted();
    let (mut finished, mut rows) = (Vec::new(), Vec::new());
    for experiment in &experiments {
        let root = args.out.as_deref().unwrap_or(Path::new(RESULTS));
        let own = args.out.is_some() && !all;
        let places = Places {
            out: if own { root.to_owned() } else { root.join(&experiment.name) },
            networks: root.join("networks"),
            fresh: args.fresh,
            done_only: args.page,
            command: context.command.clone(),
        };
        let (done, own) = repeat(experiment, &places, context)?;
        if !context.globals.json {
            output::data(&done.table)?;
        }
        context.say(format!("wrote {}", done.page.display()));
        finished.push(done.numbers);
        rows.extend(own);
    }
    args.csv.write(|| csv::rows(&rows), context)?;
    match (context.globals.json, &finished[..]) {
        (true, [one]) => output::json(one),
        (true, many) => output::json(&json!({ "experiments": many })),
        (false, _) => Ok(()),
    }
}

/// Do what is not done yet, and write the page with everything that belongs to it; the numbers of all runs are rows.
fn repeat(
    experiment: &Experiment,
    places: &Places,
    context: &Context,
) -> Result<(Written, Vec<Row>)> {
    let quiet = context.progress("");
    let found = match experiment.run_in(places, &context.job(&quiet), context) {
        Err(Error::Interrupted) => {
            context.say("finished parts are kept: the same command goes on with the others");
            let signals = context.catch_stops();
            return Err(match signals.caught() {
                true => signals.failure(Error::Interrupted.to_string()),
                false => Error::Interrupted.into(),
            });
        }
        found => found?,
    };
    let done = page::write(experiment, &found, context.globals.device, &places.out)?;
    for (title, why) in &done.undrawn {
        context.say(format!("warning: figure '{title}' is not drawn: {why}"));
    }
    Ok((done, found.rows(experiment)?))
}

fn list(args: &ReproduceArgs, context: &Context) -> Result<()> {
    let all: Vec<Experiment> = EXPERIMENTS
        .iter()
        .map(|(name, _)| Experiment::find(name, false))
        .collect::<leaps::Result<_>>()?;
    let line = |e: &Experiment| -> Vec<csv::Cell> {
        vec![e.name.as_str().into(), e.title.as_str().into(), e.paper.as_str().into()]
    };
    args.csv.write(|| csv::cells(csv::Head::Experiments, all.iter().map(line)), context)?;
    if context.globals.json {
        let entry = |e: &Experiment| json!({"name": e.name, "title": e.title, "paper": e.paper});
        return output::json(&json!({ "experiments": all.iter().map(entry).collect::<Vec<_>>() }));
    }
    let width = all.iter().map(|e| e.title.chars().count()).max().unwrap_or(0);
    let lines: Vec<String> =
        all.iter().map(|e| format!("{:<15}  {:<width$}  {}", e.name, e.title, e.paper)).collect();
    output::data(&(lines.join("\n") + "\n"))
}
