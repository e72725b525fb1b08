//! Compute what a result is compared with: exact averages of small systems, a cluster run of larger ones.

use leaps::device::Watch;
use leaps::exact::enumerate;
use leaps::mcmc::{AnyKernel, ChainSettings, KernelName, run_chains};
use leaps::observe::{Families, Recorder, WeightedSamples};
use leaps::sampler::LogWeights;
use leaps::target::{Model, Pairwise, Target};
use leaps::{Error, Result};

use crate::config::Problem;
use crate::progress::Progress;

/// Measured states of the target that do not come from the run.
pub struct Reference {
    /// Where they come from, in a few words for a legend.
    pub name: &'static str,
    /// The same in a sentence.
    pub note: String,
    pub samples: WeightedSamples,
    pub weights: LogWeights,
    pub families: Families,
}

/// States of which every one is measured.
const FEW_STATES: u64 = 1 << 16;

/// The cluster run.
const CHAINS: usize = 32;
const BURN_IN: u64 = 300;

/// Updates of a site in all, about, and the steps of a chain they are turned into.
const WORK: u64 = 200_000_000;
const STEPS: [u64; 2] = [300, 6000];

/// Larger systems are not worth the wait of a report.
const MOST_SITES: usize = 1 << 14;

/// The exact law if there are few states, else Swendsen-Wang chains where they apply; `None` where nothing does.
pub fn reference(problem: &Problem, seed: u64, watch: &Progress) -> Result<Option<Reference>> {
    let (target, lambda) = (&problem.target, problem.path.ends());
    if enumerate::states(target).is_some_and(|states| states <= FEW_STATES) {
        return exact(target, lambda).map(Some);
    }
    if target.sites() > MOST_SITES {
        return Ok(None);
    }
    match AnyKernel::new(KernelName::SwendsenWang, target, lambda) {
        Ok(kernel) => clusters(target, lambda, &kernel, seed, watch).map(Some),
        Err(Error::NotApplicable { .. }) => Ok(None),
        Err(other) => Err(other),
    }
}

fn exact(target: &Pairwise, lambda: &[f64]) -> Result<Reference> {
    let law = enumerate::law(target, lambda)?;
    let (sites, q) = (target.sites(), target.tokens());
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
    let note = format!("exact: all {} states", law.len());
    Ok(Reference { name: "exact", note, samples, weights, families })
}

/// Keeps the states of a chain.
struct Keeper(Vec<u8>);

impl Recorder for Keeper {
    fn record(&mut self, x: &[u8]) {
        self.0.extend_from_slice(x);
    }
}

fn clusters(
    target: &Pairwise,
    lambda: &[f64],
    kernel: &AnyKernel,
    seed: u64,
    watch: &Progress,
) -> Result<Reference> {
    // Every sixth state: clusters forget within a few steps, and chains are what errors come from.
    let every = 6;
    let steps = (WORK / (CHAINS * target.sites()) as u64).clamp(STEPS[0], STEPS[1]);
    let settings = ChainSettings { chains: CHAINS, burn_in: BURN_IN, steps, every, seed };
    let model = Model::new(target, lambda);
    let outcomes = run_chains(&model, kernel, &settings, |_| Keeper(Vec::new()), watch)?;
    watch.check()?;
    let mut states = Vec::new();
    let mut chain = Vec::new();
    for (number, outcome) in outcomes.into_iter().enumerate() {
        let kept = outcome.recorder.0.len() / target.sites();
        chain.extend(std::iter::repeat_n(number as u32, kept));
        states.extend(outcome.recorder.0);
    }
    let weights = LogWeights::new(vec![0.0; chain.len()])?;
    let families = Families::new(&chain);
    let samples = WeightedSamples::new(target, lambda, &states, &weights, &families)?;
    let note = format!("reference: {CHAINS} Swendsen-Wang chains of {steps} steps after {BURN_IN}");
    Ok(Reference { name: "Swendsen-Wang", note, samples, weights, families })
}
