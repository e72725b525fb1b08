//! Ground states: the lowest energy $\min_x \sum_k E_k(x)$ and a state that has it, proven.
//!
//! | method | applies to | cost |
//! |---|---|---|
//! | enumeration | any target with few states | $q^d$ |
//! | elimination | pairwise models on sparse graphs: strips, trees, small lattices, unions of them | $\sum_i q^{w_i + 1}$ |
//!
//! Elimination is the transfer matrix with minima in place of sums, site by site in any order: the energies that a site
//! takes part in become a table of the lowest energy over its values, for every configuration of the sites
//! that it shares them with. Sites with the fewest such partners go first, or those at the end of a long lattice, whichever keeps tables small.

mod order;

use std::collections::BTreeMap;

use rayon::prelude::*;

use super::enumerate;
use super::few_states;
use super::walk::{Follow, Gray, Plain};
use crate::device::Progress;
use crate::target::{Pairwise, Target};
use crate::{Error, Result};

use order::Order;

/// The most effort that [`ground_state`] may be given: 1 is well under a second.
pub const MAX_EFFORT: f64 = 1000.0;

/// The most sites of a target that is eliminated, at one unit of effort.
const MAX_SITES: f64 = 5e4;

/// Bytes of tables and of choices at one unit of effort.
const BYTES: f64 = 2.0 * (1u64 << 26) as f64;

/// States between two looks at the progress.
const BLOCK: u64 = 4096;

/// Chunks of an enumeration, whatever the number of threads.
const CHUNKS: u64 = 256;

/// How a ground state was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum GroundMethod {
    /// Looking at all states.
    Enumeration,
    /// Minimising over one site after the other.
    Elimination,
}

impl std::fmt::Display for GroundMethod {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            GroundMethod::Enumeration => "enumeration",
            GroundMethod::Elimination => "elimination",
        })
    }
}

/// The lowest energy of a target, and a state that has it.
#[derive(Clone, Debug, PartialEq)]
pub struct Ground {
    /// How it was found.
    pub method: GroundMethod,
    /// $\sum_k E_k$ of the state, computed from it.
    pub energy: f64,
    /// The state; the first in the order of the method if there are several.
    pub state: Vec<u8>,
}

/// The ground state of `target`, with limits that are `effort` times those of an answer well under a second.
///
/// # Errors
/// [`Error::NotApplicable`] if neither method can do it with that effort, [`Error::NonFinite`] if no state has a finite energy,
/// [`Error::Interrupted`] through `progress`.
///
/// # Example
/// ```
/// use leaps::device::NoProgress;
/// use leaps::exact::ground_state;
/// use leaps::target::{Disorder, Boundary, Lattice, Pairwise};
///
/// let lattice = Lattice::new(&[6, 30], Boundary::Free)?;
/// let glass = Pairwise::edwards_anderson(lattice, Disorder::Gaussian, 1)?;
/// let ground = ground_state(&glass, 1.0, &NoProgress)?;
/// assert_eq!(ground.state.len(), 180);
/// # Ok::<(), leaps::Error>(())
/// ```
pub fn ground_state(target: &dyn Target, effort: f64, progress: &dyn Progress) -> Result<Ground> {
    let effort = effort.clamp(0.0, MAX_EFFORT);
    let few = few_states(target);
    let elimination = target.pairwise().and_then(|model| {
        let order = Order::of(model, effort)?;
        Some((model, order))
    });
    let states = enumerate::states(target).filter(|&states| states as f64 <= effort * few as f64);
    let (method, state) = match (elimination, states) {
        (Some((model, order)), _) => {
            (GroundMethod::Elimination, Some(eliminate(model, &order, progress)?))
        }
        (None, Some(states)) => (GroundMethod::Enumeration, search(target, states, progress)?),
        (None, None) => {
            let reason = "there are too many states, and the sites have too many neighbours to be eliminated one by one";
            return Err(Error::not_applicable("an exact ground state", reason));
        }
    };
    let energy = |x: &[u8]| (0..target.terms()).map(|term| target.energy(term, x)).sum::<f64>();
    match state.map(|state| (energy(&state), state)).filter(|(energy, _)| energy.is_finite()) {
        Some((energy, state)) => Ok(Ground { method, energy, state }),
        None => {
            let (what, state) = ("lowest energy".into(), "any: none has a finite energy".into());
            let value = f64::INFINITY;
            Err(Error::NonFinite { what, value, seed: 0, walker: 0, step: 0, state })
        }
    }
}

/// A number that no energy of a pairwise model is below: every bond and every field at its best.
pub fn energy_bound(model: &Pairwise) -> f64 {
    let ones = vec![1.0; model.energy_terms().len()];
    let bonds: f64 = model.total_couplings(&ones).iter().map(|a| a.max(0.0)).sum();
    let lowest = |row: &[f64]| row.iter().copied().fold(f64::INFINITY, f64::min);
    let fields: f64 = model.total_fields(&ones).chunks_exact(model.q()).map(lowest).sum();
    let constant: f64 = model.energy_terms().iter().map(|term| term.constant).sum();
    // Every bond is there in both directions.
    constant + fields - 0.5 * bonds
}

/// The lowest energy met so far, and its state.
type Lowest = Option<(f64, Vec<u8>)>;

