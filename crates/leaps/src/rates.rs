//! Rates, reversed rates and the operator K, from the outputs of a network.
//!
//! With the flux $J(s, i|x)$ of a locally equivariant network and the ratio
//! $r = \rho_t(x[i \leftarrow s]) / \rho_t(x)$:
//!
//! | | rate out of x | rate of the time reversal | sum of both |
//! |---|---|---|---|
//! | relu (the paper) | $J_+$ | $(-J)_+\,r$ | $J_+ - (-J)_+\,r$ |
//! | balanced | $J_+\,g(r)$ | $(-J)_+\,g(r)$ | $J\,g(r)$ |
//!
//! with $J_+ = \max(J, 0)$ and a balancing function $g(r) = r\,g(1/r)$. Then $K_t(x) = -\partial_t U_t(x) + \sum_{i,s}(\text{out} - \text{back})$
//! (eq:proactivate_operator), from one network pass. At the optimum $K_t(x) = -\partial_t F_t$ for every x.

use serde::{Deserialize, Serialize};

/// How fluxes become rates.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Parametrisation {
    /// $J_+$, the paper's.
    Relu,
    /// Balanced with $g(r) = 2r/(1+r)$.
    #[default]
    Barker,
    /// Balanced with $g(r) = \sqrt r$.
    Sqrt,
    /// Balanced with $g(r) = \min(1, r)$.
    Metropolis,
}

impl Parametrisation {
    /// Every parametrisation.
    pub const ALL: [Parametrisation; 4] = [
        Parametrisation::Relu,
        Parametrisation::Barker,
        Parametrisation::Sqrt,
        Parametrisation::Metropolis,
    ];

    /// The rate out of x and the rate of the time reversal, for flux `j` and a change `du` of the potential,
    /// so that $r = e^{-du}$.
    #[inline]
    pub fn rates(self, j: f64, du: f64) -> (f64, f64) {
        let g = match self {
            Parametrisation::Relu => {
                return if j >= 0.0 { (j, 0.0) } else { (0.0, -j * (-du).exp()) };
            }
            _ => self.balance(du),
        };
        if j >= 0.0 { (j * g, 0.0) } else { (0.0, -j * g) }
    }

    /// The same for walkers that go back in time: what was the time reversal is now the way out.
    #[inline]
    pub fn reversed_rates(self, j: f64, du: f64) -> (f64, f64) {
        let (out, back) = self.rates(j, du);
        (back, out)
    }

    /// `g(e^-du)`; for relu the factor of a negative flux, `r`.
    #[inline]
    fn balance(self, du: f64) -> f64 {
        match self {
            Parametrisation::Relu => (-du).exp(),
            Parametrisation::Barker => 2.0 / (1.0 + du.exp()),
            Parametrisation::Sqrt => (-0.5 * du).exp(),
            Parametrisation::Metropolis => (-du).exp().min(1.0),
        }
    }

    /// The derivative of out - back with respect to the flux.
    #[inline]
    pub fn slope(self, j: f64, du: f64) -> f64 {
        match self {
            Parametrisation::Relu if j > 0.0 => 1.0,
            Parametrisation::Relu if j == 0.0 => 0.0,
            _ => self.balance(du),
        }
    }
}

/// The flux of `site` towards `site_value`, from the outputs at the site: one output for two values, else one
/// per value. `own` is the value in place; the flux towards it is 0.
#[inline]
pub fn flux(outputs: &[f32], own: u8, site_value: u8) -> f64 {
    match outputs {
        &[o] if own != site_value => {
            // Spin times output: the flux of a flip.
            let o = f64::from(o);
            if own == 1 { o } else { -o }
        }
        [_] => 0.0,
        _ => f64::from(outputs[site_value as usize]) - f64::from(outputs[own as usize]),
    }
}

/// The rates of one state.
#[derive(Clone, Debug, Default)]
pub struct Rates {
    /// Rates out of x, `[site * q + site_value]`, 0 at the value in place.
    pub out: Vec<f64>,
    /// Their sum.
    pub total_out: f64,
    /// The sum of the rates of the time reversal.
    pub total_back: f64,
}

