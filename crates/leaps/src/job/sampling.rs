//! Sampling with a trained network: weighted walkers that its rates carry along the path.

use std::sync::Arc;
use std::time::Instant;

use super::measured::{Journey, measure, measured};
use super::snapshots::{can_be_drawn, snapshots};
use super::two_sided::{Forth, sent_back};
use super::{Context, Run, memory, unless_stopped};
use crate::net::NetSpec;
use crate::observe::MeasureSpec;
use crate::problem::Problem;
use crate::results::WalkerResult;
use crate::sampler::{
    NetworkWalk, Population, Protocol, ResampleSpec, Scheme, SchemeSpec, WalkPlan, WalkerSpec,
    anneal_until_stopped,
};
use crate::spec::{RunSpec, SEED};
use crate::store::Model;
use crate::target::pairwise_for_gpu;
use crate::{Error, Result};

/// Walkers that follow the network of a model.
#[derive(Clone, Debug)]
pub struct Sampling {
    /// The network, and what it was trained for.
    pub model: Model,
    /// The model as the user knows it, for the result.
    pub name: String,
    /// What to sample: what the model was trained for, or another target that its network fits.
    pub problem: Problem,
    /// How walkers follow the network.
    pub scheme: SchemeSpec,
    /// How many walkers, and how they are measured.
    pub walkers: WalkerSpec,
    /// When walkers are resampled.
    pub resample: ResampleSpec,
    /// What is measured beside the usual.
    pub measure: MeasureSpec,
    /// The seed.
    pub seed: u64,
}

impl Sampling {
    /// 1000 walkers of a model on a problem.
    pub fn new(model: Model, problem: Problem) -> Self {
        Sampling {
            name: model.file().parent().map_or_else(String::new, |d| d.display().to_string()),
            model,
            problem,
            scheme: SchemeSpec::default(),
            walkers: WalkerSpec::default(),
            resample: ResampleSpec::default(),
            measure: MeasureSpec::default(),
            seed: SEED,
        }
    }

    /// As configured.
    pub fn of(spec: &RunSpec, problem: Problem, model: Model, name: &str) -> Self {
        Sampling {
            name: name.to_owned(),
            scheme: spec.scheme.clone(),
            walkers: spec.walkers.clone(),
            resample: spec.resample.clone(),
            measure: spec.measure.clone(),
            seed: spec.seed,
            ..Self::new(model, problem)
        }
    }

    /// Number of walkers.
    pub fn walkers(mut self, walkers: usize) -> Self {
        self.walkers.walkers = walkers;
        self
    }

    /// Intervals of the path.
    pub fn intervals(mut self, intervals: usize) -> Self {
        self.walkers.intervals = intervals;
        self
    }

    /// Steps of each interval at which energies follow the path while the network's output is kept.
    pub fn substeps(mut self, substeps: usize) -> Self {
        self.scheme.substeps = substeps;
        self
    }

    /// Resample when the effective sample size falls below this fraction.
    pub fn ess_threshold(mut self, threshold: f64) -> Self {
        self.resample.ess_threshold = Some(threshold);
        self
    }

    settings!(at_beta, structure_factor, seed);

    /// Sample where there is a GPU, or on the CPU.
    pub fn run(&self) -> Result<Run<WalkerResult>> {
        self.run_in(&Context::default())
    }

    /// Whether a GPU can run it.
    pub fn gpu_has(&self) -> Result<()> {
        pairwise_for_gpu(&*self.problem.target).map(drop)
    }

    /// Refuse to start with more memory than is free.
    pub fn check_memory(&self) -> Result<()> {
        memory::check_memory(&self.problem, &self.walkers, &self.measure)
    }

    /// Let the walkers follow the network and measure them. If they are stopped on the way, the result is that of the last point of the path that all
    /// of them have reached, and says so ([`WalkerResult::reached`]).
    ///
    /// # Errors
    /// [`Error::Interrupted`] if they were stopped before the first such point: there are as many as the trace of the path has.
    pub fn run_in(&self, context: &Context<'_>) -> Result<Run<WalkerResult>> {
        context.install(|| self.run_here(context))
    }

