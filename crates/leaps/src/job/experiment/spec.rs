//! The file of an experiment: its target, networks, samplers and figures, and the smaller settings of `[quick]`.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use toml::{Table, Value};

use super::mistakes::{check_names, explain, not_finite};
use super::overlay::{each_target, forget_paper, merge};
use super::shipped::EXPERIMENTS;
use crate::file::{position, read_text};
use crate::spec::{RunSpec, SEED};
use crate::{Error, Result};

/// Everything about an experiment.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Experiment {
    /// The name of its page and of its files.
    #[serde(skip)]
    pub name: String,
    /// Whether it has the smaller settings of `[quick]`.
    #[serde(skip)]
    pub quick: bool,
    /// What it is called on the command line: its name, or its file. Of files elsewhere without the folder, which pages do not tell.
    #[serde(skip)]
    pub word: String,
    /// The folder of its file, where relative names of other files start.
    #[serde(skip)]
    pub folder: PathBuf,
    /// Whether the library brings it along.
    #[serde(skip)]
    pub shipped: bool,
    /// The name of its target, where the file has several.
    #[serde(skip)]
    pub heading: String,
    /// One experiment for every entry of `[[targets]]`; this one is like the first of them.
    #[serde(skip)]
    pub targets: Vec<Experiment>,
    /// What is done, in a line.
    pub title: String,
    /// Where the paper does the same.
    pub paper: String,
    /// What tables and legends call the numbers of others.
    #[serde(default = "the_paper")]
    pub theirs: String,
    /// What a reader of the page needs to know.
    pub about: String,
    /// The seed that those of runs are made of.
    #[serde(default = "usual_seed")]
    pub seed: u64,
    /// Keys of `[target]`.
    pub target: Table,
    /// Keys of `[path]`.
    #[serde(default)]
    pub path: Table,
    /// What runs have in common.
    #[serde(default)]
    pub sample: Table,
    /// The networks that runs use.
    #[serde(default)]
    pub networks: Vec<NetworkEntry>,
    /// The samplers.
    pub runs: Vec<RunEntry>,
    /// What the page shows.
    #[serde(default)]
    pub figures: Vec<FigureEntry>,
    /// The columns of the table: names of measures.
    pub columns: Vec<String>,
}

/// A network: a model that is shipped, or what to train where there is none; nothing where it is not said how.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NetworkEntry {
    /// What runs call it.
    pub name: String,
    /// The name of a shipped model, or the folder of one or of a run.
    #[serde(default)]
    pub model: String,
    /// Keys of `[network]`.
    #[serde(default)]
    pub network: Table,
    /// Keys of `[train]`.
    #[serde(default)]
    pub train: Table,
    /// Seed of its training, where it is not the experiment's: trainings apart from each other.
    pub seed: Option<u64>,
}

/// A sampler, at one setting or over several.
#[derive(Clone, Debug, Deserialize)]
pub struct RunEntry {
    /// What tables and legends call it.
    pub name: String,
    /// `sample`, `ais`, `smc` or `mcmc`, as in `[[compare]]`.
    pub sampler: String,
    /// The network of `sample`.
    pub network: Option<String>,
    /// The others are held against what this one has: laws of observables, energy, log Z; of several, the first that has it.
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
    /// What stands above it.
    pub title: String,
    /// What it shows.
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
    /// Powers of ten along x.
    #[serde(default)]
    pub log_x: bool,
    /// Powers of ten along y.
    #[serde(default)]
    pub log_y: bool,
}

fn usual_seed() -> u64 {
    SEED
}

fn the_paper() -> String {
    "the paper".to_owned()
}

impl NetworkEntry {
    /// Whether the entry says how to train it.
    pub fn can_be_trained(&self) -> bool {
        !self.network.is_empty() || !self.train.is_empty()
    }
}

