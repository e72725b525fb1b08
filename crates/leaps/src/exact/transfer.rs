//! Sum site by site along a strip: transfer matrices for any couplings and fields.
//!
//! The sum over a site is carried out as soon as all its neighbours are known, so that only the
//! configurations of one cross-section are held at a time: $d\,q^{W+1}$ operations for a strip of width `W`.
//! Along a periodic direction the first cross-section is fixed to each of its configurations in turn
//! (the trace), $q^W$ times the work.

use rayon::prelude::*;

use super::band::{Domain, Entry, Linear, Log};
use super::plan::Plan;
use super::strip::{Pass, Strip};
use super::{Exact, Method, check_weights};
use crate::device::Progress;
use crate::target::{Pairwise, Target};
use crate::{Error, Result};

/// The most elementary operations that are started on.
pub const MAX_WORK: f64 = 2e11;

/// The most memory, in bytes.
pub const MAX_BYTES: f64 = 4.3e9;

/// Groups of boundary configurations, whatever the number of threads.
const GROUPS: u64 = 256;

/// Where the couplings across a cut add up to less than this, plain numbers can hold the weights.
const LINEAR_RANGE: f64 = 300.0;

/// What a transfer-matrix calculation would cost.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Estimate {
    /// Elementary operations, a few nanoseconds each.
    pub work: f64,
    /// Memory in bytes, per boundary configuration worked on.
    pub bytes: f64,
}

/// Estimate the cost for `target` without starting.
///
/// # Errors
/// [`Error::NotApplicable`] if the target is not pairwise or too wide to count.
pub fn estimate(target: &dyn Target) -> Result<Estimate> {
    plan(target).map(|(_, plan)| cost(&plan))
}

/// Solve a pairwise model on a lattice of any dimension, or on a graph whose bonds join sites numbered
/// close to each other.
///
/// # Errors
/// [`Error::NotApplicable`] naming the estimated cost if it is more than 2e11 operations or 4 GiB, or if the
/// target is not pairwise; [`Error::Invalid`] for wrong weights, [`Error::NonFinite`] if energies
/// overflow, [`Error::Interrupted`] through `progress`.
pub fn solve(target: &dyn Target, lambda: &[f64], progress: &dyn Progress) -> Result<Exact> {
    check_weights(target, lambda)?;
    let (model, plan, cost) = affordable(target)?;
    let couplings = model.total_couplings(lambda);
    let sum = if is_linear(model, &plan, &couplings) {
        Strip::<Linear>::new(model, &plan, lambda, &couplings).sum(cost.bytes, progress)?
    } else {
        Strip::<Log>::new(model, &plan, lambda, &couplings).sum(cost.bytes, progress)?
    };
    let terms = model.energy_terms();
    let potential: f64 =
        terms.iter().zip(lambda).map(|(term, weight)| weight * term.constant).sum();
    let symmetry = if plan.symmetric { (plan.q as f64).ln() } else { 0.0 };
    let exact = Exact {
        method: Method::TransferMatrix,
        log_z: sum.weight + symmetry - potential,
        energy: sum.h + terms.iter().map(|term| term.constant).sum::<f64>(),
        potential_variance: sum.variance,
        order: None,
    };
    for value in [exact.log_z, exact.energy, exact.potential_variance] {
        if !value.is_finite() {
            let state = "summed over".into();
            let what = "log Z or a moment".into();
            return Err(Error::NonFinite { what, value, seed: 0, walker: 0, step: 0, state });
        }
    }
    Ok(exact)
}

/// The plan for a target, if it can be carried out.
pub(super) fn affordable(target: &dyn Target) -> Result<(&Pairwise, Plan, Estimate)> {
    let (model, plan) = plan(target)?;
    let cost = cost(&plan);
    if cost.work > MAX_WORK || cost.bytes > MAX_BYTES {
        return Err(refuse(format!(
            "it would take {:.1e} operations and {:.1e} bytes, more than {MAX_WORK:.0e} or {MAX_BYTES:.1e}",
            cost.work, cost.bytes
        )));
    }
    Ok((model, plan, cost))
}

/// Whether plain numbers can hold the weights.
pub(super) fn is_linear(model: &Pairwise, plan: &Plan, couplings: &[f64]) -> bool {
    crossing(model, plan, couplings) < LINEAR_RANGE
}

fn plan(target: &dyn Target) -> Result<(&Pairwise, Plan)> {
    let model = target.pairwise().ok_or_else(|| refuse("it needs a pairwise model".into()))?;
    let plan = Plan::new(model)
        .ok_or_else(|| refuse("a cross-section has more than 2^60 configurations".into()))?;
    Ok((model, plan))
}

fn cost(plan: &Plan) -> Estimate {
    Estimate { work: plan.work(), bytes: 2.0 * std::mem::size_of::<Entry>() as f64 * plan.states() }
}

fn refuse(reason: String) -> Error {
    Error::not_applicable("the transfer matrix", reason)
}

/// The largest sum of `|coupling|` across a cut between past and future: what the future can still
/// change in the ratio of two weights.
fn crossing(model: &Pairwise, plan: &Plan, couplings: &[f64]) -> f64 {
    let mut rank = vec![usize::MAX; model.sites()];
    for (i, &site) in plan.order.iter().enumerate() {
        rank[site] = i;
    }
    let mut change = vec![0.0; plan.order.len() + 1];
    for (i, &site) in plan.order.iter().enumerate() {
        for (&end, entry) in model.neighbours(site).iter().zip(model.directed(site)) {
            let end = rank[end as usize];
            if end < i {
                change[end] += couplings[entry].abs();
                change[i] -= couplings[entry].abs();
            }
        }
    }
    let mut sum = 0.0;
    change
        .iter()
        .map(|by| {
            sum += by;
            sum
        })
        .fold(0.0, f64::max)
}

impl<D: Domain> Strip<'_, D> {
    /// Sum over everything; the weight of the result is a logarithm.
    fn sum(&self, bytes: f64, progress: &dyn Progress) -> Result<Entry> {
        let conditions = self.plan.conditions() as u64;
        progress.total(conditions.saturating_mul(self.plan.order.len() as u64));
        let groups = conditions.min(GROUPS);
        let group = |group: u64| -> Result<Entry> {
            let mut pass = Pass::default();
            let mut total = Entry::nothing::<Log>();
            for code in group * conditions / groups..(group + 1) * conditions / groups {
                total = total.mix::<Log>(self.sum_given(code, &mut pass, progress)?);
            }
            Ok(total)
        };
        let at_once = groups.min(rayon::current_num_threads() as u64) as f64;
        let sums: Vec<Result<Entry>> = if at_once * bytes <= MAX_BYTES {
            (0..groups).into_par_iter().map(group).collect()
        } else {
            (0..groups).map(group).collect()
        };
        sums.into_iter().try_fold(Entry::nothing::<Log>(), |sum, part| Ok(sum.mix::<Log>(part?)))
    }

    /// Sum over the ordered sites with the fixed ones in configuration `code`.
    pub(super) fn sum_given(
        &self,
        code: u64,
        pass: &mut Pass,
        progress: &dyn Progress,
    ) -> Result<Entry> {
        let fixed = self.fixed(code);
        pass.restart::<D>();
        for _ in &self.plan.order {
            progress.check()?;
            self.advance(&fixed, pass);
            progress.advance(1);
        }
        Ok(self.total(&fixed, pass))
    }
}
