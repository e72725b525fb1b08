//! Annealed importance sampling and sequential Monte Carlo: weighted walkers that a Markov kernel moves along the path.

use std::time::Instant;

use super::measured::{Journey, measure, measured};
use super::snapshots::{can_be_drawn, snapshots};
use super::two_sided::{Forth, sent_back};
use super::{Context, Run, memory, unless_stopped};
use crate::device::Placement;
use crate::mcmc::{KernelName, KernelSpec, Move};
use crate::observe::MeasureSpec;
use crate::problem::Problem;
use crate::results::{TwoSidedResult, WalkerResult};
use crate::sampler::{
    Amount, Ensemble, Grid, Moves, Population, ResampleSpec, Resampling, Settings, Times,
    UpdateSpec, WalkerSpec, sample_until_stopped,
};
use crate::spec::{RunSpec, SEED};
use crate::{Error, Result};

/// Walkers of the pilot run that chooses the times of an adaptive schedule.
const PILOT_WALKERS: usize = 512;

/// The effective sample size below which sequential Monte Carlo resamples.
const USUAL_THRESHOLD: f64 = 0.5;

/// Walkers that a kernel moves along the path, weighted.
///
/// ```
/// use leaps::prelude::*;
///
/// let run = Annealing::ais(Ising::square(4).beta(0.3)?).walkers(500).run()?;
/// assert!(run.log_z.z().unwrap().abs() < 5.0); // beside the exact value
/// # Ok::<(), leaps::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Annealing {
    /// What to sample.
    pub problem: Problem,
    /// How walkers move.
    pub kernel: KernelSpec,
    /// How many walkers, and how they are measured.
    pub walkers: WalkerSpec,
    /// Moves smaller than a sweep.
    pub updates: UpdateSpec,
    /// When walkers are resampled; never in annealed importance sampling.
    pub resample: Option<ResampleSpec>,
    /// What is measured beside the usual.
    pub measure: MeasureSpec,
    /// The seed.
    pub seed: u64,
}

impl Annealing {
    /// Annealed importance sampling.
    pub fn ais(problem: Problem) -> Self {
        Annealing {
            problem,
            kernel: KernelSpec::default(),
            walkers: WalkerSpec::default(),
            updates: UpdateSpec::default(),
            resample: None,
            measure: MeasureSpec::default(),
            seed: SEED,
        }
    }

    /// Sequential Monte Carlo with sweeps in between, which some call population annealing.
    pub fn smc(problem: Problem) -> Self {
        Annealing { resample: Some(ResampleSpec::default()), ..Self::ais(problem) }
    }

    /// As configured, with resampling or without.
    pub fn of(spec: &RunSpec, problem: Problem, resample: bool) -> Self {
        Annealing {
            problem,
            kernel: spec.kernel.clone(),
            walkers: spec.walkers.clone(),
            updates: spec.updates.clone(),
            resample: resample.then(|| spec.resample.clone()),
            measure: spec.measure.clone(),
            seed: spec.seed,
        }
    }

    /// Number of walkers.
    pub fn walkers(mut self, walkers: usize) -> Self {
        self.walkers.walkers = walkers;
        self
    }

    /// Intervals of the path, each a reweighting and some moves.
    pub fn intervals(mut self, intervals: usize) -> Self {
        self.walkers.intervals = intervals;
        self
    }

    /// Steps of the kernel in each interval: sweeps for heat bath and Metropolis.
    pub fn sweeps(mut self, sweeps: usize) -> Self {
        self.walkers.sweeps = Some(sweeps);
        self
    }

    /// The kernel that moves walkers.
    pub fn kernel(mut self, kernel: KernelName) -> Self {
        self.kernel.kernel = Move::Kernel(kernel);
        self
    }

    settings!(at_beta, structure_factor, seed);

    /// Run it where there is a GPU, or on the CPU.
    pub fn run(&self) -> Result<Run<WalkerResult>> {
        self.run_in(&Context::default())
    }

    /// Whether a GPU can run it.
    pub fn gpu_has(&self) -> Result<()> {
        self.settings()?.moves.check_gpu(&*self.problem.target)
    }

    /// Refuse to start with more memory than is free.
    pub fn check_memory(&self) -> Result<()> {
        let measured = (&self.walkers, &self.measure);
        memory::check(&memory::of_walkers(&self.problem, measured, Some(&self.kernel)))
    }

