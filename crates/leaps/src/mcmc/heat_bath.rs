//! Sweep over the sites, drawing each from its conditional distribution.
//!
//! Site $i$ becomes $s$ with probability $e^{-\Delta U_i(s)} / \sum_{s'} e^{-\Delta U_i(s')}$, the law of $x_i$ given
//! all other sites, which leaves $\rho$ invariant; so does the sweep in fixed order.

use super::gibbs::conditional;
use super::moves::check_target;
use super::{Info, Kernel};
use crate::Result;
use crate::device::Draw;
use crate::target::{Density, Target};

/// Heat-bath sweeps. See the formula above.
#[derive(Clone, Debug)]
pub struct HeatBath {
    sites: usize,
    energies: Vec<f64>,
}

impl HeatBath {
    /// The kernel for a target.
    pub fn new(target: &dyn Target) -> Result<Self> {
        check_target(target)?;
        Ok(HeatBath { sites: target.sites(), energies: vec![0.0; target.q()] })
    }
}

impl Kernel for HeatBath {
    fn step<D: Draw>(&mut self, model: &Density<'_>, x: &mut [u8], draw: &mut D) -> Info {
        let mut changed = 0;
        for site in 0..x.len() {
            let value = conditional(model, x, site, &mut self.energies, draw);
            changed += usize::from(x[site] != value);
            x[site] = value;
        }
        Info { acceptance: 1.0, changed }
    }

    /// One per value and site.
    fn energy_calls(&self, q: usize) -> f64 {
        (self.sites * q) as f64
    }

    fn reversible(&self) -> bool {
        false
    }
}
