//! Run several samplers on one target and lay them side by side.
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
use leaps::device::Placement;
use leaps::observe::Estimate;
use leaps::target::Target;
use serde::Serialize;
use toml::{Table as Entry, Value};

use crate::app::Context;
use crate::config::{Config, Layers, Problem, Work};
use crate::error::usage;
use crate::models::{self, Found};
use crate::output::{self, Table, sigmas, with_error};
use crate::progress::TerminalProgress;
use crate::results::{ChainResult, Origin, Printed, WalkerResult};
use crate::samplers::{Samples, gpu_has, run_chains, run_flow, run_walkers};
use crate::tables::{Report, Short};

/// Flags of `compare`.
#[derive(Args, Debug)]
pub struct CompareArgs {
    /// Configuration with [[compare]] entries; without any, AIS, SMC and two kernels are compared
    #[arg(value_name = "SPEC")]
    spec: PathBuf,
    /// Override a key of the configuration, such as sample.walkers=2000; repeatable, not beside its flag
    #[arg(long = "set", value_name = "KEY=VALUE")]
    set: Vec<String>,
}

/// What is compared if the specification does not say.
const USUAL: &str = "
    compare = [{ sampler = 'ais' }, { sampler = 'smc' },
               { sampler = 'mcmc', kernel = 'heat-bath' }, { sampler = 'mcmc', kernel = 'swendsen-wang' }]";

/// One sampler and what it found.
#[derive(Debug, Serialize)]
pub struct Compared {
    pub name: String,
    #[serde(flatten)]
    pub result: Outcome,
}

/// The result of either kind of sampler.
#[derive(Debug, Serialize)]
#[serde(untagged)]
pub enum Outcome {
    Walkers(Box<WalkerResult>),
    Chains(Box<ChainResult>),
}

/// All samplers of a comparison.
#[derive(Debug, Serialize)]
pub struct Comparison {
    pub seed: u64,
    pub samplers: Vec<Compared>,
}

/// Run every sampler of the specification and print one table.
pub fn run(args: &CompareArgs, context: &Context) -> Result<()> {
    let mut layers = Layers::default();
    layers.read_file(&args.spec)?;
    layers.set(&args.set)?;
    layers.seed(context.globals.seed, &context.matches)?;
    let (config, problem, comparison) = compare(layers, context)?;
    if context.globals.json {
        let origin = Origin::new(context, &config, &problem);
        return output::json(&Printed { origin, result: &comparison });
    }
    output::data(&table(&comparison))
}

/// A sampler that is ready to run.
pub struct Job {
    pub name: String,
    pub sampler: String,
    pub model: Option<Found>,
    pub layers: Layers,
    pub config: Config,
    pub problem: Problem,
}

impl Job {
    /// Run the sampler; `keep` the states of chains, those of walkers are always there.
    pub fn run(
        &self,
        keep: bool,
        context: &Context,
        progress: &TerminalProgress,
    ) -> leaps::Result<(Outcome, Samples)> {
        let Job { config, problem, .. } = self;
        let walkers = |(result, samples)| (Outcome::Walkers(Box::new(result)), samples);
        let placement = self.placement(context)?;
        match (self.sampler.as_str(), &self.model) {
            ("mcmc", _) => match run_chains(config, problem, keep, progress)? {
                // What is compared is complete.
                (result, _) if result.interrupted => Err(Error::Interrupted),
                (result, samples) => Ok((Outcome::Chains(Box::new(result)), samples)),
            },
            (_, Some(found)) => {
                run_flow(config, problem, &found.model, &found.name, &placement, progress)
                    .map(walkers)
            }
            (other, None) => {
                run_walkers(config, problem, other == "smc", &placement, progress).map(walkers)
            }
        }
    }

    /// Where it runs.
    pub fn placement(&self, context: &Context) -> leaps::Result<Placement> {
        match (self.sampler.as_str(), &self.model) {
            ("mcmc", _) => Ok(Placement::Cpu),
            (_, Some(found)) => context.placement_of(found.model.family.as_ref()),
            (_, None) => context.placement_if(gpu_has(&self.config, &self.problem)),
        }
    }

