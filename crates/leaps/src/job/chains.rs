//! Markov chains: independent ones, or ladders of temperatures that exchange states.

use std::time::Instant;

use super::measured::measure;
use super::{Context, Run, Samples, memory, total_energies};
use crate::device::Placement;
use crate::exact;
use crate::mcmc::cuda::{check_gpu, check_measured, ladder_plan};
use crate::mcmc::runner::{Moves, runner};
use crate::mcmc::{
    self, ChainSettings, ChainSpec, KernelName, KernelSpec, Move, TemperingSettings,
};
use crate::observe::{
    Autocorrelation, ChainRecorder, ChainSummary, ChainWarning, Estimate, LadderTable, Mbar,
    MeasureSpec, Observables, Recorder, Reduced, RemoteRecorder, integrated_log_z,
};
use crate::problem::Problem;
use crate::results::{
    ChainObservables, ChainResult, Discs, Lowest, Remembered, TemperingResult, ThermoPoint,
    attach_exact, log_z_merit,
};
use crate::sampler::WalkerSpec;
use crate::spec::{RunSpec, SEED};
use crate::target::Target;
use crate::{Error, Result};

/// Bytes of kept states beyond which a file of samples is refused.
const MOST_BYTES: usize = 4 << 30;

/// Measures a chain and, if asked, keeps its states.
struct Keeper<'a> {
    recorder: ChainRecorder<'a>,
    states: Option<Vec<u8>>,
    /// The lowest energy so far, and a state that has it.
    lowest: Option<(f64, Vec<u8>)>,
}

impl Keeper<'_> {
    /// Take in the state that was measured last.
    fn keep(&mut self, x: &[u8]) {
        let energy = self.recorder.last_energy();
        if self.lowest.as_ref().is_none_or(|(lowest, _)| energy < *lowest) {
            self.lowest = Some((energy, x.to_vec()));
        }
        if let Some(states) = &mut self.states {
            states.extend_from_slice(x);
        }
    }
}

impl Recorder for Keeper<'_> {
    fn record(&mut self, x: &[u8]) {
        self.recorder.record(x);
        self.keep(x);
    }

    fn record_with(&mut self, x: &[u8], energies: &[f64]) {
        self.recorder.record_with(x, energies);
        self.keep(x);
    }
}

impl RemoteRecorder for Keeper<'_> {
    fn measures(&self) -> &ChainRecorder<'_> {
        &self.recorder
    }

    fn keeps_states(&self) -> bool {
        self.states.is_some()
    }

    fn record_reduced(&mut self, state: &Reduced<'_>, x: Option<&[u8]>) {
        self.recorder.record_reduced(state);
        let energy = self.recorder.last_energy();
        if let Some(x) = x
            && self.lowest.as_ref().is_none_or(|(lowest, _)| energy < *lowest)
        {
            self.lowest = Some((energy, x.to_vec()));
        }
        if let (Some(states), Some(x)) = (&mut self.states, x) {
            states.extend_from_slice(x);
        }
    }
}

/// What the chains did, whichever way they were run.
struct Finished<'a> {
    /// Chains that exchange parts of their states are a group.
    groups: Vec<Vec<Keeper<'a>>>,
    /// Steps of each after burn-in.
    steps: u64,
    acceptance: f64,
    energy_calls: f64,
    ladder: Option<Ladder>,
}

/// What the temperatures of a ladder did.
struct Ladder {
    betas: Vec<f64>,
    swap_rates: Vec<f64>,
    round_trips: u64,
    /// The states of all temperatures, ladder by ladder.
    tables: Vec<LadderTable>,
}

