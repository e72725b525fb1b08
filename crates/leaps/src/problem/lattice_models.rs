//! Models of pair tables and clusters by their names.
//!
//! ```
//! use leaps::prelude::*;
//!
//! let problem = BlumeCapel::square(4).crystal_field(0.5).field(0.1).beta(0.8)?;
//! assert_eq!((problem.target.sites(), problem.target.q()), (16, 3));
//! # Ok::<(), leaps::Error>(())
//! ```

use super::models::on_lattice;
use crate::target::{Bravais, InteractionSpec, Interactions, Kind, Spins, TargetSpec};

/// Spins -1, 0 and +1: $E = -J \\sum_{\\langle ij\\rangle} s_i s_j + D \\sum_i s_i^2 + h \\sum_i s_i$.
#[derive(Clone, Copy, Debug)]
pub struct BlumeCapel;

impl BlumeCapel {
    /// A periodic square lattice.
    pub fn square(side: usize) -> TargetSpec {
        Self::lattice(&[side; 2])
    }

    /// A periodic triangular lattice.
    pub fn triangular(side: usize) -> TargetSpec {
        Self::square(side).on(Bravais::Triangular)
    }

    /// A periodic lattice of one to four dimensions.
    pub fn lattice(sides: &[usize]) -> TargetSpec {
        on_lattice(Kind::BlumeCapel, sides)
    }
}

/// Clocks with `q` hours: $E = -J \\sum_{\\langle ij\\rangle} \\cos(2\\pi(x_i - x_j)/q) + h \\sum_i \\cos(2\\pi x_i/q)$.
#[derive(Clone, Copy, Debug)]
pub struct Clock;

impl Clock {
    /// A periodic square lattice.
    pub fn square(q: usize, side: usize) -> TargetSpec {
        Self::lattice(q, &[side; 2])
    }

    /// A periodic triangular lattice.
    pub fn triangular(q: usize, side: usize) -> TargetSpec {
        Self::square(q, side).on(Bravais::Triangular)
    }

    /// A periodic lattice of one to four dimensions.
    pub fn lattice(q: usize, sides: &[usize]) -> TargetSpec {
        TargetSpec { q: Some(q), ..on_lattice(Kind::Clock, sides) }
    }
}

/// Ising spins on the triangles of a triangular lattice: $E = -J \\sum_{\\triangle} s_i s_j s_k + h \\sum_i s_i$.
#[derive(Clone, Copy, Debug)]
pub struct BaxterWu;

impl BaxterWu {
    /// A periodic lattice; its four ground states need a side that is a multiple of 3.
    pub fn triangular(side: usize) -> TargetSpec {
        Self::lattice([side; 2])
    }

    /// A periodic lattice of two lengths.
    pub fn lattice(sides: [usize; 2]) -> TargetSpec {
        on_lattice(Kind::BaxterWu, &sides)
    }
}

/// Empty (0) and occupied (1) sites: $E = -J \\sum_{\\langle ij\\rangle} n_i n_j - \\mu \\sum_i n_i$.
#[derive(Clone, Copy, Debug)]
pub struct LatticeGas;

impl LatticeGas {
    /// A periodic square lattice.
    pub fn square(side: usize) -> TargetSpec {
        Self::lattice(&[side; 2])
    }

    /// A periodic triangular lattice.
    pub fn triangular(side: usize) -> TargetSpec {
        Self::square(side).on(Bravais::Triangular)
    }

    /// A periodic lattice of one to four dimensions.
    pub fn lattice(sides: &[usize]) -> TargetSpec {
        on_lattice(Kind::LatticeGas, sides)
    }
}

/// Two Ising spins at every site: $E = -J \\sum_{\\langle ij\\rangle} (\\sigma_i \\sigma_j + \\tau_i \\tau_j) - K \\sum_{\\langle ij\\rangle}
/// \\sigma_i \\sigma_j \\tau_i \\tau_j + h \\sum_i (\\sigma_i + \\tau_i)$.
#[derive(Clone, Copy, Debug)]
pub struct AshkinTeller;

impl AshkinTeller {
    /// A periodic square lattice.
    pub fn square(side: usize) -> TargetSpec {
        Self::lattice(&[side; 2])
    }

    /// A periodic triangular lattice.
    pub fn triangular(side: usize) -> TargetSpec {
        Self::square(side).on(Bravais::Triangular)
    }

    /// A periodic lattice of one to four dimensions.
    pub fn lattice(sides: &[usize]) -> TargetSpec {
        on_lattice(Kind::AshkinTeller, sides)
    }
}

/// Any energies over clusters of sites, the same all over a lattice.
#[derive(Clone, Copy, Debug)]
pub struct Clusters;

impl Clusters {
    /// A periodic lattice of sites with `q` values.
    ///
    /// ```
    /// use leaps::prelude::*;
    /// use leaps::target::InteractionSpec;
    ///
    /// let pair = InteractionSpec::table(&[vec![0, 0], vec![0, 1]], &[0.0, 1.0, 0.5, -1.0]);
    /// let plaquette = [vec![0, 0], vec![0, 1], vec![1, 0], vec![1, 1]];
    /// let all = [pair, InteractionSpec::strength(&plaquette, 0.2)];
    /// let problem = Clusters::lattice(2, &[3, 4]).interactions(&all).beta(0.5)?;
    /// assert_eq!(problem.target.sites(), 12);
    /// # Ok::<(), leaps::Error>(())
    /// ```
    pub fn lattice(q: usize, sides: &[usize]) -> TargetSpec {
        TargetSpec { q: Some(q), ..on_lattice(Kind::LatticeModel, sides) }
    }
}

impl TargetSpec {
    /// With crystal field D, of Blume and Capel's model.
    pub fn crystal_field(self, d: f64) -> Self {
        TargetSpec { crystal_field: Some(d), ..self }
    }

    /// With chemical potential $\\mu$, of a lattice gas.
    pub fn chemical_potential(self, mu: f64) -> Self {
        TargetSpec { chemical_potential: Some(mu), ..self }
    }

    /// With four-spin coupling K, of Ashkin and Teller's model.
    pub fn four_spin(self, k: f64) -> Self {
        TargetSpec { four_spin: Some(k), ..self }
    }

    /// With the spin of every value, of a general lattice model.
    pub fn spins(self, spins: &[f64]) -> Self {
        TargetSpec { spins: Some(Spins(spins.to_vec())), ..self }
    }

    /// With these interactions, of a general lattice model.
    pub fn interactions(self, all: &[InteractionSpec]) -> Self {
        TargetSpec { interactions: Some(Interactions(all.to_vec())), ..self }
    }
}