    /// Where it runs, in words, with the precision of its network.
    pub fn computed_on(&self, placement: &Placement) -> leaps::Result<String> {
        match &self.model {
            Some(found) => Ok(found.model.net(&self.problem.target)?.computed_on(placement)),
            None => Ok(placement.machine().to_owned()),
        }
    }
}

impl Outcome {
    /// Reasons to doubt the numbers.
    pub fn doubts(&self) -> Vec<String> {
        match self {
            Outcome::Walkers(result) => result.doubts(),
            Outcome::Chains(result) => result.doubts(),
        }
    }

    fn summary(&self) -> String {
        match self {
            Outcome::Walkers(result) => result.summary(),
            Outcome::Chains(result) => result.summary(),
        }
    }
}

/// Run every sampler of `layers`; the configuration returned is the one they share.
pub fn compare(mut layers: Layers, context: &Context) -> Result<(Config, Problem, Comparison)> {
    let usual = layers.compare.is_empty();
    if usual {
        layers.parse_file(USUAL, "the usual samplers".as_ref())?;
    }
    let config = Config::resolve(&layers)?;
    let problem = config.problem(&layers)?;
    // Everything is checked before anything runs.
    let jobs = jobs(&layers)?;
    context.say(format!("{}, seed {}", problem.description, config.seed));
    let mut samplers = Vec::new();
    for job in &jobs {
        let Job { name, layers, .. } = job;
        let progress = context.progress(name);
        let done = job.run(false, context, &progress);
        drop(progress);
        if usual && let Err(error @ Error::NotApplicable { .. }) = &done {
            context.say(format!("{name} is left out: {error}"));
            continue;
        }
        let (result, _) = done.map_err(|error| layers.explain(error))?;
        context.detail(format!("{name}: seed {}, {}", job.config.seed, result.summary()));
        for doubt in result.doubts() {
            context.say(format!("warning: {name}: {doubt}"));
        }
        samplers.push(Compared { name: name.clone(), result });
    }
    let seed = config.seed;
    Ok((config, problem, Comparison { seed, samplers }))
}

/// Check the entries of `[[compare]]` and name their samplers.
pub fn names(layers: &Layers) -> Result<Vec<String>> {
    Ok(jobs(layers)?.into_iter().map(|job| job.name).collect())
}

fn jobs(layers: &Layers) -> Result<Vec<Job>> {
    let mut jobs: Vec<Job> = Vec::new();
    for (n, entry) in (1..).zip(&layers.compare) {
        let taken = |name: &str| jobs.iter().any(|job| job.name == name);
        let job = Job::of(layers, n, entry.clone(), None, &taken)?;
        jobs.push(job);
    }
    Ok(jobs)
}

impl Job {
    /// Check entry `n`, from 1, of `[[compare]]`.
    pub fn new(layers: &Layers, n: usize, entry: Entry) -> Result<Self> {
        Self::of(layers, n, entry, None, &|_| false)
    }

    /// The same with the model in this place, which need not be text, and with a number after a name that is taken: entries that differ in
    /// nothing but their place are independent too.
    pub fn of(
        layers: &Layers,
        n: usize,
        mut entry: Entry,
        model: Option<PathBuf>,
        taken: &dyn Fn(&str) -> bool,
    ) -> Result<Self> {
        let usual = if entry.contains_key("model") { "sample" } else { "" };
        let sampler = word(&mut entry, "sampler", n)?.unwrap_or_else(|| usual.to_owned());
        let name = word(&mut entry, "name", n)?;
        let named = word(&mut entry, "model", n)?.map(PathBuf::from);
        let own = layers.with_comparison(n, &entry)?;
        if !["sample", "ais", "smc", "mcmc"].contains(&sampler.as_str()) {
            let all = "sample, ais, smc or mcmc";
            let text = format!("compare entry {n}: sampler = '{sampler}': must be {all}");
            return Err(usage(text));
        }
        let model = match (sampler.as_str(), model.or(named)) {
            ("sample", Some(model)) => {
                let key = format!("compare entry {n}: model");
                Some(models::find(&key, &model)?)
            }
            ("sample", None) => {
                return Err(usage(format!(
                    "compare entry {n}: model: must name a model directory"
                )));
            }
            (_, None) => None,
            (_, Some(_)) => {
                return Err(usage(format!(
                    "compare entry {n}: model: belongs to sampler = 'sample'"
                )));
            }
        };
        let mut config = Config::resolve(&own)?;
        let problem = config.problem(&own)?;
        let work = match sampler.as_str() {
            "mcmc" => Work::Chains { keep: false },
            "sample" => Work::RateModel,
            _ => Work::Anneal,
        };
        config.check_memory(&problem, work).map_err(|error| own.explain(error))?;
        match sampler.as_str() {
            "mcmc" if entry.contains_key("at_beta") => config.walkers.check_no_stops(),
            // What all entries share does not concern those that stay at one temperature.
            "mcmc" => {
                config.walkers.at_beta.clear();
                Ok(())
            }
            _ => config.walkers.stops(&problem.path, problem.beta).map(drop),
        }
        .map_err(|error| own.explain(error))?;
        let name = name.unwrap_or_else(|| usual_name(&sampler, &config));
        let mut names = (2..).map(|again| format!("{name} ({again})"));
        let name = match taken(&name) {
            true => names.find(|name| !taken(name)).unwrap_or(name),
            false => name,
        };
        if !entry.contains_key("seed") {
            config.seed = config.seed_of(&name, problem.target.sites());
        }
        Ok(Job { name, sampler, model, layers: own, config, problem })
    }
}

