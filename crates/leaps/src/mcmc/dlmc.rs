//! Discrete Langevin Monte Carlo: every site follows its own jump process for a time step.
//!
//! Sun, Dai, Dai, Zhou, Schuurmans, *Discrete Langevin samplers via Wasserstein gradient flow*, AISTATS 2023, with
//! DISCS' "interpolate" solver. Site $i$ leaves for value $s$ at the locally balanced rate $g = \sqrt r$, the other
//! sites held still; its conditional law is $\nu_s = r_s / \sum_{s'} r_{s'}$. After a time $\tau$ it is at $s \ne x_i$ with
//! $$q_i(s | x) = \nu_s \bigl(1 - e^{-\tau g_s / \nu_s}\bigr)$$
//! and else where it was: the exact solution for two values, interpolating for more between $\tau g_s$ at short times
//! and the conditional law at long ones. All sites move together, and a Metropolis-Hastings step with both
//! proposal probabilities makes it reversible. Burn-in moves $\log\tau$ towards the acceptance 0.574.

use super::adapt::StepSize;
use super::dmala::{BOUNDS, Product, first_step};
use super::moves::check_target;
use super::{Info, Kernel};
use crate::Result;
use crate::device::Draw;
use crate::target::{Density, Target};

/// Jump processes of all sites for a time step, accepted together. See the formula above.
#[derive(Clone, Debug)]
pub struct DiscreteLangevin {
    tau: StepSize,
    product: Product,
}

impl DiscreteLangevin {
    /// The kernel for a target with time step `tau > 0`, by default one for which about three sites
    /// change in a step.
    pub fn new(target: &dyn Target, tau: Option<f64>) -> Result<Self> {
        check_target(target)?;
        let tau = StepSize::new("tau", tau.unwrap_or_else(|| first_step(target)), BOUNDS, 0.574)?;
        Ok(DiscreteLangevin { tau, product: Product::new(target) })
    }

    /// The time step.
    pub fn tau(&self) -> f64 {
        self.tau.value()
    }
}

/// Write the probabilities of every value at a site with these changes, `old` in place.
fn probabilities(log_tau: f64, changes: &[f64], old: u8, out: &mut [f64]) {
    let lowest = changes.iter().copied().fold(0.0, f64::min);
    let sum: f64 = changes.iter().map(|&change| (lowest - change).exp()).sum();
    let log_sum = sum.ln() - lowest;
    let mut leaving = 0.0;
    for (site_value, (p, &change)) in out.iter_mut().zip(changes).enumerate() {
        *p = 0.0;
        if site_value != old as usize {
            let log_nu = -change - log_sum;
            // g / nu = sqrt(r) / nu; an overflow means that the site has relaxed.
            let passed = (log_tau - 0.5 * change - log_nu).exp();
            *p = -log_nu.exp() * (-passed).exp_m1();
            leaving += *p;
        }
    }
    out[old as usize] = (1.0 - leaving).max(0.0);
}

impl Kernel for DiscreteLangevin {
    fn step<D: Draw>(&mut self, model: &Density<'_>, x: &mut [u8], draw: &mut D) -> Info {
        let log_tau = self.tau.value().ln();
        self.product
            .step(model, x, draw, |changes, old, out| probabilities(log_tau, changes, old, out))
    }

    fn step_size(&mut self) -> Option<&mut StepSize> {
        Some(&mut self.tau)
    }

    /// Two values and two gradients, as DISCS counts.
    fn energy_calls(&self, _values: usize) -> f64 {
        4.0
    }
}
