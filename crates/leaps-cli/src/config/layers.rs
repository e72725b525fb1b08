//! Defaults, file, `--set` and flags over each other, with the place that each value came from. [`RunSpec::from_table`] lays what they give over the
//! defaults.

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use anyhow::Result;
use clap::ArgMatches;
use clap::parser::ValueSource;
use leaps::Error;
use leaps::file::{self, TEXT, position};
use leaps::job::experiment::EXPERIMENTS;
use leaps::parse::{TOO_LARGE, is_too_large, nearest};
use leaps::path::ScheduleName;
use leaps::problem::Problem;
use leaps::spec::{RunSpec, SECTIONS, is_known, unknown};
use leaps::store::{SETTINGS, shipped_settings};
use leaps::target::Kind;
use serde::Serialize;
use toml::de::DeTable;
use toml::{Table, Value};

use super::schema;
use crate::error::usage;

/// Keys of experiments that configurations do not have.
const EXPERIMENT: [&str; 2] = ["title", "runs"];

/// Where a value came from.
#[derive(Clone, Debug, PartialEq)]
pub enum Source {
    /// A line of a configuration file.
    File(String, usize),
    /// `--set key=value`.
    Set,
    /// A flag of its own.
    Flag,
    /// `--temperature T`, for the inverse temperature.
    Temperature(f64),
    /// The model of this name.
    Model(String),
    /// `--target-file`.
    Instance,
    /// Training on a smaller lattice first.
    Grow,
}

/// The values given so far, by key path, and their sources. What is not given has its default.
#[derive(Clone, Debug, Default)]
pub struct Layers {
    table: Table,
    sources: BTreeMap<String, Source>,
    /// Where relative names of files start, by key; the working directory where nothing else is said.
    folders: BTreeMap<String, PathBuf>,
    /// The entries of `[[compare]]`.
    pub compare: Vec<Table>,
}

impl Layers {
    /// Read a configuration: a file, `-` for standard input, or the name of shipped settings where there is no such file.
    pub fn read_file(&mut self, path: &Path) -> Result<()> {
        let shipped = path.to_str().filter(|_| !path.exists()).and_then(shipped_settings);
        if let Some(text) = shipped {
            return self.parse_file(text, path);
        }
        let text = match path == Path::new("-") {
            true => file::text(file::read_stream(std::io::stdin().lock(), path, TEXT)?, path)?,
            false => file::read_text(path).map_err(or_input).map_err(or_settings)?,
        };
        self.parse_file(&text, path)
    }

    /// Take over the text of a configuration file; `path` is for messages.
    pub fn parse_file(&mut self, text: &str, path: &Path) -> Result<()> {
        let fail = |error: toml::de::Error| {
            let start = error.span().map_or(0, |span| span.start);
            let (line, column) = position(text.as_bytes(), start);
            let reason = match numbers_beyond(error.message()) {
                Some(number) => format!("the number {number} must be {TOO_LARGE}"),
                None => error.message().to_owned(),
            };
            Error::Parse { path: path.into(), line, column, reason }
        };
        let spans = DeTable::parse(text).map_err(fail)?;
        let table: Table = toml::from_str(text).map_err(fail)?;
        if EXPERIMENT.iter().all(|key| table.contains_key(*key)) {
            let name = path.display().to_string();
            let file = if name == "-" { "FILE" } else { &name };
            return Err(usage(format!(
                "{name}: must be a configuration, and is an experiment; 'leaps reproduce {file}' runs it"
            )));
        }
        let folder = path.parent().unwrap_or(Path::new(""));
        let mut lines = BTreeMap::new();
        collect_lines(spans.get_ref(), "", text, &mut lines);
        for (key, value) in leaves(&table) {
            let line = lines.get(&key).copied().unwrap_or(1);
            let name = path.display().to_string();
            self.insert(&key, value, Source::File(name, line))?;
            self.folders.insert(key, folder.to_owned());
        }
        Ok(())
    }