impl Experiment {
    /// A shipped experiment by its name, or one in a file.
    pub fn find(word: &str, quick: bool) -> Result<Self> {
        if let Some((name, text)) = EXPERIMENTS.iter().find(|(name, _)| *name == word) {
            let file = format!("{name}.toml");
            let found = Self::parse(name, text, Path::new(&file), quick)?;
            return Ok(Experiment { word: word.to_owned(), shipped: true, ..found });
        }
        let path = Path::new(word);
        if !word.ends_with(".toml") {
            let all = EXPERIMENTS.map(|(name, _)| name).join(", ");
            let advice = "a file of your own has the path that leads to it";
            let condition = format!("one of {all}, all, or a file that ends in .toml");
            return Err(Error::invalid("NAME", word, condition, advice));
        }
        let text = read_text(path)?;
        let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let own = path.file_name().filter(|_| path.is_absolute());
        let word = own.map_or(word.to_owned(), |own| own.to_string_lossy().into_owned());
        Ok(Experiment { word, ..Self::parse(&name, &text, path, quick)? })
    }

    /// The experiment in `text`, with `[quick]` over it if asked for; `path` is for messages.
    pub fn parse(name: &str, text: &str, path: &Path, quick: bool) -> Result<Self> {
        let mut table: Table = toml::from_str(text).map_err(|error| {
            let start = error.span().map_or(0, |span| span.start);
            let (line, column) = position(text.as_bytes(), start);
            Error::Parse { path: path.into(), line, column, reason: error.message().to_owned() }
        })?;
        let wrong = |reason: String| Error::Experiment { path: path.into(), reason };
        check_names(&table).map_err(wrong)?;
        let overlay = table.remove("quick");
        if quick {
            match overlay {
                Some(Value::Table(overlay)) => {
                    forget_paper(&mut table);
                    merge(&mut table, overlay);
                }
                _ => return Err(wrong("quick: there is no section [quick]".to_owned())),
            }
        }
        if let Some(key) = not_finite(&Value::Table(table.clone()), "") {
            return Err(wrong(format!("{key}: must be finite")));
        }
        let read = |table: Table| -> Result<Experiment> {
            let mut experiment = Experiment::deserialize(table.clone())
                .map_err(|error| wrong(explain(&table, &error)))?;
            experiment.name = name.to_owned();
            experiment.quick = quick;
            experiment.folder = path.parent().unwrap_or(Path::new("")).to_owned();
            Ok(experiment)
        };
        let mut targets = Vec::new();
        for (heading, own) in each_target(&mut table).map_err(wrong)? {
            targets.push(Experiment { heading, ..read(own)? });
        }
        let experiment = match targets.first() {
            Some(first) => Experiment { targets: targets.clone(), ..first.clone() },
            None => read(table)?,
        };
        experiment.check().map_err(wrong)?;
        Ok(experiment)
    }

    /// The experiments on one target each that this one is made of.
    pub fn each(&self) -> Vec<&Experiment> {
        if self.targets.is_empty() { vec![self] } else { self.targets.iter().collect() }
    }

    fn check(&self) -> std::result::Result<(), String> {
        self.each().into_iter().try_for_each(Experiment::check_runs)?;
        self.check_figures()
    }

