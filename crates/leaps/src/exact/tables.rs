//! Sum site by site over models of tables and clusters, as [`transfer`](super::transfer) does over pairwise ones.
//!
//! A cluster's energy is added when the last of its sites comes; all its others are then among the last `width` sites or fixed. Weights are
//! logarithms: tables may hold any energies.

use rayon::prelude::*;

use super::band::{Domain, Entry, Log, Shift};
use super::draw::{Back, Walk, relative};
use super::plan::Plan;
use super::transfer::Estimate;
use super::{Exact, Method};
use crate::Result;
use crate::device::Progress;
use crate::target::{LatticeModel, Target};

/// What an operation costs beside one of pairwise models: logarithms, and a table for every cluster.
const SLOWER: f64 = 8.0;
/// Entries of the band handed to one thread at a time.
const GRAIN: usize = 1 << 10;

/// Nothing is summed over.
const START: Entry = Entry { weight: Log::ONE, u: 0.0, variance: 0.0, h: 0.0 };

/// The cost of summing by this plan.
pub(super) fn cost(plan: &Plan) -> Estimate {
    let bytes = 2.0 * size_of::<Entry>() as f64 * plan.states();
    Estimate { work: SLOWER * plan.work(), bytes }
}

/// A cluster whose last site is the one that comes.
struct Ending<'a> {
    energies: &'a [f64],
    /// The weight of its term.
    weight: f64,
    /// What the energies are multiplied by.
    scale: f64,
    /// How far apart energies of two values of the last site are.
    stride: usize,
    /// Other sites that are fixed, by position in their list, and how far apart energies of their values are.
    fixed: Vec<(usize, usize)>,
    /// Other sites of the band: the period of the digit in the index, and the same.
    band: Vec<(usize, usize)>,
}

/// A model ready to be summed over.
pub(super) struct Strip<'a> {
    plan: &'a Plan,
    /// Per site, fixed ones first.
    endings: Vec<Vec<Ending<'a>>>,
    /// Per site, fixed ones first: `(u, h)` of every value.
    local: Vec<Vec<(f64, f64)>>,
}

/// Sum over all states by a plan that can be afforded.
pub(super) fn solve(
    model: &LatticeModel,
    plan: &Plan,
    lambda: &[f64],
    progress: &dyn Progress,
) -> Result<Exact> {
    let strip = Strip::new(model, plan, lambda);
    let conditions = plan.conditions() as u64;
    progress.total(conditions.saturating_mul(plan.order.len() as u64));
    let mut sum = Entry::nothing::<Log>();
    for code in 0..conditions {
        sum = sum.mix::<Log>(strip.sum_given(code, progress)?);
    }
    let symmetry = if plan.symmetric { (plan.q as f64).ln() } else { 0.0 };
    Ok(Exact {
        method: Method::TransferMatrix,
        log_z: sum.weight + symmetry,
        energy: sum.h,
        potential_variance: sum.variance,
        order: None,
    })
}

impl<'a> Strip<'a> {
    pub fn new(model: &'a LatticeModel, plan: &'a Plan, lambda: &[f64]) -> Self {
        let (q, cut) = (plan.q, plan.fixed.len());
        let all = [&plan.fixed[..], &plan.order[..]].concat();
        let mut rank = vec![0; model.sites()];
        for (i, &site) in all.iter().enumerate() {
            rank[site] = i;
        }
        let ending = |i: usize, site: usize| {
            let ends =
                model.through(site).filter(|c| c.others.iter().all(|&o| rank[o as usize] < i));
            let ends = ends.map(|cluster| {
                let others = cluster.others.iter().map(|&other| rank[other as usize]);
                let others: Vec<(usize, usize)> =
                    others.zip(cluster.strides.iter().copied()).collect();
                let (fixed, band): (Vec<_>, Vec<_>) =
                    others.into_iter().partition(|(r, _)| *r < cut);
                let period = |(r, stride)| (q.pow((i - r - 1) as u32), stride);
                Ending {
                    energies: cluster.energies,
                    weight: lambda[cluster.term],
                    scale: cluster.scale,
                    stride: cluster.stride,
                    fixed,
                    band: band.into_iter().map(period).collect(),
                }
            });
            ends.collect()
        };
        let local = |site: usize| {
            let sum = |value: usize| {
                let energies = model.site_energies(site, value).zip(lambda);
                energies
                    .fold((0.0, 0.0), |(u, h), (energy, weight)| (u + weight * energy, h + energy))
            };
            (0..q).map(sum).collect()
        };
        Strip {
            plan,
            endings: all.iter().enumerate().map(|(i, &site)| ending(i, site)).collect(),
            local: all.iter().map(|&site| local(site)).collect(),
        }
    }

