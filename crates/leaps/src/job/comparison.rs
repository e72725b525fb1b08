//! Comparisons: several samplers on one target, side by side.

use std::path::{Path, PathBuf};

use toml::{Table, Value};

use super::{Annealing, Chains, Context, Drawing, Monitor, Run, Sampler, Samples, Sampling};
use crate::device::NoProgress;
use crate::mcmc::Move;
use crate::problem::Problem;
use crate::results::{self, Compared, Computed};
use crate::spec::RunSpec;
use crate::store::{Found, Model};
use crate::{Error, Result};

/// A sampler with a name and a seed of its own.
#[derive(Clone, Debug)]
pub struct NamedSampler {
    /// What it is called.
    pub name: String,
    /// Its settings.
    pub spec: RunSpec,
    /// The job.
    pub sampler: Sampler,
}

/// An entry of a list of samplers, such as `[[compare]]`: `sampler`, `name`, `model`, `seed`, and keys of `[sample]` and `[path]`.
pub struct SamplerEntry<'a> {
    /// What errors call it.
    pub place: &'a str,
    /// Its keys.
    pub table: Table,
    /// The model in place of the one that the table names.
    pub model: Option<PathBuf>,
}

impl SamplerEntry<'_> {
    /// An error with the place of the entry before keys that the entry has.
    fn name(&self, error: Error) -> Error {
        let key = match &error {
            Error::Invalid { key, .. } | Error::UnknownKey { key, .. } => key,
            _ => return error,
        };
        let last = key.rsplit('.').next().unwrap_or(key).replace('-', "_");
        if self.table.contains_key(&last) { error.within(&self.place) } else { error }
    }

    fn wrong(&self, key: &str, value: impl std::fmt::Display, condition: &str) -> Error {
        let advice = "an entry says sampler, name, model, seed, and keys of [sample] and [path]";
        Error::invalid(key, value, condition, advice).within(&self.place)
    }

    fn word(&self, key: &str) -> Result<Option<String>> {
        match self.table.get(key) {
            None => Ok(None),
            Some(Value::String(word)) => Ok(Some(word.clone())),
            Some(other) => Err(self.wrong(key, other, "a word in quotes")),
        }
    }

    /// The settings of the entry: those that all share with its own over them.
    pub fn spec(&self, shared: &RunSpec) -> Result<RunSpec> {
        let mut own = self.table.clone();
        for key in ["sampler", "name", "model"] {
            own.remove(key);
        }
        let name = |error| self.name(error);
        shared.with_entry(&own).and_then(RunSpec::resolve).map_err(name)
    }

    /// Check the entry and make it a job; names that are `taken` get a number, so that entries that differ in nothing but their place are
    /// independent too.
    pub fn job(&self, shared: &RunSpec, taken: &dyn Fn(&str) -> bool) -> Result<NamedSampler> {
        let (named, model) = (self.word("name")?, self.word("model")?.map(PathBuf::from));
        let model = self.model.clone().or(model);
        let sampler = match self.word("sampler")? {
            Some(sampler) => sampler,
            None if model.is_some() => "sample".to_owned(),
            None => String::new(),
        };
        let mut spec = self.spec(shared)?;
        if !["sample", "ais", "smc", "mcmc", "exact"].contains(&sampler.as_str()) {
            let condition = "sample, ais, smc, mcmc or exact";
            return Err(self.wrong("sampler", format!("'{sampler}'"), condition));
        }
        let model = match (sampler.as_str(), model) {
            ("sample", Some(model)) => Some(self.find(&model)?),
            ("sample", None) => {
                return Err(self.wrong("model", "(left out)", "the name or directory of a model"));
            }
            (_, None) => None,
            (_, Some(model)) => {
                let condition = "left out but for sampler = 'sample'";
                return Err(self.wrong("model", model.display(), condition));
            }
        };
        let name = |error| self.name(error);
        let problem = spec.problem().map_err(name)?;
        match sampler.as_str() {
            "mcmc" if !matches!(spec.kernel.kernel, Move::Kernel(_)) => Ok(()),
            "mcmc" if self.table.contains_key("at_beta") => spec.walkers.check_no_stops(),
            // What all entries share does not concern those that stay at one temperature.
            "mcmc" | "exact" => Ok(()),
            _ => spec.walkers.stops(&problem.path, problem.beta).map(drop),
        }
        .map_err(name)?;
        let called = named.unwrap_or_else(|| usual_name(&sampler, &spec));
        let mut others = (2..).map(|again| format!("{called} ({again})"));
        let called = match taken(&called) {
            true => others.find(|other| !taken(other)).unwrap_or(called),
            false => called,
        };
        if !self.table.contains_key("seed") {
            spec.seed = spec.seed_of(&called, problem.target.sites());
        }
        let sampler = match (sampler.as_str(), model) {
            ("mcmc", _) => Sampler::Chains(Chains::of(&spec, problem)),
            ("exact", _) => Sampler::Exact(Drawing::of(&spec, problem)),
            (_, Some((model, name))) => {
                Sampler::Network(Box::new(Sampling::of(&spec, problem, model, &name)))
            }
            (other, None) => Sampler::Annealing(Annealing::of(&spec, problem, other == "smc")),
        };
        sampler.check_memory().map_err(name)?;
        Ok(NamedSampler { name: called, sampler, spec })
    }

    fn find(&self, name: &Path) -> Result<(Model, String)> {
        let shown = name.display().to_string();
        let condition = "a model directory, a run directory, or the name of a model";
        match Found::look_up(name)? {
            Some(found) => Ok((found.model, shown)),
            None => Err(self.wrong("model", shown, condition)),
        }
    }
}

