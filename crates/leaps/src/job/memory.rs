//! The memory that jobs need, and the refusal of those that cannot fit.
//!
//! Estimates are from above: a limit of the address space (`ulimit -v`) ends a process that goes beyond it at once.

use crate::device::{Bytes, free_memory};
use crate::mcmc::lanes::Plan;
use crate::mcmc::{AnyKernel, ChainSpec, KernelName, KernelSpec, Move};
use crate::net::Net;
use crate::observe::{Measure, MeasureSpec};
use crate::problem::Problem;
use crate::sampler::WalkerSpec;
use crate::target::{Pairwise, Target};
use crate::train::{Reference, TrainSpec};
use crate::{Error, Result};

/// A key to blame, its value, and the bytes that are its fault.
pub(super) type Part = (&'static str, usize, f64);

/// Bytes of a measured walker beside its states and observables: weights, energies, families.
const PER_WALKER: f64 = 400.0;
/// Bytes of an interval: its time and the weights of two terms.
const PER_INTERVAL: f64 = 48.0;
/// Bytes of a chain beside its states and observables.
const PER_CHAIN: f64 = 2500.0;
/// Bytes of a kept state of a chain: its series of three numbers, in space that doubles as it grows.
const PER_STATE: f64 = 24.0;
/// Bytes of a state of the chain whose autocorrelations are computed: the series with zeros behind it, at most four times as long, in complex
/// numbers; as much again for the transform to work in and for its constants; and the products.
const PER_TRANSFORMED: f64 = 3.0 * 4.0 * 16.0 + 32.0;
/// Blocks over which observables of a chain are summed.
const BLOCKS: f64 = 512.0;

/// Accumulators of the gradient, see [`crate::train::Loss`].
const SLOTS: usize = 16;

/// Bytes that training takes on the CPU: parameters with their average, Adam's moments and the gradient, and space for 16 groups of configurations; reference
/// states.
pub fn training_memory(net: &Net, spec: &TrainSpec, target: &dyn Target) -> f64 {
    let network = 4 * 7 * net.parameters() + SLOTS * (net.workspace() + 4 * net.packed());
    network as f64 + reference_memory(spec, target)
}

/// Bytes of reference states, with their copies in a checkpoint that is being written.
fn reference_memory(spec: &TrainSpec, target: &dyn Target) -> f64 {
    let states = match spec.reference {
        Reference::Pool => spec.pool_walkers(),
        Reference::Policy => spec.rollout_walkers * spec.rollout_steps,
        Reference::Buffer => spec.buffer * spec.rollout_walkers * spec.rollout_steps,
    };
    states as f64 * (3 * target.sites() + 8) as f64
}

/// Refuse to train with more reference states than the free memory holds.
pub fn check_reference(spec: &TrainSpec, target: &dyn Target) -> Result<()> {
    let (key, value) = match spec.reference {
        Reference::Pool => match spec.instances() {
            Some(instances) => ("train.instances", instances),
            None => ("train.pool", spec.pool),
        },
        Reference::Policy => ("train.rollout_walkers", spec.rollout_walkers),
        Reference::Buffer => ("train.buffer", spec.buffer),
    };
    check(&[(key, value, reference_memory(spec, target))])
}

/// Refuse more walkers of a network than the free memory holds.
pub fn check_memory(problem: &Problem, walkers: &WalkerSpec, measure: &MeasureSpec) -> Result<()> {
    check(&of_walkers(problem, (walkers, measure), None))
}

/// Bytes between what is taken that are too short for what comes: large blocks of a narrow heap leave such gaps.
const LEFT_OVER: f64 = 4e6;

/// Refuse more walkers of this network than the free memory holds beside what every thread computes with.
pub(super) fn check_network(
    problem: &Problem,
    measured: (&WalkerSpec, &MeasureSpec),
    net: &Net,
) -> Result<()> {
    let mut parts = of_walkers(problem, measured, None);
    let threads = rayon::current_num_threads();
    parts[0].2 += (threads * net.workspace() + 4 * net.packed()) as f64 + LEFT_OVER;
    check(&parts)
}

/// Numbers that are measured on a state.
fn columns(problem: &Problem, measure: &MeasureSpec) -> f64 {
    let target = &*problem.target;
    // All wave vectors and all offsets, one of each and its opposite, and what they are computed in.
    let everywhere = if measure.structure_factor { target.sites() + 2 } else { 0 };
    (Measure::new(target, problem.path.ends()).layout().width() + everywhere) as f64
}

/// Bytes that walkers take, with the keys to blame and their values; a kernel moves them unless they follow a network.
pub(super) fn of_walkers(
    problem: &Problem,
    (walkers, measure): (&WalkerSpec, &MeasureSpec),
    kernel: Option<&KernelSpec>,
) -> Vec<Part> {
    let target = &*problem.target;
    let columns = columns(problem, measure);
    let mut each = 3.0 * target.sites() as f64 + 16.0 * columns + PER_WALKER;
    if let Some(spec) = kernel
        && let Move::Kernel(kernel) = spec.kernel
        && !has_tables(spec, kernel, target)
    {
        each += kernel_memory(kernel, target);
    }
    vec![
        ("sample.walkers", walkers.walkers, each * walkers.walkers as f64),
        ("sample.intervals", walkers.intervals, PER_INTERVAL * walkers.intervals as f64),
    ]
}

/// The same for chains, each of which has a kernel and a recorder; a ladder has a kernel for every state and a recorder for every copy.
pub(super) fn of_chains(
    problem: &Problem,
    kernel: &KernelSpec,
    (spec, measure): (&ChainSpec, &MeasureSpec),
    keep: bool,
) -> Vec<Part> {
    let target = &*problem.target;
    let columns = columns(problem, measure);
    let (sites, chains) = (target.sites() as f64, spec.chains as f64);
    let rungs = if spec.betas.is_empty() { spec.temperatures } else { spec.betas.len() };
    let ladder = rungs as f64 * kernel_memory(spec.tempering_kernel, target);
    let (copies, moves) = match kernel.kernel {
        Move::Kernel(own) if has_tables(kernel, own, target) => (1.0, 3.0 * sites),
        Move::Kernel(own) => (1.0, kernel_memory(own, target)),
        Move::ParallelTempering | Move::Ladder => (1.0, ladder),
        Move::Houdayer => (2.0, 2.0 * ladder + cluster_memory(target)),
    };
    let kept = (spec.steps / spec.thin.max(1)) as f64;
    let at_once = (rayon::current_num_threads() as f64).min(chains);
    let state = if keep { PER_STATE + 3.0 * sites + 16.0 } else { PER_STATE };
    let chain = moves + copies * (PER_CHAIN + 16.0 * columns * kept.min(BLOCKS));
    vec![
        ("sample.chains", spec.chains, chain * chains),
        ("sample.steps", spec.steps, kept * (copies * chains * state + at_once * PER_TRANSFORMED)),
    ]
}

/// Whether tables move all states, so that none has a kernel of its own.
fn has_tables(spec: &KernelSpec, kernel: KernelName, target: &dyn Target) -> bool {
    kernel.rule().is_some_and(|rule| Plan::of(target, rule, spec.scan).is_ok())
}

/// Bytes of a state with the kernel that moves it.
fn kernel_memory(kernel: KernelName, target: &dyn Target) -> f64 {
    (kernel.bytes(target) + 3 * target.sites() + size_of::<AnyKernel>()) as f64 + PER_WALKER
}

/// Bytes of the cluster moves of a ladder: the graph, and four numbers a site.
fn cluster_memory(target: &dyn Target) -> f64 {
    let ends = |model: &Pairwise| (0..model.sites()).map(|site| model.neighbours(site).len()).sum();
    let ends: usize = target.pairwise().map_or(0, ends);
    4.0 * (ends + 4 * target.sites()) as f64 + PER_WALKER
}

/// Refuse what needs more memory than is free, and blame the largest part; where the free memory is unknown, say nothing.
pub(super) fn check(parts: &[Part]) -> Result<()> {
    let Some(free) = free_memory() else { return Ok(()) };
    let need: f64 = parts.iter().map(|(_, _, bytes)| bytes).sum();
    let largest = parts.iter().max_by(|a, b| a.2.total_cmp(&b.2));
    let Some((key, value, _)) = largest.filter(|_| need > free as f64) else { return Ok(()) };
    let (need, free) = (Bytes(need), Bytes(free as f64));
    let condition = format!("such that memory suffices: about {need} are needed, {free} are free");
    Err(Error::invalid(*key, value, condition, "ask for fewer"))
}