    /// Run it and measure the walkers. If they are stopped on the way, the result is that of the last point of the path that all of them have
    /// reached, and says so ([`WalkerResult::reached`]).
    ///
    /// # Errors
    /// [`Error::Interrupted`] if they were stopped before the first such point: there are as many as the trace of the path has.
    pub fn run_in(&self, context: &Context<'_>) -> Result<Run<WalkerResult>> {
        context.install(|| self.run_here(context))
    }

    fn run_here(&self, context: &Context<'_>) -> Result<Run<WalkerResult>> {
        let (target, path) = (&self.problem.target, &self.problem.path);
        let (betas, stops): (Vec<f64>, Vec<f64>) =
            self.walkers.stops(path, self.problem.beta)?.into_iter().unzip();
        let settings = Settings { stops, ..self.settings()? };
        measure(&self.problem, self.problem.path.ends(), &self.measure)?;
        self.check_memory()?;
        let (placement, computed) = context.place(self.gpu_has())?;
        let start = Instant::now();
        let progress = context.progress;
        let (ensemble, grid) = sample_until_stopped(&placement, target, path, &settings, progress)?;
        let seconds = start.elapsed().as_secs_f64();
        let arrived = ensemble.reached.is_none();
        let snapshots = match arrived && can_be_drawn(&**target) {
            true => {
                // It goes the same way on the CPU.
                let cpu = &Placement::Cpu;
                let population = Population::new(1, self.seed);
                let mut one = settings.moves.walkers(cpu, target, path, population)?;
                unless_stopped(snapshots(&**target, &grid, &mut *one, progress))?.flatten()
            }
            false => None,
        };
        let two_sided = match arrived && self.walkers.two_sided {
            false => None,
            true => {
                let forth = (&ensemble, &grid, seconds);
                unless_stopped(self.both_ways(&placement, &settings, forth, context))?
            }
        };
        let journey = Journey {
            seed: self.seed,
            scheme: if self.resample.is_some() { "smc" } else { "ais" },
            kernel: self.kernel.kernel.to_string(),
            model: None,
            intervals: grid.intervals(),
            substeps: None,
            betas,
            seconds,
            snapshots,
            both_ways: self.walkers.two_sided,
            two_sided,
            stopped: progress.stopped(),
            measure: self.measure.clone(),
        };
        let (result, samples) = measured(&self.problem, journey, ensemble)?;
        Ok(Run { result, samples, computed })
    }

    /// Send walkers back.
    fn both_ways(
        &self,
        placement: &Placement,
        settings: &Settings,
        (ensemble, grid, seconds): (&Ensemble, &Grid, f64),
        context: &Context<'_>,
    ) -> Result<TwoSidedResult> {
        let (target, path) = (&self.problem.target, &self.problem.path);
        let moves = Moves { reversed: true, ..settings.moves };
        let log_weights = ensemble.weights.log();
        let forth = Forth { log_weights, seconds, grid, seed: self.seed };
        let back = |population| moves.walkers(placement, target, path, population);
        sent_back(&self.problem, forth, back, context)
    }

    fn settings(&self) -> Result<Settings> {
        self.walkers.check()?;
        if self.walkers.two_sided && self.resample.is_some() {
            return Err(WalkerSpec::no_way_back());
        }
        let Move::Kernel(kernel) = self.kernel.kernel else {
            return Err(Error::invalid(
                "sample.kernel",
                self.kernel.kernel,
                "a kernel that moves one state",
                "use heat-bath here, or Markov chains",
            ));
        };
        let walkers = &self.walkers;
        Ok(Settings {
            walkers: walkers.walkers,
            times: match self.problem.path_spec.adaptive() {
                Some(conditional_ess) => {
                    Times::Adaptive { conditional_ess, pilot_walkers: PILOT_WALKERS }
                }
                None => Times::Uniform(walkers.intervals),
            },
            moves: Moves {
                kernel,
                amount: match self.updates.updates {
                    0 => Amount::Steps(walkers.sweeps.unwrap_or(1) as u64),
                    updates => Amount::Updates(updates as u64),
                },
                scan: self.kernel.scan,
                reversed: false,
            },
            resampling: match &self.resample {
                Some(resample) => resample.resampling(USUAL_THRESHOLD),
                None => Resampling::NEVER,
            },
            trace_points: walkers.trace_points,
            stops: Vec::new(),
            seed: self.seed,
        })
    }
}
