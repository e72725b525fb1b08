//! The Hamming-ball sampler: a state is drawn from the ball round an auxiliary one.
//!
//! Titsias and Yau, *The Hamming ball sampler*, JASA 2017. Inside a block of sites let $B(x)$ be the states at
//! most `radius` changes from $x$. Draw $u$ uniformly from $B(x)$, then $y$ from $B(u)$ with probability in
//! proportion to $e^{-U(y)}$. Since $u \in B(x)$ exactly if $x \in B(u)$ and all balls have one size, both are
//! conditional draws of the joint law $\rho(x)\,[u \in B(x)]/|B|$, so that the step is invariant and reversible.
//! DISCS: blocks of 10 sites in turn, radius 1.

use super::moves::{check_target, other_value, pick_energy};
use super::{Info, Kernel};
use crate::device::Draw;
use crate::target::{Density, Target};
use crate::{Error, Result};

/// Most states a ball may have.
const MAX_BALL: f64 = (1 << 20) as f64;

/// Draws from Hamming balls. See the definition above.
#[derive(Clone, Debug)]
pub struct HammingBall {
    radius: usize,
    start: usize,
    /// Sites of the block, then scratch for choosing some of them.
    sites: Vec<usize>,
    chosen: Vec<usize>,
    old: Vec<u8>,
    /// Number of states at each distance from the centre.
    shells: Vec<f64>,
    energies: Vec<f64>,
}

impl HammingBall {
    /// Blocks of `block` sites (at most all of them) and balls of `radius` changes; 10 and 1 are usual.
    pub fn new(target: &dyn Target, block: usize, radius: usize) -> Result<Self> {
        check_target(target)?;
        let block = block.min(target.sites());
        let mut shells = vec![1.0];
        for k in 1..=radius.min(block) {
            let last = shells[k - 1];
            let choices = ((block + 1 - k) * (target.q() - 1)) as f64;
            shells.push(last * choices / k as f64);
        }
        let ball: f64 = shells.iter().sum();
        if block == 0 || radius == 0 || ball > MAX_BALL {
            return Err(Error::invalid(
                "radius",
                radius,
                format!("at least 1, like the block, with at most {MAX_BALL} states in the ball"),
                "blocks of 10 sites and radius 1 are usual",
            ));
        }
        Ok(HammingBall {
            radius: radius.min(block),
            start: 0,
            sites: vec![0; block],
            chosen: (0..block).collect(),
            old: vec![0; block],
            shells,
            energies: Vec::with_capacity(ball as usize),
        })
    }
}

/// List the energies of the ball round `x`, changing `sites` from the first on, depth first.
fn list(
    model: &Density<'_>,
    x: &mut [u8],
    sites: &[usize],
    radius: usize,
    energy: f64,
    out: &mut Vec<f64>,
) {
    out.push(energy);
    if radius == 0 {
        return;
    }
    for (k, &site) in sites.iter().enumerate() {
        let old = x[site];
        for value in (0..model.q() as u8).filter(|&value| value != old) {
            let change = model.change(x, site, value);
            x[site] = value;
            list(model, x, &sites[k + 1..], radius - 1, energy + change, out);
            x[site] = old;
        }
    }
}

/// Turn `x` into member number `left` of the order of [`list`]; false if the ball ends before.
fn select(x: &mut [u8], q: usize, sites: &[usize], radius: usize, left: &mut usize) -> bool {
    if *left == 0 {
        return true;
    }
    *left -= 1;
    if radius == 0 {
        return false;
    }
    for (k, &site) in sites.iter().enumerate() {
        let old = x[site];
        for value in (0..q as u8).filter(|&value| value != old) {
            x[site] = value;
            if select(x, q, &sites[k + 1..], radius - 1, left) {
                return true;
            }
        }
        x[site] = old;
    }
    false
}

impl Kernel for HammingBall {
    fn step<D: Draw>(&mut self, model: &Density<'_>, x: &mut [u8], draw: &mut D) -> Info {
        let (block, q) = (self.sites.len(), model.q());
        for k in 0..block {
            let site = (self.start + k) % x.len();
            (self.sites[k], self.old[k]) = (site, x[site]);
        }
        self.start = (self.start + block) % x.len();
        // u: a distance by the size of its shell, that many different sites, other values there.
        let distance = draw.pick(&self.shells);
        for k in 0..distance {
            let other = k + draw.below(block - k);
            self.chosen.swap(k, other);
            let site = self.sites[self.chosen[k]];
            x[site] = other_value(x[site], q, draw);
        }
        self.energies.clear();
        list(model, x, &self.sites, self.radius, 0.0, &mut self.energies);
        let mut member = pick_energy(&mut self.energies, draw);
        select(x, q, &self.sites, self.radius, &mut member);
        let changed = self.sites.iter().zip(&self.old).filter(|&(&i, &old)| x[i] != old).count();
        Info { acceptance: 1.0, changed }
    }

    /// `n (q - 1) + 1` for blocks of `n` sites, as DISCS counts radius 1; in general the size of the ball.
    fn energy_calls(&self, _values: usize) -> f64 {
        self.shells.iter().sum()
    }
}
