//! Lattice models that are pairwise: all tables are those of Ising or Potts pairs, with site energies.
//!
//! A table is $V(s, t) = c - A\,[s = t] + f(s) + g(t)$ if and only if $V(s, t) - V(s, 0) - V(0, t) + V(0, 0) = -A\,(1 + [s = t])$ for all
//! $s, t > 0$. For two values that is so for every table.

use super::{ClusterTable, LatticeModel};
use crate::target::{Bond, Bravais, Interaction, Lattice, Pairwise, Term};

/// What counts as rounding, as a part of the largest energy of a table.
const ROUNDING: f64 = 1e-13;

/// A pair of sites in Potts's form.
struct PottsPair {
    /// What equal values gain.
    coupling: f64,
    /// What the values of the first and of the second site cost.
    fields: [Vec<f64>; 2],
    constant: f64,
}

/// A table of pairs in Potts's form, if it has that form.
fn potts_pair(table: &ClusterTable, q: usize) -> Option<PottsPair> {
    let v = |s: usize, t: usize| table.energies[s * q + t];
    let scale = table.energies.iter().fold(0.0, |most: f64, e| most.max(e.abs()));
    let near = |a: f64, b: f64| (a - b).abs() <= 8.0 * ROUNDING * scale;
    let mixed = |s: usize, t: usize| v(s, t) - v(s, 0) - v(0, t) + v(0, 0);
    let coupling = -0.5 * mixed(1, 1);
    for s in 1..q {
        for t in 1..q {
            if !near(mixed(s, t), -coupling * (1.0 + f64::from(u8::from(s == t)))) {
                return None;
            }
        }
    }
    // The rest is a sum of functions of one site each; what only rounding made is left out.
    let rest = |s: usize, t: usize| v(s, t) + if s == t { coupling } else { 0.0 };
    let clean = |field: f64| if near(field, 0.0) { 0.0 } else { field };
    let constant = rest(0, 0);
    let first = (0..q).map(|s| clean(rest(s, 0) - constant)).collect();
    let second = (0..q).map(|t| clean(rest(0, t) - constant)).collect();
    Some(PottsPair { coupling, fields: [first, second], constant })
}

/// The sites of every cluster of a table.
fn placed<'a>(
    lattice: &'a Lattice,
    table: &'a ClusterTable,
) -> impl Iterator<Item = Vec<usize>> + 'a {
    (0..lattice.sites())
        .filter_map(|site| table.offsets.iter().map(|offset| lattice.at(site, offset)).collect())
}

/// The bonds of every site by offset, in the order in which tables name them; none where they are the nearest along all axes with one strength, as
/// [`Pairwise::offsets`] has it.
fn offsets(axes: usize, pairs: &[(&ClusterTable, f64)]) -> Vec<Bond> {
    let mut bonds: Vec<Bond> = Vec::new();
    for &(table, strength) in pairs.iter().filter(|pair| pair.1 != 0.0) {
        let steps = table.offsets[0].iter().zip(&table.offsets[1]).map(|(from, to)| to - from);
        let mut offset: Vec<i64> = steps.collect();
        if offset.iter().find(|step| **step != 0).is_some_and(|step| *step < 0) {
            offset.iter_mut().for_each(|step| *step = -*step);
        }
        match bonds.iter_mut().find(|bond| bond.offset == offset) {
            Some(bond) => bond.strength += strength,
            None => bonds.push(Bond { offset, strength }),
        }
    }
    let nearest = Bravais::shell(None, axes, 1);
    let plain = bonds.len() == axes
        && bonds.iter().all(|bond| bond.strength == bonds[0].strength)
        && bonds.iter().all(|bond| nearest.contains(&bond.offset));
    if plain { Vec::new() } else { bonds }
}

impl LatticeModel {
    /// The same model with the same terms in Potts's form, if it has one.
    pub(super) fn reduced(&self) -> Option<Pairwise> {
        let (sites, q) = (self.sites, self.q);
        let lattice = self.lattice.as_ref()?;
        // Clusters of a graph have no offsets.
        if self.tables.iter().flat_map(|table| &table.offsets).any(Vec::is_empty) {
            return None;
        }
        let mut terms: Vec<Term> = self
            .terms
            .iter()
            .zip(&self.site_energies)
            .map(|(name, fields)| Term {
                name: name.clone(),
                couplings: Vec::new(),
                fields: fields.clone(),
                constant: 0.0,
            })
            .collect();
        let mut edges = Vec::new();
        let mut owners = Vec::new();
        let mut pairs = Vec::new();
        for table in self.tables.iter().filter(|table| table.offsets.len() > 1) {
            if table.offsets.len() > 2 {
                return None;
            }
            let pair = potts_pair(table, q)?;
            let number = self.terms.iter().position(|name| *name == table.term)?;
            let term = &mut terms[number];
            pairs.push((table, if q == 2 { pair.coupling / 2.0 } else { pair.coupling }));
            for cluster in placed(lattice, table) {
                edges.push((cluster[0] as u32, cluster[1] as u32, pair.coupling));
                owners.push(number);
                term.constant += pair.constant;
                for (&site, field) in cluster.iter().zip(&pair.fields) {
                    if field.iter().any(|f| *f != 0.0) {
                        term.fields.resize(sites * q, 0.0);
                        let own = term.fields[site * q..][..q].iter_mut();
                        own.zip(field).for_each(|(own, more)| *own += more);
                    }
                }
            }
        }
        let interaction = if q == 2 { Interaction::Ising } else { Interaction::Potts };
        let model = Pairwise::from_edges(interaction, sites, q, &edges).ok()?;
        for number in owners.iter().copied().collect::<std::collections::BTreeSet<_>>() {
            terms[number].couplings = model
                .in_order(&edges, |edge| if owners[edge] == number { edges[edge].2 } else { 0.0 });
        }
        for term in &mut terms {
            // Energies that no value changes are constants.
            let even = |row: &[f64]| row.iter().all(|f| *f == row[0]);
            if !term.fields.is_empty() && term.fields.chunks_exact(q).all(even) {
                term.constant += term.fields.chunks_exact(q).map(|row| row[0]).sum::<f64>();
                term.fields = Vec::new();
            }
        }
        let bonds = offsets(lattice.shape().len(), &pairs);
        Some(model.with_terms(terms).on_lattice(lattice.clone()).with_offsets(bonds))
    }
}
