//! Moves of walkers between two weighings, and runs of AIS and SMC from plain settings.

use std::sync::Arc;

use super::walkers::cuda;
use super::walkers::lockstep::{LockstepWalkers, Sweeps};
use super::{
    Ensemble, Grid, KernelWalkers, LaneWalkers, Population, Protocol, Resampling, Walkers,
    anneal_until_stopped, choose_times,
};
use crate::device::{Placement, Progress};
use crate::mcmc::cuda::check_gpu;
use crate::mcmc::lanes::{Plan, Rule, Scan};
use crate::mcmc::{AnyKernel, Kernel, KernelName};
use crate::path::Path;
use crate::target::Target;
use crate::{Error, Result};

/// How far walkers move in an interval.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Amount {
    /// Steps of the kernel: for heat bath and Metropolis, sweeps over all sites.
    Steps(u64),
    /// Single-site updates, the scan going on from interval to interval; heat bath and Metropolis on
    /// models with tables only.
    Updates(u64),
}

/// How walkers move between two weighings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Moves {
    /// The kernel.
    pub kernel: KernelName,
    /// How much of it.
    pub amount: Amount,
    /// The order of sites in a sweep.
    pub scan: Scan,
    /// Whether every step is that of the time reversal: a sweep goes through the sites the other way round.
    pub reversed: bool,
}

/// Where to weigh.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Times {
    /// So many equal intervals.
    Uniform(usize),
    /// Given times from 0 to 1.
    Given(Vec<f64>),
    /// Chosen by a pilot run.
    Adaptive {
        /// Conditional effective sample size of every step.
        conditional_ess: f64,
        /// Walkers of the pilot run.
        pilot_walkers: usize,
    },
}

/// A run of AIS (no resampling) or SMC.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    /// Number of walkers.
    pub walkers: usize,
    /// Where to weigh.
    pub times: Times,
    /// How to move.
    pub moves: Moves,
    /// When to resample.
    pub resampling: Resampling,
    /// About how many estimates to keep along the path.
    pub trace_points: usize,
    /// Times above 0 and at most 1 at which walkers are measured in full ([`Ensemble::stops`]); intervals end there as well.
    pub stops: Vec<f64>,
    /// The seed.
    pub seed: u64,
}

impl Default for Settings {
    /// AIS: 1000 walkers, 100 equal intervals, a heat-bath sweep in each, seed 1.
    fn default() -> Self {
        Settings {
            walkers: 1000,
            times: Times::Uniform(100),
            moves: Moves {
                kernel: KernelName::HeatBath,
                amount: Amount::Steps(1),
                scan: Scan::Systematic,
                reversed: false,
            },
            resampling: Resampling::NEVER,
            trace_points: 50,
            stops: Vec::new(),
            seed: 1,
        }
    }
}

/// The pilot run must not share random numbers with the run it prepares.
const PILOT: u64 = 0x5DEE_CE66_D1CE_4E5B;

impl Moves {
    /// Kernels that GPUs have.
    pub const ON_GPU: [KernelName; 2] = KernelName::ON_GPU;

    /// Refuse moves or targets that GPUs do not have.
    pub fn check_gpu(&self, target: &dyn Target) -> Result<()> {
        check_gpu("kernel", self.kernel, target)
    }

    /// Walkers in uniformly random states that move this way on `placement`: 64 at a time where tables allow, else in lockstep or one by one,
    /// or all at once on a GPU.
    pub fn walkers(
        &self,
        placement: &Placement,
        target: &Arc<dyn Target>,
        path: &Path,
        population: Population,
    ) -> Result<Box<dyn Walkers>> {
        population.check()?;
        match placement {
            Placement::Cpu => Ok(match self.means(&**target, path, Plan::of)? {
                Means::Tables(plan, updates) => {
                    Box::new(LaneWalkers::new(&**target, plan, updates, population))
                }
                Means::Sweeps(sweeps, _) if target.prefers_batches() => {
                    Box::new(LockstepWalkers::new(target, sweeps, population)?)
                }
                Means::Sweeps(Sweeps { count: steps, .. }, kernel)
                | Means::Kernel(kernel, steps) => {
                    Box::new(KernelWalkers::new(target, &kernel, steps, population)?)
                }
            }),
            Placement::Cuda(gpu, _) => {
                self.check_gpu(&**target)?;
                let means = self.means(&**target, path, Plan::of_pairs)?;
                cuda::sweep_walkers(gpu, &**target, means, population)
            }
        }
    }

