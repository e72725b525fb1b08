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
use leaps::job::{Annealing, Chains, Sampler, Sampling};
use leaps::observe::Estimate;
use leaps::problem::Problem;
use leaps::results::{Compared, Comparison, Computed, SamplerResult};
use leaps::spec::RunSpec;
use toml::{Table as Entry, Value};

use crate::app::Context;
use crate::config::Layers;
use crate::error::usage;
use crate::models::{self, Found};
use crate::output;
use crate::tables::{Report, at_beta};
use leaps_report::text::{Short, Table, sigmas, with_error};

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

/// Run every sampler of the specification and print one table.
pub fn run(args: &CompareArgs, context: &Context) -> Result<()> {
    let mut layers = Layers::default();
    layers.read_file(&args.spec)?;
    layers.set(&args.set)?;
    layers.seed(context.globals.seed, &context.matches)?;
    let (problem, computed, comparison) = compare(layers, context)?;
    if context.globals.json {
        return output::json(&context.record(&problem, &computed, &comparison));
    }
    output::data(&table(&comparison))
}

/// A sampler that is ready to run.
pub struct Job {
    pub name: String,
    pub sampler: Sampler,
    pub layers: Layers,
    pub spec: RunSpec,
}

/// Reasons to doubt the numbers.
pub fn doubts(result: &SamplerResult) -> Vec<String> {
    match result {
        SamplerResult::Walkers(result) => result.doubts(),
        SamplerResult::Chains(result) => result.doubts(),
    }
}

fn summary(result: &SamplerResult) -> String {
    match result {
        SamplerResult::Walkers(result) => result.summary(),
        SamplerResult::Chains(result) => result.summary(),
    }
}

/// Run every sampler of `layers` on the problem they share.
pub fn compare(mut layers: Layers, context: &Context) -> Result<(Problem, Computed, Comparison)> {
    let usual = layers.compare.is_empty();
    if usual {
        layers.parse_file(USUAL, "the usual samplers".as_ref())?;
    }
    let spec = layers.resolve()?;
    let problem = layers.problem(&spec)?;
    // Everything is checked before anything runs.
    let jobs = jobs(&layers)?;
    context.say(format!("{}, seed {}", problem.description, spec.seed));
    let (mut samplers, mut computed) = (Vec::new(), Computed::on_cpu());
    for job in &jobs {
        let Job { name, layers, .. } = job;
        let progress = context.progress(name);
        let done = job.sampler.run_in(&context.job(&progress));
        drop(progress);
        if usual && let Err(error @ Error::NotApplicable { .. }) = &done {
            context.say(format!("{name} is left out: {error}"));
            continue;
        }
        let run = done.map_err(|error| layers.explain(error))?;
        context.detail(format!("{name}: seed {}, {}", job.spec.seed, summary(&run)));
        for doubt in doubts(&run) {
            context.say(format!("warning: {name}: {doubt}"));
        }
        if run.computed != Computed::on_cpu() {
            computed = run.computed;
        }
        samplers.push(Compared { name: name.clone(), result: run.result });
    }
    Ok((problem, computed, Comparison { seed: spec.seed, samplers }))
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
        let mut spec = own.resolve()?;
        let problem = own.problem(&spec)?;
        match sampler.as_str() {
            "mcmc" if entry.contains_key("at_beta") => spec.walkers.check_no_stops(),
            // What all entries share does not concern those that stay at one temperature.
            "mcmc" => Ok(()),
            _ => spec.walkers.stops(&problem.path, problem.beta).map(drop),
        }
        .map_err(|error| own.explain(error))?;
        let name = name.unwrap_or_else(|| usual_name(&sampler, &spec));
        let mut names = (2..).map(|again| format!("{name} ({again})"));
        let name = match taken(&name) {
            true => names.find(|name| !taken(name)).unwrap_or(name),
            false => name,
        };
        if !entry.contains_key("seed") {
            spec.seed = spec.seed_of(&name, problem.target.sites());
        }
        let sampler = match (sampler.as_str(), model) {
            ("mcmc", _) => Sampler::Chains(Chains::of(&spec, problem)),
            (_, Some(Found { model, name, .. })) => {
                Sampler::Network(Box::new(Sampling::of(&spec, problem, model, &name)))
            }
            (other, None) => Sampler::Annealing(Annealing::of(&spec, problem, other == "smc")),
        };
        sampler.check_memory().map_err(|error| own.explain(error))?;
        Ok(Job { name, sampler, layers: own, spec })
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

fn usual_name(sampler: &str, config: &RunSpec) -> String {
    match sampler {
        "mcmc" => config.kernel.kernel.to_string(),
        "sample" => {
            let scheme = format!("{:?}", config.scheme.scheme).to_lowercase();
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
            SamplerResult::Walkers(r) => (
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
            SamplerResult::Chains(r) => (
                ["-".to_owned(), "-".to_owned()],
                &r.observables.energy_per_site.estimate,
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
    table.text() + &on_the_way(comparison) + &discs(comparison)
}

/// What was measured at other temperatures on the way, sampler by sampler.
fn on_the_way(comparison: &Comparison) -> String {
    let mut text = String::new();
    for Compared { name, result } in &comparison.samplers {
        if let SamplerResult::Walkers(result) = result
            && !result.at_beta.is_empty()
        {
            text += &format!("\n{name}, on the way{}", at_beta(&result.at_beta));
        }
    }
    text
}

/// The columns of the DISCS benchmark, for the chains among the samplers.
fn discs(comparison: &Comparison) -> String {
    let mut table = Table::default();
    table.row(["DISCS", "ess/step", "ess/call", "ess/s"]);
    for Compared { name, result } in &comparison.samplers {
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
