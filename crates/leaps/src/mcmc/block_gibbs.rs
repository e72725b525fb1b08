//! Block Gibbs sampling: a few sites are drawn jointly from their conditional distribution, block after block.
//!
//! A block of $n$ neighbouring site numbers takes each of its $q^n$ configurations with probability
//! in proportion to $e^{-U}$, the others held fixed. Two sites are the DISCS benchmark's default. Blocks
//! follow one another and wrap round the end; each step is reversible.

use super::moves::{check_target, pick_energy};
use super::{Info, Kernel};
use crate::device::Draw;
use crate::target::{Density, Target};
use crate::{Error, Result};

/// Most configurations a block may have.
const MAX_CONFIGURATIONS: usize = 1 << 20;

/// Joint conditional draws of blocks of sites. See the formula above.
#[derive(Clone, Debug)]
pub struct BlockGibbs {
    block: usize,
    start: usize,
    energies: Vec<f64>,
}

impl BlockGibbs {
    /// Blocks of `block` sites (at most all of them); two is usual.
    pub fn new(target: &dyn Target, block: usize) -> Result<Self> {
        check_target(target)?;
        let block = block.min(target.sites());
        let configurations = target.q().checked_pow(block as u32);
        match configurations {
            Some(n) if block >= 1 && n <= MAX_CONFIGURATIONS => {
                Ok(BlockGibbs { block, start: 0, energies: vec![0.0; n] })
            }
            _ => Err(Error::invalid(
                "block",
                block,
                format!("at least 1, with at most {MAX_CONFIGURATIONS} joint configurations"),
                "two sites are usual",
            )),
        }
    }
}

/// Write the energies of all configurations of the sites `start..start + block` (round the end), the
/// first site's value being the highest digit.
fn fill(
    model: &Density<'_>,
    x: &mut [u8],
    start: usize,
    block: usize,
    energy: f64,
    out: &mut [f64],
) {
    let site = start % x.len();
    let old = x[site];
    let below = out.len() / model.q();
    for (value, out) in out.chunks_exact_mut(below).enumerate() {
        let value = value as u8;
        let change = if value == old { 0.0 } else { model.change(x, site, value) };
        if block == 1 {
            out[0] = energy + change;
        } else {
            x[site] = value;
            fill(model, x, start + 1, block - 1, energy + change, out);
            x[site] = old;
        }
    }
}

impl Kernel for BlockGibbs {
    fn step<D: Draw>(&mut self, model: &Density<'_>, x: &mut [u8], draw: &mut D) -> Info {
        let (start, q) = (self.start, model.q());
        self.start = (start + self.block) % x.len();
        fill(model, x, start, self.block, 0.0, &mut self.energies);
        let mut code = pick_energy(&mut self.energies, draw);
        let mut changed = 0;
        for k in (0..self.block).rev() {
            let site = (start + k) % x.len();
            let value = (code % q) as u8;
            code /= q;
            changed += usize::from(x[site] != value);
            x[site] = value;
        }
        Info { acceptance: 1.0, changed }
    }

    fn energy_calls(&self, q: usize) -> f64 {
        (q as f64).powi(self.block as i32)
    }
}