    /// Take over `key.path=value` words; a value that is not TOML is a string.
    pub fn set(&mut self, words: &[String]) -> Result<()> {
        for word in words {
            let Some((key, text)) = word.split_once('=') else {
                let way_out = "write --set sample.walkers=2000";
                return Err(usage(format!("--set {word}: must be KEY=VALUE; {way_out}")));
            };
            if is_too_large(text.trim()) {
                let (key, text) = (key.trim(), text.trim());
                return Err(usage(format!("--set {key} = {text}: must be {TOO_LARGE}")));
            }
            let parsed: Option<Table> = toml::from_str(&format!("value = {text}")).ok();
            let value = match parsed.as_ref().and_then(|t| (t.len() == 1).then(|| t.get("value"))) {
                Some(Some(value)) => value.clone(),
                _ => Value::String(text.trim().to_owned()),
            };
            match value {
                Value::Table(table) => {
                    for (rest, value) in leaves(&table) {
                        self.insert(&format!("{}.{rest}", key.trim()), value, Source::Set)?;
                    }
                }
                value => self.insert(key.trim(), value, Source::Set)?,
            }
        }
        Ok(())
    }

    /// Take over those fields of a group of flags that were on the command line.
    pub fn flags<T: Serialize>(
        &mut self,
        section: &str,
        group: &T,
        matches: &ArgMatches,
    ) -> Result<()> {
        let values = Table::try_from(group).map_err(|error| usage(error.to_string()))?;
        for (key, value) in values {
            let path = if section.is_empty() { key } else { format!("{section}.{key}") };
            // Only ids that are there may be asked for: what clap says of others depends on the build.
            let id = schema::id(&path);
            let present = matches.ids().any(|present| Some(present.as_str()) == id.as_deref());
            let source = id.filter(|_| present).and_then(|id| matches.value_source(&id));
            if source == Some(ValueSource::CommandLine) {
                self.give(&path, value, Source::Flag)?;
            }
        }
        Ok(())
    }

    /// Take over a temperature from the command line, of which the target's beta is the inverse.
    pub fn temperature(&mut self, temperature: Option<f64>) -> Result<()> {
        let Some(temperature) = temperature else { return Ok(()) };
        self.give("target.beta", temperature.recip().into(), Source::Temperature(temperature))
    }

    /// Take over the name of an instance's file in place of the target of a model. Keys of the model's target that a target of another kind does not have
    /// fall away, also where `--set` gave the kind.
    pub fn instance(&mut self, file: Option<&Path>) -> Result<()> {
        if let Some(file) = file {
            let name = file.display().to_string();
            self.give("target.kind", Kind::File.name().into(), Source::Instance)?;
            self.give("target.path", name.into(), Source::Instance)?;
        }
        let target = self.section("target");
        let named = |kind: &&Kind| target.get("kind").and_then(Value::as_str) == Some(kind.name());
        let Some(kind) = Kind::ALL.iter().find(named) else { return Ok(()) };
        for key in
            target.keys().filter(|key| *key != "kind" && !kind.keys().contains(&key.as_str()))
        {
            let full = format!("target.{key}");
            if matches!(self.source(&full), Some(Source::Model(_)))
                && let Some(Value::Table(section)) = self.table.get_mut("target")
            {
                section.remove(key);
                self.sources.remove(&full);
                self.folders.remove(&full);
            }
        }
        Ok(())
    }

    /// Take over a range of inverse temperatures that stood in place of the target's: a path passes them on its way to the last.
    pub fn stops(&mut self, betas: &[f64]) -> Result<()> {
        if betas.is_empty() {
            return Ok(());
        }
        if self.source("sample.at_beta") == Some(&Source::Flag) {
            return Err(usage(
                "--at-beta: must be left out beside a range of --beta; give one of them",
            ));
        }
        let list = betas.iter().map(|&beta| Value::Float(beta)).collect();
        self.give("sample.at_beta", Value::Array(list), Source::Flag)
    }

