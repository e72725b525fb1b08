//! Energy changes of all neighbours of a state, and their weights.
//!
//! A balancing function has $g(r) = r\,g(1/r)$ with $r = \rho(y)/\rho(x)$. Weights are handled as logarithms, since
//! $r$ overflows for strong couplings.

use crate::target::Density;

/// A balancing function `g(r) = r g(1/r)`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Balance {
    /// `sqrt(r)`.
    Sqrt,
    /// `r / (1 + r)`.
    Barker,
    /// `min(1, r)`.
    Metropolis,
    /// `max(1, r)`.
    Max,
}

impl Balance {
    /// `log g(exp(-change))`.
    #[inline]
    pub fn log(self, change: f64) -> f64 {
        match self {
            Balance::Sqrt => -0.5 * change,
            Balance::Barker => -(change.max(0.0) + (-change.abs()).exp().ln_1p()),
            Balance::Metropolis => (-change).min(0.0),
            Balance::Max => (-change).max(0.0),
        }
    }
}

/// The changes of `U` to all neighbours of a state, kept until state or weights differ: after a
/// rejected step, or an accepted one whose target was evaluated, they are known already.
#[derive(Clone, Debug)]
pub(super) struct Neighbours {
    q: usize,
    changes: Vec<f64>,
    state: Vec<u8>,
    lambda: Vec<f64>,
    known: bool,
}

impl Neighbours {
    /// Room for a target's neighbours.
    pub fn new(target: &dyn crate::target::Target) -> Self {
        let (sites, q) = (target.sites(), target.q());
        Neighbours {
            q,
            changes: vec![0.0; sites * q],
            state: vec![0; sites],
            lambda: vec![0.0; target.terms()],
            known: false,
        }
    }

    /// Evaluate the neighbours of `x`, unless they are known. Returns whether there was work to do.
    pub fn update(&mut self, model: &Density<'_>, x: &mut [u8]) -> bool {
        if self.known && self.state == x && self.lambda == model.lambda {
            return false;
        }
        model.changes(x, &mut self.changes);
        self.state.copy_from_slice(x);
        self.lambda.copy_from_slice(model.lambda);
        self.known = true;
        true
    }

    /// Changes at `site`, one for each value.
    #[inline]
    pub fn at(&self, site: usize) -> &[f64] {
        &self.changes[site * self.q..][..self.q]
    }

    /// Write `weights[site * q + value] = g / max g`, 0 at the values in place, and return the
    /// logarithm of their sum including the maximum, `log sum g`.
    pub fn weigh(&self, balance: Balance, weights: &mut [f64]) -> f64 {
        let mut highest = f64::NEG_INFINITY;
        for (weight, &change) in weights.iter_mut().zip(&self.changes) {
            *weight = balance.log(change);
        }
        for (row, &old) in weights.chunks_exact_mut(self.q).zip(&self.state) {
            row[old as usize] = f64::NEG_INFINITY;
            highest = row.iter().copied().fold(highest, f64::max);
        }
        let mut sum = 0.0;
        for weight in weights.iter_mut() {
            *weight = (*weight - highest).exp();
            sum += *weight;
        }
        highest + sum.ln()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_are_balanced() {
        for balance in [Balance::Sqrt, Balance::Barker, Balance::Metropolis, Balance::Max] {
            for change in [-800.0, -3.0, -0.1, 0.0, 0.2, 2.0, 900.0] {
                // log g(r) = log r + log g(1/r).
                let difference = balance.log(change) - (-change + balance.log(-change));
                assert!(difference.abs() < 1e-12, "{balance:?} {change}");
            }
        }
    }
}
