//! Cluster moves of any model of pairs: sites keep their values or take those that an exchange puts in their places.
//!
//! An exchange $R$ of values is its own inverse and leaves the energies of pairs as they are, $V(Rs, Rt) = V(s, t)$. With the choice between
//! $x_i$ and $R x_i$ every site is an Ising spin, and a bond costs $V(s, t)$ if both ends choose alike and $V(Rs, t) = V(s, Rt)$ if not: an
//! Ising bond. In Fortuin and Kasteleyn's way it is active with probability $p = 1 - e^{-\max(0, V(Rs, t) - V(s, t))}$ ($V$ with its weight, $\beta$),
//! and clusters of active bonds choose together. What single sites cost is a field on these spins; asymmetric tables make no
//! difference. Wolff 1989 (reflections of vectors), Wang, Swendsen and Kotecky 1989 (two values of an antiferromagnetic Potts model).
//!
//! One exchange is drawn for every step. Where exchanges do not join all values, as $s \to -s$ of Blume and Capel's model leaves the 0 alone, a sweep
//! of heat bath goes with every step: before it, or backwards after it, as a coin decides, so that the step satisfies detailed balance.

mod moves;
mod values;

use std::sync::Arc;

pub(super) use moves::{AllClusters, OneCluster};
use values::{PairTable, candidates, join};

use super::Info;
use crate::device::Draw;
use crate::target::{Density, LatticeModel, Pairwise, Target};
use crate::{Error, Result};

/// A move of clusters.
pub(super) trait ClusterMove {
    fn step<D: Draw>(&mut self, model: &Density<'_>, x: &mut [u8], draw: &mut D) -> Info;

    /// For clusters none is needed; one is charged, so that ratios exist.
    fn energy_calls(&self) -> f64 {
        1.0
    }
}

/// Moves of clusters of equal or opposite values, and where there are none of clusters under an exchange of values.
#[derive(Clone, Debug)]
pub(super) enum Clusters<V, E> {
    Values(V),
    Exchanged(E),
}

impl<V: ClusterMove, E: ClusterMove> ClusterMove for Clusters<V, E> {
    fn step<D: Draw>(&mut self, model: &Density<'_>, x: &mut [u8], draw: &mut D) -> Info {
        match self {
            Clusters::Values(own) => own.step(model, x, draw),
            Clusters::Exchanged(own) => own.step(model, x, draw),
        }
    }

    fn energy_calls(&self) -> f64 {
        match self {
            Clusters::Values(own) => own.energy_calls(),
            Clusters::Exchanged(own) => own.energy_calls(),
        }
    }
}

/// A bond: its ends, the first place of the table first.
#[derive(Clone, Copy, Debug)]
struct Bond {
    ends: [u32; 2],
    table: u32,
    /// Where its strength comes from: the directed bond of a pairwise model, the term of another.
    from: u32,
    scale: f64,
}

/// What does not depend on the weights.
#[derive(Debug)]
struct Fixed {
    q: usize,
    exchanges: Vec<Vec<u8>>,
    /// Whether exchanges do not join all values.
    sweeps: bool,
    tables: Vec<PairTable>,
    bonds: Vec<Bond>,
    /// The bonds of site `i` are `around[starts[i]..starts[i + 1]]`.
    starts: Vec<u32>,
    around: Vec<u32>,
}

/// Strengths and fields at the weights last seen.
#[derive(Clone, Debug)]
struct Weighted {
    lambda: Vec<f64>,
    /// What tables are multiplied by, by bond.
    strengths: Vec<f64>,
    /// What values cost alone, `[site * q + value]`.
    fields: Vec<f64>,
    any_field: bool,
}

/// The exchanges of a model and its bonds. Chains at one temperature share them.
#[derive(Clone, Debug)]
pub(super) struct Exchanges {
    fixed: Arc<Fixed>,
    now: Arc<Weighted>,
}

impl Exchanges {
    /// Those of a target at weights `lambda`; `method` is for messages.
    pub fn new(method: &str, target: &dyn Target, lambda: &[f64]) -> Result<Self> {
        let q = target.q();
        let (tables, bonds) = match (target.pairwise(), target.lattice_model()) {
            (Some(pairwise), _) => of_pairwise(pairwise),
            (None, Some(model)) => of_model(method, model)?,
            (None, None) => {
                return Err(Error::not_applicable(
                    method,
                    "the target says nothing of its pairs; use heat-bath or a gradient kernel",
                ));
            }
        };
        let used = |table: usize| bonds.iter().any(|bond| bond.table as usize == table);
        let used: Vec<&PairTable> = tables
            .iter()
            .enumerate()
            .filter(|(number, _)| used(*number))
            .map(|own| own.1)
            .collect();
        let mut exchanges = candidates(q);
        exchanges.retain(|exchange| used.iter().all(|table| table.keeps(exchange)));
        if exchanges.is_empty() {
            return Err(Error::not_applicable(
                method,
                "no exchange of values leaves the energies of its pairs as they are; use heat-bath",
            ));
        }
        let mut starts = vec![0u32; target.sites() + 1];
        for site in bonds.iter().flat_map(|bond| bond.ends) {
            starts[site as usize + 1] += 1;
        }
        for site in 0..target.sites() {
            starts[site + 1] += starts[site];
        }
        let (mut next, mut around) = (starts.clone(), vec![0; 2 * bonds.len()]);
        for (number, bond) in bonds.iter().enumerate() {
            for site in bond.ends {
                around[next[site as usize] as usize] = number as u32;
                next[site as usize] += 1;
            }
        }
        let sweeps = !join(&exchanges, q);
        let fixed = Arc::new(Fixed { q, exchanges, sweeps, tables, bonds, starts, around });
        let now = Arc::new(weighted(&fixed, target, lambda));
        Ok(Exchanges { fixed, now })
    }

