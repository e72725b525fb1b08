//! Walkers that go back from samples of the target, for estimates of log Z from both sides.

use std::time::Instant;

use super::{Chains, Context, bins};
use crate::device::Device;
use crate::exact;
use crate::mcmc::{KernelName, Move};
use crate::observe::{ChainSummary, Estimate, Families, Histogram, two_sided};
use crate::problem::Problem;
use crate::results::{HistogramResult, TwoSidedResult, log_z_merit};
use crate::sampler::{Grid, Lineage, Population, Resampling, Span, Walkers};
use crate::target::Target;
use crate::{Error, Result};

/// Random numbers of the way back are others than those of the way there.
const SEED: u64 = 0x2C6F_E96E_E788_5AC9;

/// Chains that samples are taken from where there are no exact ones, and the steps between two of them.
const CHAINS: usize = 256;
const APART: usize = 10;
const BURN_IN: usize = 500;

/// Exact samples are drawn where they take some seconds at most, in units of what is computed beside every estimate.
const EFFORT: f64 = 20.0;

/// States of the target.
struct Starts {
    states: Vec<u8>,
    /// Those of a chain depend on each other.
    families: Families,
    /// Where they come from, in words.
    source: String,
    warning: Option<String>,
}

/// The way there, of which the way back is the reversal.
pub(super) struct Forth<'a> {
    /// $A$ of the walkers that went it.
    pub(super) log_weights: &'a [f64],
    /// Seconds that it took.
    pub(super) seconds: f64,
    /// The grid that it went along.
    pub(super) grid: &'a Grid,
    /// The seed.
    pub(super) seed: u64,
}

/// Send walkers back along the reversed grid; `walkers` makes them, with all steps reversed.
pub(super) fn sent_back<'w>(
    problem: &Problem,
    forth: Forth<'_>,
    walkers: impl FnOnce(Population) -> Result<Box<dyn Walkers + 'w>>,
    context: &Context<'_>,
) -> Result<TwoSidedResult> {
    let begin = Instant::now();
    let (count, seed) = (forth.log_weights.len(), forth.seed ^ SEED);
    let starts = starts(problem, count, seed, context)?;
    let mut walkers = walkers(Population::new(count, seed))?;
    walkers.start_at(&starts.states)?;
    let grid = forth.grid.reversed();
    context.progress.total(grid.intervals() as u64 * count as u64);
    let mut lineage = Lineage::new(count, 0.0, seed);
    walkers.advance(Span::whole(&grid), &Resampling::NEVER, &mut lineage, context.progress)?;
    // Their own log-weights are those of the way there with the opposite sign.
    let reversed: Vec<f64> = lineage.log_weights.iter().map(|b| -b).collect();
    let found = two_sided(forth.log_weights, &reversed, &starts.families);
    let seconds = forth.seconds + begin.elapsed().as_secs_f64();
    let (target, lambda) = (&*problem.target, problem.path.ends());
    let log_z0 = target.sites() as f64 * (target.q() as f64).ln();
    let difference = found.difference;
    let mut log_z = Estimate::new(log_z0 + difference.mean, difference.error);
    if let Some(exact) = exact::known(target, lambda) {
        log_z = log_z.with_exact(exact.log_z);
    }
    let about = |all: &[f64]| -> Vec<f64> {
        all.iter().map(|a| a - difference.mean).filter(|a| a.is_finite()).collect()
    };
    let (there, back) = (about(forth.log_weights), about(&reversed));
    let bins = bins(&[&there[..], &back].concat())?;
    let spread = |values: &[f64], families: &Families| {
        HistogramResult::new(&Histogram::new(bins, values, &vec![1.0; values.len()], families))
    };
    let own = |values: &[f64]| Families::separate(values.len());
    let families = if back.len() == reversed.len() { starts.families } else { own(&back) };
    Ok(TwoSidedResult {
        log_z,
        log_z_merit: log_z_merit(log_z, seconds),
        overlap: found.overlap,
        starts: starts.source,
        forward: spread(&there, &own(&there)),
        reversed: spread(&back, &families),
        warnings: starts.warning.into_iter().chain(TwoSidedResult::doubt(found.overlap)).collect(),
        seconds,
    })
}

