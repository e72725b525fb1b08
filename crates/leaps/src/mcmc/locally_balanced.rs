//! Propose one informed flip.
//!
//! Zanella, *Informed proposals for local MCMC in discrete spaces*, JASA 2020. A neighbour $y$ of $x$ is proposed
//! with probability $g(r)/G(x)$, $r = \rho(y)/\rho(x)$, $G(x) = \sum g$ over all neighbours, with a balancing function
//! $g(r) = r\,g(1/r)$. Then $\rho(x) g(r) = \rho(y) g(1/r)$, and detailed balance needs only the acceptance
//! $\min(1, G(x)/G(y))$. Gibbs-with-gradients (Grathwohl et al., ICML 2021) is $g = \sqrt r$ with $r$
//! approximated by a gradient; here all changes are exact.

use super::moves::{accept, check_target};
use super::neighbours::{Balance, Neighbours};
use super::{Info, Kernel};
use crate::Result;
use crate::device::Draw;
use crate::target::{Density, Target};

/// One informed flip with any balancing function. See the formula above.
#[derive(Clone, Debug)]
pub struct LocallyBalanced {
    balance: Balance,
    here: Side,
    there: Side,
}

/// The neighbours of one end of a proposal.
#[derive(Clone, Debug)]
struct Side {
    neighbours: Neighbours,
    weights: Vec<f64>,
    log_sum: f64,
}

impl Side {
    fn new(target: &dyn Target) -> Self {
        let weights = vec![0.0; target.sites() * target.q()];
        Side { neighbours: Neighbours::new(target), weights, log_sum: 0.0 }
    }

    fn update(&mut self, model: &Density<'_>, x: &mut [u8], balance: Balance) {
        if self.neighbours.update(model, x) {
            self.log_sum = self.neighbours.weigh(balance, &mut self.weights);
        }
    }
}

impl LocallyBalanced {
    /// The kernel for a target with a balancing function.
    pub fn new(target: &dyn Target, balance: Balance) -> Result<Self> {
        check_target(target)?;
        Ok(LocallyBalanced { balance, here: Side::new(target), there: Side::new(target) })
    }
}

impl Kernel for LocallyBalanced {
    fn step<D: Draw>(&mut self, model: &Density<'_>, x: &mut [u8], draw: &mut D) -> Info {
        self.here.update(model, x, self.balance);
        let choice = draw.pick(&self.here.weights);
        let (site, value) = (choice / model.q(), (choice % model.q()) as u8);
        let old = std::mem::replace(&mut x[site], value);
        self.there.update(model, x, self.balance);
        let (accepted, acceptance) = accept(self.here.log_sum - self.there.log_sum, draw);
        if accepted {
            std::mem::swap(&mut self.here, &mut self.there);
        } else {
            x[site] = old;
        }
        Info { acceptance, changed: usize::from(accepted) }
    }

    /// Two values and two gradients, as DISCS counts.
    fn energy_calls(&self, _values: usize) -> f64 {
        4.0
    }
}

/// One informed flip with `g = sqrt(r)`: Gibbs with gradients, with exact changes.
#[derive(Clone, Debug)]
pub struct GibbsWithGradients(LocallyBalanced);

impl GibbsWithGradients {
    /// The kernel for a target.
    pub fn new(target: &dyn Target) -> Result<Self> {
        Ok(GibbsWithGradients(LocallyBalanced::new(target, Balance::Sqrt)?))
    }
}

impl Kernel for GibbsWithGradients {
    fn step<D: Draw>(&mut self, model: &Density<'_>, x: &mut [u8], draw: &mut D) -> Info {
        self.0.step(model, x, draw)
    }

    fn energy_calls(&self, q: usize) -> f64 {
        self.0.energy_calls(q)
    }
}