    /// Follow the model to its weights.
    fn update(&mut self, model: &Density<'_>) {
        if self.now.lambda != model.lambda {
            self.now = Arc::new(weighted(&self.fixed, model.target, model.lambda));
        }
    }

    /// What it costs that one end of a bond is exchanged and the other is not.
    #[inline]
    fn gain(&self, bond: u32, exchange: &[u8], x: &[u8]) -> f64 {
        let bond_number = bond as usize;
        let bond = &self.fixed.bonds[bond_number];
        let [s, t] = bond.ends.map(|site| x[site as usize] as usize);
        let (other, q) = (exchange[s] as usize, self.fixed.q);
        // A pair of which either is not moved costs the same as before.
        if other == s || exchange[t] as usize == t {
            return 0.0;
        }
        let table = &self.fixed.tables[bond.table as usize];
        let apart = table.energies[other * q + t] - table.energies[s * q + t];
        if apart.abs() <= table.rounding { 0.0 } else { self.now.strengths[bond_number] * apart }
    }

    /// What an exchange adds to the energy of a site alone.
    #[inline]
    fn field(&self, site: usize, value: u8, exchange: &[u8]) -> f64 {
        let row = &self.now.fields[site * self.fixed.q..][..self.fixed.q];
        row[exchange[value as usize] as usize] - row[value as usize]
    }
}

/// A bond of equal values for every pair.
fn of_pairwise(pairwise: &Pairwise) -> (Vec<PairTable>, Vec<Bond>) {
    let q = pairwise.q();
    let equal = |pair: usize| if pair / q == pair % q { -1.0 } else { 0.0 };
    let table = PairTable::new(&(0..q * q).map(equal).collect::<Vec<_>>(), q);
    let mut bonds = Vec::new();
    for site in 0..pairwise.sites() {
        for (from, &end) in pairwise.directed(site).zip(pairwise.neighbours(site)) {
            if site < end as usize {
                let ends = [site as u32, end];
                bonds.push(Bond { ends, table: 0, from: from as u32, scale: 1.0 });
            }
        }
    }
    (vec![table], bonds)
}

fn of_model(method: &str, model: &LatticeModel) -> Result<(Vec<PairTable>, Vec<Bond>)> {
    let q = model.q();
    let mut bonds = Vec::new();
    for site in 0..model.sites() {
        for link in model.through(site) {
            let &[end] = link.others else {
                return Err(Error::not_applicable(
                    method,
                    format!(
                        "the term {} has clusters of {} sites, and cluster moves are for pairs; use heat-bath",
                        model.term_name(link.term),
                        link.others.len() + 1
                    ),
                ));
            };
            // Every bond once, from the first of its places, whose values are a row apart.
            if link.stride == q {
                let (table, from) = (link.table as u32, link.term as u32);
                bonds.push(Bond { ends: [site as u32, end], table, from, scale: link.scale });
            }
        }
    }
    let tables = model.tables().iter().map(|table| match table.offsets.len() {
        2 => PairTable::new(&table.energies, q),
        _ => PairTable::new(&[0.0], 1),
    });
    Ok((tables.collect(), bonds))
}

fn weighted(fixed: &Fixed, target: &dyn Target, lambda: &[f64]) -> Weighted {
    let q = fixed.q;
    let (strengths, mut fields): (Vec<f64>, Vec<f64>) = match target.pairwise() {
        Some(pairwise) => {
            let couplings = pairwise.total_couplings(lambda);
            let strengths = fixed.bonds.iter().map(|bond| couplings[bond.from as usize]).collect();
            (strengths, pairwise.total_fields(lambda))
        }
        None => {
            let strength = |bond: &Bond| lambda[bond.from as usize] * bond.scale;
            let strengths = fixed.bonds.iter().map(strength).collect();
            let own = |site, value| match target.lattice_model() {
                Some(model) => {
                    model.site_energies(site, value).zip(lambda).map(|(e, weight)| e * weight).sum()
                }
                None => 0.0,
            };
            let all = (0..target.sites()).flat_map(|site| (0..q).map(move |value| (site, value)));
            (strengths, all.map(|(site, value)| own(site, value)).collect())
        }
    };
    for (bond, strength) in fixed.bonds.iter().zip(&strengths) {
        for (site, alone) in bond.ends.iter().zip(&fixed.tables[bond.table as usize].alone) {
            let row = fields[*site as usize * q..][..q].iter_mut();
            row.zip(alone).for_each(|(field, cost)| *field += strength * cost);
        }
    }
    let any_field = fields.chunks_exact(q).any(|row| row[1..] != row[..q - 1]);
    Weighted { lambda: lambda.to_vec(), strengths, fields, any_field }
}
