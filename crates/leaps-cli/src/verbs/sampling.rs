//! Steps that all sampling verbs share, before and after the work.

use std::path::PathBuf;

use anyhow::Result;
use clap::Args;
use leaps::Error;
use leaps::job::{Monitor, Run, Sampler};
use leaps::parse::number;
use leaps::problem::Problem;
use leaps::results::{Compared, Comparison, Computed, Tabulate};
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
    if context.interrupted() {
        return Err(Error::Interrupted.into());
    }
    context.detail(spec.target.formula());
    let Destination { out, require_ess, csv } = destination.clone();
    Ok(Prepared { layers, spec, problem, out, require_ess, csv })
}

impl Prepared {
    /// Name keys in an error of the library as the user wrote them.
    pub fn explained<T>(&self, done: leaps::Result<T>) -> Result<T> {
        done.map_err(|error| self.layers.explain(error).into())
    }

    /// What was found; if a stop came before anything was, how that ends the program.
    pub fn or_stopped<T>(&self, context: &Context, done: leaps::Result<T>) -> Result<T> {
        match done {
            Err(Error::Interrupted) => {
                Err(context.catch_stops().failure(Error::Interrupted.to_string()))
            }
            done => self.explained(done),
        }
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

/// The same sampler at every inverse temperature and field of some ranges, one after the other, each with random numbers of its own.
pub fn one_by_one(
    context: &Context,
    prepared: &Prepared,
    places: &[(Option<f64>, Option<f64>)],
    job: impl Fn(Problem, u64) -> Sampler,
) -> Result<()> {
    for (flag, given) in
        [("--out", prepared.out.is_some()), ("--require-ess", prepared.require_ess.is_some())]
    {
        if given {
            return Err(usage(format!(
                "{flag}: must be left out beside a range of --beta, --field or the like; it is for one target"
            )));
        }
    }
    // What cannot be sampled is refused before any of it is.
    let (of, mut jobs) = (context.grid.of, Vec::new());
    for &(beta, strength) in places {
        let at = beta.map(|beta| format!("beta {beta}"));
        let with = strength.map(|value| format!("{} {value}", of.name().replace('_', " ")));
        let name = at.into_iter().chain(with).collect::<Vec<_>>().join(", ");
        let beta_there = beta.unwrap_or(prepared.problem.beta);
        let problem = prepared.explained(prepared.problem.at_strength(beta_there, of, strength))?;
        // The name says what other strengths are.
        let field = strength.filter(|_| of.is_field());
        let seed = prepared.spec.seed_of(&name, problem.target.sites());
        let job = job(problem, seed);
        prepared.explained(job.check_memory())?;
        jobs.push((name, beta, field, job));
    }
    let asked = jobs.len();
    context.catch_stops();
    let (mut samplers, mut computed, mut interrupted) = (Vec::new(), Computed::on_cpu(), false);
    for (name, beta, field, job) in jobs {
        let progress = context.progress(&name);
        let done = job.run_in(&context.job(&progress));
        drop(progress);
        let run = match done {
            Err(Error::Interrupted) if !samplers.is_empty() => {
                interrupted = true;
                break;
            }
            done => prepared.or_stopped(context, done)?,
        };
        interrupted = run.result.interrupted();
        if run.result.is_of_target() {
            Monitor::found(context, &name, &run.result);
            computed = run.computed;
            samplers.push(Compared::new(name, (beta, field), run.result));
        } else {
            context.say(format!("{name} is left out: it was stopped on its way to the target"));
        }
        if interrupted {
            break;
        }
    }
    if interrupted && samplers.is_empty() {
        return prepared.or_stopped(context, Err(Error::Interrupted));
    }
    let mut found = Comparison::new(prepared.spec.seed, samplers);
    (found.interrupted, found.asked) = (interrupted, interrupted.then_some(asked));
    let printed = context.record(&prepared.problem, &computed, &found);
    let shown = match context.globals.json {
        true => output::json(&printed),
        false => output::data(&super::compare::table(&found)),
    };
    prepared.csv.write(|| csv::rows(&printed.rows()), context)?;
    super::compare::verdict(&found, context).and(shown)
}
