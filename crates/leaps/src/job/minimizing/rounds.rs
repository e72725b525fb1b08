//! One restart of a search, by each of the methods.

use super::{BetaRange, MinimizeMethod, Minimizing};
use crate::device::{Device, Placement, Progress};
use crate::job::{Context, Sampling};
use crate::mcmc::lanes::{LadderPlan, Plan, Rule, Scan, run_lane_tempering};
use crate::mcmc::{AnyKernel, ChainSettings, KernelName, TemperingSettings, run_tempering};
use crate::observe::{LadderTable, Recorder};
use crate::path::{Path, Schedule};
use crate::sampler::{
    Amount, Grid, LaneWalkers, Moves, Population, Protocol, Resampling, Walkers, anneal,
};
use crate::{Error, Result};

/// Most sweeps at one temperature while walkers are cooled: tables are made and energies are measured for each.
const SWEEPS_AT_ONCE: usize = 10;

/// Fewest temperatures while walkers are cooled.
const TEMPERATURES: usize = 50;

/// Steps of a ladder between two looks at the energies of all its states.
const STEPS_BETWEEN_LOOKS: usize = 5;

/// Sweeps that count as much as an interval of a network.
const SWEEPS_PER_INTERVAL: usize = 10;

/// The states of a restart, one for every walker: `[walker * sites + site]`.
pub struct Round {
    pub states: Vec<u8>,
    /// Whether it was stopped on the way.
    pub unfinished: bool,
}

/// Keeps nothing: the table of a ladder has its lowest state.
struct Nobody;

impl Recorder for Nobody {
    fn record(&mut self, _: &[u8]) {}
}

impl Minimizing {
    /// One restart.
    pub(super) fn round(
        &self,
        method: MinimizeMethod,
        range: Option<BetaRange>,
        seed: u64,
        watch: &dyn Progress,
    ) -> Result<Round> {
        match (method, range) {
            (MinimizeMethod::Tempering | MinimizeMethod::Houdayer, Some(range)) => {
                self.temper(method == MinimizeMethod::Houdayer, range, seed, watch)
            }
            (_, Some(range)) => self.cool(range, seed, watch),
            (_, None) => self.follow(seed, watch),
        }
    }

    /// Cool walkers by heat bath, from infinite temperature to the coldest, ever faster.
    fn cool(&self, range: BetaRange, seed: u64, watch: &dyn Progress) -> Result<Round> {
        let target = &self.problem.target;
        let sweeps = (self.sweeps / TEMPERATURES).clamp(1, SWEEPS_AT_ONCE);
        let ratio = (range.cold / range.hot).clamp(1.0 + 1e-6, 1e6);
        let path = Path::new(&vec![range.cold; target.terms()], Schedule::geometric(ratio)?)?;
        let grid = Grid::uniform(&path, self.sweeps.div_ceil(sweeps))?;
        let moves = Moves {
            kernel: KernelName::HeatBath,
            amount: Amount::Steps(sweeps as u64),
            scan: Scan::Systematic,
            reversed: false,
        };
        let population = Population::new(self.walkers, seed);
        let plan = |model| Plan::signed(model, Rule::HeatBath, Scan::Systematic).ok();
        let mut walkers: Box<dyn Walkers> = match target.pairwise().and_then(plan) {
            Some(plan) => {
                let updates = (sweeps * target.sites()) as u64;
                Box::new(LaneWalkers::new(&**target, plan, updates, population))
            }
            None => moves.walkers(&Placement::Cpu, target, &path, population)?,
        };
        let protocol = Protocol { grid: &grid, resampling: Resampling::NEVER, points: 1, seed };
        match anneal(&**target, &mut *walkers, protocol, watch) {
            Ok(ensemble) => Ok(Round { states: ensemble.states, unfinished: false }),
            Err(Error::Interrupted) => Ok(Round { states: walkers.states()?, unfinished: true }),
            Err(error) => Err(error),
        }
    }

    /// Ladders of temperatures; of each its lowest state.
    fn temper(
        &self,
        houdayer: bool,
        range: BetaRange,
        seed: u64,
        watch: &dyn Progress,
    ) -> Result<Round> {
        let target = &*self.problem.target;
        let terms = target.terms();
        let every = STEPS_BETWEEN_LOOKS.min(self.sweeps) as u64;
        let settings = TemperingSettings {
            ladder: range.ladder(self.temperatures).iter().map(|&b| vec![b; terms]).collect(),
            houdayer,
            exchange: true,
            table: Some(LadderTable::width_for(target, seed)),
            chains: ChainSettings {
                chains: self.walkers,
                burn_in: 0,
                steps: self.sweeps as u64,
                every,
                seed,
            },
        };
        let plan = |model| LadderPlan::signed(model, Rule::HeatBath, Scan::Systematic).ok();
        let outcomes = match target.pairwise().and_then(plan).filter(|_| !houdayer) {
            Some(plan) => run_lane_tempering(target, &plan, &settings, |_| Nobody, watch)?,
            None => {
                let kernel =
                    AnyKernel::new(KernelName::HeatBath, target, &vec![range.cold; terms])?;
                run_tempering(target, &kernel, &settings, |_, _| Nobody, watch)?
            }
        };
        let unfinished = outcomes.first().is_some_and(|ladder| ladder.steps < self.sweeps as u64);
        let mut states = Vec::with_capacity(self.walkers * target.sites());
        for ladder in outcomes {
            let lowest = ladder.table.as_ref().and_then(LadderTable::lowest);
            match (lowest, ladder.last.last()) {
                (Some((_, x)), _) | (None, Some(x)) => states.extend_from_slice(x),
                (None, None) => {}
            }
        }
        Ok(Round { states, unfinished })
    }

    /// Walkers that follow the network.
    fn follow(&self, seed: u64, watch: &dyn Progress) -> Result<Round> {
        let (model, name) = self.model.as_ref().ok_or_else(|| {
            Error::not_applicable("a network", "no model was given; use annealing")
        })?;
        let mut job = Sampling::new(model.clone(), self.problem.clone());
        job.name.clone_from(name);
        let job = job
            .walkers(self.walkers.max(2))
            .intervals(self.sweeps.div_ceil(SWEEPS_PER_INTERVAL))
            .seed(seed);
        let context = Context { device: Device::Cpu, progress: watch, ..Context::default() };
        Ok(Round { states: job.run_in(&context)?.samples.states, unfinished: false })
    }
}
