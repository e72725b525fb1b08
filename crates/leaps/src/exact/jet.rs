//! Carry a value together with its first two derivatives, so that energies and heat capacities need no finite differences.

use std::ops::{Add, Mul};

/// `f`, `f'` and `f''` at one point.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Jet {
    pub value: f64,
    pub first: f64,
    pub second: f64,
}

impl Jet {
    pub fn new(value: f64, first: f64, second: f64) -> Self {
        Jet { value, first, second }
    }

    pub fn scale(self, factor: f64) -> Self {
        Jet::new(factor * self.value, factor * self.first, factor * self.second)
    }

    /// `g(f)` from `g`, `g'` and `g''` at the value of `f` (Faà di Bruno to second order).
    pub fn chain(self, g: Jet) -> Self {
        Jet {
            value: g.value,
            first: g.first * self.first,
            second: g.second * self.first * self.first + g.first * self.second,
        }
    }

    pub fn exp(self) -> Self {
        let e = self.value.exp();
        self.chain(Jet::new(e, e, e))
    }

    pub fn ln(self) -> Self {
        let r = 1.0 / self.value;
        self.chain(Jet::new(self.value.ln(), r, -r * r))
    }
}

impl Add for Jet {
    type Output = Jet;
    fn add(self, other: Jet) -> Jet {
        Jet {
            value: self.value + other.value,
            first: self.first + other.first,
            second: self.second + other.second,
        }
    }
}

impl Mul for Jet {
    type Output = Jet;
    fn mul(self, other: Jet) -> Jet {
        Jet {
            value: self.value * other.value,
            first: self.first * other.value + self.value * other.first,
            second: self.second * other.value
                + 2.0 * self.first * other.first
                + self.value * other.second,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn derivatives_of_a_composition() {
        // f(x) = ln(exp(x^2) + x) at x = 0.7 against central differences.
        let jet = |x: f64| {
            let x = Jet::new(x, 1.0, 0.0);
            ((x * x).exp() + x).ln()
        };
        let plain = |x: f64| ((x * x).exp() + x).ln();
        let (x, h) = (0.7, 1e-4);
        let first = (plain(x + h) - plain(x - h)) / (2.0 * h);
        let second = (plain(x + h) - 2.0 * plain(x) + plain(x - h)) / (h * h);
        assert!((jet(x).value - plain(x)).abs() < 1e-15);
        assert!((jet(x).first - first).abs() < 1e-7);
        assert!((jet(x).second - second).abs() < 1e-6);
        assert_eq!(jet(x).scale(2.0).second, 2.0 * jet(x).second);
    }
}
