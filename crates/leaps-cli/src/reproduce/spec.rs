//! Read what an experiment says: its target, networks, samplers and figures, and the smaller settings of `--quick`.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::Result;
use leaps::Error;
use serde::Deserialize;
use toml::{Table, Value};

use super::measures;
use crate::config::{Layers, SEED};
use crate::error::usage;

/// The experiments that the program brings along.
pub const SHIPPED: [(&str, &str); 8] = [
    ("ablation", include_str!("../../../../experiments/ablation.toml")),
    ("ising-critical", include_str!("../../../../experiments/ising-critical.toml")),
    ("ais-ising", include_str!("../../../../experiments/ais-ising.toml")),
    ("ais-potts", include_str!("../../../../experiments/ais-potts.toml")),
    ("discs-ising", include_str!("../../../../experiments/discs-ising.toml")),
    ("discs-potts", include_str!("../../../../experiments/discs-potts.toml")),
    ("bias", include_str!("../../../../experiments/bias.toml")),
    ("temperatures", include_str!("../../../../experiments/temperatures.toml")),
];

/// Everything about an experiment.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Experiment {
    /// The name of its page and of its files.
    #[serde(skip)]
    pub name: String,
    /// Whether the program brings it along.
    #[serde(skip)]
    pub shipped: bool,
    /// What is done, in a line.
    pub title: String,
    /// Where the paper does the same.
    pub paper: String,
    /// What a reader of the page needs to know.
    pub about: String,
    #[serde(default = "usual_seed")]
    pub seed: u64,
    pub target: Table,
    #[serde(default)]
    pub path: Table,
    /// What runs have in common.
    #[serde(default)]
    pub sample: Table,
    #[serde(default)]
    pub networks: Vec<NetworkEntry>,
    pub runs: Vec<RunEntry>,
    #[serde(default)]
    pub figures: Vec<FigureEntry>,
    /// The columns of the table: names of measures.
    pub columns: Vec<String>,
}

/// A network: a model that is shipped, or what to train where there is none.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NetworkEntry {
    pub name: String,
    /// The name of a shipped model.
    #[serde(default)]
    pub model: String,
    #[serde(default)]
    pub network: Table,
    #[serde(default)]
    pub train: Table,
}

/// A sampler, at one setting or over several.
#[derive(Clone, Debug, Deserialize)]
pub struct RunEntry {
    pub name: String,
    /// `sample`, `ais`, `smc` or `mcmc`, as in `[[compare]]`.
    pub sampler: String,
    /// The network of `sample`.
    pub network: Option<String>,
    /// The others are held against this one's observables.
    #[serde(default)]
    pub reference: bool,
    /// Write the states to a file.
    #[serde(default)]
    pub keep: bool,
    /// One key and the values it takes.
    #[serde(default)]
    pub over: BTreeMap<String, Vec<Value>>,
    /// What the paper has, by measure: a number, or a list of `[value of the key, number]`.
    #[serde(default)]
    pub paper: BTreeMap<String, Value>,
    /// Keys of `[sample]` and `[path]`.
    #[serde(flatten)]
    pub settings: Table,
}

/// What a figure shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FigureKind {
    /// Effective sample size over the steps of training, a line for every network.
    Training,
    /// The law of an observable, for every run.
    Histogram,
    /// The same less that of the reference.
    Difference,
    /// The two-point function.
    Correlation,
    /// One measure against another, a line for every run.
    Sweep,
    /// One measure, a row for every run.
    Rows,
    /// One measure at the inverse temperatures of `at_beta`, over the exact values there.
    Temperatures,
}

/// A figure.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FigureEntry {
    /// The end of its files' names.
    pub name: String,
    pub title: String,
    pub kind: FigureKind,
    /// The runs it shows; all if there are none.
    #[serde(default)]
    pub runs: Vec<String>,
    /// `energy_per_site` or `magnetization` (histogram, difference), or the measure along y (sweep, temperatures).
    #[serde(default)]
    pub y: String,
    /// The measure along x (sweep, rows).
    #[serde(default)]
    pub x: String,
    #[serde(default)]
    pub log_x: bool,
    #[serde(default)]
    pub log_y: bool,
}

fn usual_seed() -> u64 {
    SEED
}

