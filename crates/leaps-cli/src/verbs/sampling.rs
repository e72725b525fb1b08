//! Share what all sampling verbs do before and after the work.

use std::path::PathBuf;

use anyhow::Result;
use clap::Args;
use leaps::Error;
use leaps::run::NpzWriter;
use serde::Serialize;

use crate::app::Context;
use crate::config::{Config, Layers, Problem, Work, number};
use crate::error::{Failure, usage};
use crate::output;
use crate::progress::TerminalProgress;
use crate::results::{Origin, Printed};
use crate::samplers::{self, Samples};
use crate::tables::Report;
use crate::timings;

/// Where results go and what is asked of them.
#[derive(Args, Debug)]
#[command(next_help_heading = "Output")]
pub struct Destination {
    /// Write states, log-weights and energies to this .npz file
    #[arg(long, value_name = "FILE.npz")]
    pub out: Option<PathBuf>,
    /// Exit with 1 if the effective sample size is below this fraction, in (0, 1]
    #[arg(long, value_name = "X", value_parser = number)]
    require_ess: Option<f64>,
}

/// Everything that is decided before the work starts.
pub struct Job {
    pub layers: Layers,
    pub config: Config,
    pub problem: Problem,
    pub file: Option<NpzWriter>,
    require_ess: Option<f64>,
}

/// Check everything, build the target and open the output file.
pub fn prepare(
    context: &Context,
    layers: Layers,
    destination: &Destination,
    work: Work,
) -> Result<Job> {
    let config = Config::resolve(&layers)?;
    if let Some(ess) = destination.require_ess.filter(|ess| !(*ess > 0.0 && *ess <= 1.0)) {
        return Err(usage(format!("--require-ess = {ess}: must be above 0 and at most 1")));
    }
    let problem = config.problem(&layers)?;
    // First, since whoever looks after signals takes memory as well.
    stop_if_interrupted(context)?;
    config.check_memory(&problem, work).map_err(|error| layers.explain(error))?;
    let file = samplers::open(destination.out.as_deref())?;
    context.detail(config.formula());
    Ok(Job { layers, config, problem, file, require_ess: destination.require_ess })
}

fn stop_if_interrupted(context: &Context) -> Result<()> {
    if context.interrupted() { Err(Error::Interrupted.into()) } else { Ok(()) }
}

impl Job {
    /// The progress of the job's work.
    pub fn progress(&self, context: &Context, label: &str) -> TerminalProgress {
        let title = format!("{}, seed {}", self.problem.description, self.config.seed);
        context.progress(label).titled(title)
    }
}

/// Print the result, write the samples, and judge them, unless the work was interrupted.
pub fn finish<T: Serialize + Report>(
    context: &Context,
    job: Job,
    result: &T,
    samples: &Samples,
) -> Result<()> {
    stop_if_interrupted(context)?;
    conclude(context, job, result, samples)
}

/// Print the result, write the samples, and judge them; a result may say itself that the work was interrupted.
pub fn conclude<T: Serialize + Report>(
    context: &Context,
    job: Job,
    result: &T,
    samples: &Samples,
) -> Result<()> {
    let target = &job.problem.target;
    let origin = Origin::new(context, &job.config, &job.problem);
    let printed = Printed { origin, result };
    // A failed check is a failed check, even if nobody reads the result.
    let verdict = match (result.interrupted(), job.require_ess) {
        (Some(text), _) => Err(Failure::Interrupted(text).into()),
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
    // The file comes last: if it cannot be written, the numbers are not lost with it.
    if let Some(file) = job.file {
        let mut meta = serde_json::to_value(&printed)?;
        // What differs from run to run stays out: the same seed gives the same file.
        timings::take(&mut meta);
        if let Some(meta) = meta.as_object_mut() {
            meta.remove("command");
        }
        samplers::save(file, target, samples, &meta)?;
    }
    verdict.and(shown)
}
