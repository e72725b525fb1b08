//! Sum over all states of a small target.
//!
//! States are walked through in a Gray code, cut into a fixed number of chunks that are combined in a fixed
//! order: the result has the same bits for any number of threads.

use rayon::prelude::*;

use super::sums::Sums;
use super::walk::{Follow, Gray, Plain, Tally};
use super::{Exact, Method, check_weights};
use crate::device::Progress;
use crate::observe::Order;
use crate::target::{Target, show_state};
use crate::{Error, Result};

/// The most states [`moments`] walks through.
pub const MAX_STATES: u64 = 1 << 25;

/// The most states of which [`law`] makes a table.
pub const MAX_TABLE: u64 = 1 << 20;

/// Chunks of the walk, whatever the number of threads.
const CHUNKS: u64 = 256;

/// States between two evaluations of the energy from scratch, and between two looks at the progress.
const BLOCK: u64 = 4096;

/// Exact averages from a sum over all states, under $e^{-U}/Z$ with $U = \sum_k \lambda_k E_k$.
#[derive(Clone, Debug, PartialEq)]
pub struct Moments {
    /// $\log Z$.
    pub log_z: f64,
    /// $\langle E_k \rangle$ for every term.
    pub terms: Vec<f64>,
    /// $\langle \sum_k E_k \rangle$.
    pub energy: f64,
    /// $\langle U \rangle$.
    pub potential: f64,
    /// $\mathrm{Var}(U)$.
    pub potential_variance: f64,
    /// Means of the powers of the order parameter.
    pub order: Order,
}

/// Number of states `q^d`, if it fits 64 bits.
pub fn states(target: &dyn Target) -> Option<u64> {
    let sites = u32::try_from(target.sites()).ok()?;
    (target.q() as u64).checked_pow(sites)
}

/// Sum over all states.
///
/// A state whose potential is `+inf` is forbidden: it has probability 0 and is left out.
///
/// # Errors
/// [`Error::NotApplicable`] with more than $2^{25}$ states, [`Error::NonFinite`] if a potential is NaN or
/// `-inf` or every state is forbidden, [`Error::Invalid`] for wrong weights, [`Error::Interrupted`]
/// through `progress`.
pub fn moments(target: &dyn Target, lambda: &[f64], progress: &dyn Progress) -> Result<Moments> {
    check_weights(target, lambda)?;
    let states = few_states(target, MAX_STATES)?;
    progress.total(states);
    let size = states.div_ceil(CHUNKS).max(BLOCK);
    let chunks: Vec<Result<Sums>> = (0..states.div_ceil(size))
        .into_par_iter()
        .map(|chunk| {
            let range = chunk * size..states.min((chunk + 1) * size);
            match (target.pairwise(), target.lattice_model()) {
                (None, None) if target.prefers_batches() => {
                    sum_batches(target, lambda, range, progress)
                }
                (Some(model), _) => sum_chunk(&model, target, lambda, range, progress),
                (None, Some(model)) => sum_chunk(&model, target, lambda, range, progress),
                (None, None) => sum_chunk(&Plain(target), target, lambda, range, progress),
            }
        })
        .collect();
    let mut sums = Sums::new(target.terms());
    for chunk in chunks {
        sums.merge(chunk?);
    }
    if !sums.log_z().is_finite() || !sums.is_finite() {
        return Err(non_finite("log Z", sums.log_z(), "any: all are forbidden".into()));
    }
    let terms = sums.mean_energies();
    Ok(Moments {
        log_z: sums.log_z(),
        energy: terms.iter().sum(),
        terms,
        potential: sums.mean_potential(),
        potential_variance: sums.variance(),
        order: sums.mean_order(),
    })
}

/// [`moments`] as an [`Exact`] answer.
///
/// # Errors
/// As [`moments`].
pub fn solve(target: &dyn Target, lambda: &[f64], progress: &dyn Progress) -> Result<Exact> {
    let moments = moments(target, lambda, progress)?;
    Ok(Exact {
        method: Method::Enumeration,
        log_z: moments.log_z,
        energy: moments.energy,
        potential_variance: moments.potential_variance,
        order: Some(moments.order),
    })
}

/// The probability of every state, for at most $2^{20}$ of them; the state with values `x` is entry
/// $\sum_i x_i q^i$, so that site 0 is the fastest digit.
///
/// # Errors
/// As [`moments`].
///
/// # Example
/// ```
/// use leaps::exact::enumerate::law;
/// use leaps::target::{Interaction, Pairwise};
///
/// let pair = Pairwise::from_edges(Interaction::Ising, 2, 2, &[(0, 1, 1.0)])?;
/// let law = law(&pair, &[0.5])?;
/// let aligned = 1.0 / (2.0 + 2.0 * f64::exp(-1.0));
/// assert!((law[0] - aligned).abs() < 1e-15 && (law[1] - (0.5 - aligned)).abs() < 1e-15);
/// # Ok::<(), leaps::Error>(())
/// ```
pub fn law(target: &dyn Target, lambda: &[f64]) -> Result<Vec<f64>> {
    law_of(target, lambda, MAX_TABLE)
}