    /// Sum over the ordered sites with the fixed ones in configuration `code`.
    fn sum_given(&self, code: u64, progress: &dyn Progress) -> Result<Entry> {
        let (fixed, before) = self.fixed(code);
        let mut band = vec![START];
        for i in 0..self.plan.order.len() {
            progress.check()?;
            band = self.advance(i, &fixed, &band);
            progress.advance(1);
        }
        let sum = band.iter().skip(1).fold(band[0], |sum, &entry| sum.mix::<Log>(entry));
        Ok(sum.shift::<Log>(&Shift::new::<Log>(before.0, before.1)))
    }

    /// The values of the fixed sites in configuration `code`, and their energy.
    fn fixed(&self, code: u64) -> (Vec<usize>, (f64, f64)) {
        let (q, cut) = (self.plan.q, self.plan.fixed.len());
        let mut rest = if self.plan.symmetric { code * q as u64 } else { code };
        let (mut fixed, mut before) = (Vec::with_capacity(cut), (0.0, 0.0));
        for i in 0..cut {
            let value = (rest % q as u64) as usize;
            rest /= q as u64;
            let (u, h) = self.energy(i, &fixed, 0)[value];
            before = (before.0 + u, before.1 + h);
            fixed.push(value);
        }
        (fixed, before)
    }

    /// Sum over one more site.
    fn advance(&self, i: usize, fixed: &[usize], old: &[Entry]) -> Vec<Entry> {
        let (q, full) = (self.plan.q, i >= self.plan.width);
        let stride = if full { old.len() / q } else { old.len() };
        let mut new = vec![Entry::nothing::<Log>(); stride * q];
        new.par_chunks_mut(GRAIN * q).enumerate().for_each(|(chunk, part)| {
            for (offset, row) in part.chunks_exact_mut(q).enumerate() {
                let rest = chunk * GRAIN + offset;
                // The oldest site leaves the band: its values are summed over.
                for index in (0..old.len() / stride).map(|oldest| oldest * stride + rest) {
                    let energies = self.energy(fixed.len() + i, fixed, index);
                    for (out, (u, h)) in row.iter_mut().zip(energies) {
                        *out = out.mix::<Log>(old[index].shift::<Log>(&Shift::new::<Log>(u, h)));
                    }
                }
            }
        });
        new
    }

    /// What every value of a site adds to the energy, with the band in configuration `index`. Fixed sites among themselves have no band.
    fn energy(&self, i: usize, fixed: &[usize], index: usize) -> Vec<(f64, f64)> {
        let (q, mut energies) = (self.plan.q, self.local[i].clone());
        for ending in &self.endings[i] {
            let from_fixed = ending.fixed.iter().map(|&(r, stride)| fixed[r] * stride);
            let from_band = ending.band.iter().map(|&(period, stride)| index / period % q * stride);
            let base: usize = from_fixed.chain(from_band).sum();
            let row = ending.energies[base..].iter().step_by(ending.stride);
            for (sum, energy) in energies.iter_mut().zip(row) {
                let energy = ending.scale * energy;
                sum.0 += ending.weight * energy;
                sum.1 += energy;
            }
        }
        energies
    }
}

/// A pass along a strip: some ordered sites are done.
#[derive(Clone, Default)]
pub(super) struct Pass {
    done: usize,
    band: Vec<Entry>,
}

