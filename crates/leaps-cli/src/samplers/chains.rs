//! Run independent Markov chains, or ladders of temperatures that exchange states.

use leaps::device::Progress;
use leaps::exact;
use leaps::mcmc::lanes::{Plan, Rule, run_lane_chains};
use leaps::mcmc::{self, AnyKernel, ChainSettings, KernelName, TemperingSettings, run_tempering};
use leaps::observe::{ChainRecorder, ChainSummary, Estimate, Recorder};
use leaps::target::{Density, Target};
use leaps::{Error, Result};
use serde_json::{Map, Value};

use super::Samples;
use crate::config::{Config, Move, Problem, Work};
use crate::progress::TerminalProgress;
use crate::results::{ChainResult, Discs, TemperingResult, attach_exact};

/// Bytes of kept states beyond which a file of samples is refused.
const MOST_BYTES: usize = 4 << 30;

/// Measures a chain and, if asked, keeps its states.
struct Keeper<'a> {
    recorder: ChainRecorder<'a>,
    states: Option<Vec<u8>>,
}

impl Recorder for Keeper<'_> {
    fn record(&mut self, x: &[u8]) {
        self.recorder.record(x);
        if let Some(states) = &mut self.states {
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
    tempering: Option<TemperingResult>,
}

/// Run the chains and measure them; `keep` their states for a file. If they are stopped on the way, the result is that of the steps that all of
/// them had made, and says so.
pub fn run_chains<'a>(
    config: &Config,
    problem: &'a Problem,
    keep: bool,
    progress: &TerminalProgress,
) -> Result<(ChainResult, Samples)> {
    config.walkers.check_no_stops()?;
    let (target, spec) = (&problem.target, &config.chains);
    let kept = spec.chains.saturating_mul(spec.steps / spec.thin).saturating_mul(target.sites());
    if keep && kept > MOST_BYTES {
        return Err(Error::invalid(
            "sample.thin",
            spec.thin,
            "such that the states of a file take at most 4 GiB",
            "measure less often, or take fewer steps",
        ));
    }
    config.check_memory(problem, Work::Chains { keep })?;
    let start = progress.seconds();
    let finished = run(config, problem, keep, progress)?;
    let (seconds, steps) = (progress.seconds() - start, finished.steps as usize);

    let mut samples = Samples::default();
    let mut take = |chain: Keeper<'a>| {
        samples.states.extend(chain.states.unwrap_or_default());
        chain.recorder
    };
    let groups =
        finished.groups.into_iter().map(|group| group.into_iter().map(&mut take).collect());
    let summary = ChainSummary::of_groups(groups.collect())?;
    for x in samples.states.chunks_exact(target.sites()) {
        samples.energies.push((0..target.terms()).map(|term| target.energy(term, x)).sum());
        samples.log_weights.push(0.0);
    }
    let mut estimates = summary.observables();
    if let Some(exact) = exact::known(target, problem.path.ends()) {
        attach_exact(&mut estimates, &exact, target, problem.path.ends());
    }
    let memory = summary.autocorrelations();
    let slower = [&memory.energy_per_site, &memory.abs_magnetization]
        .into_iter()
        .min_by(|a, b| a.effective_samples.total_cmp(&b.effective_samples))
        .unwrap_or(&memory.energy_per_site);
    let ess = slower.effective_samples / summary.states() as f64;
    let every = spec.thin as f64;
    let in_steps = |time: Estimate| Estimate::new(time.mean * every, time.error * every);
    let memories = [
        ("energy_per_site", &memory.energy_per_site),
        ("magnetization", &memory.magnetization),
        ("abs_magnetization", &memory.abs_magnetization),
    ];
    let times = memories.map(|(name, memory)| (name, in_steps(memory.time))).to_vec();
    let r_hats = memories.map(|(name, memory)| (name, memory.r_hat));
    let discs_ess = summary.discs_ess();
    let discs = Discs {
        ess_per_step: discs_ess / steps as f64,
        ess_per_call: discs_ess / finished.energy_calls,
        ess_per_second: discs_ess * summary.groups() as f64 / seconds,
    };
    let result = ChainResult {
        seed: config.seed,
        scheme: "mcmc",
        kernel: config.kernel.kernel.to_string(),
        chains: spec.chains,
        steps,
        asked: spec.steps,
        interrupted: steps < spec.steps || progress.stopped(),
        burn_in: spec.burn_in,
        thin: spec.thin,
        ess,
        ess_error: ess * slower.time.error / slower.time.mean,
        r_hat: memory.r_hat(),
        observables: with_memory(&estimates, &times, &r_hats),
        correlation: estimates.correlation.clone(),
        mode_masses: estimates.mode_masses.clone(),
        acceptance: finished.acceptance,
        discs,
        tempering: finished.tempering,
        warnings: summary.warnings(),
        network_passes_per_walker: 0.0,
        energy_calls_per_walker: finished.energy_calls,
        seconds,
        effective_samples_per_second: slower.effective_samples / seconds,
        estimates,
        times,
    };
    Ok((result, samples))
}

