//! What a result is compared with: exact averages and laws where they can be had, else the Markov chains that mix best.

use leaps::device::Progress;
use leaps::exact::{self, Exact, enumerate};
use leaps::mcmc::KernelName;
use leaps::observe::LogWeights;
use leaps::observe::{ChainSummary, Families, WeightedSamples};
use leaps::target::Target;
use leaps::{Error, Result};

use crate::app::Context;
use leaps::job::{Chains, Run};
use leaps::mcmc::Move;
use leaps::problem::Problem;
use leaps::results::ChainResult;
use leaps::spec::RunSpec;

/// What is known of the target apart from the run.
pub struct Reference {
    /// Exact averages.
    pub exact: Option<Exact>,
    /// States of the target, for what has no exact average.
    pub law: Option<Law>,
    /// Where the states come from, or why there are none.
    note: String,
}

impl Reference {
    /// None, for this reason.
    pub fn none(why: &str) -> Self {
        Reference { exact: None, law: None, note: why.to_owned() }
    }

    /// Where the states come from, or why there are none, in a sentence.
    pub fn sentence(&self) -> String {
        format!("{}: {}.", if self.law.is_some() { "Reference" } else { "No reference" }, self.note)
    }
}

/// Measured states of the target that do not come from the run.
pub struct Law {
    /// Where they come from, in a few words for a legend.
    pub name: String,
    pub samples: WeightedSamples,
    pub weights: LogWeights,
    pub families: Families,
}

/// States of which every one is measured.
const FEW_STATES: u64 = 1 << 16;

/// How long a reader of a report waits for an exact average, in units of what is computed beside every estimate.
const EFFORT: f64 = 20.0;

/// Larger systems are not worth the wait of a report.
const MOST_SITES: usize = 1 << 14;

/// Of these the kernel that mixes best makes the reference: clusters, single sites, temperatures that exchange their states.
const CANDIDATES: [Move; 3] = [
    Move::Kernel(KernelName::SwendsenWang),
    Move::Kernel(KernelName::HeatBath),
    Move::ParallelTempering,
];

const CHAINS: usize = 32;
const TEMPERATURES: usize = 8;

/// Updates of a site in all, about, and the steps of a chain they are turned into.
const WORK: u64 = 100_000_000;
const STEPS: [u64; 2] = [300, 3000];

/// Every candidate has this part of the work to show how it mixes.
const PILOT: u64 = 4;

/// States that are kept of a chain.
const KEPT: usize = 1000;

/// Exact averages if they take some seconds at most; and all states if they are few, else chains unless these disagree.
pub fn reference(
    config: &RunSpec,
    problem: &Problem,
    seed: u64,
    context: &Context,
) -> Result<Reference> {
    let (target, lambda) = (&*problem.target, problem.path.ends());
    let exact = exact::known_at(target, lambda, EFFORT, &context.progress("exact"));
    let (law, note) = if enumerate::states(target).is_some_and(|states| states <= FEW_STATES) {
        let law = all_states(target, lambda)?;
        let note = format!("exact, all {} states", law.weights.len());
        (Some(law), note)
    } else if target.sites() > MOST_SITES {
        (None, format!("{} sites are too many for one", target.sites()))
    } else {
        chains(config, problem, seed, context)?
    };
    Ok(Reference { exact, law, note })
}

fn all_states(target: &dyn Target, lambda: &[f64]) -> Result<Law> {
    let law = enumerate::law(target, lambda)?;
    let (sites, q) = (target.sites(), target.q());
    let mut states = Vec::with_capacity(law.len() * sites);
    for mut number in 0..law.len() {
        for _ in 0..sites {
            states.push((number % q) as u8);
            number /= q;
        }
    }
    let weights = LogWeights::new(law.iter().map(|p| p.ln()).collect())?;
    let families = Families::separate(law.len());
    let samples = WeightedSamples::new(target, lambda, &states, &weights, &families)?;
    Ok(Law { name: "exact".to_owned(), samples, weights, families })
}

/// The chains of the candidate that mixes best, and a sentence about them.
///
/// R-hat compares the spread between chains with that within them, so that after equal work it is smallest where chains forget
/// fastest for what a step costs, and large where any of them is stuck.
fn chains(
    config: &RunSpec,
    problem: &Problem,
    seed: u64,
    context: &Context,
) -> Result<(Option<Law>, String)> {
    let mut best: Option<(f64, Move)> = None;
    for kernel in CANDIDATES {
        match run(config, problem, kernel, PILOT, seed, context) {
            Ok(result) if best.is_none_or(|(r_hat, _)| result.r_hat < r_hat) => {
                best = Some((result.r_hat, kernel));
            }
            Ok(_) | Err(Error::NotApplicable { .. }) => {}
            Err(other) => return Err(other),
        }
    }
    let Some((_, kernel)) = best else {
        return Ok((None, "no kernel applies".to_owned()));
    };
    // Other random numbers than those that the kernel was chosen by.
    let found = run(config, problem, kernel, 1, seed + 1, context)?;
    let Run { result, samples, .. } = found;
    let names = CANDIDATES.map(|kernel| kernel.to_string()).join(", ");
    let chosen = format!("{kernel}, which mixes best of {names}");
    if result.r_hat > ChainSummary::R_HAT {
        let (r_hat, limit) = (result.r_hat, ChainSummary::R_HAT);
        let why = format!("chains of {chosen}, disagree: R-hat is {r_hat:.3}, above {limit}");
        return Ok((None, why));
    }
    let weights = LogWeights::new(samples.log_weights.clone())?;
    let families = samples.by_chain(result.chains);
    let (target, lambda) = (&*problem.target, problem.path.ends());
    let measured = WeightedSamples::new(target, lambda, &samples.states, &weights, &families)?;
    let (count, steps, burn_in) = (result.chains, result.steps, result.burn_in);
    let note = format!(
        "{count} chains of {chosen}, {steps} steps after {burn_in}, R-hat {:.3}",
        result.r_hat
    );
    Ok((Some(Law { name: kernel.to_string(), samples: measured, weights, families }), note))
}

/// Chains of a kernel, with a part of the work.
fn run(
    config: &RunSpec,
    problem: &Problem,
    kernel: Move,
    part: u64,
    seed: u64,
    context: &Context,
) -> Result<Run<ChainResult>> {
    let one = |rungs: usize| WORK / (CHAINS * problem.target.sites() * rungs) as u64;
    let rungs = if kernel == Move::ParallelTempering { TEMPERATURES } else { 1 };
    // In pilot runs a ladder pays for its rungs with steps.
    let steps = match part {
        1 => one(rungs).clamp(STEPS[0], STEPS[1]),
        _ => one(1).clamp(STEPS[0], STEPS[1]) / (part * rungs as u64),
    };
    let steps = steps.max(8) as usize;
    let mut job = Chains::of(config, problem.clone()).seed(seed);
    job.keep = part == 1;
    job.kernel.kernel = kernel;
    job.chains.chains = CHAINS;
    job.chains.steps = steps;
    job.chains.burn_in = steps / 2;
    job.chains.thin = (steps / KEPT).max(1);
    job.chains.temperatures = TEMPERATURES;
    job.chains.betas.clear();
    let label = if part == 1 { "reference" } else { "pilot" };
    let progress = context.progress(&format!("{label}, {kernel}"));
    let found = job.run_in(&context.job(&progress))?;
    progress.check()?;
    Ok(found)
}
