//! Sums of weighted moments while the scale of the weights is still unknown.

use crate::observe::Order;

/// Moments of states under the weight `exp(-U)`, relative to the smallest `U` seen so far.
///
/// With $u_0 = \min U$: $W = \sum e^{u_0 - U}$, $\sum e^{u_0 - U}(U - u_0)^{1,2}$ and so on. All
/// weights are at most 1 and the smallest `U` has weight 1, so nothing over- or underflows.
#[derive(Clone, Debug)]
pub(super) struct Sums {
    lowest: f64,
    weight: f64,
    excess: f64,
    excess_squared: f64,
    order: [f64; 4],
    energies: Vec<f64>,
}

impl Sums {
    pub fn new(terms: usize) -> Self {
        Sums {
            lowest: f64::INFINITY,
            weight: 0.0,
            excess: 0.0,
            excess_squared: 0.0,
            order: [0.0; 4],
            energies: vec![0.0; terms],
        }
    }

    /// Add one state of finite potential.
    #[inline]
    pub fn add(&mut self, potential: f64, energies: &[f64], order: &Order) {
        if potential < self.lowest {
            self.lower(potential);
        }
        let excess = potential - self.lowest;
        let weight = (-excess).exp();
        let weighted = weight * excess;
        self.weight += weight;
        self.excess += weighted;
        self.excess_squared += weighted * excess;
        for (sum, energy) in self.energies.iter_mut().zip(energies) {
            *sum += weight * energy;
        }
        let powers = [order.m, order.abs, order.squared, order.fourth];
        for (sum, power) in self.order.iter_mut().zip(powers) {
            *sum += weight * power;
        }
    }

    /// Refer everything to a smaller potential.
    #[cold]
    fn lower(&mut self, to: f64) {
        let by = self.lowest - to;
        self.lowest = to;
        if self.weight == 0.0 {
            return;
        }
        let factor = (-by).exp();
        // At an infinite distance the old sums weigh nothing, whatever their moments.
        let shift = if factor == 0.0 { 0.0 } else { by };
        self.excess_squared =
            factor * (self.excess_squared + shift * (2.0 * self.excess + shift * self.weight));
        self.excess = factor * (self.excess + shift * self.weight);
        self.weight *= factor;
        for sum in self.order.iter_mut().chain(&mut self.energies) {
            *sum *= factor;
        }
    }

    /// Add the states of `other`.
    pub fn merge(&mut self, mut other: Sums) {
        if other.lowest < self.lowest {
            self.lower(other.lowest);
        } else if self.lowest < other.lowest {
            other.lower(self.lowest);
        }
        self.weight += other.weight;
        self.excess += other.excess;
        self.excess_squared += other.excess_squared;
        for (sum, part) in self.energies.iter_mut().zip(&other.energies) {
            *sum += part;
        }
        for (sum, part) in self.order.iter_mut().zip(other.order) {
            *sum += part;
        }
    }

    /// Whether every sum is a finite number.
    pub fn is_finite(&self) -> bool {
        let finite = |sums: &[f64]| sums.iter().all(|sum| sum.is_finite());
        finite(&[self.weight, self.excess, self.excess_squared])
            && finite(&self.order)
            && finite(&self.energies)
    }

    /// `log sum exp(-U)`; minus infinity if no state was added.
    pub fn log_z(&self) -> f64 {
        if self.weight == 0.0 { f64::NEG_INFINITY } else { self.weight.ln() - self.lowest }
    }

    pub fn mean_potential(&self) -> f64 {
        self.lowest + self.excess / self.weight
    }

    pub fn variance(&self) -> f64 {
        let mean = self.excess / self.weight;
        (self.excess_squared / self.weight - mean * mean).max(0.0)
    }

    pub fn mean_energies(&self) -> Vec<f64> {
        self.energies.iter().map(|sum| sum / self.weight).collect()
    }

    pub fn mean_order(&self) -> Order {
        let [m, abs, squared, fourth] = self.order.map(|sum| sum / self.weight);
        Order { m, abs, squared, fourth }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn order_of_arrival_and_scale_do_not_matter() {
        let order = Order { m: 0.5, abs: 0.5, squared: 0.25, fourth: 0.0625 };
        let potentials = [3.0, -2.0, 900.0, 0.5, -2.5];
        for shift in [0.0, 1e5, -1e5] {
            let (mut up, mut left, mut right) = (Sums::new(1), Sums::new(1), Sums::new(1));
            for (i, &u) in potentials.iter().enumerate() {
                up.add(u + shift, &[u], &order);
                if i < 2 { &mut left } else { &mut right }.add(u + shift, &[u], &order);
            }
            left.merge(Sums::new(1));
            left.merge(right);
            let z: f64 = potentials.iter().map(|u| (-u).exp()).sum();
            let mean = potentials.iter().map(|u| u * (-u).exp()).sum::<f64>() / z;
            let variance =
                potentials.iter().map(|u| (u - mean).powi(2) * (-u).exp()).sum::<f64>() / z;
            for sums in [&up, &left] {
                assert!((sums.log_z() + shift - z.ln()).abs() < 1e-10);
                assert!((sums.mean_potential() - shift - mean).abs() < 1e-10);
                assert!((sums.mean_energies()[0] - mean).abs() < 1e-12);
                assert!((sums.variance() - variance).abs() < 1e-9);
                assert!((sums.mean_order().fourth - 0.0625).abs() < 1e-15);
                assert!(sums.is_finite());
            }
        }
        assert_eq!(Sums::new(1).log_z(), f64::NEG_INFINITY);
    }
}