    /// Take over the value of a flag, which may override a file but not `--set`.
    fn give(&mut self, path: &str, value: Value, source: Source) -> Result<()> {
        if self.source(path) == Some(&Source::Set) {
            let set = self.name(path);
            self.sources.insert(path.to_owned(), source);
            let flag = self.name(path);
            return Err(usage(format!("{flag}: must be left out beside {set}; give one of them")));
        }
        self.insert(path, value, source)
    }

    /// Take over the seed if it was on the command line.
    pub fn seed(&mut self, seed: u64, matches: &ArgMatches) -> Result<()> {
        let seed = Table::from_iter([("seed".to_owned(), (seed as i64).into())]);
        self.flags("", &seed, matches)
    }

    /// Take over a section as a model describes it, whose files are named from `folder` on; what the description leaves out has its default.
    pub fn describe(
        &mut self,
        section: &str,
        values: &impl Serialize,
        model: &str,
        folder: &Path,
    ) -> Result<()> {
        self.table.remove(section);
        self.sources.retain(|key, _| !key.starts_with(&format!("{section}.")));
        for (key, value) in leaves(&Table::try_from(values)?) {
            let key = format!("{section}.{key}");
            self.insert(&key, value, Source::Model(model.to_owned()))?;
            self.folders.insert(key, folder.to_owned());
        }
        Ok(())
    }

    /// Take over values of a section that nobody gave, from a model of this name.
    pub fn complete(&mut self, section: &str, values: &Table, model: &str) -> Result<()> {
        for (key, value) in values {
            let source = Source::Model(model.to_owned());
            self.insert(&format!("{section}.{key}"), value.clone(), source)?;
        }
        Ok(())
    }

    /// The values of a section that were given.
    pub fn section(&self, section: &str) -> Table {
        self.table.get(section).and_then(Value::as_table).cloned().unwrap_or_default()
    }

    /// Note what training on a smaller lattice has in place of what was given: the size, and perhaps the depth.
    pub fn grown(&mut self, spec: &RunSpec) {
        self.sources.insert("target.size".to_owned(), Source::Grow);
        let depth = self.table.get("network").and_then(|network| network.get("depth"));
        let given = depth.and_then(Value::as_integer).and_then(|depth| usize::try_from(depth).ok());
        if given != spec.network.depth {
            self.sources.insert("network.depth".to_owned(), Source::Grow);
        }
    }

    fn insert(&mut self, key: &str, value: Value, source: Source) -> Result<()> {
        if key == "compare" {
            return self.take_comparisons(value);
        }
        self.sources.insert(key.to_owned(), source);
        self.folders.remove(key);
        if key == "path.terms" || SECTIONS.contains(&key) {
            let name = self.name(key);
            return Err(usage(format!("{name} = {value}: must be a section; write [{key}]")));
        }
        if !is_known(key) {
            return Err(self.explain(unknown(key)).into());
        }
        let mut table = &mut self.table;
        let mut parts = key.split('.').peekable();
        while let Some(part) = parts.next() {
            if parts.peek().is_none() {
                table.insert(part.to_owned(), value);
                return Ok(());
            }
            let next = table.entry(part.to_owned()).or_insert_with(|| Value::Table(Table::new()));
            table = match next {
                Value::Table(table) => table,
                _ => return Err(usage(format!("{}: {part} is not a section", self.name(key)))),
            };
        }
        Ok(())
    }

    fn take_comparisons(&mut self, value: Value) -> Result<()> {
        let entry = |value: &Value| value.as_table().cloned();
        let entries: Option<Vec<Table>> =
            value.as_array().and_then(|list| list.iter().map(entry).collect());
        self.compare =
            entries.ok_or_else(|| usage("compare: must be a list; write [[compare]] entries"))?;
        Ok(())
    }

    /// Where relative names of files in the value of a key start.
    pub fn folder(&self, key: &str) -> &Path {
        self.folders.get(key).map_or(Path::new(""), PathBuf::as_path)
    }