impl Rates {
    /// Compute the rates of `x` from the outputs of a network, `output(site * outputs + s)`, and the changes
    /// of the potential, `[site * q + site_value]`; `rates` makes the rate out of x and that of the time reversal of a flux and a change, as
    /// [`Parametrisation::rates`] does, or [`Parametrisation::reversed_rates`] for walkers that go back in time.
    pub fn set(
        &mut self,
        q: usize,
        x: &[u8],
        changes: &[f64],
        output: impl Fn(usize) -> f32,
        rates: impl Fn(f64, f64) -> (f64, f64),
    ) {
        self.out.clear();
        self.out.resize(x.len() * q, 0.0);
        (self.total_out, self.total_back) = (0.0, 0.0);
        let mut outputs = [0.0; 256];
        let channels = if q == 2 { 1 } else { q };
        for (site, &own) in x.iter().enumerate() {
            for (s, value) in outputs[..channels].iter_mut().enumerate() {
                *value = output(site * channels + s);
            }
            for site_value in 0..q as u8 {
                if site_value == own {
                    continue;
                }
                let at = site * q + site_value as usize;
                let j = flux(&outputs[..channels], own, site_value);
                let (out, back) = rates(j, changes[at]);
                self.out[at] = out;
                self.total_out += out;
                self.total_back += back;
            }
        }
    }

    /// `sum out - sum back`: K without the derivative of the potential.
    pub fn balance(&self) -> f64 {
        self.total_out - self.total_back
    }

    /// The (site, value) whose stretch of the summed rates holds `point`, in [0, total_out).
    pub fn find(&self, q: usize, point: f64) -> (usize, u8) {
        let mut left = point;
        let mut last = 0;
        for (at, &rate) in self.out.iter().enumerate() {
            if rate > 0.0 {
                last = at;
                if left < rate {
                    break;
                }
                left -= rate;
            }
        }
        (last / q, (last % q) as u8)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_reversal_of_a_rate_is_the_rate_of_the_reversed_flux() {
        // back(x -> y) = out(y -> x) r: what makes K computable from x alone.
        for parametrisation in Parametrisation::ALL {
            for j in [-1.7, -0.2, 0.0, 0.4, 2.5] {
                for du in [-3.0f64, -0.1, 0.0, 0.7, 4.0] {
                    let (out, back) = parametrisation.rates(j, du);
                    let (reverse, _) = parametrisation.rates(-j, -du);
                    assert!(out >= 0.0 && back >= 0.0);
                    assert!((back - reverse * (-du).exp()).abs() < 1e-14, "{parametrisation:?}");
                    let h = 1e-6;
                    let balance = |j| {
                        let (out, back) = parametrisation.rates(j, du);
                        out - back
                    };
                    if j != 0.0 {
                        let slope = (balance(j + h) - balance(j - h)) / (2.0 * h);
                        assert!((parametrisation.slope(j, du) - slope).abs() < 1e-8);
                    }
                }
            }
        }
    }

    #[test]
    fn extreme_changes_stay_finite() {
        for parametrisation in [Parametrisation::Barker, Parametrisation::Metropolis] {
            for du in [-1e4, 1e4] {
                let (out, back) = parametrisation.rates(1.0, du);
                assert!(out.is_finite() && back.is_finite());
            }
        }
    }

    #[test]
    fn a_point_finds_its_move() {
        let rates =
            Rates { out: vec![0.0, 0.5, 0.0, 0.0, 1.0, 0.25], total_out: 1.75, total_back: 0.0 };
        assert_eq!(rates.find(2, 0.0), (0, 1));
        assert_eq!(rates.find(2, 0.6), (2, 0));
        assert_eq!(rates.find(2, 1.6), (2, 1));
        assert_eq!(rates.find(2, 1.75), (2, 1));
    }
}
