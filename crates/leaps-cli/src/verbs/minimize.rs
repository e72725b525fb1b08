//! `leaps minimize`: the lowest energy of a target and a state that has it.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::Result;
use clap::Args;
use clap::parser::ValueSource;
use leaps::Error;
use leaps::job::{MinimizeSpec, Minimizing};
use leaps::results::MinimumResult;
use leaps_report::csv;
use leaps_report::text::{Table, fixed};

use crate::app::Context;
use crate::config::{Layers, ProblemArgs};
use crate::csv::CsvArgs;
use crate::models::{self, Found};
use crate::output;
use crate::samples;
use crate::training::duration;

/// Restarts that are printed; files have all.
const SHOWN: usize = 20;
/// Sites of a state that is printed; files have any.
const SHOWN_SITES: usize = 100;

/// Flags of `minimize`.
#[derive(Args, Debug)]
#[command(
    after_help = "Methods: auto (a network if there is one, an exact method if one is quick, else annealing), exact, annealing, \
    tempering, houdayer, network.\n--beta or --temperature set the coldest temperature; it is chosen by the energy changes of the \
    target if they are left out.\nExample: leaps minimize maxcut graph.txt --time-limit 30s --out best.npz"
)]
pub struct MinimizeArgs {
    #[command(flatten)]
    problem: ProblemArgs,
    /// Model directory, run directory, or name of a model, in place of a target
    #[arg(long, value_name = "DIR|NAME", conflicts_with_all = ["kind", "config"])]
    model: Option<PathBuf>,
    #[command(flatten)]
    search: MinimizeSpec,
    /// Restart until so much time is over, such as 30s or 2h
    #[arg(long, value_name = "TIME", value_parser = duration, help_heading = "Search")]
    time_limit: Option<Duration>,
    /// Write the best state of every restart with its energy to this .npz file
    #[arg(long, value_name = "FILE.npz", help_heading = "Output")]
    out: Option<PathBuf>,
    #[command(flatten)]
    csv: CsvArgs,
}

/// Look for the lowest energy and print what was found; after a signal, what was found until then.
pub fn run(args: &MinimizeArgs, context: &Context) -> Result<()> {
    args.csv.check()?;
    let found = args.model.as_deref().map(|model| models::find("--model", model)).transpose()?;
    let layers = layers(args, found.as_ref(), context)?;
    let spec = layers.resolve()?;
    let problem = layers.problem(&spec)?;
    let given = |id: &str| context.matches.value_source(id) == Some(ValueSource::CommandLine);
    let job = Minimizing {
        settings: args.search.clone(),
        model: found.as_ref().map(|found| (found.model.clone(), found.name.clone())),
        beta: (given("beta") || given("temperature")).then_some(problem.beta),
        time_limit: args.time_limit,
        seed: spec.seed,
        ..Minimizing::new(problem)
    };
    job.check().map_err(|error| explained(error, &layers))?;
    // What batch systems send ends the search as Ctrl-C does: what was found is not lost.
    let signals = context.catch_stops();
    let file = samples::open(args.out.as_deref())?;
    let title = format!(
        "{}, seed {}",
        job.problem.spec.as_ref().map_or_else(
            || job.problem.description.clone(),
            |own| own.describe_energy(job.problem.target.sites()),
        ),
        job.seed
    );
    let progress = context.progress("minimize").titled(title);
    let done = job.run_in(&context.job(&progress), context);
    if done.is_ok() {
        progress.announce();
    }
    drop(progress);
    if matches!(done, Err(Error::Interrupted)) {
        return Err(signals.failure(Error::Interrupted.to_string()));
    }
    let run = done.map_err(|error| explained(error, &layers))?;
    let printed = context.record(&job.problem, &run.computed, &run.result);
    let shown = match context.globals.json {
        true => output::json(&printed),
        false => output::data(&table(&run)),
    };
    if let Some(graph) = job.problem.spec.as_ref().and_then(|own| own.kind)
        && graph.name() == "independent-set"
        && run.set_size.is_none()
    {
        context.say("warning: the state is no independent set: the search ended before it was one");
    }
    args.csv.write(|| csv::rows(&printed.rows()), context)?;
    if let Some(file) = file {
        samples::save(file, &*job.problem.target, &run.samples, &printed)?;
    }
    if run.interrupted() {
        let text = format!(
            "interrupted in restart {}; the result is that of what was done",
            run.restarts.len()
        );
        return Err(signals.failure(text));
    }
    shown
}