/// Independent Markov chains, or ladders of temperatures that exchange states.
///
/// ```
/// use leaps::prelude::*;
///
/// let run = Chains::new(Ising::square(4).beta(0.3)?).chains(32).steps(1000).run()?;
/// assert!(run.observables.energy_per_site.estimate.z().unwrap().abs() < 5.0);
/// # Ok::<(), leaps::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Chains {
    /// What to sample.
    pub problem: Problem,
    /// How states move.
    pub kernel: KernelSpec,
    /// How many chains, and how long.
    pub chains: ChainSpec,
    /// Whether to keep the states of chains.
    pub keep: bool,
    /// Inverse temperatures within a ladder at which free energies are wanted as well.
    pub at_beta: Vec<f64>,
    /// What is measured beside the usual.
    pub measure: MeasureSpec,
    /// The seed.
    pub seed: u64,
}

impl Chains {
    /// 64 chains of heat-bath sweeps.
    pub fn new(problem: Problem) -> Self {
        let (kernel, chains) = (KernelSpec::default(), ChainSpec::default());
        let measure = MeasureSpec::default();
        Chains { problem, kernel, chains, keep: false, at_beta: Vec::new(), measure, seed: SEED }
    }

    /// As configured.
    pub fn of(spec: &RunSpec, problem: Problem) -> Self {
        Chains {
            kernel: spec.kernel.clone(),
            chains: spec.chains.clone(),
            // Walkers beside chains of one temperature may have some on their way.
            at_beta: match spec.kernel.kernel {
                Move::Kernel(_) => Vec::new(),
                _ => spec.walkers.at_beta.clone(),
            },
            measure: spec.measure.clone(),
            seed: spec.seed,
            ..Self::new(problem)
        }
    }

    /// The kernel.
    pub fn kernel(mut self, kernel: KernelName) -> Self {
        self.kernel.kernel = Move::Kernel(kernel);
        self
    }

    /// Ladders of so many temperatures that exchange states.
    pub fn tempering(mut self, temperatures: usize) -> Self {
        self.kernel.kernel = Move::ParallelTempering;
        self.chains.temperatures = temperatures;
        self
    }

    /// Number of independent chains.
    pub fn chains(mut self, chains: usize) -> Self {
        self.chains.chains = chains;
        self
    }

    /// Steps of each chain after burn-in.
    pub fn steps(mut self, steps: usize) -> Self {
        self.chains.steps = steps;
        self
    }

    /// Steps that are dropped at the start of each chain.
    pub fn burn_in(mut self, steps: usize) -> Self {
        self.chains.burn_in = steps;
        self
    }

    /// Keep the states.
    pub fn keep(mut self) -> Self {
        self.keep = true;
        self
    }

    settings!(structure_factor, seed);

    /// Run the chains where there is a GPU that can, or on the CPU.
    pub fn run(&self) -> Result<Run<ChainResult>> {
        self.run_in(&Context::default())
    }

    /// Whether a GPU can run them.
    pub fn gpu_has(&self) -> Result<()> {
        let target = &*self.problem.target;
        check_measured(target)?;
        if self.measure.structure_factor {
            let reason = "chains are measured there, without structure factors; use the device cpu";
            return Err(Error::not_applicable("a GPU", reason));
        }
        match self.kernel.kernel {
            Move::Kernel(kernel) => check_gpu("sample.kernel", kernel, target),
            Move::ParallelTempering | Move::Ladder => {
                let kernel = self.chains.tempering_kernel;
                check_gpu("sample.tempering_kernel", kernel, target)?;
                ladder_plan(target, kernel, self.kernel.scan).map(drop)
            }
            Move::Houdayer => Err(Error::invalid(
                "sample.kernel",
                self.kernel.kernel,
                "one that GPUs have: heat-bath, metropolis, parallel-tempering and ladder",
                "choose one of them, or use the device cpu",
            )),
        }
    }

    /// Refuse to start with more memory than is free.
    pub fn check_memory(&self) -> Result<()> {
        let measured = (&self.chains, &self.measure);
        memory::check(&memory::of_chains(&self.problem, &self.kernel, measured, self.keep))
    }

    /// Run the chains and measure them. If they are stopped on the way, the result is that of the steps that all of them had made, and says so.
    pub fn run_in(&self, context: &Context<'_>) -> Result<Run<ChainResult>> {
        context.install(|| self.run_here(context))
    }