/// The observables as JSON, with autocorrelation times and R-hat where there are some.
fn with_memory(
    estimates: &leaps::observe::Observables,
    times: &[(&'static str, Estimate)],
    r_hats: &[(&'static str, f64)],
) -> Map<String, Value> {
    let Ok(Value::Object(mut all)) = serde_json::to_value(estimates) else { return Map::new() };
    for ((name, time), (_, r_hat)) in times.iter().zip(r_hats) {
        if let Some(Value::Object(entry)) = all.get_mut(*name) {
            entry.insert("autocorrelation_time".to_owned(), time.mean.into());
            entry.insert("r_hat".to_owned(), (*r_hat).into());
        }
    }
    all
}

fn run<'a>(
    config: &Config,
    problem: &'a Problem,
    keep: bool,
    progress: &TerminalProgress,
) -> Result<Finished<'a>> {
    let (target, lambda, spec) = (&problem.target, problem.path.ends(), &config.chains);
    let settings = ChainSettings {
        chains: spec.chains,
        burn_in: spec.burn_in as u64,
        steps: spec.steps as u64,
        every: spec.thin as u64,
        seed: config.seed,
    };
    let make = || Keeper {
        recorder: ChainRecorder::new(target, lambda, config.seed),
        states: keep.then(Vec::new),
    };
    let kernel = match config.kernel.kernel {
        Move::Kernel(kernel) => kernel,
        exchange => {
            let betas = ladder(config, problem.beta);
            let tempering = TemperingSettings {
                ladder: betas.iter().map(|&beta| vec![beta; lambda.len()]).collect(),
                houdayer: exchange == Move::Houdayer,
            };
            let local = AnyKernel::new(spec.tempering_kernel, target, lambda)?;
            let outcomes =
                run_tempering(target, &local, &tempering, &settings, |_, _| make(), progress)?;
            return Ok(tempered(outcomes, betas));
        }
    };
    let model = Density::new(target, lambda);
    // Tables move 64 chains at once; targets they do not fit are moved one by one.
    let scan = config.kernel.scan.into();
    let plan = rule(kernel).and_then(|rule| Plan::new(target, rule, scan).ok());
    let outcomes = match plan {
        Some(plan) => run_lane_chains(&model, &plan, &settings, |_| make(), progress)?,
        None => {
            let kernel = AnyKernel::new(kernel, target, lambda)?;
            mcmc::run_chains(&model, &kernel, &settings, |_| make(), progress)?
        }
    };
    let n = outcomes.len() as f64;
    Ok(Finished {
        steps: outcomes.first().map_or(0, |chain| chain.steps),
        acceptance: outcomes.iter().map(|chain| chain.acceptance).sum::<f64>() / n,
        energy_calls: outcomes.iter().map(|chain| chain.energy_calls).sum::<f64>() / n,
        groups: outcomes.into_iter().map(|chain| vec![chain.recorder]).collect(),
        tempering: None,
    })
}

/// How tables move states as a kernel does, if there are tables for it.
pub fn rule(kernel: KernelName) -> Option<Rule> {
    match kernel {
        KernelName::HeatBath => Some(Rule::HeatBath),
        KernelName::Metropolis => Some(Rule::Metropolis),
        _ => None,
    }
}

/// Inverse temperatures from hot to the target's.
fn ladder(config: &Config, beta: f64) -> Vec<f64> {
    if !config.chains.betas.is_empty() {
        return config.chains.betas.clone();
    }
    let rungs = config.chains.temperatures;
    (1..=rungs).map(|k| if k == rungs { beta } else { beta * k as f64 / rungs as f64 }).collect()
}

fn tempered<'a>(
    outcomes: Vec<mcmc::TemperingOutcome<Keeper<'a>>>,
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
    Finished {
        steps: outcomes.first().map_or(0, |outcome| outcome.steps),
        acceptance: outcomes.iter().map(cold).sum::<f64>() / n,
        energy_calls: outcomes.iter().map(|outcome| outcome.energy_calls).sum::<f64>() / n,
        tempering: Some(TemperingResult { betas, swap_rates, round_trips }),
        groups: outcomes.into_iter().map(|outcome| outcome.recorders).collect(),
    }
}
