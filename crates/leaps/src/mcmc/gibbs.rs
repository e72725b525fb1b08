//! Gibbs sampling: one site after the other is drawn from its conditional distribution.
//!
//! The DISCS benchmark's "Gibbs": one step is one site. Each step leaves $\rho$ invariant and is reversible;
//! the position is kept in the kernel.

use super::moves::{check_target, pick_energy};
use super::{Info, Kernel};
use crate::Result;
use crate::device::{Draw, threshold};
use crate::target::{Density, Target};

/// A draw of the value at `site` given all other sites; `energies` is scratch for one number a value.
#[inline]
pub(super) fn conditional<D: Draw>(
    model: &Density<'_>,
    x: &mut [u8],
    site: usize,
    energies: &mut [f64],
    draw: &mut D,
) -> u8 {
    let old = x[site];
    if energies.len() == 2 {
        return flipped(old, model.change(x, site, 1 - old), draw);
    }
    model.site_changes(x, site, energies);
    pick_energy(energies, draw) as u8
}

/// One of two values in place of `old`, given the change of the potential that the other brings.
#[inline]
fn flipped<D: Draw>(old: u8, change: f64, draw: &mut D) -> u8 {
    let flips = draw.chance_bits(threshold(1.0 / (1.0 + change.exp())));
    if flips { 1 - old } else { old }
}

/// A draw of a value in place of `old`, given the changes of the potential that each brings; they are overwritten.
#[inline]
pub(super) fn drawn<D: Draw>(old: u8, changes: &mut [f64], draw: &mut D) -> u8 {
    match changes {
        &mut [zero, one] => flipped(old, if old == 0 { one } else { zero }, draw),
        changes => pick_energy(changes, draw) as u8,
    }
}

/// One conditional draw a step, the sites in turn. See the formula above.
#[derive(Clone, Debug)]
pub struct Gibbs {
    site: usize,
    energies: Vec<f64>,
}

impl Gibbs {
    /// The kernel for a target, starting at site 0.
    pub fn new(target: &dyn Target) -> Result<Self> {
        check_target(target)?;
        Ok(Gibbs { site: 0, energies: vec![0.0; target.q()] })
    }
}

impl Kernel for Gibbs {
    fn step<D: Draw>(&mut self, model: &Density<'_>, x: &mut [u8], draw: &mut D) -> Info {
        let site = self.site;
        self.site = (site + 1) % x.len();
        let value = conditional(model, x, site, &mut self.energies, draw);
        let changed = usize::from(x[site] != value);
        x[site] = value;
        Info { acceptance: 1.0, changed }
    }

    fn energy_calls(&self, q: usize) -> f64 {
        q as f64
    }
}
