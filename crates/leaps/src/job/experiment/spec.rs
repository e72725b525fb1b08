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

/// The key of a target that tells its instances apart.
const DISORDER: &str = "disorder_seed";
/// The most instances of a target.
const MOST_INSTANCES: u64 = 1000;

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
    /// The name of its target, where the file has several, with that of the instance.
    #[serde(skip)]
    pub heading: String,
    /// The name of its target, which instances share.
    #[serde(skip)]
    pub group: String,
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
    /// How many instances of every target there are.
    pub instances: Option<Instances>,
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

/// Instances of a disorder that a target is taken for, and averaged over.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Instances {
    /// The `disorder_seed` of the first.
    pub first: u64,
    /// How many, each with a seed that is one more.
    pub count: u64,
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
    /// `sample`, `ais`, `smc`, `mcmc` or `exact`, as in `[[compare]]`.
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
    /// The name of the target it shows, where the file has several; all if there is none.
    #[serde(default)]
    pub target: String,
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
        for (group, own) in each_target(&mut table).map_err(wrong)? {
            let one = Experiment { heading: group.clone(), group, ..read(own)? };
            targets.extend(one.each_instance().map_err(wrong)?);
        }
        let experiment = match targets.first() {
            Some(first) => Experiment { targets: targets.clone(), ..first.clone() },
            None => {
                let one = read(table)?;
                let all = one.instances.map(|_| one.clone().each_instance()).transpose();
                Experiment { targets: all.map_err(wrong)?.unwrap_or_default(), ..one }
            }
        };
        experiment.check().map_err(wrong)?;
        Ok(experiment)
    }

    /// The experiment on every instance of its target, or on the target itself.
    fn each_instance(self) -> std::result::Result<Vec<Self>, String> {
        let Some(Instances { first, count }) = self.instances else { return Ok(vec![self]) };
        let seeds =
            first.checked_add(count).and_then(|end| Some(first..i64::try_from(end).ok()? as u64));
        let seeds = seeds.filter(|_| (1..=MOST_INSTANCES).contains(&count));
        let seeds = seeds.ok_or_else(|| {
            format!("instances.count = {count}: must be from 1 to {MOST_INSTANCES}, with seeds that are whole numbers of 63 bits")
        })?;
        let instance = |seed: u64| {
            let name = format!("instance {seed}");
            let heading =
                if self.group.is_empty() { name } else { format!("{}, {name}", self.group) };
            let mut one = Experiment { heading, ..self.clone() };
            one.target.insert(DISORDER.to_owned(), Value::Integer(seed as i64));
            one
        };
        Ok(seeds.map(instance).collect())
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
            let target = &figure.target;
            if !target.is_empty() && !all.iter().any(|one| one.is_called(target)) {
                return Err(format!("figure '{name}': target: '{target}' is none of [[targets]]"));
            }
            let runs = || all.iter().flat_map(|one| &one.runs);
            let run = |name: &&String| !runs().any(|run| run.name == **name);
            if let Some(unknown) = figure.runs.iter().find(run) {
                return Err(format!("figure '{name}': runs: '{unknown}' is none of [[runs]]"));
            }
        }
        Ok(())
    }

    /// Whether its target has this name, with the instance or without.
    pub fn is_called(&self, target: &str) -> bool {
        [&self.heading, &self.group].into_iter().any(|own| own == target)
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
        // One network serves all instances.
        let mut shared = self.clone();
        shared.instances.is_some().then(|| shared.target.remove(DISORDER));
        let spec = shared.spec()?.with(&table(&own));
        let spec = spec.map_err(|error| error.within(&self.file()))?;
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
    fn networks_take_substeps_on_two_cores() {
        let experiment = Experiment::find("free-energy-cpu", false).unwrap();
        for one in experiment.each() {
            let shared = one.spec().unwrap();
            for run in one.runs.iter().filter(|run| run.sampler == "sample") {
                let table = run.settings.clone();
                let entry = crate::job::SamplerEntry { place: &run.name, table, model: None };
                let spec = entry.spec(&shared).unwrap();
                let own = (spec.walkers.intervals, spec.scheme.substeps, spec.walkers.trace_points);
                assert_eq!(own, (25, 4, 1), "{}, {}", one.heading, run.name);
                assert!(spec.walkers.walkers < 2000, "two cores have minutes");
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
    fn every_target_has_its_instances() {
        let text = "title = 't'\npaper = 'p'\nabout = 'a'\ncolumns = ['ess']\n\
                    target = { kind = 'spin-glass', size = 3 }\ninstances = { first = 7, count = 2 }\n\
                    networks = [{ name = 'net', train = { instances = 8, batch = 8 } }]\n\
                    runs = [{ name = 'one', sampler = 'ais' }]\n";
        let parse = |text: &str| Experiment::parse("x", text, Path::new("x.toml"), false);
        let seeds = |experiment: &Experiment| -> Vec<(String, i64)> {
            let seed = |one: &Experiment| one.target["disorder_seed"].as_integer().unwrap();
            experiment.each().iter().map(|one| (one.heading.clone(), seed(one))).collect()
        };
        let alone = parse(text).unwrap();
        assert_eq!(seeds(&alone), [("instance 7".to_owned(), 7), ("instance 8".to_owned(), 8)]);
        let targets = "[[targets]]\nname = 'cold'\ntarget.beta = 2.0\n[[targets]]\nname = 'hot'\ninstances.count = 1\n";
        let both = parse(&format!("{text}{targets}")).unwrap();
        let names: Vec<String> = seeds(&both).into_iter().map(|(name, _)| name).collect();
        assert_eq!(names, ["cold, instance 7", "cold, instance 8", "hot, instance 7"]);
        assert!(both.targets[1].is_called("cold") && !both.targets[1].is_called("hot"));
        // The network is trained once for all of them.
        let [first, second, _] = &both.targets[..] else { panic!("{names:?}") };
        let trained = |one: &Experiment| one.training(&one.networks[0]).unwrap().target;
        assert_eq!(trained(first), trained(second));
        assert_ne!(first.spec().unwrap().target, second.spec().unwrap().target);
        for count in ["0", "1001", "9223372036854775807"] {
            let error = parse(&text.replace("count = 2", &format!("count = {count}"))).unwrap_err();
            assert!(error.to_string().contains("instances.count"), "{error}");
        }
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
