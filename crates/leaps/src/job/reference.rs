//! References for comparisons: exact averages and laws where they can be had, else the Markov chains that mix best.

use super::{Chains, Context, Monitor, Run};
use crate::device::{Device, Progress};
use crate::exact::{self, Exact, enumerate};
use crate::mcmc::{KernelName, Move};
use crate::observe::{ChainSummary, Families, LogWeights, WeightedSamples};
use crate::problem::Problem;
use crate::results::ChainResult;
use crate::spec::RunSpec;
use crate::target::Target;
use crate::{Error, Result};

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
    /// What was measured on them.
    pub samples: WeightedSamples,
    /// Their weights.
    pub weights: LogWeights,
    /// Which of them are not independent of each other.
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

/// Exact samples that make a reference.
const SAMPLES: usize = 20_000;

const CHAINS: usize = 32;
const TEMPERATURES: usize = 8;

/// Updates of a site in all, about, and the steps of a chain they are turned into.
const WORK: u64 = 100_000_000;
const STEPS: [u64; 2] = [300, 3000];

/// Every candidate has this part of the work to show how it mixes.
const PILOT: u64 = 4;

/// States that are kept of a chain.
const KEPT: usize = 1000;

/// The random numbers of references are others than those of any run with a small seed.
const SEED: u64 = 0x0005_EED0_F4EF;

impl Reference {
    /// Exact averages if they take some seconds at most; and all states if they are few, else exact samples if these are quickly drawn, else chains unless
    /// they disagree.
    pub fn find(
        config: &RunSpec,
        problem: &Problem,
        context: &Context<'_>,
        monitor: &dyn Monitor,
    ) -> Result<Self> {
        let (target, lambda) = (&*problem.target, problem.path.ends());
        let exact = exact::known_at(target, lambda, EFFORT, &*monitor.progress("exact"));
        let (law, note) = if enumerate::states(target).is_some_and(|states| states <= FEW_STATES) {
            let law = all_states(target, lambda)?;
            let note = format!("exact, all {} states", law.weights.len());
            (Some(law), note)
        } else if exact::quick_to_draw(target, EFFORT) {
            let law = exact_samples(target, lambda, &*monitor.progress("exact samples"))?;
            let note = format!("{} independent exact samples", law.weights.len());
            (Some(law), note)
        } else if target.sites() > MOST_SITES {
            (None, format!("{} sites are too many for one", target.sites()))
        } else {
            Search { config, problem, context, monitor }.chains()?
        };
        Ok(Reference { exact, law, note })
    }
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

/// Independent samples of the target, without weights or memory.
fn exact_samples(target: &dyn Target, lambda: &[f64], progress: &dyn Progress) -> Result<Law> {
    let (states, method) = exact::draw(target, lambda, SAMPLES, SEED, progress)?;
    let (weights, families) = (LogWeights::new(vec![0.0; SAMPLES])?, Families::separate(SAMPLES));
    let samples = WeightedSamples::new(target, lambda, &states, &weights, &families)?;
    Ok(Law { name: format!("exact samples ({method})"), samples, weights, families })
}

/// What chains are looked for with.
struct Search<'a> {
    config: &'a RunSpec,
    problem: &'a Problem,
    context: &'a Context<'a>,
    monitor: &'a dyn Monitor,
}

impl Search<'_> {
    /// The chains of the candidate that mixes best, and a sentence about them.
    ///
    /// R-hat compares the spread between chains with that within them, so that after equal work it is smallest where chains forget
    /// fastest for what a step costs, and large where any of them is stuck.
    fn chains(&self) -> Result<(Option<Law>, String)> {
        let problem = self.problem;
        let mut best: Option<(f64, Move)> = None;
        for kernel in CANDIDATES {
            match self.run(kernel, PILOT, SEED) {
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
        let found = self.run(kernel, 1, SEED + 1)?;
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
    fn run(&self, kernel: Move, part: u64, seed: u64) -> Result<Run<ChainResult>> {
        let problem = self.problem;
        let one = |rungs: usize| WORK / (CHAINS * problem.target.sites() * rungs) as u64;
        let rungs = if kernel == Move::ParallelTempering { TEMPERATURES } else { 1 };
        // In pilot runs a ladder pays for its rungs with steps.
        let steps = match part {
            1 => one(rungs).clamp(STEPS[0], STEPS[1]),
            _ => one(1).clamp(STEPS[0], STEPS[1]) / (part * rungs as u64),
        };
        let steps = steps.max(8) as usize;
        let mut job = Chains::of(self.config, problem.clone()).seed(seed);
        job.keep = part == 1;
        job.kernel.kernel = kernel;
        job.chains.chains = CHAINS;
        job.chains.steps = steps;
        job.chains.burn_in = steps / 2;
        job.chains.thin = (steps / KEPT).max(1);
        job.chains.temperatures = TEMPERATURES;
        job.chains.betas.clear();
        let label = if part == 1 { "reference" } else { "pilot" };
        let progress = self.monitor.progress(&format!("{label}, {kernel}"));
        // So few chains are no work for a GPU.
        let context = Context { device: Device::Cpu, ..self.context.watched_by(&*progress) };
        let found = job.run_in(&context)?;
        progress.check()?;
        Ok(found)
    }
}