    /// Where the value of a key came from; `None` is its default.
    pub fn source(&self, key: &str) -> Option<&Source> {
        self.sources.get(key)
    }

    /// Where the value of a key came from, in words; `None` is its default.
    pub fn origin(&self, key: &str) -> Option<String> {
        Some(match self.sources.get(key)? {
            Source::File(file, line) => format!("{file}:{line}"),
            Source::Set => "--set".to_owned(),
            Source::Flag => "the command line".to_owned(),
            Source::Temperature(temperature) => format!("--temperature {temperature}"),
            Source::Model(name) => name.clone(),
            Source::Instance => "--target-file".to_owned(),
            Source::Grow => "train.grow".to_owned(),
        })
    }

    /// A key as the user wrote it: the flag, `--set key`, or file, line and key.
    pub fn name(&self, key: &str) -> String {
        match self.sources.get(key) {
            Some(Source::File(file, line)) => format!("{file}:{line}: {key}"),
            Some(Source::Set) => format!("--set {key}"),
            Some(Source::Model(name)) => format!("{name}: {key}"),
            Some(Source::Instance) => "--target-file".to_owned(),
            Some(Source::Temperature(temperature)) => {
                format!("beta of --temperature {temperature}")
            }
            Some(Source::Flag) => match key {
                "target.kind" => "TARGET".to_owned(),
                "target.path" => "PATH".to_owned(),
                _ => schema::flag(key).unwrap_or_else(|| key.to_owned()),
            },
            Some(Source::Grow) | None => key.to_owned(),
        }
    }

    /// Name the key of a library error as the user wrote it.
    pub fn explain(&self, error: Error) -> Error {
        match error {
            Error::Invalid { key, value, condition, advice } => {
                Error::Invalid { key: self.known(key), value, condition, advice: flags_in(&advice) }
            }
            Error::NotApplicable { method, reason } => {
                Error::NotApplicable { method: self.known(method), reason }
            }
            Error::UnknownKey { key, advice } => Error::UnknownKey { key: self.name(&key), advice },
            other => other,
        }
    }

    /// A key as the user gave it; what is no key stays as it is.
    fn known(&self, key: String) -> String {
        if key == "out" {
            return "--out".to_owned();
        }
        let bare = key.replace('-', "_");
        let within = SECTIONS.iter().map(|section| format!("{section}.{bare}"));
        let full = std::iter::once(bare.clone()).chain(within).find(|path| is_known(path));
        full.map_or(key, |path| self.name(&path))
    }

    /// The settings that were given; what was not given has its default.
    pub fn given(&self) -> Result<RunSpec> {
        let spec = RunSpec::from_table(&self.table).map_err(|error| self.explain(error))?;
        let place = |key: &str, path: &Path| self.folder(&format!("target.{key}")).join(path);
        Ok(RunSpec { target: spec.target.placed(place), ..spec })
    }

    /// The settings with every default written out, checked as far as they can be before the target is built.
    pub fn resolve(&self) -> Result<RunSpec> {
        let spec = self.given()?;
        let checked = spec.resolve().and_then(|spec| self.check_flags(&spec).map(|()| spec));
        checked.map_err(|error| self.explain(error).into())
    }

    /// Refuse flags without effect. In a file all keys may stand side by side.
    fn check_flags(&self, spec: &RunSpec) -> leaps::Result<()> {
        let flag = |key: &str| self.source(key) == Some(&Source::Flag);
        if spec.path.adaptive().is_some() && flag("sample.intervals") {
            return Err(Error::invalid(
                "sample.intervals",
                spec.walkers.intervals,
                "left out for the schedule adaptive",
                "--conditional-ess sets the number of intervals",
            ));
        }
        if flag("sample.times") && flag("sample.intervals") {
            return Err(Error::invalid(
                "sample.intervals",
                spec.walkers.intervals,
                "given without --times",
                "the times say how many intervals there are",
            ));
        }
        if flag("sample.updates") && flag("sample.sweeps") {
            return Err(Error::invalid(
                "sample.updates",
                spec.updates.updates,
                "given without --sweeps",
                "a sweep is one update for each site",
            ));
        }
        for (key, schedule, word) in [
            ("path.ratio", ScheduleName::Geometric, "geometric"),
            ("path.table", ScheduleName::Piecewise, "piecewise"),
            ("path.conditional_ess", ScheduleName::Adaptive, "adaptive"),
        ] {
            if flag(key) && !spec.path.uses(schedule) {
                let given = format!("{:?}", spec.path.schedule).to_lowercase();
                return Err(Error::invalid(
                    key,
                    "(given)",
                    format!("left out for the schedule {given}"),
                    format!("add --schedule {word}"),
                ));
            }
        }
        Ok(())
    }

