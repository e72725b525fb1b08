//! Sources of a report: results, training metrics, configuration, comparison.

use std::path::{Path, PathBuf};

use leaps::file::{if_any, read_text};
use leaps::job;
use leaps::problem::Problem;
use leaps::results::{
    AnyResult, Comparison, ExactResult, FreeEnergyResult, MinimumResult, Origin, Record,
    SamplerResult, upgrade,
};
use leaps::sampler::Reached;
use leaps::spec::RunSpec;
use leaps::store::{Meta, Metrics};
use leaps::target::unprinted;
use leaps::{Error, Result};
use serde::Deserialize;
use serde_json::{Map, Value};
use toml::Table;

/// Everything a page is made of; what a directory does not have is empty.
#[derive(Debug, Default)]
pub struct Source {
    /// The directory or file as the user named it.
    pub name: String,
    /// The directory, if it is one.
    pub folder: PathBuf,
    /// Whether it is a file that a command has printed.
    pub from_file: bool,
    /// `results.json` as it is: pages carry it along.
    pub text: Option<String>,
    /// The target as they describe it, or a comparison without them.
    pub target: Option<Map<String, Value>>,
    /// Where the results come from.
    pub origin: Option<Origin>,
    /// The results, if they are those of a sampler.
    pub result: Option<SamplerResult>,
    /// The same, if they are free energies over a grid.
    pub free_energy: Option<FreeEnergyResult>,
    /// The same, if they are of a search for the lowest energy.
    pub minimum: Option<MinimumResult>,
    /// The same, if they are the exact answer.
    pub exact: Option<ExactResult>,
    /// `metrics.jsonl`.
    pub metrics: Vec<Metrics>,
    /// What is wrong with lines of `metrics.jsonl` that are left out.
    pub damaged: Option<Error>,
    /// `config.toml`.
    pub config: Option<String>,
    /// `comparison.json`: other samplers on the same target.
    pub compared: Option<Record<Comparison>>,
    /// The words of the command that started training.
    pub training: Option<Vec<String>>,
    /// Seconds of training, on smaller lattices too.
    pub seconds: Option<f64>,
}

/// The least that a result says about its origin.
#[derive(Deserialize)]
struct About {
    target: Map<String, Value>,
}

impl Source {
    /// Read a run directory, a directory with results, or a file of results.
    pub fn read(path: &Path) -> Result<Self> {
        let name = path.display().to_string();
        if !path.is_dir() {
            let source = Source { name, from_file: true, ..Source::default() };
            return Ok(source.with(Some(json(path)?), None));
        }
        let optional = |file: &str| if_any(json(&path.join(file)));
        let (results, comparison) = (optional("results.json")?, optional("comparison.json")?);
        let nothing = results.is_none() && comparison.is_none();
        let (metrics, damaged) = if_any(Metrics::read(path))?.unwrap_or_default();
        let source = Source {
            name: name.clone(),
            folder: path.to_owned(),
            from_file: false,
            metrics,
            damaged,
            config: if_any(read_text(&path.join("config.toml")))?,
            training: if_any(Meta::read(path))?
                .map(|meta| meta.command)
                .filter(|words| !words.is_empty()),
            seconds: job::seconds(path),
            ..Source::default()
        }
        .with(results, comparison);
        job::still_there(path)?;
        if nothing && source.metrics.is_empty() {
            let part = job::begun(path).filter(|part| part != path);
            let (condition, advice) = match part {
                Some(part) => (
                    "trained on its own lattice, and is trained on a smaller lattice still".to_owned(),
                    format!("write 'leaps report {}'", part.display()),
                ),
                None => (
                    "a directory with results.json or metrics.jsonl".to_owned(),
                    "directories of runs have them, and 'leaps sample --model NAME --json > DIR/results.json' writes one"
                        .to_owned(),
                ),
            };
            return Err(Error::invalid("DIR", name, condition, advice));
        }
        Ok(source)
    }

    /// What a sampler found, as `results.json` has it.
    pub fn of(name: String, found: &Record<SamplerResult>) -> Self {
        Source {
            name,
            // Structures of ours have text keys and no failing serialisers.
            text: Some(serde_json::to_string(found).unwrap_or_else(|_| unreachable!())),
            target: Some(found.origin.target.clone()),
            origin: Some(found.origin.clone()),
            result: Some(found.result.clone()),
            ..Source::default()
        }
    }

