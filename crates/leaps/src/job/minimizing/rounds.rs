//! One restart of a search, by each of the methods.

use std::sync::Arc;

use super::{BetaRange, MinimizeMethod, Minimizing};
use crate::device::{Placement, Progress};
use crate::job::memory;
use crate::mcmc::lanes::{LadderPlan, Plan, Rule, Scan, run_lane_tempering};
use crate::mcmc::{AnyKernel, ChainSettings, KernelName, TemperingSettings, run_tempering};
use crate::net::NetSpec;
use crate::observe::{LadderTable, MeasureSpec, Recorder};
use crate::path::{Path, Schedule};
use crate::sampler::{
    Amount, Grid, LaneWalkers, Moves, NetworkWalk, Population, Protocol, Resampling, SchemeSpec,
    WalkPlan, WalkerSpec, Walkers, anneal,
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
        progress: &dyn Progress,
    ) -> Result<Round> {
        match (method, range) {
            (MinimizeMethod::Tempering | MinimizeMethod::Houdayer, Some(range)) => {
                self.temper(method == MinimizeMethod::Houdayer, range, seed, progress)
            }
            (_, Some(range)) => self.cool(range, seed, progress),
            (_, None) => self.follow(seed, progress),
        }
    }

    /// Cool walkers from infinite temperature to the coldest, ever faster.
    ///
    /// Two values change by Metropolis' rule, which accepts every change that costs nothing, where heat bath accepts half of them: on a torus of
    /// couplings +-1 up to twice as many walkers reach the optimum in as many sweeps. Of more values heat bath finds the lowest at once.
    fn cool(&self, range: BetaRange, seed: u64, progress: &dyn Progress) -> Result<Round> {
        let target = &self.problem.target;
        let sweeps = (self.settings.sweeps / TEMPERATURES).clamp(1, SWEEPS_AT_ONCE);
        let ratio = (range.cold / range.hot).clamp(1.0 + 1e-6, 1e6);
        let path = Path::new(&vec![range.cold; target.terms()], Schedule::geometric(ratio)?)?;
        let grid = Grid::uniform(&path, self.settings.sweeps.div_ceil(sweeps))?;
        let (rule, kernel) = match target.q() {
            2 => (Rule::Metropolis, KernelName::Metropolis),
            _ => (Rule::HeatBath, KernelName::HeatBath),
        };
        let moves = Moves {
            kernel,
            amount: Amount::Steps(sweeps as u64),
            scan: Scan::Systematic,
            reversed: false,
        };
        let population = Population::new(self.settings.walkers, seed);
        let plan = Plan::signed_or_of(&**target, rule, Scan::Systematic);
        let mut walkers: Box<dyn Walkers> = match plan {
            Ok(plan) => {
                let updates = (sweeps * target.sites()) as u64;
                Box::new(LaneWalkers::new(&**target, plan, updates, population))
            }
            Err(_) => moves.walkers(&Placement::Cpu, target, &path, population)?,
        };
        let protocol =
            Protocol { grid: &grid, resampling: Resampling::NEVER, trace_points: 1, seed };
        self.carry(&mut *walkers, protocol, progress)
    }

    /// Let walkers go their way, or as far as there is time.
    fn carry(
        &self,
        walkers: &mut dyn Walkers,
        protocol: Protocol<'_>,
        progress: &dyn Progress,
    ) -> Result<Round> {
        match anneal(&*self.problem.target, walkers, protocol, progress) {
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
        progress: &dyn Progress,
    ) -> Result<Round> {
        let target = &*self.problem.target;
        let terms = target.terms();
        let thin = STEPS_BETWEEN_LOOKS.min(self.settings.sweeps) as u64;
        let settings = TemperingSettings {
            ladder: range
                .ladder(self.settings.temperatures)
                .iter()
                .map(|&b| vec![b; terms])
                .collect(),
            houdayer,
            exchange: true,
            table: Some(LadderTable::width_for(target, seed)),
            chains: ChainSettings {
                chains: self.settings.walkers,
                burn_in: 0,
                steps: self.settings.sweeps as u64,
                thin,
                seed,
            },
        };
        let plan = LadderPlan::signed_or_of(target, Rule::HeatBath, Scan::Systematic).ok();
        let outcomes = match plan.filter(|_| !houdayer) {
            Some(plan) => run_lane_tempering(target, &plan, &settings, |_| Nobody, progress)?,
            None => {
                let kernel =
                    AnyKernel::new(KernelName::HeatBath, target, &vec![range.cold; terms])?;
                run_tempering(target, &kernel, &settings, |_, _| Nobody, progress)?
            }
        };
        let unfinished =
            outcomes.first().is_some_and(|ladder| ladder.steps < self.settings.sweeps as u64);
        let mut states = Vec::with_capacity(self.settings.walkers * target.sites());
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
    fn follow(&self, seed: u64, progress: &dyn Progress) -> Result<Round> {
        let (model, name) = self.model.as_ref().ok_or_else(|| {
            Error::not_applicable("a network", "no model was given; use annealing")
        })?;
        let (target, path) = (&self.problem.target, &self.problem.path);
        // A network that is shown the couplings is for any of them.
        if !matches!(model.network, NetSpec::Glass(_)) {
            self.problem.check_same(&model.target, name)?;
        }
        let walkers = self.settings.walkers.max(2);
        let intervals = self.settings.sweeps.div_ceil(SWEEPS_PER_INTERVAL);
        let net = model.net(&**target)?;
        let needed = WalkerSpec { walkers, intervals, ..WalkerSpec::default() };
        memory::check_network(&self.problem, (&needed, &MeasureSpec::default()), &net)?;
        let rates = &model.rates(&Arc::new(net))?.conditioned_on(&model.condition(&self.problem)?);
        let scheme = SchemeSpec::default();
        let cuts = scheme.cuts(intervals);
        let plan = &WalkPlan::with_substeps(path, scheme.scheme, (&cuts, scheme.substeps), &[])?;
        let population = Population::new(walkers, seed);
        let walk = NetworkWalk { target, path, rates, plan, population };
        let mut walkers = walk.on(&Placement::Cpu)?;
        let resampling = Resampling::NEVER;
        let protocol = Protocol { grid: &plan.grid, resampling, trace_points: 1, seed };
        self.carry(&mut *walkers, protocol, progress)
    }
}