impl Experiment {
    /// A shipped experiment by its name, or one in a file.
    pub fn find(word: &str, quick: bool) -> Result<Self> {
        if let Some((name, text)) = SHIPPED.iter().find(|(name, _)| *name == word) {
            let file = format!("{name}.toml");
            let found = Self::parse(name, text, Path::new(&file), quick)?;
            return Ok(Experiment { shipped: true, ..found });
        }
        let path = Path::new(word);
        if !word.ends_with(".toml") {
            let all = SHIPPED.map(|(name, _)| name).join(", ");
            return Err(usage(format!(
                "NAME = {word}: must be one of {all}, all, or a file that ends in .toml"
            )));
        }
        let fail = |source| Error::Io { path: PathBuf::from(path), source };
        let text = std::fs::read_to_string(path).map_err(fail)?;
        let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        Self::parse(&name, &text, path, quick)
    }

    /// The experiment in `text`, with `[quick]` over it if asked for; `path` is for messages.
    pub fn parse(name: &str, text: &str, path: &Path, quick: bool) -> Result<Self> {
        let mut table: Table = toml::from_str(text).map_err(|error| {
            let start = error.span().map_or(0, |span| span.start);
            let before = &text[..start.min(text.len())];
            let column = before.chars().rev().take_while(|c| *c != '\n').count() + 1;
            let reason = error.message().to_owned();
            Error::Parse {
                path: path.into(),
                line: before.matches('\n').count() + 1,
                column,
                reason,
            }
        })?;
        let overlay = table.remove("quick");
        if quick {
            match overlay {
                Some(Value::Table(overlay)) => {
                    forget_paper(&mut table);
                    merge(&mut table, overlay);
                }
                _ => {
                    let shown = path.display();
                    return Err(usage(format!("{shown}: --quick needs a section [quick]")));
                }
            }
        }
        let wrong = |text: String| usage(format!("{}: {text}", path.display()));
        let mut experiment =
            Experiment::deserialize(table).map_err(|error| wrong(error.message().to_owned()))?;
        experiment.name = name.to_owned();
        experiment.check().map_err(wrong)?;
        Ok(experiment)
    }

    /// Refuse names that stand for nothing.
    fn check(&self) -> std::result::Result<(), String> {
        let known = |name: &str| self.networks.iter().any(|network| network.name == name);
        for run in &self.runs {
            let name = &run.name;
            match (run.sampler.as_str(), &run.network) {
                ("sample", Some(network)) if known(network) => {}
                ("sample", network) => {
                    let shown = network.as_deref().unwrap_or("(missing)");
                    return Err(format!(
                        "run '{name}': network = {shown}: must be one of [[networks]]"
                    ));
                }
                (_, None) => {}
                (_, Some(_)) => {
                    return Err(format!("run '{name}': network: belongs to sampler = 'sample'"));
                }
            }
            if run.over.len() > 1 {
                return Err(format!("run '{name}': over: must have one key"));
            }
            if let Some((key, _)) = run.over.iter().find(|(_, values)| values.is_empty()) {
                return Err(format!("run '{name}': over.{key} = []: must have a value"));
            }
            if self.runs.iter().filter(|other| other.name == *name).count() > 1 {
                return Err(format!("run '{name}': name: must differ from those of other runs"));
            }
        }
        if let Some(unknown) = self.columns.iter().find(|name| !measures::is_known(name)) {
            return Err(format!("columns: '{unknown}' is not known; {}", measures::names()));
        }
        for figure in &self.figures {
            let name = &figure.name;
            let odd = |c: char| matches!(c, '/' | '\\') || c.is_control();
            if name.is_empty() || name.contains("..") || name.contains(odd) {
                return Err(format!("figure '{name}': name: must be part of a file's name"));
            }
            if self.figures.iter().filter(|other| other.name == *name).count() > 1 {
                return Err(format!("figure '{name}': name: must differ from those of others"));
            }
            let axes = match figure.kind {
                FigureKind::Sweep => vec![&figure.x, &figure.y],
                FigureKind::Rows => vec![&figure.x],
                FigureKind::Temperatures => vec![&figure.y],
                _ => Vec::new(),
            };
            if let Some(unknown) = axes.into_iter().find(|name| !measures::is_known(name)) {
                let (name, known) = (&figure.name, measures::names());
                return Err(format!("figure '{name}': '{unknown}' is not known; {known}"));
            }
            let run = |name: &&String| !self.runs.iter().any(|run| run.name == **name);
            if let Some(unknown) = figure.runs.iter().find(run) {
                let name = &figure.name;
                return Err(format!("figure '{name}': runs: '{unknown}' is none of [[runs]]"));
            }
        }
        Ok(())
    }

