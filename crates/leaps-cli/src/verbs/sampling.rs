//! What all sampling verbs do before and after the work.

use std::path::PathBuf;

use anyhow::Result;
use clap::Args;
use leaps::Error;
use leaps::job::Run;
use leaps::parse::number;
use leaps::problem::Problem;
use leaps::results::Tabulate;
use leaps::spec::RunSpec;
use leaps::store::NpzWriter;
use leaps_report::csv;
use serde::Serialize;

use crate::app::Context;
use crate::config::Layers;
use crate::csv::CsvArgs;
use crate::error::{Failure, usage};
use crate::output;
use crate::progress::TerminalProgress;
use crate::samples;
use crate::tables::Report;

/// Where results go and what is asked of them.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Output")]
pub struct Destination {
    /// Write states, log-weights and energies to this .npz file
    #[arg(long, value_name = "FILE.npz")]
    pub out: Option<PathBuf>,
    /// Exit with 1 if the effective sample size is below this fraction, in (0, 1]
    #[arg(long, value_name = "X", value_parser = number)]
    require_ess: Option<f64>,
    #[command(flatten)]
    pub csv: CsvArgs,
}

/// Everything that is decided before the work starts.
pub struct Prepared {
    pub layers: Layers,
    pub spec: RunSpec,
    pub problem: Problem,
    out: Option<PathBuf>,
    require_ess: Option<f64>,
    csv: CsvArgs,
}

/// Check everything and build the target.
pub fn prepare(context: &Context, layers: Layers, destination: &Destination) -> Result<Prepared> {
    let spec = layers.resolve()?;
    if let Some(ess) = destination.require_ess.filter(|ess| !(*ess > 0.0 && *ess <= 1.0)) {
        return Err(usage(format!("--require-ess = {ess}: must be above 0 and at most 1")));
    }
    destination.csv.check()?;
    let problem = layers.problem(&spec)?;
    // First, since whoever looks after signals takes memory as well.
    stop_if_interrupted(context)?;
    context.detail(spec.target.formula());
    let Destination { out, require_ess, csv } = destination.clone();
    Ok(Prepared { layers, spec, problem, out, require_ess, csv })
}

fn stop_if_interrupted(context: &Context) -> Result<()> {
    if context.interrupted() { Err(Error::Interrupted.into()) } else { Ok(()) }
}

impl Prepared {
    /// Name keys in an error of the library as the user wrote them.
    pub fn explained<T>(&self, done: leaps::Result<T>) -> Result<T> {
        done.map_err(|error| self.layers.explain(error).into())
    }

    /// Open the file of samples, if there is to be one.
    pub fn open(&self) -> Result<Option<NpzWriter>> {
        samples::open(self.out.as_deref())
    }

    /// The progress of the work.
    pub fn progress(&self, context: &Context, label: &str) -> TerminalProgress {
        let title = format!("{}, seed {}", self.problem.description, self.spec.seed);
        context.progress(label).titled(title)
    }
}

/// Print the result, write the samples, and judge them, unless the work was interrupted.
pub fn finish<T: Serialize + Report + Tabulate>(
    context: &Context,
    prepared: &Prepared,
    file: Option<NpzWriter>,
    run: &Run<T>,
) -> Result<()> {
    stop_if_interrupted(context)?;
    conclude(context, prepared, file, run)
}

/// Print the result, write the samples, and judge them; a result may say itself that the work was interrupted.
pub fn conclude<T: Serialize + Report + Tabulate>(
    context: &Context,
    prepared: &Prepared,
    file: Option<NpzWriter>,
    run: &Run<T>,
) -> Result<()> {
    let result = &run.result;
    let printed = context.record(&prepared.problem, &run.computed, result);
    // A failed check is a failed check, even if nobody reads the result.
    let verdict = match (result.interrupted(), prepared.require_ess) {
        (Some(text), _) => Err(context.catch_stops().failure(text)),
        (None, Some(wanted)) if result.ess().is_nan() || result.ess() < wanted => {
            let ess = result.ess();
            let text = format!("--require-ess = {wanted}: the effective sample size is {ess:.4}");
            Err(Failure::Requirement(text).into())
        }
        _ => Ok(()),
    };
    let shown = if context.globals.json {
        output::json(&printed)
    } else {
        context.say(result.summary());
        output::data(&result.table())
    };
    for doubt in result.doubts() {
        context.say(format!("warning: {doubt}"));
    }
    // Files come last: if one cannot be written, the numbers are not lost with it.
    prepared.csv.write(|| csv::rows(&printed.rows()), context)?;
    if let Some(file) = file {
        samples::save(file, &*prepared.problem.target, &run.samples, &printed)?;
    }
    verdict.and(shown)
}
