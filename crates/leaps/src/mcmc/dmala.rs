//! Propose new values at all sites at once: the discrete Metropolis-adjusted Langevin algorithm.
//!
//! Zhang, Liu, Liu, *A Langevin-like sampler for discrete distributions*, ICML 2022. Site by site, independently,
//! $$q_i(s | x) \propto \exp\bigl(-\tfrac12 \Delta U_i(s) - \tfrac{1}{2\alpha} [s \ne x_i]\bigr),$$
//! with exact changes in place of a gradient. The joint proposal $y$ is accepted with probability
//! $\min(1, \rho(y) q(x|y) / \rho(x) q(y|x))$, which is detailed balance. The step size is
//! $\tau = e^{-1/(2\alpha)}$, the factor put on every change (as in DISCS, which also lets it pass 1); burn-in moves
//! $\log\tau$ towards the acceptance 0.574.

use super::adapt::StepSize;
use super::moves::{accept, check_target, distance, move_to};
use super::neighbours::Neighbours;
use super::{Info, Kernel};
use crate::device::Draw;
use crate::target::{Density, Target};
use crate::{Error, Result};

/// Bounds on the step sizes of this kernel and the next.
pub(super) const BOUNDS: (f64, f64) = (1e-9, 1e9);

/// A step size for which about three sites of a flat target change in a step.
pub(super) fn first_step(target: &dyn Target) -> f64 {
    (3.0 / (target.sites() * (target.q() - 1)) as f64).clamp(BOUNDS.0, 0.5)
}

/// Independent informed proposals at all sites, accepted together. See the formula above.
#[derive(Clone, Debug)]
pub struct DiscreteMala {
    tau: StepSize,
    product: Product,
}

impl DiscreteMala {
    /// The kernel for a target; `alpha` is the positive step size of the paper, by default one for
    /// which about three sites change in a step.
    pub fn new(target: &dyn Target, alpha: Option<f64>) -> Result<Self> {
        check_target(target)?;
        let tau = match alpha {
            Some(alpha) if alpha > 0.0 && alpha.is_finite() => (-0.5 / alpha).exp(),
            Some(alpha) => {
                return Err(Error::invalid("alpha", alpha, "positive", "0.2 is usual"));
            }
            None => first_step(target),
        };
        // Beyond 1 a change is favoured over staying, and a small system would flip back and forth for ever.
        let tau = StepSize::new("exp(-1/(2 alpha))", tau, BOUNDS, 0.574)?.learn_below(1.0);
        Ok(DiscreteMala { tau, product: Product::new(target) })
    }

    /// The factor `tau = exp(-1/(2 alpha))` on the weight of every change.
    pub fn tau(&self) -> f64 {
        self.tau.value()
    }
}

/// Write the probabilities of every value at a site with these changes, `old` in place.
fn probabilities(tau: f64, changes: &[f64], old: u8, out: &mut [f64]) {
    let lowest = changes.iter().copied().fold(0.0, f64::min);
    let mut sum = 0.0;
    for (site_value, (p, &change)) in out.iter_mut().zip(changes).enumerate() {
        let factor = if site_value == old as usize { 1.0 } else { tau };
        *p = factor * (0.5 * (lowest - change)).exp();
        sum += *p;
    }
    for p in out {
        *p /= sum;
    }
}

impl Kernel for DiscreteMala {
    fn step<D: Draw>(&mut self, model: &Density<'_>, x: &mut [u8], draw: &mut D) -> Info {
        let tau = self.tau.value();
        self.product.step(model, x, draw, |changes, old, out| probabilities(tau, changes, old, out))
    }

    fn step_size(&mut self) -> Option<&mut StepSize> {
        Some(&mut self.tau)
    }

    /// Two values and two gradients, as DISCS counts.
    fn energy_calls(&self, _values: usize) -> f64 {
        4.0
    }
}

/// Propose from a product of per-site laws and accept or reject, for this kernel and the next.
#[derive(Clone, Debug)]
pub(super) struct Product {
    here: Neighbours,
    there: Neighbours,
    row: Vec<f64>,
    old: Vec<u8>,
    proposal: Vec<u8>,
}

impl Product {
    pub fn new(target: &dyn Target) -> Self {
        Product {
            here: Neighbours::new(target),
            there: Neighbours::new(target),
            row: vec![0.0; target.q()],
            old: vec![0; target.sites()],
            proposal: vec![0; target.sites()],
        }
    }

    /// One step with the per-site law that `law(changes, site_value in place, probabilities)` writes.
    pub fn step<D: Draw>(
        &mut self,
        model: &Density<'_>,
        x: &mut [u8],
        draw: &mut D,
        law: impl Fn(&[f64], u8, &mut [f64]),
    ) -> Info {
        self.old.copy_from_slice(x);
        self.here.update(model, x);
        let mut log_ratio = 0.0;
        for site in 0..x.len() {
            law(self.here.at(site), x[site], &mut self.row);
            let site_value = match self.row[..] {
                [_, up] => u8::from(draw.chance(up)),
                _ => draw.pick(&self.row) as u8,
            };
            log_ratio -= self.row[site_value as usize].ln();
            self.proposal[site] = site_value;
        }
        if self.proposal == x {
            return Info { acceptance: 1.0, changed: 0 };
        }
        log_ratio -= move_to(model, x, &self.proposal);
        self.there.update(model, x);
        for site in 0..x.len() {
            law(self.there.at(site), x[site], &mut self.row);
            log_ratio += self.row[self.old[site] as usize].ln();
        }
        let (accepted, acceptance) = accept(log_ratio, draw);
        if accepted {
            std::mem::swap(&mut self.here, &mut self.there);
            Info { acceptance, changed: distance(x, &self.old) }
        } else {
            x.copy_from_slice(&self.old);
            Info { acceptance, changed: 0 }
        }
    }
}
