//! Grow one cluster from a random site and change it as a whole.
//!
//! Wolff, *Collective Monte Carlo updating for spin systems*, PRL 62, 361 (1989). From a uniformly chosen seed, every
//! satisfied bond between a site of the cluster and one outside is tried once and followed with probability
//! $1 - e^{-|A|}$. The cluster then takes a new value (two values: the other one at each site). Forwards and
//! backwards the inner bonds have the same probabilities, and the satisfied bonds on the boundary were
//! all refused, with probability $e^{-\sum|A|}$: their ratio cancels the change of the bond energy, so the move is
//! reversible with nothing to reject.
//!
//! Fields. Two values: a site in the value that its field favours is tied to a fixed ghost spin with
//! probability $1 - e^{-|f(0) - f(1)|}$; a cluster that reaches the ghost stays. More values: the
//! finished cluster is accepted with probability $\min(1, e^{-\Delta F})$, $F$ the field energy.
//!
//! Models of pairs that are neither Ising's nor attractive Potts models grow their cluster under an exchange of values that is drawn for every
//! step, and accept it in fields as more values do.

use std::sync::Arc;

use super::bonds::Bonds;
use super::exchanges::{ClusterMove, Clusters, Exchanges, OneCluster};
use super::moves::{accept, other_value};
use super::{Info, Kernel};
use crate::Result;
use crate::device::{Draw, threshold};
use crate::target::{Density, Target};

/// Single-cluster moves. See the definition above.
#[derive(Clone, Debug)]
pub struct Wolff(Clusters<OfValues, OneCluster>);

/// A cluster of equal values, or of two opposite ones.
#[derive(Clone, Debug)]
struct OfValues {
    bonds: Arc<Bonds>,
    /// Sites of the cluster in the order they joined, and one place more.
    members: Vec<u32>,
    /// Sites whose mark is the present epoch are in the cluster.
    marks: Vec<u32>,
    epoch: u32,
}

impl Wolff {
    /// The kernel for a model of pairs at weights `lambda`. Clusters of equal values are those of attractive couplings: where these turn round on a
    /// path, the step leaves the state alone.
    pub fn new(target: &dyn Target, lambda: &[f64]) -> Result<Self> {
        let sites = target.sites();
        Ok(Wolff(match Bonds::new(target, lambda)? {
            Some(bonds) => {
                let (members, marks) = (vec![0; sites + 1], vec![0; sites]);
                Clusters::Values(OfValues { bonds, members, marks, epoch: 0 })
            }
            None => Clusters::Exchanged(OneCluster::new(
                Exchanges::new("wolff", target, lambda)?,
                sites,
            )),
        }))
    }
}

impl OfValues {
    /// Grow a cluster of sites in value `old` and give them `new` as they join, so that a site in
    /// `old` is always outside. Returns the size, or `Err(size)` if the ghost was reached.
    #[inline(always)]
    fn grow_equal<D: Draw>(
        &mut self,
        x: &mut [u8],
        seed: usize,
        new: u8,
        ghost: bool,
        bits: impl Fn(&Bonds, usize) -> u64,
        draw: &mut D,
    ) -> std::result::Result<usize, usize> {
        let (bonds, members) = (&self.bonds, &mut self.members[..x.len() + 1]);
        let old = std::mem::replace(&mut x[seed], new);
        members[0] = seed as u32;
        let (mut head, mut tail) = (0, 1);
        while head < tail {
            let site = members[head] as usize;
            head += 1;
            if ghost && tied(bonds, site, old, draw) {
                return Err(tail);
            }
            let range = bonds.starts[site] as usize..bonds.starts[site + 1] as usize;
            for (k, &end) in range.clone().zip(&bonds.ends[range]) {
                let value = &mut x[end as usize];
                if *value == old {
                    // Whether the bond is active is a coin's toss: no branch on it.
                    let joins = draw.chance_bits(bits(bonds, k));
                    *value = if joins { new } else { old };
                    members[tail] = end;
                    tail += usize::from(joins);
                }
            }
        }
        Ok(tail)
    }

    /// The same for two values and bonds of both signs, marking members and leaving `x` as it is.
    fn grow_signed<D: Draw>(
        &mut self,
        x: &[u8],
        seed: usize,
        ghost: bool,
        draw: &mut D,
    ) -> std::result::Result<usize, usize> {
        if self.epoch == u32::MAX {
            self.marks.fill(0);
            self.epoch = 0;
        }
        self.epoch += 1;
        let bonds = &self.bonds;
        self.marks[seed] = self.epoch;
        self.members[0] = seed as u32;
        let (mut head, mut tail) = (0, 1);
        while head < tail {
            let site = self.members[head] as usize;
            head += 1;
            let value = x[site];
            if ghost && tied(bonds, site, value, draw) {
                return Err(tail);
            }
            for k in bonds.starts[site] as usize..bonds.starts[site + 1] as usize {
                let end = bonds.ends[k] as usize;
                let satisfied = (x[end] == value) != bonds.opposed[k];
                if satisfied
                    && self.marks[end] != self.epoch
                    && draw.chance_bits(bonds.thresholds[k])
                {
                    self.marks[end] = self.epoch;
                    self.members[tail] = end as u32;
                    tail += 1;
                }
            }
        }
        Ok(tail)
    }
}

/// Whether a site in `value` (of two) ties its cluster to the ghost.
#[inline]
fn tied<D: Draw>(bonds: &Bonds, site: usize, value: u8, draw: &mut D) -> bool {
    let loss =
        bonds.fields[2 * site + 1 - value as usize] - bonds.fields[2 * site + value as usize];
    loss > 0.0 && draw.chance_bits(threshold(-(-loss).exp_m1()))
}

impl Kernel for Wolff {
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
        let seed = draw.below(x.len());
        let q = self.bonds.q;
        let (old, field) = (x[seed], self.bonds.any_field);
        let ghost = field && q == 2;
        if self.bonds.any_opposed {
            return match self.grow_signed(x, seed, ghost, draw) {
                Ok(size) => {
                    for &site in &self.members[..size] {
                        x[site as usize] ^= 1;
                    }
                    Info { acceptance: 1.0, changed: size }
                }
                Err(_) => Info::default(),
            };
        }
        let new = other_value(old, q, draw);
        let grown = match self.bonds.uniform {
            Some(bits) => self.grow_equal(x, seed, new, ghost, |_, _| bits, draw),
            None => self.grow_equal(x, seed, new, ghost, |bonds, k| bonds.thresholds[k], draw),
        };
        let (size, accepted, acceptance) = match grown {
            Ok(size) if field && q > 2 => {
                let fields = &self.bonds.fields;
                let mut change = 0.0;
                for &site in &self.members[..size] {
                    let row = &fields[site as usize * q..][..q];
                    change += row[new as usize] - row[old as usize];
                }
                let (accepted, acceptance) = accept(-change, draw);
                (size, accepted, acceptance)
            }
            Ok(size) => (size, true, 1.0),
            Err(size) => (size, false, 0.0),
        };
        if !accepted {
            for &site in &self.members[..size] {
                x[site as usize] = old;
            }
        }
        Info { acceptance, changed: if accepted { size } else { 0 } }
    }
}
