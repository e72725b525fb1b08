//! Numbers that a physicist asks for, from averages of basic observables.

use serde::{Deserialize, Serialize};

use super::modes::{self, ModeMass};
use super::momenta::{OffsetCorrelation, radians};
use super::waves::StructureFactor;
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

/// Observables with their errors. Serialises as `observables` of `results.json`; `correlation`,
/// `structure_factor` and `mode_masses` are lists of their own there and not part of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
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
    /// The share of occupied sites of a lattice gas.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub density: Option<Estimate>,
    /// $\langle s^2 \rangle$ of Blume and Capel's model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quadrupole: Option<Estimate>,
    /// $\langle \sigma\tau \rangle$ of Ashkin and Teller's model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub polarization: Option<Estimate>,
    /// $G(r)$ by distance, empty without a lattice.
    #[serde(skip)]
    pub correlation: Vec<Correlation>,
    /// $S(k)$ at the wave vectors of commensurate order, $k = 0$ first; empty where no side is a multiple of 2 or 3, on free edges, and for states that were
    /// reduced on a GPU.
    #[serde(skip)]
    pub structure_factor: Vec<StructureFactor>,
    /// $S(k)$ at all wave vectors, one of $k$ and $-k$ each and 0 first; empty unless they were asked for.
    #[serde(skip)]
    pub structure_factor_map: Vec<StructureFactor>,
    /// $G(r)$ at all offsets, one of $r$ and $-r$ each and 0 first; empty unless they were asked for.
    #[serde(skip)]
    pub correlation_map: Vec<OffsetCorrelation>,
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
            density: site_mean(layout, sums, "density"),
            quadrupole: site_mean(layout, sums, "quadrupole"),
            polarization: site_mean(layout, sums, "polarization"),
            correlation: (0..layout.distances).map(correlation).collect(),
            structure_factor: structure_factors(layout, sums),
            structure_factor_map: structure_factor_map(layout, sums),
            correlation_map: correlation_map(layout, sums),
            mode_masses: modes::masses(layout, sums),
        }
    }
}

/// $S(k)$ at all wave vectors, 0 first; none where they were not measured.
pub(super) fn structure_factors(layout: &Layout, sums: &Jackknife) -> Vec<StructureFactor> {
    let n = layout.sites as f64;
    let wave = |k: usize| StructureFactor {
        k: layout.waves[k].radians(),
        value: sums.mean(layout.wave(k)),
    };
    let found: Vec<StructureFactor> = (0..layout.waves.len()).map(wave).collect();
    if found.iter().any(|wave| !wave.value.mean.is_finite()) {
        return Vec::new();
    }
    let zero = found.first().map(|wave| StructureFactor {
        k: vec![0.0; wave.k.len()],
        value: sums.estimate(|means| n * means[Layout::M_SQUARED]),
    });
    zero.into_iter().chain(found).collect()
}

/// $S(k)$ at all wave vectors, if they were measured.
pub(super) fn structure_factor_map(layout: &Layout, sums: &Jackknife) -> Vec<StructureFactor> {
    let all = layout.steps.iter().enumerate().map(|(number, steps)| StructureFactor {
        k: radians(steps, &layout.sides),
        value: sums.mean(layout.momentum(number)),
    });
    all.collect()
}

/// $G(r)$ at all offsets, if they were measured.
pub(super) fn correlation_map(layout: &Layout, sums: &Jackknife) -> Vec<OffsetCorrelation> {
    let all = layout.steps.iter().enumerate().map(|(number, steps)| OffsetCorrelation {
        offset: steps.clone(),
        value: sums.mean(layout.offset(number)),
    });
    all.collect()
}

/// The mean over sites of this name, if the model has it.
pub(super) fn site_mean(layout: &Layout, sums: &Jackknife, name: &str) -> Option<Estimate> {
    let k = layout.site_means.iter().position(|mean| mean.name == name)?;
    Some(sums.mean(layout.site_mean(k)))
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