    /// Build the target and its path, naming keys in errors as the user wrote them.
    pub fn problem(&self, spec: &RunSpec) -> Result<Problem> {
        spec.problem().map_err(|error| self.explain(error).into())
    }
}

/// A name may be a misspelt one of shipped settings.
fn or_settings(error: Error) -> Error {
    match error {
        Error::Io { path, source } if source.kind() == ErrorKind::NotFound => {
            let meant = path.to_str().and_then(settings_meant);
            let source = match meant {
                Some(name) => {
                    let reason = format!("{source}; did you mean the shipped settings {name}?");
                    std::io::Error::new(ErrorKind::NotFound, reason)
                }
                None => source,
            };
            Error::Io { path, source }
        }
        other => other,
    }
}

/// The shipped settings that were probably meant by a word; experiments are none.
pub fn settings_meant(word: &str) -> Option<&'static str> {
    let experiment = |name: &str| EXPERIMENTS.iter().any(|(own, _)| *own == name);
    nearest(word, SETTINGS.iter().map(|(name, _)| *name).filter(|name| !experiment(name)))
}

/// What is not an ordinary file may still come in by standard input.
fn or_input(error: Error) -> Error {
    match error {
        Error::Io { path, source }
            if source.kind() == ErrorKind::InvalidInput && !path.is_dir() =>
        {
            let reason = format!("{source}, or - for standard input");
            Error::Io { path, source: std::io::Error::new(ErrorKind::InvalidInput, reason) }
        }
        other => other,
    }
}

/// The whole number that a complaint of the parser is about, if it is too large for TOML.
fn numbers_beyond(message: &str) -> Option<&str> {
    let number = message.split('`').nth(1).unwrap_or_default();
    (message.contains("integer `") && is_too_large(number)).then_some(number)
}

/// Every value that is not a table, with its key path.
fn leaves(table: &Table) -> Vec<(String, Value)> {
    let mut all = Vec::new();
    for (key, value) in table {
        match value {
            Value::Table(inner) => {
                all.extend(leaves(inner).into_iter().map(|(rest, v)| (format!("{key}.{rest}"), v)))
            }
            value => all.push((key.clone(), value.clone())),
        }
    }
    all
}

fn collect_lines(
    table: &DeTable<'_>,
    prefix: &str,
    text: &str,
    lines: &mut BTreeMap<String, usize>,
) {
    for (key, value) in table.iter() {
        let path = format!("{prefix}{}", key.get_ref());
        if let Some(inner) = value.get_ref().as_table() {
            collect_lines(inner, &format!("{path}."), text, lines);
        }
        lines.insert(path, position(text.as_bytes(), key.span().start).0);
    }
}
/// Advice of the library with its settings, which stand between backticks, as flags of the program.
pub(super) fn flags_in(advice: &str) -> String {
    let flag = |name: &str| match name {
        "out" | "fresh" => Some(format!("--{name}")),
        key => schema::flag(key),
    };
    let parts = advice.split('`').enumerate();
    parts
        .map(|(i, part)| match flag(part).filter(|_| i % 2 == 1) {
            Some(flag) => flag,
            None if i % 2 == 1 => format!("`{part}`"),
            None => part.to_owned(),
        })
        .collect()
}
