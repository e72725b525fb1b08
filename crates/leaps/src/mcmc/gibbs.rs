//! Draw one site from its conditional distribution, the sites in turn.
//!
//! The DISCS benchmark's "Gibbs": one step is one site. Each step leaves $\rho$ invariant and is reversible;
//! the position is kept in the kernel.

use super::moves::{check_target, pick_energy};
use super::{Info, Kernel};
use crate::Result;
use crate::device::{Draw, threshold};
use crate::target::{Model, Target};

/// A draw of the token at `site` given all other sites; `energies` is scratch for one number a token.
#[inline]
pub(super) fn conditional<D: Draw>(
    model: &Model<'_>,
    x: &mut [u8],
    site: usize,
    energies: &mut [f64],
    draw: &mut D,
) -> u8 {
    let old = x[site];
    if energies.len() == 2 {
        let change = model.change(x, site, 1 - old);
        let flips = draw.chance_bits(threshold(1.0 / (1.0 + change.exp())));
        return if flips { 1 - old } else { old };
    }
    for (token, energy) in energies.iter_mut().enumerate() {
        let token = token as u8;
        *energy = if token == old { 0.0 } else { model.change(x, site, token) };
    }
    pick_energy(energies, draw) as u8
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
        Ok(Gibbs { site: 0, energies: vec![0.0; target.tokens()] })
    }
}

impl Kernel for Gibbs {
    fn step<D: Draw>(&mut self, model: &Model<'_>, x: &mut [u8], draw: &mut D) -> Info {
        let site = self.site;
        self.site = (site + 1) % x.len();
        let token = conditional(model, x, site, &mut self.energies, draw);
        let changed = usize::from(x[site] != token);
        x[site] = token;
        Info { acceptance: 1.0, changed }
    }

    fn energy_calls(&self, tokens: usize) -> f64 {
        tokens as f64
    }
}
