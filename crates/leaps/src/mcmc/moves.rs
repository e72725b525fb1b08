//! Share the small moves that kernels are made of.

use crate::device::{Draw, threshold};
use crate::target::{Density, Target};
use crate::{Error, Result};

/// A uniform choice among the values other than `old`; two values need no draw.
#[inline]
pub(super) fn other_value<D: Draw>(old: u8, q: usize, draw: &mut D) -> u8 {
    if q == 2 {
        return 1 - old;
    }
    let value = draw.below(q - 1) as u8;
    value + u8::from(value >= old)
}

/// Accept with probability `min(1, exp(log_ratio))`; also returns that probability. What is not a
/// number is rejected, and reported as it is.
#[inline]
pub(super) fn accept<D: Draw>(log_ratio: f64, draw: &mut D) -> (bool, f64) {
    if log_ratio >= 0.0 {
        return (true, 1.0);
    }
    let probability = log_ratio.exp();
    (draw.chance_bits(threshold(probability)), probability)
}

/// Turn `x` into `y` and return `U(y) - U(x)`: by single changes where those are cheap, else by two
/// energies.
pub(super) fn move_to(model: &Density<'_>, x: &mut [u8], y: &[u8]) -> f64 {
    if model.target.pairwise().is_none() && model.target.lattice_model().is_none() {
        let before = model.potential(x);
        x.copy_from_slice(y);
        return model.potential(x) - before;
    }
    let mut change = 0.0;
    for site in 0..y.len() {
        if x[site] != y[site] {
            change += model.change(x, site, y[site]);
            x[site] = y[site];
        }
    }
    change
}

/// Draw one index with probability in proportion to `exp(-energies)`; the energies are overwritten.
pub(super) fn pick_energy<D: Draw>(energies: &mut [f64], draw: &mut D) -> usize {
    let lowest = energies.iter().copied().fold(f64::INFINITY, f64::min);
    for energy in energies.iter_mut() {
        *energy = (lowest - *energy).exp();
    }
    draw.pick(energies)
}

/// Number of sites in which `x` and `y` differ.
pub(super) fn distance(x: &[u8], y: &[u8]) -> usize {
    x.iter().zip(y).filter(|(a, b)| a != b).count()
}

/// Refuse a target whose states no kernel could hold.
pub(super) fn check_target(target: &dyn Target) -> Result<()> {
    if target.sites() == 0 || target.sites() > u32::MAX as usize {
        return Err(Error::invalid(
            "sites",
            target.sites(),
            "from 1 to 2^32 - 1",
            "give the target sites",
        ));
    }
    if !(2..=255).contains(&target.q()) {
        return Err(Error::invalid("q", target.q(), "from 2 to 255", "a site needs a choice"));
    }
    Ok(())
}