    /// The configuration that all its runs share.
    pub fn layers(&self) -> Result<Layers> {
        let mut layers = Layers::default();
        let file = format!("{}.toml", self.name);
        for (section, values) in
            [("target", &self.target), ("path", &self.path), ("sample", &self.sample)]
        {
            layers.describe(section, &serde_json::to_value(values)?, &file)?;
        }
        layers.set(&[format!("seed={}", self.seed)])?;
        Ok(layers)
    }

    /// The configuration that trains a network.
    pub fn training(&self, entry: &NetworkEntry) -> Result<Layers> {
        let mut layers = self.layers()?;
        let file = format!("{}.toml", self.name);
        for (section, values) in [("network", &entry.network), ("train", &entry.train)] {
            layers.describe(section, &serde_json::to_value(values)?, &file)?;
        }
        Ok(layers)
    }
}

/// The paper's numbers are not those of smaller settings.
fn forget_paper(table: &mut Table) {
    let runs = table.get_mut("runs").and_then(Value::as_array_mut);
    for run in runs.into_iter().flatten().filter_map(Value::as_table_mut) {
        run.remove("paper");
    }
}

/// Lay a table over another. Entries of lists find theirs by `name`; `drop = true` removes one.
fn merge(base: &mut Table, over: Table) {
    for (key, value) in over {
        match (base.get_mut(&key), value) {
            (Some(Value::Table(base)), Value::Table(over)) => merge(base, over),
            (Some(Value::Array(base)), Value::Array(over)) if named(base) && named(&over) => {
                for entry in over {
                    merge_entry(base, entry);
                }
            }
            (_, value) => {
                base.insert(key, value);
            }
        }
    }
}

fn named(list: &[Value]) -> bool {
    !list.is_empty() && list.iter().all(|entry| entry.get("name").is_some())
}

fn merge_entry(list: &mut Vec<Value>, entry: Value) {
    let at = list.iter().position(|old| old.get("name") == entry.get("name"));
    match (at, entry) {
        (Some(at), Value::Table(entry)) if entry.get("drop") == Some(&Value::Boolean(true)) => {
            list.remove(at);
        }
        (Some(at), Value::Table(entry)) => {
            if let Value::Table(old) = &mut list[at] {
                merge(old, entry);
            }
        }
        (_, entry) => list.push(entry),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;
    use crate::verbs::compare::Job;

    #[test]
    fn every_shipped_experiment_can_be_run() {
        for (name, _) in SHIPPED {
            for quick in [false, true] {
                let experiment = Experiment::find(name, quick).unwrap();
                experiment.check_settings().unwrap();
                for entry in &experiment.networks {
                    let layers = experiment.training(entry).unwrap();
                    let config = Config::resolve(&layers).unwrap();
                    let problem = config.problem(&layers).unwrap();
                    config.net(&problem.target).unwrap();
                    assert!(config.train.validate_every > 0, "{name}: the page shows validations");
                }
                let layers = experiment.layers().unwrap();
                for run in experiment.runs.iter().filter(|run| run.sampler != "sample") {
                    for (_, mut entry) in run.entries() {
                        entry.insert("sampler".to_owned(), run.sampler.clone().into());
                        Job::new(&layers, 1, entry).unwrap();
                    }
                }
                assert!(!experiment.figures.is_empty());
            }
        }
    }

    #[test]
    fn quick_settings_have_no_numbers_of_the_paper() {
        let has = |quick| {
            let experiment = Experiment::find("ais-ising", quick).unwrap();
            experiment.runs.iter().any(|run| !run.paper.is_empty())
        };
        assert!(has(false) && !has(true));
    }

    #[test]
    fn overlays_find_entries_by_name() {
        let mut base: Table = toml::from_str(
            "a = 1\n[t]\nx = [1, 2]\ny = 3\n[[runs]]\nname = 'one'\nn = 1\n[[runs]]\nname = 'two'\n",
        )
        .unwrap();
        let over =
            "t.x = [5]\n[[runs]]\nname = 'one'\nm = 7\n[[runs]]\nname = 'two'\ndrop = true\n";
        merge(&mut base, toml::from_str(over).unwrap());
        let wanted = "a = 1\n[t]\nx = [5]\ny = 3\n[[runs]]\nname = 'one'\nn = 1\nm = 7\n";
        assert_eq!(base, toml::from_str::<Table>(wanted).unwrap());
    }
}