    /// Refuse runs whose names stand for nothing.
    fn check_runs(&self) -> std::result::Result<(), String> {
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
        }
        Ok(())
    }

    /// Refuse figures whose names stand for nothing.
    fn check_figures(&self) -> std::result::Result<(), String> {
        for figure in &self.figures {
            let name = &figure.name;
            let odd = |c: char| matches!(c, '/' | '\\') || c.is_control();
            if name.is_empty() || name.contains("..") || name.contains(odd) {
                return Err(format!("figure '{name}': name: must be part of a file's name"));
            }
            let all = self.each();
            let runs = || all.iter().flat_map(|one| &one.runs);
            let run = |name: &&String| !runs().any(|run| run.name == **name);
            if let Some(unknown) = figure.runs.iter().find(run) {
                return Err(format!("figure '{name}': runs: '{unknown}' is none of [[runs]]"));
            }
        }
        Ok(())
    }

    /// What errors call its file.
    pub(super) fn file(&self) -> String {
        format!("{}.toml", self.name)
    }

    /// The settings that all its runs share.
    pub fn spec(&self) -> Result<RunSpec> {
        self.laid([("target", &self.target), ("path", &self.path), ("sample", &self.sample)])
            .map(|spec| RunSpec { seed: self.seed, ..spec })
    }

    /// The settings that train a network.
    pub fn training(&self, entry: &NetworkEntry) -> Result<RunSpec> {
        let own = [("network", &entry.network), ("train", &entry.train)];
        let table = |pairs: &[(&str, &Table)]| -> Table {
            pairs.iter().map(|&(key, table)| (key.to_owned(), table.clone().into())).collect()
        };
        let spec = self.spec()?.with(&table(&own)).map_err(|error| error.within(&self.file()))?;
        Ok(RunSpec { seed: entry.seed.unwrap_or(self.seed), ..spec })
    }

    fn laid<const N: usize>(&self, sections: [(&str, &Table); N]) -> Result<RunSpec> {
        let pairs = sections.map(|(key, table)| (key.to_owned(), table.clone().into()));
        let spec = RunSpec::from_table(&Table::from_iter(pairs));
        let spec = spec.map_err(|error| error.within(&self.file()))?;
        let target = spec.target.placed(|_, path| self.folder.join(path));
        Ok(RunSpec { target, ..spec })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_must_be_finite() {
        let text = EXPERIMENTS.iter().find(|(name, _)| *name == "records").unwrap().1;
        let parse = |text: &str| Experiment::parse("mine", text, Path::new("mine.toml"), false);
        assert!(parse(text).is_ok());
        for (old, new) in [("beta = 0.4461", "beta = nan"), ("beta = 1.001", "beta = -inf")] {
            assert!(text.contains(old));
            let error = parse(&text.replacen(old, new, 1)).unwrap_err().to_string();
            assert!(error.contains("targets.target.beta") && error.contains("finite"), "{error}");
        }
    }

    #[test]
    fn every_shipped_experiment_can_be_run() {
        for (name, _) in EXPERIMENTS {
            for quick in [false, true] {
                let experiment = Experiment::find(name, quick).unwrap();
                for experiment in experiment.each() {
                    experiment.check_settings().unwrap();
                }
                let each = experiment.each();
                for one in &each {
                    for entry in one.networks.iter().filter(|entry| entry.can_be_trained()) {
                        let config = one.training(entry).unwrap().resolve().unwrap();
                        assert_eq!(config.seed, entry.seed.unwrap_or(one.seed), "{name}");
                        let problem = config.problem().unwrap();
                        config.net(&*problem.target).unwrap();
                        assert!(
                            config.train.validate_every > 0,
                            "{name}: the page shows validations"
                        );
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
    fn targets_are_laid_over_what_they_share() {
        let text = "title = 't'\npaper = 'p'\nabout = 'a'\ncolumns = ['ess']\nsample = { walkers = 7 }\n\
                    runs = [{ name = 'one', sampler = 'ais' }, { name = 'two', sampler = 'smc' }]\n\
                    [[targets]]\nname = 'small'\ntarget = { kind = 'ising', size = 2 }\n\
                    runs = [{ name = 'one', paper = { ess = 0.5 } }]\n\
                    [[targets]]\nname = 'large'\ntarget = { kind = 'ising', size = 4 }\n\
                    runs = [{ name = 'two', drop = true }]\n\
                    [[quick.targets]]\nname = 'large'\ndrop = true\n";
        let parse = |text: &str, quick| Experiment::parse("x", text, Path::new("x.toml"), quick);
        let both = parse(text, false).unwrap();
        let [small, large] = &both.targets[..] else { panic!("{}", both.targets.len()) };
        assert_eq!((small.heading.as_str(), small.runs.len()), ("small", 2));
        assert_eq!((large.heading.as_str(), large.runs.len()), ("large", 1));
        assert_eq!(large.target["size"].as_integer(), Some(4));
        assert!(!small.runs[0].paper.is_empty() && small.sample == large.sample);
        let quick = parse(text, true).unwrap();
        assert_eq!(quick.each().len(), 1);
        assert!(quick.each()[0].runs[0].paper.is_empty());
        for (name, words) in
            [("'small'", "must differ"), ("'large'\nfoo = 1", "foo"), ("3", "no name")]
        {
            let wrong = text.replacen("name = 'large'", &format!("name = {name}"), 1);
            let error = parse(&wrong, false).unwrap_err().to_string();
            assert!(error.contains(words) && error.contains("x.toml"), "{error}");
        }
    }
}