    /// What the moves are made of, with the plans of a device.
    fn means(
        &self,
        target: &dyn Target,
        path: &Path,
        plan: impl Fn(&dyn Target, Rule, Scan) -> Result<Plan>,
    ) -> Result<Means> {
        let rule = self.kernel.rule();
        let plan = rule.and_then(|rule| plan(target, rule, self.scan).ok());
        let plan = plan.map(|plan| if self.reversed { plan.reversed() } else { plan });
        if self.reversed && matches!(self.amount, Amount::Updates(_)) {
            let reason = "single updates have no sweep to be reversed; use sweeps";
            return Err(Error::not_applicable("a two-sided estimate", reason));
        }
        let steps = match (plan, self.amount) {
            (Some(plan), Amount::Updates(updates)) => return Ok(Means::Tables(plan, updates)),
            (Some(plan), Amount::Steps(sweeps)) => {
                let updates = sweeps.saturating_mul(target.sites() as u64);
                return Ok(Means::Tables(plan, updates));
            }
            (None, Amount::Updates(updates)) => {
                let condition = "used with heat-bath or metropolis on a model of pairs or clusters of few values";
                let advice = format!(
                    "give sweeps instead, or use the kernel gibbs instead of {}",
                    self.kernel
                );
                return Err(Error::invalid("updates", updates, condition, advice));
            }
            (None, Amount::Steps(steps)) => steps,
        };
        let kernel = AnyKernel::new(self.kernel, target, path.ends())?;
        if self.reversed && !kernel.reversible() {
            let reason = format!(
                "a step of {} has no reversal here; use swendsen-wang or gibbs",
                self.kernel
            );
            return Err(Error::not_applicable("a two-sided estimate", reason));
        }
        Ok(match rule {
            Some(rule) => {
                let calls = kernel.energy_calls(target.q());
                Means::Sweeps(Sweeps { rule, count: steps, calls }, kernel)
            }
            None => Means::Kernel(kernel, steps),
        })
    }
}

/// What moves are made of, the fastest first.
pub(super) enum Means {
    /// So many updates by tables in an interval.
    Tables(Plan, u64),
    /// Sweeps, and the kernel that makes them for one walker.
    Sweeps(Sweeps, AnyKernel),
    /// So many steps of a kernel.
    Kernel(AnyKernel, u64),
}

/// Run AIS or SMC on `target` along `path` on the CPU; returns the walkers and the grid they went along.
pub fn sample(
    target: &Arc<dyn Target>,
    path: &Path,
    settings: &Settings,
    progress: &dyn Progress,
) -> Result<(Ensemble, Grid)> {
    sample_on(&Placement::Cpu, target, path, settings, progress)
}

/// [`sample`] on `placement`. The same seed gives the same walkers, but for the last bits of their weights.
pub fn sample_on(
    placement: &Placement,
    target: &Arc<dyn Target>,
    path: &Path,
    settings: &Settings,
    progress: &dyn Progress,
) -> Result<(Ensemble, Grid)> {
    let (ensemble, grid) = sample_until_stopped(placement, target, path, settings, progress)?;
    Ok((ensemble.whole()?, grid))
}

/// [`sample_on`], as far as the walkers may go: see [`anneal_until_stopped`].
pub fn sample_until_stopped(
    placement: &Placement,
    target: &Arc<dyn Target>,
    path: &Path,
    settings: &Settings,
    progress: &dyn Progress,
) -> Result<(Ensemble, Grid)> {
    let Settings { walkers, moves, resampling, trace_points, seed, .. } = *settings;
    let times = match &settings.times {
        Times::Uniform(intervals) => Grid::uniform(path, *intervals)?.times().to_vec(),
        Times::Given(times) => Grid::new(path, times.clone())?.times().to_vec(),
        Times::Adaptive { conditional_ess, pilot_walkers } => {
            let seed = seed ^ PILOT;
            // Few walkers and a choice after every step: no work for a GPU.
            let cpu = &Placement::Cpu;
            let population = Population::new(*pilot_walkers, seed);
            let mut pilot = moves.walkers(cpu, target, path, population)?;
            choose_times(&mut *pilot, path, *conditional_ess, seed, progress)?
        }
    };
    let grid = Grid::new(path, Grid::cut_at(times, &settings.stops))?.with_stops(&settings.stops);
    let mut walkers = moves.walkers(placement, target, path, Population::new(walkers, seed))?;
    let protocol = Protocol { grid: &grid, resampling, trace_points, seed };
    let ensemble = anneal_until_stopped(&**target, &mut *walkers, protocol, progress)?;
    Ok((ensemble, grid))
}