/// [`law`] of up to so many states.
pub(super) fn law_of(target: &dyn Target, lambda: &[f64], most: u64) -> Result<Vec<f64>> {
    check_weights(target, lambda)?;
    let states = few_states(target, most)? as usize;
    let (sites, q) = (target.sites(), target.q());
    let mut table = vec![0.0; states];
    let checked: Vec<Result<()>> = table
        .par_chunks_mut(BLOCK as usize)
        .enumerate()
        .map(|(chunk, part)| {
            let mut block = vec![0; part.len() * sites];
            for (offset, x) in block.chunks_exact_mut(sites).enumerate() {
                let mut rest = chunk * BLOCK as usize + offset;
                for site_value in x {
                    *site_value = (rest % q) as u8;
                    rest /= q;
                }
            }
            let mut energies = vec![0.0; part.len() * target.terms()];
            target.energies(&block, &mut energies)?;
            let rows = energies.chunks_exact(target.terms()).zip(block.chunks_exact(sites));
            for (entry, (energies, x)) in part.iter_mut().zip(rows) {
                *entry = allowed(weighted(lambda, energies), x)?;
            }
            Ok(())
        })
        .collect();
    checked.into_iter().collect::<Result<()>>()?;
    let lowest = table.iter().copied().fold(f64::INFINITY, f64::min);
    if lowest == f64::INFINITY {
        return Err(non_finite("log Z", f64::NEG_INFINITY, "any: all are forbidden".into()));
    }
    let mut sum = 0.0;
    for entry in &mut table {
        *entry = (lowest - *entry).exp();
        sum += *entry;
    }
    table.iter_mut().for_each(|entry| *entry /= sum);
    Ok(table)
}

/// The number of states if it is at most `limit`.
fn few_states(target: &dyn Target, limit: u64) -> Result<u64> {
    states(target).filter(|&states| states <= limit).ok_or_else(|| {
        let (sites, q) = (target.sites(), target.q());
        let bits = sites as f64 * (q as f64).log2();
        Error::not_applicable(
            "enumeration",
            format!("about 2^{bits:.0} states are more than 2^{}", limit.ilog2()),
        )
    })
}

/// Sum over the states of one chunk of the walk.
fn sum_chunk(
    energy: &impl Follow,
    target: &dyn Target,
    lambda: &[f64],
    range: std::ops::Range<u64>,
    progress: &dyn Progress,
) -> Result<Sums> {
    let mut walk = Gray::at(range.start, target.sites(), target.q());
    let mut tally = Tally::of(target, walk.state());
    let mut energies = vec![0.0; lambda.len()];
    let mut sums = Sums::new(lambda.len());
    let mut next = range.start;
    while next < range.end {
        progress.check()?;
        let block = BLOCK.min(range.end - next);
        energy.fresh(walk.state(), &mut energies);
        for _ in 0..block {
            let mut potential = 0.0;
            for (weight, energy) in lambda.iter().zip(&energies) {
                potential += weight * energy;
            }
            if potential.is_finite() {
                sums.add(potential, &energies, &tally.order());
            } else {
                allowed(potential, walk.state())?;
            }
            if let Some(step) = walk.step() {
                energy.follow(walk.state(), &step, &mut energies);
                tally.replace(step.old, step.new);
            }
        }
        next += block;
        progress.advance(block);
    }
    Ok(sums)
}

/// `sum_k lambda_k E_k`, where terms of weight 0 may be anything.
fn weighted(lambda: &[f64], energies: &[f64]) -> f64 {
    let terms = lambda.iter().zip(energies).filter(|(weight, _)| **weight != 0.0);
    terms.fold(0.0, |sum, (weight, energy)| sum + weight * energy)
}

/// The same for a target that prefers batches: all energies of a block at once.
fn sum_batches(
    target: &dyn Target,
    lambda: &[f64],
    range: std::ops::Range<u64>,
    progress: &dyn Progress,
) -> Result<Sums> {
    let (sites, terms) = (target.sites(), target.terms());
    let mut walk = Gray::at(range.start, sites, target.q());
    let mut tally = Tally::of(target, walk.state());
    let mut sums = Sums::new(terms);
    let mut next = range.start;
    while next < range.end {
        progress.check()?;
        let block = BLOCK.min(range.end - next) as usize;
        let (mut states, mut orders) = (Vec::with_capacity(block * sites), Vec::new());
        for _ in 0..block {
            states.extend_from_slice(walk.state());
            orders.push(tally.order());
            if let Some(step) = walk.step() {
                tally.replace(step.old, step.new);
            }
        }
        let mut energies = vec![0.0; block * terms];
        target.energies(&states, &mut energies)?;
        let rows = energies.chunks_exact(terms).zip(states.chunks_exact(sites));
        for ((energies, x), order) in rows.zip(&orders) {
            let potential = weighted(lambda, energies);
            if potential.is_finite() {
                sums.add(potential, energies, order);
            } else {
                allowed(potential, x)?;
            }
        }
        next += block as u64;
        progress.advance(block as u64);
    }
    Ok(sums)
}

/// Refuse a potential that is NaN or `-inf`.
fn allowed(potential: f64, x: &[u8]) -> Result<f64> {
    if potential > f64::NEG_INFINITY {
        Ok(potential)
    } else {
        Err(non_finite("potential", potential, show_state(x)))
    }
}

fn non_finite(what: &str, value: f64, state: String) -> Error {
    Error::NonFinite { what: what.into(), value, seed: 0, walker: 0, step: 0, state }
}
