//! Turn averages of basic observables into the numbers a physicist asks for.

use serde::{Deserialize, Serialize};

use super::modes::{self, ModeMass};
use super::{Estimate, Jackknife, Layout};

/// The two-point function at one distance.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Correlation {
    /// Distance along an axis, in lattice spacings.
    pub r: usize,
    /// $G(r)$, see [`Layout`]; not connected: $\langle m \rangle^2$ is not subtracted.
    #[serde(flatten)]
    pub value: Estimate,
}

/// Observables with their errors. Serialises as `observables` of `results.json`; `correlation` and
/// `mode_masses` are lists of their own there and not part of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Observables {
    /// $\langle H \rangle / N$ with $H = \sum_k E_k$, temperatures left out.
    pub energy_per_site: Estimate,
    /// $\langle m \rangle$, see [`Order`](super::Order).
    pub magnetization: Estimate,
    /// $\langle |m| \rangle$.
    pub abs_magnetization: Estimate,
    /// $\langle m^2 \rangle$.
    pub magnetization_squared: Estimate,
    /// $1 - \langle m^4 \rangle / (3 \langle m^2 \rangle^2)$.
    pub binder: Estimate,
    /// $(\langle U^2 \rangle - \langle U \rangle^2)/N$ with $U = \sum_k \lambda_k E_k$: $\beta^2 \mathrm{Var}(H)/N$ if all weights are $\beta$.
    pub heat_capacity_per_site: Estimate,
    /// $\beta N (\langle m^2 \rangle - \langle |m| \rangle^2)$ without a field, $\beta N (\langle m^2 \rangle -
    /// \langle m \rangle^2)$ with one; the weight of the first energy term, the bonds, is $\beta$.
    pub susceptibility_per_site: Estimate,
    /// The second-moment correlation length of a periodic lattice,
    /// $\xi^2 = \frac1D \sum_a \frac{S(0)/S(k_a) - 1}{4 \sin^2(\pi/L_a)}$, undefined where that is negative. In a field
    /// $S(0)$ is connected, $N(\langle m^2 \rangle - \langle m \rangle^2)$, for two values; for more values in a field there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub correlation_length: Option<Estimate>,
    /// $G(r)$ by distance, empty without a lattice.
    #[serde(skip)]
    pub correlation: Vec<Correlation>,
    /// The probability that a value is the most frequent one, by value; empty for very many values.
    #[serde(skip)]
    pub mode_masses: Vec<ModeMass>,
}

impl Observables {
    /// From the sums over rows in the given layout.
    pub fn new(layout: &Layout, sums: &Jackknife) -> Self {
        let n = layout.sites as f64;
        let energy = sums.mean(Layout::ENERGY);
        let variance = |m: &[f64]| m[Layout::POTENTIAL_SQUARED] - m[Layout::POTENTIAL].powi(2);
        let binder = |m: &[f64]| 1.0 - m[Layout::M_FOURTH] / (3.0 * m[Layout::M_SQUARED].powi(2));
        let level = if layout.symmetric { Layout::ABS_M } else { Layout::M };
        let spread = |m: &[f64]| m[Layout::M_SQUARED] - m[level].powi(2);
        let length = || sums.estimate(|means| correlation_length(layout, means));
        let correlation = |r| Correlation { r, value: sums.mean(layout.correlation(r)) };
        Observables {
            energy_per_site: Estimate::new(energy.mean / n, energy.error / n),
            magnetization: sums.mean(Layout::M),
            abs_magnetization: sums.mean(Layout::ABS_M),
            magnetization_squared: sums.mean(Layout::M_SQUARED),
            binder: sums.estimate(binder),
            heat_capacity_per_site: sums.estimate(|m| variance(m) / n),
            susceptibility_per_site: sums.estimate(|m| layout.beta * n * spread(m)),
            correlation_length: (!layout.sides.is_empty() && (layout.symmetric || layout.q == 2))
                .then(length),
            correlation: (0..layout.distances).map(correlation).collect(),
            mode_masses: modes::masses(layout, sums),
        }
    }
}

fn correlation_length(layout: &Layout, means: &[f64]) -> f64 {
    let mean = if layout.symmetric { 0.0 } else { means[Layout::M] };
    let at_zero = layout.sites as f64 * (means[Layout::M_SQUARED] - mean * mean);
    let axes = layout.sides.iter().enumerate().map(|(axis, &side)| {
        let sine = (std::f64::consts::PI / side as f64).sin();
        (at_zero / means[layout.structure(axis)] - 1.0) / (4.0 * sine * sine)
    });
    let square = axes.sum::<f64>() / layout.sides.len() as f64;
    // The root of a negative number is undefined, and says so.
    square.sqrt()
}