    fn run_here(&self, context: &Context<'_>) -> Result<Run<ChainResult>> {
        let (target, spec) = (&*self.problem.target, &self.chains);
        spec.check(self.problem.beta)?;
        let at_beta = self.stops()?;
        let kept =
            spec.chains.saturating_mul(spec.steps / spec.thin).saturating_mul(target.sites());
        if self.keep && kept > MOST_BYTES {
            return Err(Error::invalid(
                "sample.thin",
                spec.thin,
                "such that the states of a file take at most 4 GiB",
                "measure less often, or take fewer steps",
            ));
        }
        self.check_memory()?;
        let (placement, computed) = context.place(self.gpu_has())?;
        let start = Instant::now();
        let finished = self.walk(&placement, context)?;
        let seconds = start.elapsed().as_secs_f64();
        let (result, samples) =
            self.measured(finished, &at_beta, seconds, context.progress.stopped())?;
        Ok(Run { result, samples, computed })
    }

    fn measured<'a>(
        &self,
        finished: Finished<'a>,
        at_beta: &[f64],
        seconds: f64,
        stopped: bool,
    ) -> Result<(ChainResult, Samples)> {
        let (target, lambda, spec) =
            (&*self.problem.target, self.problem.path.ends(), &self.chains);
        let steps = finished.steps as usize;
        let mut samples = Samples::default();
        let mut lowest: Option<(f64, Vec<u8>)> = None;
        let mut take = |chain: Keeper<'a>| {
            if let Some(own) = chain.lowest
                && lowest.as_ref().is_none_or(|(energy, _)| own.0 < *energy)
            {
                lowest = Some(own);
            }
            samples.states.extend(chain.states.unwrap_or_default());
            chain.recorder
        };
        let groups =
            finished.groups.into_iter().map(|group| group.into_iter().map(&mut take).collect());
        let summary = ChainSummary::of_groups(groups.collect())?;
        samples.energies = total_energies(target, &samples.states)?;
        samples.log_weights = vec![0.0; samples.energies.len()];
        let mut estimates = summary.observables();
        if let Some(exact) = exact::known(target, lambda) {
            attach_exact(&mut estimates, &exact, target, lambda);
        }
        let memory = summary.autocorrelations();
        let slower = [&memory.energy_per_site, &memory.abs_magnetization]
            .into_iter()
            .min_by(|a, b| a.effective_samples.total_cmp(&b.effective_samples))
            .unwrap_or(&memory.energy_per_site);
        let ess = slower.effective_samples / summary.states() as f64;
        let remembered = |estimate: Estimate, memory: &Autocorrelation| Remembered {
            estimate,
            autocorrelation_time: memory.time.mean * spec.thin as f64,
            autocorrelation_time_error: memory.time.error * spec.thin as f64,
            r_hat: memory.r_hat,
        };
        let (mut warnings, mut tempering) = (summary.warnings(), None);
        let mut point = None;
        if let Some(ladder) = finished.ladder {
            for table in &ladder.tables {
                if let Some(own) = table.lowest()
                    && lowest.as_ref().is_none_or(|(energy, _)| own.0 < *energy)
                {
                    lowest = Some(own.clone());
                }
            }
            let (found, doubts) = ladder.measured(target, at_beta);
            point = found.rungs.last().cloned();
            warnings.extend(doubts);
            tempering = Some(found);
        }
        let interrupted = steps < spec.steps || stopped;
        let discs_ess = summary.discs_ess();
        let Observables {
            correlation,
            structure_factor,
            structure_factor_map,
            correlation_map,
            mode_masses,
            ..
        } = estimates.clone();
        let result = ChainResult {
            seed: self.seed,
            scheme: "mcmc".to_owned(),
            kernel: self.kernel.kernel.to_string(),
            chains: spec.chains,
            steps,
            asked: interrupted.then_some(spec.steps),
            interrupted,
            burn_in: spec.burn_in,
            thin: spec.thin,
            ess,
            ess_error: ess * slower.time.error / slower.time.mean,
            r_hat: memory.r_hat(),
            observables: ChainObservables {
                energy_per_site: remembered(estimates.energy_per_site, &memory.energy_per_site),
                magnetization: remembered(estimates.magnetization, &memory.magnetization),
                abs_magnetization: remembered(
                    estimates.abs_magnetization,
                    &memory.abs_magnetization,
                ),
                magnetization_squared: estimates.magnetization_squared,
                binder: estimates.binder,
                heat_capacity_per_site: estimates.heat_capacity_per_site,
                susceptibility_per_site: estimates.susceptibility_per_site,
                correlation_length: estimates.correlation_length,
                density: estimates.density,
                quadrupole: estimates.quadrupole,
                polarization: estimates.polarization,
            },
            correlation,
            structure_factor,
            structure_factor_map,
            correlation_map,
            mode_masses,
            acceptance: finished.acceptance,
            discs: Discs {
                ess_per_step: discs_ess / steps as f64,
                ess_per_call: discs_ess / finished.energy_calls,
                ess_per_second: discs_ess * summary.groups() as f64 / seconds,
            },
            log_z: point.as_ref().map(|point| point.log_z),
            log_z_merit: point.as_ref().map(|point| log_z_merit(point.log_z, seconds)),
            free_energy_per_site: point.as_ref().map(|point| point.free_energy_per_site),
            entropy_per_site: point.as_ref().map(|point| point.entropy_per_site),
            lowest: lowest.map(|(energy, x)| Lowest::new(energy, &x, target.q())),
            tempering,
            warnings,
            network_passes_per_walker: 0.0,
            energy_calls_per_walker: finished.energy_calls,
            seconds,
            effective_samples_per_second: slower.effective_samples / seconds,
        };
        Ok((result, samples))
    }

    fn walk(&self, placement: &Placement, context: &Context<'_>) -> Result<Finished<'_>> {
        let (target, lambda, spec) =
            (&*self.problem.target, self.problem.path.ends(), &self.chains);
        let settings = ChainSettings {
            chains: spec.chains,
            burn_in: spec.burn_in as u64,
            steps: spec.steps as u64,
            thin: spec.thin as u64,
            seed: self.seed,
        };
        let measure = measure(&self.problem, self.problem.path.ends(), &self.measure)?;
        let fresh = ChainRecorder::measured(measure, self.seed);
        let make =
            || Keeper { recorder: fresh.clone(), states: self.keep.then(Vec::new), lowest: None };
        let runner = runner(placement);
        let (scan, progress) = (self.kernel.scan, context.progress);
        let moves = |kernel| Moves { target, lambda, kernel, scan, fresh: &make, progress };
        let kernel = match self.kernel.kernel {
            Move::Kernel(kernel) => kernel,
            exchange => {
                let betas = self.ladder();
                let tempering = TemperingSettings {
                    ladder: betas.iter().map(|&beta| vec![beta; lambda.len()]).collect(),
                    houdayer: exchange == Move::Houdayer,
                    exchange: exchange != Move::Ladder,
                    table: Some(LadderTable::width_for(target, self.seed)),
                    chains: settings,
                };
                let moves = moves(spec.tempering_kernel);
                return Ok(tempered(runner.ladders(moves, &tempering)?, betas));
            }
        };
        let outcomes = runner.chains(moves(kernel), &settings)?;
        let n = outcomes.len() as f64;
        Ok(Finished {
            steps: outcomes.first().map_or(0, |chain| chain.steps),
            acceptance: outcomes.iter().map(|chain| chain.acceptance).sum::<f64>() / n,
            energy_calls: outcomes.iter().map(|chain| chain.energy_calls).sum::<f64>() / n,
            groups: outcomes.into_iter().map(|chain| vec![chain.recorder]).collect(),
            ladder: None,
        })
    }

    /// The inverse temperatures within the ladder that are asked for, from hot to cold.
    fn stops(&self) -> Result<Vec<f64>> {
        if let Move::Kernel(_) = self.kernel.kernel {
            WalkerSpec { at_beta: self.at_beta.clone(), ..WalkerSpec::default() }
                .check_no_stops()?;
        }
        let end = self.problem.beta;
        let mut all = self.at_beta.clone();
        all.sort_by(|a, b| a.abs().total_cmp(&b.abs()));
        all.dedup();
        match all.iter().find(|&&at| !(at / end > 0.0 && at / end <= 1.0 + 1e-12)) {
            Some(at) => {
                let condition = format!("between 0 and {end}, where the ladder ends");
                let advice = "leave it out, or go to that temperature";
                Err(Error::invalid("sample.at_beta", at, condition, advice))
            }
            None => Ok(all),
        }
    }

    /// Inverse temperatures from hot to the target's.
    fn ladder(&self) -> Vec<f64> {
        if !self.chains.betas.is_empty() {
            return self.chains.betas.clone();
        }
        let (rungs, beta) = (self.chains.temperatures, self.problem.beta);
        (1..=rungs)
            .map(|k| if k == rungs { beta } else { beta * k as f64 / rungs as f64 })
            .collect()
    }
}

