//! Propose a path of informed flips.
//!
//! Sun, Dai, Xia, Ramamurthy, *Path auxiliary proposal for MCMC in discrete space*, ICLR 2022, the fast version:
//! all weights $g = \sqrt{r}$ are those of the **start** state. Draw a length $L$, then $L$ different sites with
//! new values, each step in proportion to the weights of the sites not yet visited:
//! $$q(\text{path} | x) = \prod_{k=1}^{L} \frac{g_x(i_k, s_k)}{\sum_{i \ne i_1 .. i_{k-1}} \sum_s g_x(i, s)}.$$
//! The way back from the end $y$ visits $i_L, \dots, i_1$ with the weights of $y$. Accepting with probability
//! $\min(1, \rho(y)\,q(\text{back}|y) / \rho(x)\,q(\text{path}|x))$ balances every path against its reversal, so the step is
//! reversible. $L$ is uniform on $1..2n-1$ with an integer $n$ of mean $R$, whatever the state. Burn-in moves
//! $R$ towards the acceptance 0.574.

use super::adapt::StepSize;
use super::moves::{accept, check_target, move_to};
use super::neighbours::{Balance, Neighbours};
use super::random_walk::round_randomly;
use super::{Info, Kernel};
use crate::Result;
use crate::device::Draw;
use crate::target::{Density, Target};

/// Paths of informed flips. See the formula above.
#[derive(Clone, Debug)]
pub struct PathAuxiliary {
    radius: StepSize,
    here: Neighbours,
    there: Neighbours,
    /// Weights of single flips, then summed by site.
    weights: Vec<f64>,
    sites: Vec<f64>,
    visited: Vec<usize>,
    old: Vec<u8>,
    proposal: Vec<u8>,
}

impl PathAuxiliary {
    /// Paths of mean length `radius`, from 1 to all sites; 2 is usual before burn-in.
    pub fn new(target: &dyn Target, radius: f64) -> Result<Self> {
        check_target(target)?;
        let (sites, q) = (target.sites(), target.q());
        Ok(PathAuxiliary {
            // Beyond half of the sites acceptance may rise again: without a field, flipping all
            // spins costs nothing and moves nowhere.
            radius: StepSize::new("radius", radius, (1.0, sites as f64), 0.574)?
                .learn_below(sites as f64 / 2.0),
            here: Neighbours::new(target),
            there: Neighbours::new(target),
            weights: vec![0.0; sites * q],
            sites: vec![0.0; sites],
            visited: Vec::with_capacity(sites),
            old: vec![0; sites],
            proposal: vec![0; sites],
        })
    }

    /// The mean length of a path (but for the cap at the number of sites).
    pub fn radius(&self) -> f64 {
        self.radius.value()
    }

    fn sum_by_site(&mut self, q: usize) {
        for (sum, row) in self.sites.iter_mut().zip(self.weights.chunks_exact(q)) {
            *sum = row.iter().sum();
        }
    }
}

impl Kernel for PathAuxiliary {
    fn step<D: Draw>(&mut self, model: &Density<'_>, x: &mut [u8], draw: &mut D) -> Info {
        let q = model.q();
        let spread = round_randomly(self.radius.value(), draw).max(1);
        let length = (1 + draw.below(2 * spread - 1)).min(x.len());
        self.here.update(model, x);
        self.here.weigh(Balance::Sqrt, &mut self.weights);
        self.sum_by_site(q);
        self.old.copy_from_slice(x);
        self.proposal.copy_from_slice(x);
        self.visited.clear();
        let mut log_ratio = 0.0;
        for _ in 0..length {
            let total: f64 = self.sites.iter().sum();
            if total <= 0.0 {
                // All that is left has underflown: no such path can be drawn, nor accepted backwards.
                return Info::default();
            }
            let site = draw.pick(&self.sites);
            let row = &self.weights[site * q..][..q];
            let site_value = if q == 2 { 1 - x[site] } else { draw.pick(row) as u8 };
            log_ratio -= (row[site_value as usize] / total).ln();
            self.proposal[site] = site_value;
            self.visited.push(site);
            self.sites[site] = 0.0;
        }
        log_ratio -= move_to(model, x, &self.proposal);
        self.there.update(model, x);
        self.there.weigh(Balance::Sqrt, &mut self.weights);
        self.sum_by_site(q);
        for k in (0..length).rev() {
            let site = self.visited[k];
            let total: f64 = self.sites.iter().sum();
            log_ratio += (self.weights[site * q + self.old[site] as usize] / total).ln();
            self.sites[site] = 0.0;
        }
        let (accepted, acceptance) = accept(log_ratio, draw);
        if accepted {
            std::mem::swap(&mut self.here, &mut self.there);
        } else {
            x.copy_from_slice(&self.old);
        }
        Info { acceptance, changed: if accepted { length } else { 0 } }
    }

    fn step_size(&mut self) -> Option<&mut StepSize> {
        Some(&mut self.radius)
    }

    /// Two values and two gradients, as DISCS counts.
    fn energy_calls(&self, _values: usize) -> f64 {
        4.0
    }
}
