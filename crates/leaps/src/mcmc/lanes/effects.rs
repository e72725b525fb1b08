//! What the neighbours of a site do to the energies of its values, in one form for pairs and for clusters.

use std::collections::HashMap;

use super::plan::too_large;
use crate::Result;
use crate::target::{LatticeModel, Pairwise, Target};

/// Most combinations of the values of a cluster's other sites: one byte.
const MOST: usize = 256;
/// Most different surroundings of sites; beyond, models are not uniform, and tables would be as many as sites.
const MOST_KINDS: usize = 256;

/// What one cluster does to a site.
#[derive(Clone, Debug)]
pub(super) struct Effect {
    /// Its other sites.
    pub(super) others: usize,
    /// The energies of term `k` for a value of the site, at `[combination][k * q + value]`; the last of the others varies fastest.
    pub(super) energies: Vec<Vec<f64>>,
    /// The site's part of them when energies are summed over all sites.
    pub(super) share: f64,
}

/// Sites that their surroundings affect alike.
#[derive(Debug)]
pub(super) struct Kind {
    /// The effects of its clusters, in order, as in [`Effects::ends`].
    pub(super) clusters: Vec<u32>,
    /// `[k * q + value]`.
    pub(super) fields: Vec<f64>,
}

/// All sites with their clusters.
#[derive(Debug, Default)]
pub(super) struct Effects {
    pub(super) q: usize,
    pub(super) effects: Vec<Effect>,
    pub(super) kinds: Vec<Kind>,
    /// The kind of every site.
    pub(super) of_site: Vec<u32>,
    /// The other sites of the clusters of site `i` are `ends[starts[i]..starts[i + 1]]`.
    pub(super) starts: Vec<u32>,
    pub(super) ends: Vec<u32>,
    pub(super) constants: Vec<f64>,
    known: HashMap<(Vec<u32>, Vec<u64>), u32>,
}

impl Effects {
    /// Those of pairs.
    pub(super) fn of_pairs(model: &Pairwise) -> Result<Self> {
        let (q, terms) = (model.q(), model.energy_terms());
        let constants = terms.iter().map(|term| term.constant).collect();
        let mut all = Effects { q, starts: vec![0], constants, ..Effects::default() };
        let mut known: HashMap<Vec<u64>, u32> = HashMap::new();
        for site in 0..model.sites() {
            let mut clusters = Vec::new();
            for bond in model.directed(site) {
                let couplings: Vec<f64> = terms
                    .iter()
                    .map(|term| term.couplings.get(bond).copied().unwrap_or(0.0))
                    .collect();
                let key = couplings.iter().map(|coupling| coupling.to_bits()).collect();
                let next = all.effects.len() as u32;
                let effect = *known.entry(key).or_insert(next);
                if effect == next {
                    let row = |end: usize| {
                        let mut row = vec![0.0; couplings.len() * q];
                        row.iter_mut()
                            .skip(end)
                            .step_by(q)
                            .zip(&couplings)
                            .for_each(|(energy, coupling)| *energy = -coupling);
                        row
                    };
                    let energies = (0..q).map(row).collect();
                    all.effects.push(Effect { others: 1, energies, share: 0.5 });
                }
                clusters.push(effect);
            }
            let fields = terms.iter().flat_map(|term| {
                let own = term.fields.get(site * q..(site + 1) * q);
                own.map_or_else(|| vec![0.0; q], <[f64]>::to_vec)
            });
            all.add(clusters, fields.collect(), model.neighbours(site))?;
        }
        Ok(all)
    }

    /// Those of clusters of any size.
    pub(super) fn of_clusters(model: &LatticeModel) -> Result<Self> {
        let (q, terms) = (model.q(), model.terms());
        let constants = vec![0.0; terms];
        let mut all = Effects { q, starts: vec![0], constants, ..Effects::default() };
        let mut known = HashMap::new();
        for site in 0..model.sites() {
            let (mut clusters, mut ends) = (Vec::new(), Vec::new());
            for seen in model.through(site) {
                let next = all.effects.len() as u32;
                let scale = seen.scale.to_bits();
                let key = (seen.energies.as_ptr(), seen.stride, seen.strides.to_vec(), scale);
                let effect = *known.entry(key).or_insert(next);
                if effect == next {
                    let others = seen.strides.len();
                    let all_of_them = q.checked_pow(others as u32).filter(|&n| n <= MOST);
                    let combinations = all_of_them.ok_or_else(too_large)?;
                    let row = |combination: usize| {
                        let (mut rest, mut base) = (combination, 0);
                        for stride in seen.strides.iter().rev() {
                            base += rest % q * stride;
                            rest /= q;
                        }
                        let mut row = vec![0.0; terms * q];
                        let own = seen.energies[base..].iter().step_by(seen.stride);
                        row[seen.term * q..][..q]
                            .iter_mut()
                            .zip(own)
                            .for_each(|(e, own)| *e = seen.scale * own);
                        row
                    };
                    let energies = (0..combinations).map(row).collect();
                    let share = 1.0 / (others + 1) as f64;
                    all.effects.push(Effect { others, energies, share });
                }
                clusters.push(effect);
                ends.extend_from_slice(seen.others);
            }
            let mut fields = vec![0.0; terms * q];
            for value in 0..q {
                let own = model.site_energies(site, value);
                fields.iter_mut().skip(value).step_by(q).zip(own).for_each(|(f, own)| *f = own);
            }
            all.add(clusters, fields, &ends)?;
        }
        Ok(all)
    }

    /// Add the next site, with its clusters in the order of their effects: sites that list them differently are alike.
    fn add(&mut self, clusters: Vec<u32>, fields: Vec<f64>, ends: &[u32]) -> Result<()> {
        let mut from = 0;
        let mut lists: Vec<(u32, &[u32])> = Vec::with_capacity(clusters.len());
        for effect in clusters {
            let others = self.effects[effect as usize].others;
            lists.push((effect, &ends[from..from + others]));
            from += others;
        }
        lists.sort_by_key(|(effect, _)| *effect);
        let clusters: Vec<u32> = lists.iter().map(|(effect, _)| *effect).collect();
        let bits = fields.iter().map(|field| field.to_bits()).collect();
        let next = self.kinds.len() as u32;
        let kind = *self.known.entry((clusters.clone(), bits)).or_insert(next);
        if kind == next {
            if self.kinds.len() == MOST_KINDS {
                return Err(too_large());
            }
            self.kinds.push(Kind { clusters, fields });
        }
        self.of_site.push(kind);
        self.ends.extend(lists.iter().flat_map(|(_, ends)| *ends));
        self.starts.push(self.ends.len() as u32);
        Ok(())
    }
}