fn layers(args: &MinimizeArgs, found: Option<&Found>, context: &Context) -> Result<Layers> {
    let matches = &context.matches;
    let Some(found) = found else { return args.problem.layers(context.globals.seed, matches) };
    let mut layers = found.layers()?;
    layers.set(&args.problem.set)?;
    layers.seed(context.globals.seed, matches)?;
    layers.flags("target", &args.problem.target, matches)?;
    layers.temperature(args.problem.temperature)?;
    Ok(layers)
}

/// Name keys in an error of the library as the user wrote them.
fn explained(error: Error, layers: &Layers) -> Error {
    match error {
        Error::Invalid { key, value, condition, advice } if key.starts_with("minimize.") => {
            let key = key.replacen("minimize.", "--", 1).replace('_', "-");
            Error::Invalid { key, value, condition, advice }
        }
        other => layers.explain(other),
    }
}

fn table(result: &MinimumResult) -> String {
    let mut how = result.method.clone();
    how += &result.model.as_ref().map_or_else(String::new, |model| format!(" {model}"));
    if result.method != "exact" {
        how += &format!(", {} walkers, {} sweeps", result.walkers, result.sweeps);
    }
    how += &result.temperatures.map_or_else(String::new, |n| format!(", {n} temperatures"));
    if let (Some(hot), Some(cold)) = (result.beta_hot, result.beta_cold) {
        how += &format!(", beta {} to {}", fixed(hot, 4), fixed(cold, 4));
    }
    let found = &result.found;
    let mut rows = vec![
        ("method", how),
        ("lowest_energy", fixed(result.lowest.energy, 8)),
        ("lowest_energy_per_site", fixed(result.lowest.energy_per_site, 8)),
    ];
    rows.extend(result.cut.map(|cut| ("cut", fixed(cut, 8))));
    rows.extend(result.set_size.map(|size| ("set_size", size.to_string())));
    let proof = result.proof.as_deref().unwrap_or("no exact method is quick here");
    rows.push(("proven", format!("{} ({proof})", if result.proven { "yes" } else { "no" })));
    if let Some(optimum) = result.optimum.filter(|_| !result.proven) {
        rows.push(("optimum", fixed(optimum, 8)));
    }
    let share = format!(
        "{} of {} restarts, {} of {} walkers",
        found.restarts,
        result.restarts.len(),
        found.walkers,
        found.of_walkers
    );
    rows.push(("found", share));
    rows.push(("ended_by", result.ended_by.clone()));
    rows.push(("seconds_to_best", fixed(result.seconds_to_best, 3)));
    rows.push(("seconds", fixed(result.seconds, 3)));
    if result.lowest.state.len() <= SHOWN_SITES {
        rows.push(("state", result.lowest.state.clone()));
    }
    output::pairs(&rows) + &restarts(result)
}

/// What every restart found.
fn restarts(result: &MinimumResult) -> String {
    if result.restarts.len() < 2 {
        return String::new();
    }
    let mut table = Table::default();
    table.row(["restart", "energy", "found", "walkers", "seconds"]);
    let all = result.restarts.iter().zip(&result.seconds_of_restarts);
    for (number, (restart, seconds)) in all.enumerate().take(SHOWN) {
        table.row([
            (number + 1).to_string() + if restart.unfinished { " (unfinished)" } else { "" },
            fixed(restart.energy, 8),
            restart.found.to_string(),
            restart.walkers.to_string(),
            fixed(*seconds, 3),
        ]);
    }
    let more = result.restarts.len().saturating_sub(SHOWN);
    let more = if more > 0 { format!("... and {more} more\n") } else { String::new() };
    format!("\n{}{more}", table.text())
}