fn tempered<'a>(
    mut outcomes: Vec<mcmc::TemperingOutcome<Keeper<'a>>>,
    betas: Vec<f64>,
) -> Finished<'a> {
    let n = outcomes.len() as f64;
    let mut swap_rates = vec![0.0; betas.len() - 1];
    for outcome in &outcomes {
        for (sum, rate) in swap_rates.iter_mut().zip(&outcome.swap_rates) {
            *sum += rate / n;
        }
    }
    let cold = |outcome: &mcmc::TemperingOutcome<_>| *outcome.acceptance.last().unwrap_or(&1.0);
    let round_trips = outcomes.iter().map(|outcome| outcome.round_trips).sum();
    let tables = outcomes.iter_mut().filter_map(|outcome| outcome.table.take()).collect();
    Finished {
        steps: outcomes.first().map_or(0, |outcome| outcome.steps),
        acceptance: outcomes.iter().map(cold).sum::<f64>() / n,
        energy_calls: outcomes.iter().map(|outcome| outcome.energy_calls).sum::<f64>() / n,
        ladder: Some(Ladder { betas, swap_rates, round_trips, tables }),
        groups: outcomes.into_iter().map(|outcome| outcome.recorders).collect(),
    }
}

impl Ladder {
    /// Free energies from all temperatures together, where there are ladders enough for errors, and reasons to doubt them.
    fn measured(
        self,
        target: &dyn Target,
        at_beta: &[f64],
    ) -> (TemperingResult, Vec<ChainWarning>) {
        let Ladder { betas, swap_rates, round_trips, tables } = self;
        let log_z0 = target.sites() as f64 * (target.q() as f64).ln();
        let from_zero: Vec<f64> = [&[0.0], &betas[..]].concat();
        let mut warnings = Vec::new();
        let mut result = TemperingResult {
            betas,
            swap_rates,
            round_trips,
            overlaps: Vec::new(),
            log_z_by_integration: None,
            rungs: Vec::new(),
            at_beta: Vec::new(),
        };
        // A single ladder has no error.
        if tables.len() < 2 {
            return (result, warnings);
        }
        match Mbar::new(&from_zero, &tables, log_z0) {
            Ok(mbar) => {
                result.overlaps = mbar.overlaps();
                result.rungs = ThermoPoint::along_ladder(target, &result.betas, &mbar);
                result.at_beta = ThermoPoint::along_ladder(target, at_beta, &mbar);
            }
            Err(_) => result.overlaps = vec![0.0; result.betas.len()],
        }
        let exact = result.rungs.last().and_then(|rung| rung.log_z.exact);
        let integrated = integrated_log_z(&from_zero, &tables, log_z0);
        result.log_z_by_integration =
            Some(exact.map_or(integrated, |exact| integrated.with_exact(exact)));
        warnings.extend(ChainWarning::of_ladder(&from_zero, &result.overlaps, tables.len()));
        (result, warnings)
    }
}
