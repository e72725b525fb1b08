//! Swendsen-Wang updates: the whole system is cut into clusters, and every cluster is redrawn.
//!
//! Swendsen and Wang, *Nonuniversal critical dynamics in Monte Carlo simulations*, PRL 58, 86 (1987). Every satisfied
//! bond becomes active with probability $1 - e^{-|A|}$; active bonds tie sites to clusters. Given the active
//! bonds the only energy left is that of the fields, so that each cluster $C$ takes value $s$ with
//! probability in proportion to $\exp(-\sum_{i \in C} f_i(s))$ (two values: stays or flips as a whole, with
//! $\exp(-\sum_{i \in C} f_i(x_i))$ against the flipped one). Both halves are conditional draws of one joint law
//! (Edwards and Sokal 1988), so that the step is invariant and reversible, with fields exact and no ghost spin.
//!
//! Models of pairs that are neither Ising's nor attractive Potts models have clusters under an exchange of values that is drawn for every step,
//! of which each is exchanged with the probability that its fields give.

use std::sync::Arc;

use super::bonds::Bonds;
use super::exchanges::{AllClusters, ClusterMove, Clusters, Exchanges};
use super::{Info, Kernel};
use crate::Result;
use crate::device::Draw;
use crate::target::{Density, Target};

/// Moves of all clusters. See the definition above.
#[derive(Clone, Debug)]
pub struct SwendsenWang(Clusters<OfValues, AllClusters>);

/// Clusters of equal values, or of two opposite ones.
#[derive(Clone, Debug)]
struct OfValues {
    bonds: Arc<Bonds>,
    /// Every bond once: its ends and its place among the directed bonds.
    pairs: Arc<[[u32; 2]]>,
    places: Arc<[u32]>,
    /// Numbers of the active bonds, and one place more.
    active: Vec<u32>,
    /// A forest: the parent of a site is never a later site; roots are their own parents.
    parents: Vec<u32>,
    /// New value of a cluster (two values: 1 if it flips), at its root.
    choices: Vec<u8>,
    /// Field energies of a cluster for every choice, at its root.
    energies: Vec<f64>,
}

impl SwendsenWang {
    /// The kernel for a model of pairs at weights `lambda`. Clusters of equal values are those of attractive couplings: where these turn round on a
    /// path, the step leaves the state alone.
    pub fn new(target: &dyn Target, lambda: &[f64]) -> Result<Self> {
        Ok(SwendsenWang(match Bonds::new(target, lambda)? {
            Some(bonds) => Clusters::Values(OfValues::new(target.sites(), bonds)),
            None => {
                let exchanges = Exchanges::new("swendsen-wang", target, lambda)?;
                Clusters::Exchanged(AllClusters::new(exchanges, target.sites()))
            }
        }))
    }
}

impl OfValues {
    fn new(sites: usize, bonds: Arc<Bonds>) -> Self {
        let (mut pairs, mut places) = (Vec::new(), Vec::new());
        for site in 0..sites as u32 {
            for k in bonds.starts[site as usize]..bonds.starts[site as usize + 1] {
                if site < bonds.ends[k as usize] {
                    pairs.push([site, bonds.ends[k as usize]]);
                    places.push(k);
                }
            }
        }
        OfValues {
            active: vec![0; pairs.len() + 1],
            parents: vec![0; sites],
            choices: vec![0; sites],
            energies: vec![0.0; sites * bonds.q],
            bonds,
            pairs: pairs.into(),
            places: places.into(),
        }
    }

    /// List the active bonds; returns how many.
    #[inline(always)]
    fn activate<D: Draw>(
        &mut self,
        x: &[u8],
        satisfied: impl Fn(&Bonds, usize, bool) -> bool,
        bits: impl Fn(&Bonds, usize) -> u64,
        draw: &mut D,
    ) -> usize {
        let mut count = 0;
        for (pair, (&[i, j], &place)) in self.pairs.iter().zip(self.places.iter()).enumerate() {
            if satisfied(&self.bonds, place as usize, x[i as usize] == x[j as usize]) {
                // Whether the bond is active is a coin's toss: no branch on it.
                let active = draw.chance_bits(bits(&self.bonds, place as usize));
                self.active[count] = pair as u32;
                count += usize::from(active);
            }
        }
        count
    }

    /// Join the ends of the active bonds, then point every site straight at its root.
    fn join(&mut self, count: usize) {
        let parents = &mut self.parents[..];
        for (site, parent) in parents.iter_mut().enumerate() {
            *parent = site as u32;
        }
        for &pair in &self.active[..count] {
            let [i, j] = self.pairs[pair as usize];
            let (a, b) = (root(parents, i), root(parents, j));
            parents[a.max(b) as usize] = a.min(b);
        }
        for site in 0..parents.len() {
            // Parents come earlier, so theirs is a root already.
            parents[site] = parents[parents[site] as usize];
        }
    }
}

/// The root of a site in a forest whose parents never come later than their children.
#[inline]
pub(super) fn root(parents: &mut [u32], mut site: u32) -> u32 {
    loop {
        let parent = parents[site as usize];
        if parent == site {
            return site;
        }
        let grandparent = parents[parent as usize];
        parents[site as usize] = grandparent;
        site = grandparent;
    }
}

impl Kernel for SwendsenWang {
    fn step<D: Draw>(&mut self, model: &Density<'_>, x: &mut [u8], draw: &mut D) -> Info {
        self.0.step(model, x, draw)
    }

    fn energy_calls(&self, _values: usize) -> f64 {
        self.0.energy_calls()
    }
}

impl ClusterMove for OfValues {
    fn step<D: Draw>(&mut self, model: &Density<'_>, x: &mut [u8], draw: &mut D) -> Info {
        if !self.bonds.update(model) {
            return Info::default();
        }
        let count = match (self.bonds.any_opposed, self.bonds.uniform) {
            (false, Some(bits)) => self.activate(x, |_, _, equal| equal, |_, _| bits, draw),
            (false, None) => {
                self.activate(x, |_, _, equal| equal, |bonds, k| bonds.thresholds[k], draw)
            }
            (true, _) => self.activate(
                x,
                |bonds, k, equal| equal != bonds.opposed[k],
                |bonds, k| bonds.thresholds[k],
                draw,
            ),
        };
        self.join(count);
        let q = self.bonds.q;
        if self.bonds.any_field {
            self.energies.fill(0.0);
            for site in 0..x.len() {
                let root = self.parents[site] as usize;
                for choice in 0..q {
                    let value = if q == 2 { choice ^ x[site] as usize } else { choice };
                    self.energies[root * q + choice] += self.bonds.fields[site * q + value];
                }
            }
        }
        let mut changed = 0;
        for site in 0..x.len() {
            let root = self.parents[site] as usize;
            if root == site {
                self.choices[site] = if self.bonds.any_field {
                    let energies = &mut self.energies[site * q..][..q];
                    super::moves::pick_energy(energies, draw) as u8
                } else if q == 2 {
                    u8::from(draw.chance_bits(1 << 63))
                } else {
                    draw.below(q) as u8
                };
            }
            let choice = self.choices[root];
            let value = if q == 2 { x[site] ^ choice } else { choice };
            changed += usize::from(value != x[site]);
            x[site] = value;
        }
        Info { acceptance: 1.0, changed }
    }
}