    fn run_here(&self, context: &Context<'_>) -> Result<Run<WalkerResult>> {
        let (model, problem, seed) = (&self.model, &self.problem, self.seed);
        let (target, path) = (&problem.target, &problem.path);
        self.walkers.check()?;
        self.scheme.check()?;
        self.resample.check()?;
        measure(problem, problem.path.ends(), &self.measure)?;
        if self.walkers.two_sided && !self.resample.resampling(0.0).is_never() {
            return Err(WalkerSpec::no_way_back());
        }
        // A network that is shown the couplings is for any of them, those of arrays too.
        if !matches!(model.network, NetSpec::Glass(_)) {
            problem.check_same(&model.target, &self.name)?;
        }
        let net = model.net(&**target).map_err(|error| match error {
            // The file is sound; it is the target that is another.
            Error::Corrupt { .. } if problem.described.target != model.target => {
                let own = &model.target;
                let reason = format!(
                    "its network does not fit {}; it was trained on {own}",
                    problem.description
                );
                Error::not_applicable(format!("the model {}", self.name), reason)
            }
            other => other,
        })?;
        memory::check_network(problem, (&self.walkers, &self.measure), &net)?;
        let conditions = model.condition(problem)?;
        let rates = &model.rates(&Arc::new(net))?.conditioned_on(&conditions);
        let scheme = self.scheme.scheme;
        let cuts = self.scheme.cuts(self.walkers.intervals);
        let (betas, stops): (Vec<f64>, Vec<f64>) =
            self.walkers.stops(path, problem.beta)?.into_iter().unzip();
        let sweeps = self.walkers.sweeps.unwrap_or(0) as u64;
        let substeps = self.scheme.substeps;
        if substeps > 1 && (sweeps > 0 || !self.resample.resampling(0.0).is_never()) {
            return Err(Error::invalid(
                "sample.substeps",
                substeps,
                "1 with sweeps or resampling, after which the network has to be called again",
                "use more intervals, or neither",
            ));
        }
        let plan =
            &WalkPlan::with_substeps(path, scheme, (&cuts, substeps), &stops)?.sweeps(sweeps);
        let steps = plan.durations.iter().filter(|duration| **duration > 0.0).count();
        let (placement, computed) = context.place(self.gpu_has())?;
        let walk = |walkers: usize| {
            let population = Population::new(walkers, seed);
            NetworkWalk { target, path, rates, plan, population }.on(&placement)
        };

        let start = Instant::now();
        let mut walkers = walk(self.walkers.walkers)?;
        let (resampling, trace_points) = (self.resample.resampling(0.0), self.walkers.trace_points);
        let (grid, progress) = (&plan.grid, context.progress);
        let protocol = Protocol { grid, resampling, trace_points, seed };
        let ensemble = anneal_until_stopped(&**target, &mut *walkers, protocol, progress)?;
        let seconds = start.elapsed().as_secs_f64();
        let arrived = ensemble.reached.is_none();
        let snapshots = match arrived && can_be_drawn(&**target) {
            true => unless_stopped(snapshots(&**target, grid, &mut *walk(1)?, progress))?.flatten(),
            false => None,
        };
        let two_sided = match arrived && self.walkers.two_sided {
            false => None,
            true => {
                let log_weights = ensemble.weights.log();
                let forth = Forth { log_weights, seconds, grid, seed };
                let (plan, rates) = (&plan.reversed()?, &rates.clone().reversed());
                let back = |population| {
                    NetworkWalk { target, path, rates, plan, population }.on(&placement)
                };
                unless_stopped(sent_back(problem, forth, back, context))?
            }
        };
        let journey = Journey {
            seed,
            scheme: match scheme {
                Scheme::Events => "events",
                Scheme::Euler => "euler",
                Scheme::Trapezoid => "trapezoid",
            },
            kernel: if sweeps == 0 { "none" } else { "heat-bath" }.to_owned(),
            model: Some(self.name.clone()),
            intervals: steps / substeps,
            substeps: (substeps > 1).then_some(substeps),
            betas,
            seconds,
            snapshots,
            both_ways: self.walkers.two_sided,
            two_sided,
            stopped: progress.stopped(),
            measure: self.measure.clone(),
        };
        let (result, samples) = measured(problem, journey, ensemble)?;
        Ok(Run { result, samples, computed })
    }
}

impl Model {
    /// The target that the model was trained for, with its path.
    ///
    /// # Errors
    /// A model of a custom energy, which only whoever has the energy can bind: [`Sampling::new`].
    pub fn problem(&self) -> Result<Problem> {
        Problem::described_in(&self.target, &self.path, self.file(), &self.files)
    }

    /// Sample what the model was trained for.
    pub fn sampling(&self) -> Result<Sampling> {
        Ok(Sampling::new(self.clone(), self.problem()?))
    }
}
