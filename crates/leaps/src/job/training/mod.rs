//! Training of networks, on smaller lattices first where that helps, in memory or in a run directory.

mod grow;
mod start;

use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

pub use grow::{begun, seconds, sizes, still_there};
pub use start::Start;

use super::{Context, Sampling, memory};
use crate::exact;
use crate::net::{FreeEnergy, Net, NetworkOptions};
use crate::path::{Path as TargetPath, Ranges, ScheduleName};
use crate::problem::Problem;
use crate::spec::RunSpec;
use crate::store::{Model, Observer, Outcome, Setup, Summary, TrainingRun};
use crate::target::{Target, pairwise_for_gpu};
use crate::train::{Family, Instances};
use crate::{Error, Result};
use grow::Grown;

/// The text of `config.toml` in a directory for these settings; `true` for a part on a smaller lattice.
pub type ConfigText = Arc<dyn Fn(&Path, &RunSpec, bool) -> String + Send + Sync>;

/// Training of a network on a problem.
///
/// ```
/// use leaps::prelude::*;
///
/// let problem = Ising::square(4).beta(0.3)?;
/// let model = Training::new(problem).steps(20).run()?;
/// let run = model.sampling().walkers(200).run()?;
/// println!("log Z = {}, ESS = {}", run.log_z, run.ess);
/// # Ok::<(), leaps::Error>(())
/// ```
#[derive(Clone)]
pub struct Training {
    /// What the network is to sample.
    pub problem: Problem,
    /// The network, how it is trained, and the seed.
    pub settings: RunSpec,
    /// The run directory: made, or continued if it holds the same run. Without one, training is in memory.
    pub directory: Option<PathBuf>,
    /// What the run starts from, if it does not start afresh.
    pub start: Option<Start>,
    /// Pass over damaged checkpoints.
    pub fallback: bool,
    /// Stop at the first chance after this.
    pub until: Option<Instant>,
    /// The command that started the run, for its files.
    pub command: Vec<String>,
    /// How settings are written; as plain TOML if nobody says.
    pub config: Option<ConfigText>,
    /// Whether it is a part on a smaller lattice.
    grown: bool,
}

/// A trained network with the problem it was trained on.
#[derive(Clone, Debug)]
pub struct Trained {
    /// The network.
    pub model: Model,
    /// What it was trained on.
    pub problem: Problem,
    /// Whether training in memory was stopped before its last step: the network is what it was by then, after `training.steps`.
    pub interrupted: bool,
}

impl Deref for Trained {
    type Target = Model;

    fn deref(&self) -> &Model {
        &self.model
    }
}

impl Trained {
    /// Sample with the network.
    pub fn sampling(&self) -> Sampling {
        Sampling::new(self.model.clone(), self.problem.clone())
    }
}

/// What is trained on: the problem, or the family around it.
struct Members {
    target: Arc<dyn Target>,
    path: TargetPath,
    family: Option<Family>,
    instances: Option<Instances>,
}

/// A network and a free energy for the members.
type Networks = (Arc<Net>, Arc<FreeEnergy>);

impl Training {
    /// Training with the usual settings.
    pub fn new(problem: Problem) -> Self {
        let target = problem.spec.clone().unwrap_or_default();
        let path = problem.path_spec.clone();
        Self::of(RunSpec { target, path, ..RunSpec::default() }, problem)
    }

    /// As configured.
    pub fn of(settings: RunSpec, problem: Problem) -> Self {
        Training {
            problem,
            settings,
            directory: None,
            start: None,
            fallback: false,
            until: None,
            command: Vec::new(),
            config: None,
            grown: false,
        }
    }

    /// Gradient steps.
    pub fn steps(mut self, steps: u64) -> Self {
        self.settings.train.steps = steps;
        self
    }

    /// Configurations of a gradient step.
    pub fn batch(mut self, batch: usize) -> Self {
        self.settings.train.batch = batch;
        self
    }

    /// The network.
    pub fn network(mut self, network: NetworkOptions) -> Self {
        self.settings.network = network;
        self
    }

    /// One network for all inverse temperatures of a range.
    pub fn beta_range(mut self, low: f64, high: f64) -> Self {
        self.settings.train.beta_range = Some([low, high]);
        self
    }

    /// The seed.
    pub fn seed(mut self, seed: u64) -> Self {
        self.settings.seed = seed;
        self
    }