/// Samples of the target: exact ones where they are to be had, else those of chains.
fn starts(problem: &Problem, count: usize, seed: u64, context: &Context<'_>) -> Result<Starts> {
    let (target, lambda) = (&*problem.target, problem.path.ends());
    if exact::quick_to_draw(target, EFFORT) {
        match exact::draw(target, lambda, count, seed, context.progress) {
            Ok((states, method)) => {
                let source = format!("exact samples by {method}");
                let families = Families::separate(count);
                return Ok(Starts { states, families, source, warning: None });
            }
            Err(Error::NotApplicable { .. }) => {}
            Err(other) => return Err(other),
        }
    }
    let kernel = mixing(target, lambda);
    let chains = CHAINS.min(count);
    let kept = count.div_ceil(chains).max(4);
    let mut job = Chains::new(problem.clone()).chains(chains).steps(kept * APART).keep();
    job.kernel.kernel = kernel;
    job.chains.burn_in = BURN_IN;
    job.chains.thin = APART;
    // Whatever was asked for the walkers, chains go where their kernel is.
    let anywhere = Context { device: Device::Auto, ..context.clone() };
    let run = job.seed(seed).run_in(&anywhere)?;
    if run.interrupted {
        return Err(Error::Interrupted);
    }
    let sites = target.sites();
    // One state of every chain after the other, so that what is too much is cut off evenly.
    let order = (0..count).map(|i| (i % chains, i / chains));
    let states = order.clone().flat_map(|(chain, state)| {
        run.samples.states[(chain * kept + state) * sites..][..sites].iter().copied()
    });
    let families = Families::new(&order.clone().map(|(chain, _)| chain as u32).collect::<Vec<_>>());
    let r_hat = run.r_hat;
    let warning = (r_hat.is_nan() || r_hat > ChainSummary::R_HAT).then(|| {
        format!("the chains that walkers go back from disagree: R-hat is {r_hat:.3}, above 1.05")
    });
    let source = format!("{chains} chains of {kernel}, R-hat {r_hat:.3}");
    Ok(Starts { states: states.collect(), families, source, warning })
}

/// What chains move by: all clusters at once where no bond is frustrated, else states that are exchanged between temperatures, since clusters of
/// frustrated bonds hold all sites before valleys are joined.
fn mixing(target: &dyn Target, lambda: &[f64]) -> Move {
    match target.pairwise() {
        Some(pairwise) if !pairwise.frustrated(lambda) => Move::Kernel(KernelName::SwendsenWang),
        _ => Move::ParallelTempering,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::target::{Boundary, Disorder, Interaction, Lattice, Pairwise};

    #[test]
    fn frustrated_bonds_are_left_to_tempering() {
        let square = |boundary| Lattice::new(&[4, 4], boundary).unwrap();
        let ising =
            |coupling, field| Pairwise::ising(square(Boundary::Periodic), coupling, field).unwrap();
        let edges = |q, edges: &[_]| {
            let of = if q == 2 { Interaction::Ising } else { Interaction::Potts };
            Pairwise::from_edges(of, 5, q, edges).unwrap()
        };
        let potts = |coupling| Pairwise::potts(square(Boundary::Free), 3, coupling, 0.3).unwrap();
        let glass =
            Pairwise::edwards_anderson(square(Boundary::Free), Disorder::Gaussian, 3).unwrap();
        // Signs of loops: even, odd, odd but for a bond of no strength, odd in another part.
        let (even, odd) = ([(0, 1, 1.0), (1, 2, -1.0), (2, 0, -0.5)], [(0, 1, 1.0), (1, 2, -1.0)]);
        let odd = |last| [&odd[..], &[(2, 0, last)]].concat();
        let apart = [(3, 4, 1.0), (4, 3, -1.0)];
        let clusters = Move::Kernel(KernelName::SwendsenWang);
        for (name, target, expected) in [
            ("ferromagnet", ising(1.0, 0.0), clusters),
            ("ferromagnet in a field", ising(1.0, -0.3), clusters),
            ("antiferromagnet", ising(-1.0, 0.2), clusters),
            ("even loop", edges(2, &even), clusters),
            ("odd loop", edges(2, &odd(0.1)), Move::ParallelTempering),
            ("open loop", edges(2, &odd(0.0)), clusters),
            ("two bonds", edges(2, &apart), Move::ParallelTempering),
            ("glass", glass, Move::ParallelTempering),
            ("Potts", potts(1.0), clusters),
            ("Potts, repelling", potts(-1.0), Move::ParallelTempering),
        ] {
            assert_eq!(mixing(&target, &vec![0.7; target.terms()]), expected, "{name}");
        }
        // At negative weights a ferromagnet repels.
        assert_eq!(mixing(&potts(1.0), &[-0.7, 0.7]), Move::ParallelTempering);
    }
}