fn word(entry: &mut Entry, key: &str, n: usize) -> Result<Option<String>> {
    match entry.remove(key) {
        None => Ok(None),
        Some(Value::String(word)) => Ok(Some(word)),
        Some(other) => {
            Err(usage(format!("compare entry {n}: {key} = {other}: must be a word in quotes")))
        }
    }
}

fn usual_name(sampler: &str, config: &Config) -> String {
    match sampler {
        "mcmc" => config.kernel.kernel.to_string(),
        "sample" => {
            let scheme = format!("{:?}", config.flow.scheme).to_lowercase();
            format!("{scheme} {}", config.walkers.intervals)
        }
        _ if config.path.adaptive().is_some() => format!("{sampler} adaptive"),
        _ => format!("{sampler} {}", config.walkers.intervals),
    }
}

/// The comparison for people.
pub fn table(comparison: &Comparison) -> String {
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
    ]);
    let deviation =
        |e: &Estimate| e.exact.map_or("-".into(), |exact| sigmas(e.mean, e.error, exact));
    let shown = |e: &Estimate| [with_error(e.mean, e.error), deviation(e)];
    for Compared { name, result } in &comparison.samplers {
        let mut cells = vec![name.clone()];
        let (log_z, energy, numbers) = match result {
            Outcome::Walkers(r) => (
                shown(&r.log_z),
                &r.observables.energy_per_site,
                (
                    r.ess,
                    r.ess_error,
                    r.network_passes_per_walker,
                    r.energy_calls_per_walker,
                    r.seconds,
                    r.effective_samples_per_second,
                ),
            ),
            Outcome::Chains(r) => (
                ["-".to_owned(), "-".to_owned()],
                &r.estimates.energy_per_site,
                (
                    r.ess,
                    r.ess_error,
                    0.0,
                    r.energy_calls_per_walker,
                    r.seconds,
                    r.effective_samples_per_second,
                ),
            ),
        };
        let (ess, ess_error, passes, calls, seconds, rate) = numbers;
        cells.push(with_error(ess, ess_error));
        cells.extend(log_z);
        cells.extend(shown(energy));
        cells.push(Short(passes).to_string());
        cells.extend([Short(calls).to_string(), format!("{seconds:.2}"), Short(rate).to_string()]);
        table.row(cells);
    }
    table.text() + &discs(comparison)
}

/// The columns of the DISCS benchmark, for the chains among the samplers.
fn discs(comparison: &Comparison) -> String {
    let mut table = Table::default();
    table.row(["DISCS", "ess/step", "ess/call", "ess/s"]);
    for Compared { name, result } in &comparison.samplers {
        if let Outcome::Chains(r) = result {
            let numbers = [r.discs.ess_per_step, r.discs.ess_per_call];
            let mut cells = vec![name.clone()];
            cells.extend(numbers.map(|number| format!("{number:.2e}")));
            cells.push(Short(r.discs.ess_per_second).to_string());
            table.row(cells);
        }
    }
    if table.rows() > 1 { format!("\n{}", table.text()) } else { String::new() }
}
