//! Prepare a pairwise model's bonds for cluster moves.
//!
//! With the total coupling $A = \sum_k \lambda_k A^k$, a bond is *satisfied* if its ends are equal ($A > 0$) or, for two values,
//! if they differ ($A < 0$). Up to a constant the weight of a bond is
//! $e^{-|A|} + (1 - e^{-|A|})\,[\text{satisfied}]$: a satisfied bond is *active* with probability $p = 1 - e^{-|A|}$
//! (Fortuin and Kasteleyn), and given the active bonds the remaining ones carry no energy. For two
//! values flipping a whole cluster keeps every bond inside it as it was, so that any sign is allowed. For more values
//! and $A < 0$ "different" does not tie two values together: such models, and other pairs, have the clusters of
//! [`exchanges`](super::exchanges).

use std::sync::Arc;

use crate::device::threshold;
use crate::target::{Density, Pairwise, Target};
use crate::{Error, Result};

/// Bonds, activation thresholds and fields at the weights last seen. Chains at one temperature share them.
#[derive(Clone, Debug)]
pub(super) struct Bonds {
    pub q: usize,
    /// Directed bonds of site `i` are `starts[i]..starts[i + 1]`.
    pub starts: Vec<u32>,
    pub ends: Vec<u32>,
    /// Activation threshold of every directed bond.
    pub thresholds: Vec<u64>,
    /// The threshold of all bonds, where they share one.
    pub uniform: Option<u64>,
    /// Whether a directed bond is satisfied by different ends.
    pub opposed: Vec<bool>,
    /// Whether any bond is.
    pub any_opposed: bool,
    /// Total field energies `[site * q + value]`.
    pub fields: Vec<f64>,
    /// Whether any field tells two values of a site apart.
    pub any_field: bool,
    couplings: Vec<f64>,
    lambda: Vec<f64>,
    known: bool,
}

impl Bonds {
    /// The bonds of a target at weights `lambda`, if clusters of equal or of opposite values exist there.
    pub fn new(target: &dyn Target, lambda: &[f64]) -> Result<Option<Arc<Self>>> {
        super::moves::check_target(target)?;
        if lambda.len() != target.terms() {
            return Err(Error::invalid(
                "lambda",
                format!("{} weights", lambda.len()),
                format!("one for each of the {} energy terms", target.terms()),
                "see the target's terms",
            ));
        }
        let Some(pairwise) = target.pairwise() else { return Ok(None) };
        let (sites, q) = (target.sites(), target.q());
        let mut starts = vec![0u32];
        let mut ends = Vec::new();
        for site in 0..sites {
            ends.extend_from_slice(pairwise.neighbours(site));
            starts.push(ends.len() as u32);
        }
        let directed = ends.len();
        let mut bonds = Bonds {
            q,
            starts,
            ends,
            thresholds: vec![0; directed],
            uniform: None,
            opposed: vec![false; directed],
            any_opposed: false,
            fields: vec![0.0; sites * q],
            any_field: false,
            couplings: vec![0.0; directed],
            lambda: lambda.to_vec(),
            known: false,
        };
        bonds.evaluate(pairwise);
        Ok(bonds.apply().then(|| Arc::new(bonds)))
    }

    /// Follow the model to its weights. Returns whether clusters exist there; where they do not, a
    /// kernel must leave the state alone, which is invariant too.
    #[inline]
    pub fn update(self: &mut Arc<Self>, model: &Density<'_>) -> bool {
        if !self.known || self.lambda != model.lambda {
            let Some(pairwise) = model.target.pairwise() else { return false };
            let own = Arc::make_mut(self);
            own.lambda.copy_from_slice(model.lambda);
            own.evaluate(pairwise);
        }
        self.apply()
    }

    fn apply(&self) -> bool {
        self.q == 2 || !self.any_opposed
    }

    fn evaluate(&mut self, pairwise: &Pairwise) {
        self.couplings.fill(0.0);
        self.fields.fill(0.0);
        for (term, &weight) in pairwise.energy_terms().iter().zip(&self.lambda) {
            for (sum, value) in self.couplings.iter_mut().zip(&term.couplings) {
                *sum += weight * value;
            }
            for (sum, value) in self.fields.iter_mut().zip(&term.fields) {
                *sum += weight * value;
            }
        }
        for (k, &coupling) in self.couplings.iter().enumerate() {
            self.thresholds[k] = threshold(-(-coupling.abs()).exp_m1());
            self.opposed[k] = coupling < 0.0;
        }
        self.any_opposed = self.opposed.contains(&true);
        let first = self.thresholds.first().copied();
        self.uniform = first.filter(|&first| self.thresholds.iter().all(|&t| t == first));
        self.any_field =
            self.fields.chunks_exact(self.q).any(|row| row[1..] != row[..row.len() - 1]);
        self.known = true;
    }
}
