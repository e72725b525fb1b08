//! Choose how walkers move, and run AIS or SMC from plain settings.

use super::{
    Ensemble, Grid, KernelWalkers, LaneWalkers, Population, Resampling, anneal, choose_times,
};
use crate::device::Watch;
use crate::mcmc::lanes::{Plan, Rule, Scan};
use crate::mcmc::{AnyKernel, KernelName};
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
}

/// Where to weigh.
#[derive(Clone, Debug, PartialEq)]
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
    pub points: usize,
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
            },
            resampling: Resampling::NEVER,
            points: 50,
            seed: 1,
        }
    }
}

/// The pilot run must not share random numbers with the run it prepares.
const PILOT: u64 = 0x5DEE_CE66_D1CE_4E5B;

impl Moves {
    /// Walkers in uniformly random states that move this way: 64 at a time where tables allow, else one
    /// by one.
    pub fn population<'a>(
        &self,
        target: &'a dyn Target,
        path: &Path,
        walkers: usize,
        seed: u64,
    ) -> Result<Box<dyn Population + 'a>> {
        if walkers == 0 || walkers > u32::MAX as usize {
            return Err(Error::invalid(
                "walkers",
                walkers,
                "from 1 to 2^32 - 1",
                "1000 is a good start",
            ));
        }
        let rule = match self.kernel {
            KernelName::HeatBath => Some(Rule::HeatBath),
            KernelName::Metropolis => Some(Rule::Metropolis),
            _ => None,
        };
        let plan = match (rule, target.pairwise()) {
            (Some(rule), Some(model)) => Plan::new(model, rule, self.scan).ok(),
            _ => None,
        };
        match (plan, self.amount) {
            (Some(plan), amount) => {
                let updates = match amount {
                    Amount::Updates(updates) => updates,
                    Amount::Steps(sweeps) => sweeps.saturating_mul(target.sites() as u64),
                };
                Ok(Box::new(LaneWalkers::new(target, plan, updates, walkers, seed)))
            }
            (None, Amount::Steps(steps)) => {
                let kernel = AnyKernel::new(self.kernel, target, path.ends())?;
                Ok(Box::new(KernelWalkers::new(target, &kernel, steps, walkers, seed)?))
            }
            (None, Amount::Updates(updates)) => Err(Error::invalid(
                "updates",
                updates,
                "used with heat-bath or metropolis on a pairwise model with few neighbours",
                format!("give sweeps instead, or use the kernel gibbs instead of {}", self.kernel),
            )),
        }
    }
}

/// Run AIS or SMC on `target` along `path`; returns the walkers and the grid they went along.
pub fn sample(
    target: &dyn Target,
    path: &Path,
    settings: &Settings,
    watch: &dyn Watch,
) -> Result<(Ensemble, Grid)> {
    let Settings { walkers, moves, resampling, points, seed, .. } = *settings;
    let grid = match &settings.times {
        Times::Uniform(intervals) => Grid::uniform(path, *intervals)?,
        Times::Given(times) => Grid::new(path, times.clone())?,
        Times::Adaptive { conditional_ess, pilot_walkers } => {
            let seed = seed ^ PILOT;
            let mut pilot = moves.population(target, path, *pilot_walkers, seed)?;
            let times = choose_times(&mut *pilot, path, *conditional_ess, seed, watch)?;
            Grid::new(path, times)?
        }
    };
    let mut population = moves.population(target, path, walkers, seed)?;
    let ensemble = anneal(target, &mut *population, &grid, &resampling, points, seed, watch)?;
    Ok((ensemble, grid))
}