    /// log Z, where it is known exactly.
    pub fn exact_log_z(&self) -> Option<f64> {
        match self.result.as_ref()? {
            SamplerResult::Walkers(result) => result.log_z.exact,
            SamplerResult::Chains(result) => result.log_z?.exact,
        }
    }

    /// Sites of the target.
    pub fn sites(&self) -> Option<usize> {
        self.origin.as_ref()?.sites()
    }

    /// With what files say; results of a comparison are not those of one sampler.
    fn with(mut self, results: Option<Value>, comparison: Option<Value>) -> Self {
        let target = |file: &Option<Value>| Some(About::deserialize(file.as_ref()?).ok()?.target);
        self.target = target(&results).or_else(|| target(&comparison));
        let compared = results.as_ref().and_then(|file| Record::deserialize(file).ok());
        self.compared = compared.or_else(|| Record::deserialize(&comparison?).ok());
        let Some(file) = results.filter(|file| Comparison::deserialize(file).is_err()) else {
            return self;
        };
        self.origin = Origin::deserialize(&file).ok();
        match AnyResult::deserialize(&file) {
            Ok(AnyResult::Sampler(result)) => self.result = Some(*result),
            Ok(AnyResult::FreeEnergy(result)) => self.free_energy = Some(result),
            Ok(AnyResult::Minimum(result)) => self.minimum = Some(*result),
            Ok(AnyResult::Exact(result)) => self.exact = Some(result),
            _ => {}
        }
        self.text = Some(file.to_string());
        self
    }

    /// Where walkers were stopped on their way.
    pub fn reached(&self) -> Option<&Reached> {
        match self.result.as_ref()? {
            SamplerResult::Walkers(result) => result.reached.as_ref(),
            SamplerResult::Chains(_) => None,
        }
    }

    /// The target and the path that everything is about; in place of the latter two why they cannot be had.
    pub fn problem(&self) -> Result<(RunSpec, std::result::Result<Problem, String>)> {
        let mut lack = None;
        let spec = if let Some(config) = &self.config {
            RunSpec::parse(config, &self.folder.join("config.toml"))?
        } else {
            let no_target = || {
                let (condition, advice) = ("a result of leaps", "it has no target");
                Error::invalid("FILE", &self.name, condition, advice)
            };
            let described = self.target.as_ref().ok_or_else(no_target)?;
            if described.get("kind").is_some_and(|kind| kind == "custom") {
                let own = "the energy is that of a program, which alone has it".to_owned();
                return Ok((RunSpec::default(), Err(own)));
            }
            let folder =
                if self.from_file { Path::new(&self.name).parent() } else { Some(&*self.folder) };
            let folder = folder.unwrap_or(Path::new(""));
            let mut target;
            (target, lack) = unprinted(described.clone().into(), folder);
            let entries = target.as_object_mut().ok_or_else(no_target)?;
            entries.remove("sites");
            entries.retain(|_, value| !value.is_null());
            let target: Table = serde_json::from_value(target).map_err(|_| no_target())?;
            RunSpec::from_table(&Table::from_iter([("target".to_owned(), target.into())]))
                .map_err(|error| error.within(&self.name))?
        };
        if self.config.is_some() && spec.target.kind.is_none() {
            let own = "the energy is that of a program, which alone has it".to_owned();
            return Ok((spec, Err(own)));
        }
        let spec = spec.resolve().map_err(|error| error.within(&self.name))?;
        let problem = match lack {
            Some(lack) => Err(lack),
            None => Ok(spec.problem().map_err(|error| error.within(&self.name))?),
        };
        // Walkers that were stopped on the way are held against what is true where they are.
        let problem = match (problem, self.reached().map(|reached| reached.beta)) {
            (Ok(problem), Some(Some(beta))) => Ok(problem.at(beta, None)?),
            (Ok(_), Some(None)) => {
                Err("the walkers were stopped where energy terms have weights of their own".into())
            }
            (problem, _) => problem,
        };
        Ok((spec, problem))
    }
}

fn parse_error(path: &Path, line: usize, error: &serde_json::Error) -> Error {
    let reason = error.to_string();
    Error::Parse { path: path.into(), line, column: error.column().max(1), reason }
}

fn json(path: &Path) -> Result<Value> {
    let text = read_text(path)?;
    let mut value: Value = serde_json::from_str(&text)
        .map_err(|error| parse_error(path, error.line().max(1), &error))?;
    if !value.is_object() {
        let reason = "not an object; is this a result of leaps?".to_owned();
        return Err(Error::Parse { path: path.into(), line: 1, column: 1, reason });
    }
    upgrade(&mut value);
    Ok(value)
}