/// What a sampler is called that nobody named.
fn usual_name(sampler: &str, spec: &RunSpec) -> String {
    match sampler {
        "mcmc" => spec.kernel.kernel.to_string(),
        "exact" => "exact samples".to_owned(),
        "sample" => {
            let scheme = format!("{:?}", spec.scheme.scheme).to_lowercase();
            format!("{scheme} {}", spec.walkers.intervals)
        }
        _ if spec.path.adaptive().is_some() => format!("{sampler} adaptive"),
        _ => format!("{sampler} {}", spec.walkers.intervals),
    }
}

/// Several samplers on one problem. Every one has a seed of its own, made of the seed of the whole, the target and its name, unless
/// its entry says `seed` itself.
///
/// ```
/// use leaps::job::Comparison;
/// use leaps::spec::RunSpec;
///
/// let table = toml::from_str("target = { kind = 'ising', size = 3 }\nsample.walkers = 100")?;
/// let entry = toml::from_str("sampler = 'ais'\nintervals = 10")?;
/// let comparison = Comparison::of(&RunSpec::from_table(&table)?, &[entry])?;
/// assert_eq!(comparison.run()?.samplers[0].name, "ais 10");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct Comparison {
    /// What all of them sample.
    pub problem: Problem,
    /// The seed of the whole.
    pub seed: u64,
    /// The samplers.
    pub samplers: Vec<NamedSampler>,
    /// Whether samplers that do not apply to the target are left out.
    pub lenient: bool,
}

impl Comparison {
    /// The samplers of some entries, whose keys lie over what all share. Everything is checked before anything runs.
    pub fn of(shared: &RunSpec, entries: &[Table]) -> Result<Self> {
        let spec = shared.clone().resolve()?;
        let problem = spec.problem()?;
        let mut samplers: Vec<NamedSampler> = Vec::new();
        for (number, table) in (1..).zip(entries) {
            let place = format!("compare entry {number}");
            let entry = SamplerEntry { place: &place, table: table.clone(), model: None };
            let taken = |name: &str| samplers.iter().any(|other| other.name == name);
            let job = entry.job(shared, &taken)?;
            samplers.push(job);
        }
        Ok(Comparison { problem, seed: spec.seed, samplers, lenient: false })
    }

    /// Annealed importance sampling, sequential Monte Carlo and two kernels, as far as they apply.
    pub fn usual(shared: &RunSpec) -> Result<Self> {
        let entry = |pairs: &[(&str, &str)]| -> Table {
            pairs.iter().map(|&(key, word)| (key.to_owned(), word.into())).collect()
        };
        let entries = [
            entry(&[("sampler", "ais")]),
            entry(&[("sampler", "smc")]),
            entry(&[("sampler", "mcmc"), ("kernel", "heat-bath")]),
            entry(&[("sampler", "mcmc"), ("kernel", "swendsen-wang")]),
        ];
        Ok(Comparison { lenient: true, ..Self::of(shared, &entries)? })
    }

    /// Run them where there is a GPU, or on the CPU.
    pub fn run(&self) -> Result<Run<results::Comparison>> {
        self.run_in(&Context::default(), &NoProgress)
    }

    /// Run one after the other. A stop keeps those that are finished by then, and chains with the steps that they have made; walkers that are still on
    /// their way are left out, since they are not at the target's temperature.
    ///
    /// # Errors
    /// [`Error::Interrupted`] if there was a reason to stop before the first of them had anything.
    pub fn run_in(
        &self,
        context: &Context<'_>,
        monitor: &dyn Monitor,
    ) -> Result<Run<results::Comparison>> {
        let (mut samplers, mut computed) = (Vec::new(), Computed::on_cpu());
        let (mut interrupted, mut left_out) = (false, 0);
        for NamedSampler { name, sampler, .. } in &self.samplers {
            let progress = monitor.progress(name);
            let done = sampler.run_in(&context.watched_by(&*progress));
            drop(progress);
            if self.lenient
                && let Err(error @ Error::NotApplicable { .. }) = &done
            {
                monitor.note(&format!("{name} is left out: {error}"));
                left_out += 1;
                continue;
            }
            let run = match done {
                Err(Error::Interrupted) if !samplers.is_empty() => {
                    interrupted = true;
                    break;
                }
                done => done?,
            };
            interrupted = run.result.interrupted();
            if !run.result.is_of_target() {
                monitor
                    .note(&format!("{name} is left out: it was stopped on its way to the target"));
                break;
            }
            monitor.found(name, &run.result);
            if run.computed != Computed::on_cpu() {
                computed = run.computed;
            }
            samplers.push(Compared {
                name: name.clone(),
                beta: None,
                field: None,
                result: run.result,
            });
            if interrupted {
                break;
            }
        }
        if interrupted && samplers.is_empty() {
            return Err(Error::Interrupted);
        }
        let asked = interrupted.then_some(self.samplers.len() - left_out);
        let result = results::Comparison { seed: self.seed, interrupted, asked, samplers };
        Ok(Run { result, samples: Samples::default(), computed })
    }
}
