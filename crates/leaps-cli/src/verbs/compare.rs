//! `leaps compare`: several samplers on one target, side by side.
//!
//! The specification is a configuration with a list of samplers; keys of `[sample]` and `[path]` in an
//! entry override those of the file. Every entry has a seed of its own, made of the file's seed, the target and the entry's name, unless
//! it says `seed` itself:
//! ```toml
//! [[compare]]
//! sampler = "smc"
//! name = "SMC, 200 intervals"
//! intervals = 200
//! [[compare]]
//! sampler = "sample"
//! model = "runs/a"
//! ```

use std::path::PathBuf;

use anyhow::Result;
use clap::Args;
use leaps::Error;
use leaps::device::NoProgress;
use leaps::job::{Comparison, Run};
use leaps::observe::Estimate;
use leaps::problem::Problem;
use leaps::results::{self, Compared, SamplerResult};
use leaps_report::csv;
use leaps_report::text::{Short, Table, sigmas, with_error};

use crate::app::Context;
use crate::config::Layers;
use crate::csv::CsvArgs;
use crate::output;
use crate::tables::at_beta;

/// Flags of `compare`.
#[derive(Args, Debug)]
pub struct CompareArgs {
    /// Configuration with [[compare]] entries; without any, AIS, SMC and two kernels are compared
    #[arg(value_name = "SPEC")]
    spec: PathBuf,
    /// Override a key of the configuration, such as sample.walkers=2000; repeatable, not beside its flag
    #[arg(long = "set", value_name = "KEY=VALUE")]
    set: Vec<String>,
    #[command(flatten)]
    csv: CsvArgs,
}

/// Run every sampler of the specification and print one table.
pub fn run(args: &CompareArgs, context: &Context) -> Result<()> {
    args.csv.check()?;
    let mut layers = Layers::default();
    layers.read_file(&args.spec)?;
    layers.set(&args.set)?;
    layers.seed(context.globals.seed, &context.matches)?;
    let (problem, run) = compare(&layers, context)?;
    let printed = context.record(&problem, &run.computed, &run.result);
    let shown = match context.globals.json {
        true => output::json(&printed),
        false => output::data(&table(&run.result)),
    };
    args.csv.write(|| csv::rows(&printed.rows()), context)?;
    verdict(&run.result, context).and(shown)
}

/// How a comparison that was interrupted ends the program.
pub fn verdict(found: &results::Comparison, context: &Context) -> Result<()> {
    let Some(asked) = found.asked.filter(|_| found.interrupted) else { return Ok(()) };
    let there = found.samplers.len();
    let unfinished = found.samplers.last().is_some_and(|last| last.result.interrupted());
    let last = if unfinished { ", the last as far as it has got" } else { "" };
    let text = format!("interrupted with {there} of {asked} samplers; they are printed{last}");
    Err(context.catch_stops().failure(text))
}

/// Run every sampler of `layers` on the problem they share.
pub fn compare(layers: &Layers, context: &Context) -> Result<(Problem, Run<results::Comparison>)> {
    let job = job(layers)?;
    context.say(format!("{}, seed {}", job.problem.description, job.seed));
    // What batch systems send ends the work as Ctrl-C does: samplers that are finished are not lost.
    let signals = context.catch_stops();
    let done = job.run_in(&context.job(&NoProgress), context);
    if matches!(done, Err(Error::Interrupted)) {
        return Err(signals.failure(Error::Interrupted.to_string()));
    }
    let run = done.map_err(|error| layers.explain(error))?;
    Ok((job.problem, run))
}

/// The samplers of `[[compare]]`, checked; without any, the usual ones.
pub fn job(layers: &Layers) -> Result<Comparison> {
    // The program's own checks first.
    layers.resolve()?;
    let shared = layers.given()?;
    let job = match layers.compare.is_empty() {
        true => Comparison::usual(&shared),
        false => Comparison::of(&shared, &layers.compare),
    };
    job.map_err(|error| layers.explain(error).into())
}

/// The comparison for people.
pub fn table(comparison: &results::Comparison) -> String {
    let mut table = Table::default();
    table.row([
        "sampler",
        "ess",
        "log_z",
        "sigmas",
        "energy_per_site",
        "sigmas",
        "network_passes",
        "energy_calls",
        "seconds",
        "samples/s",
        "log_z_merit",
    ]);
    let deviation =
        |e: &Estimate| e.exact.map_or("-".into(), |exact| sigmas(e.mean, e.error, exact));
    let shown = |e: &Estimate| [with_error(e.mean, e.error), deviation(e)];
    for Compared { name, result, .. } in &comparison.samplers {
        let mut cells = vec![name.clone()];
        let (energy, numbers) = match result {
            SamplerResult::Walkers(r) => (
                &r.observables.energy_per_site,
                (
                    [r.ess, r.ess_error],
                    r.network_passes_per_walker,
                    r.energy_calls_per_walker,
                    r.effective_samples_per_second,
                ),
            ),
            SamplerResult::Chains(r) => (
                &r.observables.energy_per_site.estimate,
                (
                    [r.ess, r.ess_error],
                    0.0,
                    r.energy_calls_per_walker,
                    r.effective_samples_per_second,
                ),
            ),
        };
        let ([ess, ess_error], passes, calls, rate) = numbers;
        let (seconds, merit) = (result.seconds(), result.log_z_merit().unwrap_or(f64::NAN));
        let log_z = result.log_z();
        let log_z = log_z.as_ref().map_or_else(|| ["-".to_owned(), "-".to_owned()], shown);
        cells.push(with_error(ess, ess_error));
        cells.extend(log_z);
        cells.extend(shown(energy));
        cells.push(Short(passes).to_string());
        cells.extend([Short(calls).to_string(), format!("{seconds:.2}"), Short(rate).to_string()]);
        cells.push(Short(merit).to_string());
        table.row(cells);
    }
    table.text() + &on_the_way(comparison) + &discs(comparison)
}

/// What was measured at other temperatures on the way, sampler by sampler.
fn on_the_way(comparison: &results::Comparison) -> String {
    let mut text = String::new();
    for Compared { name, result, .. } in &comparison.samplers {
        if let SamplerResult::Walkers(result) = result
            && !result.at_beta.is_empty()
        {
            text += &format!("\n{name}, on the way{}", at_beta(&result.at_beta));
        }
    }
    text
}

/// The columns of the DISCS benchmark, for the chains among the samplers.
fn discs(comparison: &results::Comparison) -> String {
    let mut table = Table::default();
    table.row(["DISCS", "ess/step", "ess/call", "ess/s"]);
    for Compared { name, result, .. } in &comparison.samplers {
        if let SamplerResult::Chains(r) = result {
            let numbers = [r.discs.ess_per_step, r.discs.ess_per_call];
            let mut cells = vec![name.clone()];
            cells.extend(numbers.map(|number| format!("{number:.2e}")));
            cells.push(Short(r.discs.ess_per_second).to_string());
            table.row(cells);
        }
    }
    if table.rows() > 1 { format!("\n{}", table.text()) } else { String::new() }
}
