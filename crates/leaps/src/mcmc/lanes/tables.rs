//! Thresholds from the local energies of a plan, at given weights of the energy terms.

use super::factors::Factors;
use super::plan::{Class, Plan, Rule};

/// The thresholds of a plan at one temperature: a value is taken when a 32-bit random word is below.
#[derive(Clone, Debug, Default)]
pub struct Tables {
    /// Upper 16 bits.
    pub(super) high: Vec<u16>,
    /// Lower 16 bits, looked at only when the upper ones tie.
    pub(super) low: Vec<u16>,
    /// Of classes that have them in the place of thresholds.
    pub(super) factors: Factors,
    /// Scratch: energies of a site's values.
    energies: Vec<f64>,
}

impl Tables {
    /// Thresholds of `plan` at weights `lambda`.
    pub fn new(plan: &Plan, lambda: &[f64]) -> Self {
        let mut tables = Tables::default();
        tables.set(plan, lambda);
        tables
    }

    /// Recompute in place, without allocating after the first time.
    pub fn set(&mut self, plan: &Plan, lambda: &[f64]) {
        self.high.resize(plan.thresholds, 0);
        self.low.resize(plan.thresholds, 0);
        self.energies.resize(plan.q, 0.0);
        for class in &plan.classes {
            for index in 0..class.entries {
                self.set_entry(plan, class, lambda, index);
            }
        }
        self.factors.set(plan, lambda);
    }

    fn set_entry(&mut self, plan: &Plan, class: &Class, lambda: &[f64], index: usize) {
        let q = plan.q;
        let len = class.table_len(q, plan.rule);
        let (high, low) = (&mut self.high[class.offset..], &mut self.low[class.offset..]);
        let mut put = |at: usize, p: f64| {
            let threshold = (p * 4_294_967_296.0).round() as u32; // saturates
            high[at] = (threshold >> 16) as u16;
            low[at] = threshold as u16;
        };
        let u = &mut self.energies[..];
        u.fill(0.0);
        for (k, weight) in lambda.iter().enumerate() {
            let row = &class.local[(k * class.entries + index) * q..][..q];
            for (u, local) in u.iter_mut().zip(row) {
                *u += weight * local;
            }
        }
        match plan.rule {
            Rule::HeatBath => {
                // Thresholds decrease: value t is the number of thresholds that the word does not reach.
                let least = u.iter().copied().fold(f64::INFINITY, f64::min);
                let total: f64 = u.iter().map(|u| (least - u).exp()).sum();
                let mut above = 0.0;
                for value in (1..q).rev() {
                    above += (least - u[value]).exp() / total;
                    put((value - 1) * len + index, above);
                }
            }
            Rule::Metropolis if q == 2 => {
                for own in 0..2 {
                    put(index * 2 + own, (u[own] - u[1 - own]).exp().min(1.0));
                }
            }
            Rule::Metropolis => {
                for own in 0..q {
                    for new in 0..q {
                        put((index * q + own) * q + new, (u[own] - u[new]).exp().min(1.0));
                    }
                }
            }
        }
    }
}
