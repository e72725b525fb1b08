//! Sweep over the sites with Metropolis proposals.
//!
//! Site by site in fixed order, propose one of the other values, each with probability $1/(q-1)$, and
//! accept with probability $\min(1, e^{-\Delta U})$. Each site's move satisfies detailed balance, so the
//! sweep leaves $\rho$ invariant; being in fixed order it is not reversible itself.

use super::moves::{accept, check_target, other_value};
use super::{Info, Kernel};
use crate::Result;
use crate::device::Draw;
use crate::target::{Density, Target};

/// Metropolis sweeps. See the formula above.
///
/// At infinite temperature two values make every proposal an accepted flip: the sweep is then
/// periodic, and [`HeatBath`](super::HeatBath) is the better choice.
#[derive(Clone, Debug)]
pub struct Metropolis {
    sites: usize,
}

impl Metropolis {
    /// The kernel for a target.
    pub fn new(target: &dyn Target) -> Result<Self> {
        check_target(target)?;
        Ok(Metropolis { sites: target.sites() })
    }
}

impl Kernel for Metropolis {
    fn step<D: Draw>(&mut self, model: &Density<'_>, x: &mut [u8], draw: &mut D) -> Info {
        let q = model.q();
        let mut info = Info::default();
        for site in 0..x.len() {
            let value = other_value(x[site], q, draw);
            let (accepted, probability) = accept(-model.change(x, site, value), draw);
            info.acceptance += probability;
            if accepted {
                x[site] = value;
                info.changed += 1;
            }
        }
        info.acceptance /= x.len() as f64;
        info
    }

    /// One per proposal: the energy of the state in place is known.
    fn energy_calls(&self, _values: usize) -> f64 {
        self.sites as f64
    }

    fn reversible(&self) -> bool {
        false
    }
}
