//! The models of physics by their names: each is a [`TargetSpec`] that becomes a [`Problem`] with a temperature.
//!
//! ```
//! use leaps::prelude::*;
//!
//! let problem = Ising::square(8).field(0.1).beta(0.4407)?;
//! assert_eq!(problem.target.sites(), 64);
//! # Ok::<(), leaps::Error>(())
//! ```

use std::path::PathBuf;

use super::Problem;
use crate::Result;
use crate::path::PathSpec;
use crate::target::{
    Bond, Bonds, Boundary, Bravais, Disorder, Field, Geometry, Kind, Size, TargetSpec,
};

pub(super) fn on_lattice(kind: Kind, sides: &[usize]) -> TargetSpec {
    TargetSpec { kind: Some(kind), size: Some(Size(sides.to_vec())), ..TargetSpec::default() }
}

/// Spins -1 and +1: $E = -J \\sum_{\\langle ij\\rangle} s_i s_j + h \\sum_i s_i$.
#[derive(Clone, Copy, Debug)]
pub struct Ising;

impl Ising {
    /// A periodic square lattice.
    pub fn square(side: usize) -> TargetSpec {
        Self::lattice(&[side; 2])
    }

    /// A periodic cubic lattice.
    pub fn cubic(side: usize) -> TargetSpec {
        Self::lattice(&[side; 3])
    }

    /// A periodic triangular lattice.
    pub fn triangular(side: usize) -> TargetSpec {
        Self::square(side).on(Bravais::Triangular)
    }

    /// A periodic face-centred cubic lattice, in primitive cells.
    pub fn fcc(side: usize) -> TargetSpec {
        Self::cubic(side).on(Bravais::Fcc)
    }

    /// A periodic body-centred cubic lattice, in primitive cells.
    pub fn bcc(side: usize) -> TargetSpec {
        Self::cubic(side).on(Bravais::Bcc)
    }

    /// A periodic lattice of one to four dimensions.
    pub fn lattice(sides: &[usize]) -> TargetSpec {
        on_lattice(Kind::Ising, sides)
    }
}

/// Sites with `q` values: $E = -J \\sum_{\\langle ij\\rangle} [x_i = x_j] + h \\sum_i [x_i = 0]$.
#[derive(Clone, Copy, Debug)]
pub struct Potts;

impl Potts {
    /// A periodic square lattice.
    pub fn square(q: usize, side: usize) -> TargetSpec {
        Self::lattice(q, &[side; 2])
    }

    /// A periodic lattice of one to four dimensions.
    pub fn lattice(q: usize, sides: &[usize]) -> TargetSpec {
        TargetSpec { q: Some(q), ..on_lattice(Kind::Potts, sides) }
    }
}

/// Ising spins with random couplings.
#[derive(Clone, Copy, Debug)]
pub struct SpinGlass;

impl SpinGlass {
    /// Edwards and Anderson's on a periodic square lattice, with couplings of seed `disorder_seed`.
    pub fn square(side: usize, disorder_seed: u64) -> TargetSpec {
        Self::lattice(&[side; 2], disorder_seed)
    }

    /// Edwards and Anderson's on a periodic lattice of one to four dimensions.
    pub fn lattice(sides: &[usize], disorder_seed: u64) -> TargetSpec {
        TargetSpec { disorder_seed: Some(disorder_seed), ..on_lattice(Kind::SpinGlass, sides) }
    }

    /// Sherrington and Kirkpatrick's: all pairs of so many spins interact.
    pub fn complete(spins: usize, disorder_seed: u64) -> TargetSpec {
        TargetSpec { geometry: Some(Geometry::Complete), ..Self::lattice(&[spins], disorder_seed) }
    }
}

/// Any graph: couplings and fields read from a file, of many formats.
#[derive(Clone, Copy, Debug)]
pub struct EdgeList;

impl EdgeList {
    /// The file, whose format is recognised: see [`Format`](crate::target::Format).
    pub fn file(path: impl Into<PathBuf>) -> TargetSpec {
        TargetSpec { kind: Some(Kind::File), path: Some(path.into()), ..TargetSpec::default() }
    }
}

/// The largest cut of a graph: $E = -\\sum_{ij} w_{ij} [x_i \\ne x_j]$.
#[derive(Clone, Copy, Debug)]
pub struct MaxCut;

impl MaxCut {
    /// The graph in a file of rudy's format: "vertices edges", then one "i j weight" a line.
    pub fn file(path: impl Into<PathBuf>) -> TargetSpec {
        TargetSpec { kind: Some(Kind::Maxcut), ..EdgeList::file(path) }
    }
}

/// The largest set of vertices that no edge joins: $E = -\\sum_i x_i + 2 \\sum_{ij} x_i x_j$.
#[derive(Clone, Copy, Debug)]
pub struct IndependentSet;

impl IndependentSet {
    /// The graph in a file of rudy's format: "vertices edges", then one "i j" a line.
    pub fn file(path: impl Into<PathBuf>) -> TargetSpec {
        TargetSpec { kind: Some(Kind::IndependentSet), ..EdgeList::file(path) }
    }
}

impl TargetSpec {
    /// With coupling J; negative is antiferromagnetic.
    pub fn coupling(self, coupling: f64) -> Self {
        TargetSpec { coupling: Some(coupling), ..self }
    }

    /// On another lattice of as many dimensions.
    pub fn on(self, lattice: Bravais) -> Self {
        TargetSpec { lattice: Some(lattice), ..self }
    }

    /// With coupling J2 of second neighbours.
    pub fn j2(self, j2: f64) -> Self {
        TargetSpec { j2: Some(j2), ..self }
    }

    /// With coupling J3 of third neighbours.
    pub fn j3(self, j3: f64) -> Self {
        TargetSpec { j3: Some(j3), ..self }
    }

    /// With these bonds, by offset and strength, in place of couplings.
    pub fn bonds(self, bonds: &[Bond]) -> Self {
        TargetSpec { bonds: Some(Bonds(bonds.to_vec())), ..self }
    }

    /// In a uniform field h.
    pub fn field(self, field: f64) -> Self {
        TargetSpec { field: Some(Field::Uniform(field)), ..self }
    }

    /// With a field for every site.
    pub fn fields(self, fields: &[f64]) -> Self {
        TargetSpec { field: Some(Field::Sites(fields.to_vec())), ..self }
    }

    /// With these edges of the lattice.
    pub fn boundary(self, boundary: Boundary) -> Self {
        TargetSpec { boundary: Some(boundary), ..self }
    }

    /// With couplings of this law.
    pub fn couplings(self, law: Disorder) -> Self {
        TargetSpec { couplings: Some(law), ..self }
    }

    /// At inverse temperature `beta`, along a straight path.
    ///
    /// # Errors
    /// Settings that make no target: the message names the one to blame.
    pub fn beta(self, beta: f64) -> Result<Problem> {
        let spec = TargetSpec { beta: Some(beta), ..self }.filled()?;
        Problem::of(&spec, &PathSpec::default())
    }
}