    /// Keep checkpoints in a run directory, and go on from them.
    pub fn directory(mut self, directory: impl Into<PathBuf>) -> Self {
        self.directory = Some(directory.into());
        self
    }

    /// Start from the parameters of a model, whatever the size of its lattice.
    pub fn from(mut self, model: Model) -> Self {
        let name = model.file().parent().map_or_else(String::new, |d| d.display().to_string());
        self.start = Some(Start::model(name, model));
        self
    }

    /// Train where there is a GPU, or on the CPU.
    pub fn run(&self) -> Result<Trained> {
        self.run_in(&Context::default(), &crate::device::NoProgress)
    }

    /// Train until all steps are made. A stop of training in memory keeps the network so far, which says that it was
    /// [interrupted](Trained::interrupted).
    ///
    /// # Errors
    /// [`Error::Interrupted`] if there was a reason to stop before the first step on the problem itself, or in a run directory, whose
    /// checkpoint is not lost.
    pub fn run_in(&self, context: &Context<'_>, observer: &dyn Observer) -> Result<Trained> {
        context.install(|| self.run_here(context, observer))
    }

    fn run_here(&self, context: &Context<'_>, observer: &dyn Observer) -> Result<Trained> {
        let Some(directory) = &self.directory else { return self.in_memory(context, observer) };
        match self.train_in(context, observer)?.stop {
            crate::store::Stop::Finished => self.trained(Model::load(directory)?, false),
            _ => Err(Error::Interrupted),
        }
    }

    fn trained(&self, model: Model, interrupted: bool) -> Result<Trained> {
        Ok(Trained { model, problem: self.problem.clone(), interrupted })
    }

    /// The ranges that the network is trained over, if there are any.
    fn ranges(&self) -> Option<Ranges> {
        self.settings.train.ranges()
    }

    /// Whether a GPU can train it.
    fn gpu_has(&self) -> Result<()> {
        pairwise_for_gpu(&*self.problem.target).map(drop)
    }

    /// Refuse now what would be refused only when training on smaller lattices, or all of it, is done.
    fn check(&self) -> Result<()> {
        let (settings, problem) = (&self.settings, &self.problem);
        settings.train.check()?;
        let members = settings.family()?;
        settings.instances()?;
        let target = members.as_ref().map_or(&*problem.target, |members| &*members.target);
        let net = settings.net(target)?;
        if let (Some(count), 0) = (settings.train.instances(), net.couplings()) {
            let condition = "left out for a network that is not shown the couplings";
            let advice = "network.kind = glass is";
            return Err(Error::invalid("train.instances", count, condition, advice));
        }
        memory::check_reference(&settings.train, target)?;
        settings.walkers.stops(&problem.path, problem.beta)?;
        if problem.path_spec.schedule == ScheduleName::Adaptive {
            let advice = "an adaptive schedule chooses the steps of ais and smc";
            let condition = "linear, trigonometric, geometric or piecewise to train on";
            return Err(Error::invalid("path.schedule", "adaptive", condition, advice));
        }
        Ok(())
    }

    /// Train in the run directory until all steps are made or there is a reason to stop, on smaller lattices first where that helps.
    pub fn train_in(&self, context: &Context<'_>, observer: &dyn Observer) -> Result<Outcome> {
        let Some(directory) = &self.directory else {
            let advice = "give a directory, or use run()";
            return Err(Error::invalid("out", "(left out)", "a run directory", advice));
        };
        self.check()?;
        context.place(self.gpu_has())?;
        let start = match self.grow(context, observer)? {
            Grown::Stopped(outcome) => return Ok(outcome),
            Grown::Start(start) => start,
        };
        let setup = self.setup(start.as_deref(), context, observer)?;
        let run = TrainingRun {
            config: self.config_text(directory),
            command: self.command.clone(),
            until: self.until,
            fallback: self.fallback,
            ..TrainingRun::new(directory, setup)
        };
        let exact = exact::known(&*self.problem.target, self.problem.path.ends());
        observer.begins(directory, exact.map(|exact| exact.log_z));
        run.run(observer)
    }

