//! Gather what a report tells: results, training metrics, configuration, comparison.

use std::path::{Path, PathBuf};

use anyhow::Result;
use leaps::Error;
use leaps::file::{if_any, read_text};
use leaps::store::Metrics;
use serde_json::Value;

use crate::config::Layers;
use crate::error::usage;
use leaps::job;
use leaps::problem::Problem;
use leaps::spec::RunSpec;
use leaps::target::unprinted;

/// Everything a page is made of; what a directory does not have is empty.
#[derive(Debug, Default)]
pub struct Source {
    /// The directory or file as the user named it.
    pub name: String,
    /// The directory, if it is one.
    pub folder: PathBuf,
    /// Whether it is a file that a command has printed.
    pub from_file: bool,
    /// `results.json`, or null.
    pub results: Value,
    /// `metrics.jsonl`.
    pub metrics: Vec<Metrics>,
    /// What is wrong with lines of `metrics.jsonl` that are left out.
    pub damaged: Option<Error>,
    /// `config.toml`.
    pub config: Option<String>,
    /// `comparison.json`: other samplers on the same target.
    pub comparison: Value,
    /// The words of the command that started training.
    pub training: Option<Vec<String>>,
    /// Seconds of training, on smaller lattices too.
    pub seconds: Option<f64>,
}

impl Source {
    /// Read a run directory, a directory with results, or a file of results.
    pub fn read(path: &Path) -> Result<Self> {
        let name = path.display().to_string();
        if !path.is_dir() {
            let results = json(path)?;
            return Ok(Source { name, results, from_file: true, ..Source::default() }.sorted());
        }
        let optional = |file: &str| -> Result<Value> {
            Ok(if_any(json(&path.join(file)))?.unwrap_or_default())
        };
        let (metrics, damaged) = if_any(Metrics::read(path))?.unwrap_or_default();
        let source = Source {
            name: name.clone(),
            folder: path.to_owned(),
            from_file: false,
            results: optional("results.json")?,
            metrics,
            damaged,
            config: if_any(read_text(&path.join("config.toml")))?,
            comparison: optional("comparison.json")?,
            training: words(&optional("meta.json")?["command"]),
            seconds: job::seconds(path),
        }
        .sorted();
        job::still_there(path)?;
        if source.results.is_null() && source.metrics.is_empty() && source.comparison.is_null() {
            let part = job::begun(path).filter(|part| part != path);
            return Err(usage(match part {
                Some(part) => format!(
                    "DIR = {name}: is still trained on a smaller lattice; write 'leaps report {}'",
                    part.display()
                ),
                None => format!(
                    "DIR = {name}: must hold results.json or metrics.jsonl, as directories of runs do and those with what \
                     'leaps sample --model NAME --json > DIR/results.json' wrote"
                ),
            }));
        }
        Ok(source)
    }

    /// Results of a comparison are not those of one sampler.
    fn sorted(mut self) -> Self {
        if self.results.get("samplers").is_some() {
            self.comparison = std::mem::take(&mut self.results);
        }
        self
    }

    /// The target and the path that everything is about; in place of the latter two why they cannot be had.
    pub fn problem(&self) -> Result<(RunSpec, std::result::Result<Problem, String>)> {
        let mut lack = None;
        let mut layers = Layers::default();
        if let Some(config) = &self.config {
            layers.parse_file(config, &self.folder.join("config.toml"))?;
        } else {
            let results = if self.results.is_null() { &self.comparison } else { &self.results };
            let folder =
                if self.from_file { Path::new(&self.name).parent() } else { Some(&*self.folder) };
            let folder = folder.unwrap_or(Path::new(""));
            let mut target;
            (target, lack) = unprinted(results["target"].clone(), folder);
            match target.as_object_mut() {
                Some(target) => target.remove("sites"),
                None => {
                    let name = &self.name;
                    return Err(usage(format!(
                        "{name}: has no target; is this a result of leaps?"
                    )));
                }
            };
            layers.describe("target", &target, &self.name, Path::new(""))?;
        }
        let config = layers.resolve()?;
        let problem = match lack {
            Some(lack) => Err(lack),
            None => Ok(layers.problem(&config)?),
        };
        Ok((config, problem))
    }
}

/// The words of a command line, if they are there.
pub fn words(value: &Value) -> Option<Vec<String>> {
    value.as_array()?.iter().map(|word| word.as_str().map(str::to_owned)).collect()
}

fn parse_error(path: &Path, line: usize, error: &serde_json::Error) -> Error {
    let reason = error.to_string();
    Error::Parse { path: path.into(), line, column: error.column().max(1), reason }
}

fn json(path: &Path) -> leaps::Result<Value> {
    let text = read_text(path)?;
    let value: Value = serde_json::from_str(&text)
        .map_err(|error| parse_error(path, error.line().max(1), &error))?;
    if !value.is_object() {
        let reason = "not an object; is this a result of leaps?".to_owned();
        return Err(Error::Parse { path: path.into(), line: 1, column: 1, reason });
    }
    Ok(value)
}