impl Walk for Strip<'_> {
    type Pass = Pass;
    type Fixed = Vec<usize>;

    fn plan(&self) -> &Plan {
        self.plan
    }

    fn weigh(&self, code: u64, _: &mut Pass, progress: &dyn Progress) -> Result<f64> {
        self.sum_given(code, progress).map(|total| total.weight)
    }

    fn fix(&self, code: u64) -> (Vec<usize>, Vec<usize>) {
        let values = self.fixed(code).0;
        (values.clone(), values)
    }

    fn begin(&self, pass: &mut Pass) {
        *pass = Pass { done: 0, band: vec![START] };
    }

    fn forth(&self, fixed: &Vec<usize>, pass: &mut Pass) {
        pass.band = self.advance(pass.done, fixed, &pass.band);
        pass.done += 1;
    }

    /// Logarithms: tables may hold any energies.
    fn keep(&self, pass: &Pass) -> Vec<f64> {
        pass.band.iter().map(|entry| entry.weight).collect()
    }

    fn ends(&self, pass: &Pass) -> Vec<f64> {
        relative::<Log>(&pass.band)
    }

    fn back(&self, fixed: &Vec<usize>, band: &[f64], step: &Back, weights: &mut [f64]) {
        let stride = band.len() / weights.len();
        for (oldest, weight) in weights.iter_mut().enumerate() {
            // All that ends at the new site, with the site that left at this value.
            let index = oldest * stride + step.rest;
            *weight =
                band[index] - self.energy(fixed.len() + step.site, fixed, index)[step.value].0;
        }
        let top = weights.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        weights.iter_mut().for_each(|weight| *weight = (*weight - top).exp());
    }
}

#[cfg(test)]
mod tests {
    use crate::device::NoProgress;
    use crate::exact::{Method, solve};
    use crate::target::{Boundary, ClusterTable, Lattice, LatticeModel, Target};

    #[test]
    fn sums_along_strips_are_those_over_all_states() {
        let number = |k: usize| ((k * 7919 + 13) % 101) as f64 / 37.0 - 1.2;
        let table = |n: usize, from: usize| (from..from + n).map(number).collect::<Vec<_>>();
        for boundary in [Boundary::Free, Boundary::Periodic] {
            for (shape, q) in [([4, 3], 2), ([3, 4], 2), ([3, 3], 3), ([2, 4], 3)] {
                let lattice = Lattice::new(&shape, boundary).unwrap();
                let tables = vec![
                    ClusterTable::new("bonds", &[vec![0, 0], vec![0, 1]], table(q * q, 0)),
                    ClusterTable::new(
                        "three",
                        &[vec![0, 0], vec![1, 0], vec![1, -1]],
                        table(q * q * q, 9),
                    ),
                    ClusterTable::new("sites", &[vec![0, 0]], table(q, 50)),
                ];
                let fields: Vec<f64> = (0..lattice.sites() * q).map(|k| number(k + 80)).collect();
                let model = LatticeModel::new(lattice, q, tables).unwrap();
                let model = model.with_site_energies("sites", &fields).unwrap();
                assert!(model.pairwise().is_none());
                let by =
                    |method| solve(&model, &[0.7, 0.4, 1.1], Some(method), &NoProgress).unwrap();
                let (all, strip) = (by(Method::Enumeration), by(Method::TransferMatrix));
                assert!((all.log_z - strip.log_z).abs() < 1e-11, "{shape:?} {boundary:?}");
                assert!((all.energy - strip.energy).abs() < 1e-10);
                assert!((all.potential_variance - strip.potential_variance).abs() < 1e-9);
            }
        }
        // Values that turn into each other: the first of the fixed sites stays at 0.
        let clock =
            |boundary| LatticeModel::clock(Lattice::new(&[2, 4], boundary).unwrap(), 4, 0.8);
        for boundary in [Boundary::Free, Boundary::Periodic] {
            let model = clock(boundary).unwrap();
            let by = |method| solve(&model, &[0.9], Some(method), &NoProgress).unwrap().log_z;
            assert!((by(Method::Enumeration) - by(Method::TransferMatrix)).abs() < 1e-11);
        }
        assert_eq!(clock(Boundary::Free).unwrap().terms(), 1);
    }
}