    /// Train without files.
    fn in_memory(&self, context: &Context<'_>, observer: &dyn Observer) -> Result<Trained> {
        self.check()?;
        let start = match self.grow(context, observer)? {
            Grown::Stopped(_) => return Err(Error::Interrupted),
            Grown::Start(start) => start,
        };
        let setup = self.setup(start.as_deref(), context, observer)?;
        observer.total(setup.train.steps);
        let mut trainer = setup.start(observer)?;
        let (mut loss, mut interrupted) = (None, false);
        while trainer.steps() < setup.train.steps {
            match observer.check().and_then(|()| trainer.step(observer)) {
                Ok(step) => loss = Some(step.loss),
                Err(Error::Interrupted) if trainer.steps() > 0 => {
                    interrupted = true;
                    break;
                }
                Err(error) => return Err(error),
            }
            observer.advance(1);
        }
        trainer.sync()?;
        let summary = Summary {
            steps: trainer.steps(),
            seed: Some(self.settings.seed),
            loss,
            settings: Some(setup.train.clone()),
            from: setup.from.clone(),
            ..Summary::default()
        };
        self.trained(setup.model(&trainer, summary)?, interrupted)
    }

    fn members(&self) -> Result<Members> {
        Ok(match self.settings.family()? {
            Some(made) => Members {
                target: made.target,
                path: made.path,
                family: Some(made.family),
                instances: None,
            },
            None => {
                let Problem { target, path, .. } = &self.problem;
                let instances = self.settings.instances()?;
                Members { target: target.clone(), path: path.clone(), family: None, instances }
            }
        })
    }

    fn networks(&self, members: &Members) -> Result<Networks> {
        let target = &*members.target;
        Ok((Arc::new(self.settings.net(target)?), Arc::new(self.settings.free(target)?)))
    }

    fn setup(
        &self,
        start: Option<&Start>,
        context: &Context<'_>,
        observer: &dyn Observer,
    ) -> Result<Setup> {
        let members = self.members()?;
        let (net, free) = self.networks(&members)?;
        let (settings, problem) = (&self.settings, &self.problem);
        let fit = |model: &Model| model.warm_start(&net, &free, settings.seed);
        let (from, warm) = match start {
            Some(start) => start.parameters(fit)?,
            None => (None, None),
        };
        let setup = Setup {
            from,
            parameters: warm.as_ref().map(|warm| warm.parameters.clone()),
            target: members.target,
            path: members.path,
            family: members.family.clone(),
            instances: members.instances.clone(),
            net: net.clone(),
            free: free.clone(),
            parametrisation: settings.network.parametrisation,
            train: settings.train.clone(),
            seed: settings.seed,
            placement: context.place(self.gpu_has())?.0,
            ranks: context.ranks.clone(),
            described_target: problem.described.target.clone(),
            files: problem.described.files.clone(),
            described_path: problem.path_spec.clone(),
        };
        observer.note(&format!("{}, seed {}", problem.description, settings.seed));
        if let (Some(ranges), Some(family)) = (self.ranges(), &members.family) {
            let count = family.members.len();
            observer.note(&format!("one network for {}: {count} targets", ranges.describe()));
        }
        if let Some(instances) = &members.instances {
            let Instances { count, walkers, .. } = instances;
            observer.note(&format!(
                "one network for all instances: trained on {count} random ones at a time, {walkers} walkers each"
            ));
        }
        let parameters = net.parameters() + free.parameters();
        let precision = match net.precision_on(&setup.placement) {
            Some(precision) => format!(" in {}", precision.name()),
            None => String::new(),
        };
        let place = self.directory.as_ref().map(|directory| format!(" in {}", directory.display()));
        let network = NetworkOptions::of(net.spec(), settings.network.parametrisation);
        observer.note(&format!(
            "{} with {parameters} parameters{precision}, {} steps{}",
            if settings.network.kind.is_some() {
                settings.network.describe()
            } else {
                network.describe()
            },
            settings.train.steps,
            place.unwrap_or_default(),
        ));
        if let (Some(start), Some(warm)) = (start, &warm) {
            observer.note(&start.words(warm, self.ranges()));
        }
        Ok(setup)
    }

    /// The text of `config.toml`, which names copies of files.
    fn config_text(&self, directory: &Path) -> String {
        match &self.config {
            Some(text) => text(directory, &self.settings, self.grown),
            None => {
                let target = self.settings.target.kept_in(Path::new(""));
                RunSpec { target, ..self.settings.clone() }.to_toml()
            }
        }
    }
}