/// The first state of lowest energy, in the order of the walk.
fn search(target: &dyn Target, states: u64, progress: &dyn Progress) -> Result<Option<Vec<u8>>> {
    progress.total(states);
    let size = states.div_ceil(CHUNKS).max(BLOCK);
    let best = |chunk: u64| {
        let range = chunk * size..states.min((chunk + 1) * size);
        match (target.pairwise(), target.lattice_model()) {
            (Some(model), _) => search_chunk(&model, target, range, progress),
            (None, Some(model)) => search_chunk(&model, target, range, progress),
            (None, None) => search_chunk(&Plain(target), target, range, progress),
        }
    };
    let chunks: Vec<Result<Lowest>> =
        (0..states.div_ceil(size)).into_par_iter().map(best).collect();
    let mut lowest: Lowest = None;
    for chunk in chunks {
        if let Some(own) = chunk?
            && lowest.as_ref().is_none_or(|(energy, _)| own.0 < *energy)
        {
            lowest = Some(own);
        }
    }
    Ok(lowest.map(|(_, state)| state))
}

fn search_chunk(
    follow: &impl Follow,
    target: &dyn Target,
    range: std::ops::Range<u64>,
    progress: &dyn Progress,
) -> Result<Lowest> {
    let mut walk = Gray::at(range.start, target.sites(), target.q());
    let mut energies = vec![0.0; target.terms()];
    let mut lowest: Lowest = None;
    let mut next = range.start;
    while next < range.end {
        progress.check()?;
        let block = BLOCK.min(range.end - next);
        follow.fresh(walk.state(), &mut energies);
        for _ in 0..block {
            let energy: f64 = energies.iter().sum();
            if energy < lowest.as_ref().map_or(f64::INFINITY, |(lowest, _)| *lowest) {
                lowest = Some((energy, walk.state().to_vec()));
            }
            if let Some(step) = walk.step() {
                follow.follow(walk.state(), &step, &mut energies);
            }
        }
        next += block;
        progress.advance(block);
    }
    Ok(lowest)
}

/// Lowest energies over the values of eliminated sites, as `[sum_k x_{scope_k} q^k]`.
struct Factor {
    scope: Vec<usize>,
    table: Vec<f64>,
}

/// Minimise over the sites in order, then choose their values backwards.
fn eliminate(model: &Pairwise, order: &Order, progress: &dyn Progress) -> Result<Vec<u8>> {
    let (sites, q) = (model.sites(), model.q());
    progress.total(sites as u64);
    let ones = vec![1.0; model.energy_terms().len()];
    let (couplings, fields) = (model.total_couplings(&ones), model.total_fields(&ones));
    let mut rank = vec![0; sites];
    for (at, (site, _)) in order.steps.iter().enumerate() {
        rank[*site] = at;
    }
    // Every factor waits for the first of its sites.
    let mut waiting: Vec<Vec<Factor>> = (0..sites).map(|_| Vec::new()).collect();
    for site in 0..sites {
        let mut bonds: BTreeMap<usize, f64> = BTreeMap::new();
        for (&end, entry) in model.neighbours(site).iter().zip(model.directed(site)) {
            if rank[site] < rank[end as usize] {
                *bonds.entry(end as usize).or_default() += couplings[entry];
            }
        }
        for (end, coupling) in bonds {
            let table = (0..q * q).map(|at| if at / q == at % q { -coupling } else { 0.0 });
            waiting[site].push(Factor { scope: vec![site, end], table: table.collect() });
        }
        let table = fields[site * q..(site + 1) * q].to_vec();
        waiting[site].push(Factor { scope: vec![site], table });
    }
    let mut choices = Vec::with_capacity(sites);
    for (site, scope) in &order.steps {
        progress.check()?;
        let factors = std::mem::take(&mut waiting[*site]);
        let (table, choice) = minimum(*site, scope, &factors, q);
        if let Some(&first) = scope.iter().min_by_key(|&&site| rank[site]) {
            waiting[first].push(Factor { scope: scope.clone(), table });
        }
        choices.push(choice);
        progress.advance(1);
    }
    let mut x = vec![0; sites];
    for ((site, scope), choice) in order.steps.iter().zip(&choices).rev() {
        let at = scope.iter().rev().fold(0, |at, &end| at * q + usize::from(x[end]));
        x[*site] = choice[at];
    }
    Ok(x)
}

/// The lowest sum of factors over the values of `site`, and the value that has it, for every configuration of `scope`.
fn minimum(site: usize, scope: &[usize], factors: &[Factor], q: usize) -> (Vec<f64>, Vec<u8>) {
    let entries = q.pow(scope.len() as u32);
    // How far a factor's index moves with each site of the scope, and with the one that goes.
    let stride = |factor: &Factor, of: usize| {
        factor.scope.iter().position(|&own| own == of).map_or(0, |k| q.pow(k as u32))
    };
    let strides: Vec<Vec<usize>> =
        factors.iter().map(|f| scope.iter().map(|&end| stride(f, end)).collect()).collect();
    let own: Vec<usize> = factors.iter().map(|factor| stride(factor, site)).collect();
    let mut at = vec![0; factors.len()];
    let mut digits = vec![0; scope.len()];
    let (mut table, mut choice) = (Vec::with_capacity(entries), Vec::with_capacity(entries));
    for _ in 0..entries {
        let mut lowest = (f64::INFINITY, 0);
        for value in 0..q {
            let parts = factors.iter().zip(&at).zip(&own);
            let energy: f64 = parts.map(|((f, at), own)| f.table[at + value * own]).sum();
            if energy < lowest.0 {
                lowest = (energy, value as u8);
            }
        }
        table.push(lowest.0);
        choice.push(lowest.1);
        for (k, digit) in digits.iter_mut().enumerate() {
            *digit += 1;
            let over = *digit == q;
            for (at, strides) in at.iter_mut().zip(&strides) {
                *at = if over { *at - (q - 1) * strides[k] } else { *at + strides[k] };
            }
            if !over {
                break;
            }
            *digit = 0;
        }
    }
    (table, choice)
}

#[cfg(test)]
mod tests;
