//! Sum site by site along a strip: transfer matrices for any couplings and fields.
//!
//! The sum over a site is carried out as soon as all its neighbours are known, so that only the
//! configurations of one cross-section are held at a time: $d\,q^{W+1}$ operations for a strip of width `W`.
//! Along a periodic direction the first cross-section is fixed to each of its configurations in turn
//! (the trace), $q^W$ times the work.

use rayon::prelude::*;

use super::band::{Domain, Entry, Linear, Log};
use super::plan::{Plan, Strips};
use super::strip::{Pass, Strip};
use super::{Exact, Method, check_weights, tables};
use crate::device::{Bytes, Progress, free_memory};
use crate::target::{LatticeModel, Pairwise, Target};
use crate::{Error, Result};

/// The most elementary operations that are started on: an hour of one core.
pub const MAX_WORK: f64 = 1e12;

/// Seconds of one core for an operation; within a factor of three on most machines.
const SECONDS: f64 = 3e-9;

/// The most memory, in bytes, where the system does not say how much is free.
const USUAL_ROOM: f64 = 4.3e9;

/// The share of free memory that is made use of.
const SHARE: f64 = 0.8;

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

impl Estimate {
    /// Whether it is started on, with the memory that is free now.
    pub fn is_affordable(&self) -> bool {
        self.work <= MAX_WORK && self.bytes <= room()
    }

    /// Seconds on the threads at hand, within a factor of three on most machines.
    pub fn seconds(&self) -> f64 {
        SECONDS * self.work / rayon::current_num_threads() as f64
    }
}

/// Bytes that may be taken.
pub(super) fn room() -> f64 {
    free_memory().map_or(USUAL_ROOM, |free| SHARE * free as f64)
}

/// Estimate the cost for `target` without starting.
///
/// # Errors
/// [`Error::NotApplicable`] if the target is not pairwise or too wide to count.
pub fn estimate(target: &dyn Target) -> Result<Estimate> {
    match model_of_tables(target) {
        Some(model) => Ok(tables::cost(&plan_of(model)?)),
        None => plan(target).map(|(_, plan)| cost(&plan)),
    }
}

/// Solve a pairwise model on a lattice of any dimension, or on a graph whose bonds join sites numbered
/// close to each other.
///
/// # Errors
/// [`Error::NotApplicable`] naming the estimated time and memory if it is more than 1e12 operations or more bytes
/// than are free, or if the target is neither pairwise nor one of tables and clusters; [`Error::Invalid`] for wrong weights, [`Error::NonFinite`] if energies
/// overflow, [`Error::Interrupted`] through `progress`.
pub fn solve(target: &dyn Target, lambda: &[f64], progress: &dyn Progress) -> Result<Exact> {
    check_weights(target, lambda)?;
    if let Some((model, plan, _)) = affordable_tables(target)? {
        return finite_answer(tables::solve(model, &plan, lambda, progress)?);
    }
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
    finite_answer(exact)
}

/// The model, if it has clusters that are no pairs of Potts's form.
fn model_of_tables(target: &dyn Target) -> Option<&LatticeModel> {
    target.lattice_model().filter(|_| target.pairwise().is_none())
}

/// Refuse numbers that energies have made too large.
fn finite_answer(exact: Exact) -> Result<Exact> {
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
    check_cost(&cost)?;
    Ok((model, plan, cost))
}

/// The same for a model of tables and clusters; `None` for every other target.
pub(super) fn affordable_tables(
    target: &dyn Target,
) -> Result<Option<(&LatticeModel, Plan, Estimate)>> {
    let Some(model) = model_of_tables(target) else { return Ok(None) };
    let plan = plan_of(model)?;
    let cost = tables::cost(&plan);
    check_cost(&cost)?;
    Ok(Some((model, plan, cost)))
}

fn check_cost(cost: &Estimate) -> Result<()> {
    if cost.is_affordable() {
        return Ok(());
    }
    let (time, memory, room) = (lasting(cost.seconds()), Bytes(cost.bytes), Bytes(room()));
    let threads = rayon::current_num_threads();
    Err(refuse(format!(
        "it would take {:.1e} operations, about {time} on {threads} threads, and {memory} of memory; at most {MAX_WORK:.0e} are \
         started on, and {room} may be taken",
        cost.work
    )))
}

/// A time in the unit that fits it.
fn lasting(seconds: f64) -> String {
    let units = [(3.2e7, "years"), (86_400.0, "days"), (3600.0, "hours"), (60.0, "minutes")];
    let fits = |(unit, _): &(f64, &str)| seconds >= 2.0 * unit;
    match units.into_iter().find(fits) {
        Some((unit, name)) if seconds < 1e4 * unit => format!("{:.0} {name}", seconds / unit),
        Some((unit, name)) => format!("{:.0e} {name}", seconds / unit),
        None => format!("{seconds:.0} seconds"),
    }
}

/// Whether plain numbers can hold the weights.
pub(super) fn is_linear(model: &Pairwise, plan: &Plan, couplings: &[f64]) -> bool {
    crossing(model, plan, couplings) < LINEAR_RANGE
}

fn plan(target: &dyn Target) -> Result<(&Pairwise, Plan)> {
    let model = target.pairwise().ok_or_else(|| refuse("it needs a pairwise model".into()))?;
    Ok((model, plan_of(model)?))
}

fn plan_of(model: &impl Strips) -> Result<Plan> {
    Plan::new(model)
        .ok_or_else(|| refuse("a cross-section has more than 2^60 configurations".into()))
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
        let sums: Vec<Result<Entry>> = if at_once * bytes <= room() {
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::NoProgress;
    use crate::target::{Boundary, Lattice};

    #[test]
    fn what_takes_too_long_says_how_long() {
        let lattice = Lattice::new(&[40, 40], Boundary::Free).unwrap();
        let model = Pairwise::ising(lattice, 1.0, 0.1).unwrap();
        let error = solve(&model, &[0.4; 2], &NoProgress).unwrap_err().to_string();
        for words in ["3.5e15 operations", " on ", " threads", "70.4 TB of memory", "may be taken"]
        {
            assert!(error.contains(words), "{words}: {error}");
        }
        for (seconds, words) in [
            (7.0, "7 seconds"),
            (200.0, "3 minutes"),
            (8000.0, "2 hours"),
            (3e5, "3 days"),
            (1e9, "31 years"),
            (1e13, "3e5 years"),
        ] {
            assert_eq!(lasting(seconds), words);
        }
    }

    #[test]
    fn memory_that_is_free_may_be_taken() {
        let free = free_memory().unwrap_or(1 << 32) as f64;
        let cost = |bytes: f64| Estimate { work: 1.0, bytes };
        assert!(cost(0.1 * free).is_affordable() && !cost(100.0 * free).is_affordable());
        assert!(!Estimate { work: 2.0 * MAX_WORK, bytes: 1.0 }.is_affordable());
    }
}
