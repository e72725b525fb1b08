//! Moves of one cluster and of all clusters under an exchange of values.

use super::{Bond, ClusterMove, Exchanges};
use crate::device::{Draw, threshold};
use crate::mcmc::Info;
use crate::mcmc::gibbs::conditional;
use crate::mcmc::moves::{accept, distance, pick_energy};
use crate::mcmc::swendsen_wang::root;
use crate::target::Density;

/// A cluster move, and the sweep that goes with it where exchanges do not join all values.
fn with_sweep<D: Draw>(
    sweeps: bool,
    model: &Density<'_>,
    x: &mut [u8],
    draw: &mut D,
    clusters: impl FnOnce(&mut [u8], &mut D) -> Info,
) -> Info {
    if !sweeps {
        return clusters(x, draw);
    }
    let (before, mut energies) = (x.to_vec(), vec![0.0; model.q()]);
    let mut site_by_site = |x: &mut [u8], site: usize, draw: &mut D| {
        x[site] = conditional(model, x, site, &mut energies, draw);
    };
    let info = if draw.chance_bits(1 << 63) {
        (0..x.len()).for_each(|site| site_by_site(x, site, draw));
        clusters(x, draw)
    } else {
        let info = clusters(x, draw);
        (0..x.len()).rev().for_each(|site| site_by_site(x, site, draw));
        info
    };
    Info { changed: distance(x, &before), ..info }
}

/// What a step costs: one is charged for clusters, so that ratios exist.
fn energy_calls(exchanges: &Exchanges, sites: usize) -> f64 {
    let fixed = &exchanges.fixed;
    1.0 + if fixed.sweeps { (sites * fixed.q) as f64 } else { 0.0 }
}

/// One cluster, grown from a random site.
#[derive(Clone, Debug)]
pub(in crate::mcmc) struct OneCluster {
    exchanges: Exchanges,
    members: Vec<u32>,
    inside: Vec<bool>,
}

impl OneCluster {
    pub fn new(exchanges: Exchanges, sites: usize) -> Self {
        OneCluster { exchanges, members: Vec::new(), inside: vec![false; sites] }
    }

    fn cluster<D: Draw>(&mut self, x: &mut [u8], draw: &mut D) -> Info {
        let OneCluster { exchanges, members, inside } = self;
        let fixed = &*exchanges.fixed;
        let exchange = &fixed.exchanges[draw.below(fixed.exchanges.len())];
        let seed = draw.below(x.len());
        if exchange[x[seed] as usize] == x[seed] {
            return Info { acceptance: 1.0, changed: 0 };
        }
        members.clear();
        members.push(seed as u32);
        inside[seed] = true;
        let (mut head, mut change) = (0, 0.0);
        while head < members.len() {
            let site = members[head] as usize;
            head += 1;
            change += exchanges.field(site, x[site], exchange);
            for &bond in &fixed.around[fixed.starts[site] as usize..fixed.starts[site + 1] as usize]
            {
                let [a, b] = fixed.bonds[bond as usize].ends;
                let end = if a as usize == site { b } else { a };
                if inside[end as usize] {
                    continue;
                }
                let gain = exchanges.gain(bond, exchange, x);
                if gain > 0.0 && draw.chance_bits(threshold(-(-gain).exp_m1())) {
                    inside[end as usize] = true;
                    members.push(end);
                }
            }
        }
        let (accepted, acceptance) = match exchanges.now.any_field {
            true => accept(-change, draw),
            false => (true, 1.0),
        };
        for &site in &*members {
            let site = site as usize;
            inside[site] = false;
            if accepted {
                x[site] = exchange[x[site] as usize];
            }
        }
        Info { acceptance, changed: if accepted { members.len() } else { 0 } }
    }
}

impl ClusterMove for OneCluster {
    fn step<D: Draw>(&mut self, model: &Density<'_>, x: &mut [u8], draw: &mut D) -> Info {
        self.exchanges.update(model);
        let sweeps = self.exchanges.fixed.sweeps;
        with_sweep(sweeps, model, x, draw, |x, draw| self.cluster(x, draw))
    }

    fn energy_calls(&self) -> f64 {
        energy_calls(&self.exchanges, self.inside.len())
    }
}

/// All clusters, of which every one draws whether it is exchanged.
#[derive(Clone, Debug)]
pub(in crate::mcmc) struct AllClusters {
    exchanges: Exchanges,
    /// A forest: the parent of a site is never a later site; roots are their own parents.
    parents: Vec<u32>,
    /// What an exchange adds to the energies of a cluster's sites, at its root.
    changes: Vec<f64>,
    /// Whether a cluster is exchanged, at its root.
    chosen: Vec<bool>,
}

impl AllClusters {
    pub fn new(exchanges: Exchanges, sites: usize) -> Self {
        let (parents, changes, chosen) = (vec![0; sites], vec![0.0; sites], vec![false; sites]);
        AllClusters { exchanges, parents, changes, chosen }
    }

    fn clusters<D: Draw>(&mut self, x: &mut [u8], draw: &mut D) -> Info {
        let AllClusters { exchanges, parents, changes, chosen } = self;
        let fixed = &*exchanges.fixed;
        let exchange = &fixed.exchanges[draw.below(fixed.exchanges.len())];
        parents.iter_mut().zip(0..).for_each(|(parent, site)| *parent = site);
        for (bond, &Bond { ends: [i, j], .. }) in fixed.bonds.iter().enumerate() {
            let gain = exchanges.gain(bond as u32, exchange, x);
            if gain > 0.0 && draw.chance_bits(threshold(-(-gain).exp_m1())) {
                let (a, b) = (root(parents, i), root(parents, j));
                parents[a.max(b) as usize] = a.min(b);
            }
        }
        for site in 0..parents.len() {
            // Parents come earlier, so theirs is a root already.
            parents[site] = parents[parents[site] as usize];
        }
        let fields = exchanges.now.any_field;
        if fields {
            changes.fill(0.0);
            for (site, &value) in x.iter().enumerate() {
                changes[parents[site] as usize] += exchanges.field(site, value, exchange);
            }
        }
        let mut changed = 0;
        for site in 0..x.len() {
            let other = exchange[x[site] as usize];
            if other == x[site] {
                continue; // alone in its cluster, and it stays
            }
            let root = parents[site] as usize;
            if root == site {
                chosen[site] = match fields {
                    true => pick_energy(&mut [0.0, changes[site]], draw) == 1,
                    false => draw.chance_bits(1 << 63),
                };
            }
            if chosen[root] {
                x[site] = other;
                changed += 1;
            }
        }
        Info { acceptance: 1.0, changed }
    }
}

impl ClusterMove for AllClusters {
    fn step<D: Draw>(&mut self, model: &Density<'_>, x: &mut [u8], draw: &mut D) -> Info {
        self.exchanges.update(model);
        let sweeps = self.exchanges.fixed.sweeps;
        with_sweep(sweeps, model, x, draw, |x, draw| self.clusters(x, draw))
    }

    fn energy_calls(&self) -> f64 {
        energy_calls(&self.exchanges, self.parents.len())
    }
}
