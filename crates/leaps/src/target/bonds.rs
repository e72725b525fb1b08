//! Bravais lattices as arrays with bonds by offset, and uniform models on them.
//!
//! A lattice is an array of unit cells along its primitive vectors. A bond joins every site with the one at an offset,
//! counted in these vectors: the triangular lattice is a square array with the bonds (1, 0), (0, 1) and (1, 1), fcc and bcc are
//! cubic arrays with six and four. Which offsets are the second and third neighbours follows from the lengths of the vectors.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{Boundary, Interaction, Lattice, Pairwise};
use crate::{Error, Result, finite};

/// Lattices by name; without one the array is hypercubic, of one to four dimensions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Bravais {
    /// One dimension, 2 neighbours
    Chain,
    /// Two dimensions, 4 neighbours
    Square,
    /// Three dimensions, 6 neighbours
    Cubic,
    /// Two dimensions, 6 neighbours
    Triangular,
    /// Face-centred cubic, 12 neighbours; sizes count primitive cells
    Fcc,
    /// Body-centred cubic, 8 neighbours; sizes count primitive cells
    Bcc,
}

/// The interaction of every site with the one at an offset: `-strength s_i s_{i+offset}`, or with `[x_i = x_{i+offset}]`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Bond {
    /// Sites along each axis, of either sign.
    pub offset: Vec<i64>,
    /// J, positive for bonds that favour equal values.
    pub strength: f64,
}

/// The couplings of a uniform model: one strength to the next sites along every axis, or a list by offset.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Couplings {
    /// The same to all next sites along the axes.
    Nearest(f64),
    /// These bonds and no others.
    Listed(Vec<Bond>),
}

impl From<f64> for Couplings {
    fn from(strength: f64) -> Self {
        Couplings::Nearest(strength)
    }
}

impl From<Vec<Bond>> for Couplings {
    fn from(bonds: Vec<Bond>) -> Self {
        Couplings::Listed(bonds)
    }
}

impl Couplings {
    /// All bonds of a lattice by offset.
    ///
    /// # Errors
    /// Those of [`Pairwise::from_bonds`].
    pub(super) fn on(self, lattice: &Lattice) -> Result<Vec<Bond>> {
        let axes = lattice.shape().len();
        let unit = |axis: usize| (0..axes).map(|other| i64::from(other == axis)).collect();
        match self {
            Couplings::Nearest(strength) => {
                Ok((0..axes).map(|axis| Bond { offset: unit(axis), strength }).collect())
            }
            Couplings::Listed(bonds) => lattice.check_bonds(&bonds).map(|()| bonds),
        }
    }
}

/// Steps along an axis among which neighbours up to the third are found.
const FARTHEST: i64 = 3;

impl Bravais {
    /// The name users write.
    pub fn name(self) -> &'static str {
        match self {
            Bravais::Chain => "chain",
            Bravais::Square => "square",
            Bravais::Cubic => "cubic",
            Bravais::Triangular => "triangular",
            Bravais::Fcc => "fcc",
            Bravais::Bcc => "bcc",
        }
    }

    /// Axes.
    pub fn dimensions(self) -> usize {
        match self {
            Bravais::Chain => 1,
            Bravais::Square | Bravais::Triangular => 2,
            Bravais::Cubic | Bravais::Fcc | Bravais::Bcc => 3,
        }
    }

    /// Whether nearest neighbours are those along the axes of the array.
    pub fn is_hypercubic(self) -> bool {
        matches!(self, Bravais::Chain | Bravais::Square | Bravais::Cubic)
    }

    /// Products of a primitive vector with itself and with another, up to a common factor.
    fn products(self) -> (i64, i64) {
        match self {
            Bravais::Chain | Bravais::Square | Bravais::Cubic => (1, 0),
            Bravais::Triangular => (2, -1),
            Bravais::Fcc => (2, 1),
            Bravais::Bcc => (3, -1),
        }
    }

    /// The offsets to neighbours number `order` (1: nearest), one of each pair of opposite ones. `None` stands for the hypercubic lattice.
    pub fn shell(lattice: Option<Bravais>, dimensions: usize, order: usize) -> Vec<Vec<i64>> {
        let (own, other) = lattice.map_or((1, 0), Bravais::products);
        let mut shells: BTreeMap<i64, Vec<Vec<i64>>> = BTreeMap::new();
        let range = 2 * FARTHEST + 1;
        // Counted down, so that positive offsets come first, along the first axis before the others.
        for index in (0..range.pow(dimensions as u32)).rev() {
            let digit = |axis: usize| index / range.pow((dimensions - 1 - axis) as u32) % range;
            let offset: Vec<i64> = (0..dimensions).map(|axis| digit(axis) - FARTHEST).collect();
            if offset.iter().find(|&&step| step != 0).is_none_or(|&step| step < 0) {
                continue;
            }
            let sum: i64 = offset.iter().sum();
            let squares: i64 = offset.iter().map(|step| step * step).sum();
            let length = own * squares + other * (sum * sum - squares);
            shells.entry(length).or_default().push(offset);
        }
        shells.into_values().nth(order - 1).unwrap_or_default()
    }
}

impl Lattice {
    /// The site at an offset from `site`, if it exists.
    pub(crate) fn at(&self, site: usize, offset: &[i64]) -> Option<usize> {
        let mut to = 0;
        for (axis, &step) in offset.iter().enumerate() {
            let side = self.shape()[axis] as i64;
            let place = self.coordinate(site, axis) as i64 + step;
            if self.boundary() == Boundary::Free && !(0..side).contains(&place) {
                return None;
            }
            to += place.rem_euclid(side) as usize * self.stride(axis);
        }
        Some(to)
    }

    /// Refuse lists of bonds that make no model.
    fn check_bonds(&self, bonds: &[Bond]) -> Result<()> {
        if bonds.is_empty() {
            let advice = "name an offset and its strength";
            return Err(Error::invalid("target.bonds", "[]", "at least one bond", advice));
        }
        for (k, bond) in bonds.iter().enumerate() {
            self.check_offset(&bond.offset)?;
            finite("target.bonds", bond.strength)?;
            let opposite: Vec<i64> = bond.offset.iter().map(|step| -step).collect();
            let same = |other: &Bond| other.offset == bond.offset || other.offset == opposite;
            if bonds[..k].iter().any(same) {
                let shown = format!("offset {:?}", bond.offset);
                let condition = "named once: a bond leads both ways";
                let advice = "leave one of the two out";
                return Err(Error::invalid("target.bonds", shown, condition, advice));
            }
        }
        Ok(())
    }

    /// Refuse an offset that joins a site with itself or has another number of axes.
    fn check_offset(&self, offset: &[i64]) -> Result<()> {
        let shape = self.shape();
        let shown = format!("offset {offset:?}");
        if offset.len() != shape.len() {
            let condition = format!("one step for each of the {} axes", shape.len());
            let advice = "see target.size and target.dimensions";
            return Err(Error::invalid("target.bonds", shown, condition, advice));
        }
        if offset.iter().all(|&step| step == 0) {
            let advice = "use target.field for the energy of single sites";
            return Err(Error::invalid("target.bonds", shown, "to another site", advice));
        }
        let turns = offset.iter().zip(shape).all(|(&step, &side)| step % side as i64 == 0);
        if turns && self.boundary() == Boundary::Periodic {
            let sides: Vec<String> = shape.iter().map(usize::to_string).collect();
            return Err(Error::invalid(
                "target.size",
                sides.join("x"),
                format!(
                    "such that no bond leads round the lattice to its own site, as {shown} does"
                ),
                "use a larger lattice, or free edges",
            ));
        }
        if offset.iter().zip(shape).any(|(&step, &side)| step.unsigned_abs() as usize > 2 * side) {
            let condition = "at most twice the sides of the lattice";
            return Err(Error::invalid("target.bonds", shown, condition, "use a larger lattice"));
        }
        Ok(())
    }
}

impl Pairwise {
    /// A model with the same bonds at every site of a lattice. On a small torus several may join the same two sites; they add up.
    ///
    /// Nearest neighbours of one strength along every axis make the [plain](Self::uniform) model.
    ///
    /// # Errors
    /// No bonds, the same or opposite offsets twice, and offsets that lead from a site to itself.
    pub fn from_bonds(
        interaction: Interaction,
        lattice: Lattice,
        q: usize,
        bonds: &[Bond],
    ) -> Result<Self> {
        lattice.check_bonds(bonds)?;
        let axes = lattice.shape().len();
        let nearest = Bravais::shell(None, axes, 1);
        let plain = bonds.len() == axes
            && bonds.iter().all(|bond| bond.strength == bonds[0].strength)
            && nearest.iter().all(|offset| bonds.iter().any(|bond| bond.offset == *offset));
        if plain {
            return Self::uniform(interaction, lattice, q, bonds[0].strength);
        }
        let mut edges = Vec::with_capacity(lattice.sites() * bonds.len());
        for site in 0..lattice.sites() {
            for bond in bonds {
                if let Some(end) = lattice.at(site, &bond.offset) {
                    edges.push((site as u32, end as u32, bond.strength));
                }
            }
        }
        let model = Self::from_edges(interaction, lattice.sites(), q, &edges)?;
        Ok(model.on_lattice(lattice).with_offsets(bonds.to_vec()))
    }
}

#[cfg(test)]
pub(crate) mod testing {
    use super::*;

    /// Ising spins on a torus with a coupling for each of the first shells of neighbours.
    pub(crate) fn on_shells(shape: &[usize], kind: Option<Bravais>, couplings: &[f64]) -> Pairwise {
        let bonds = couplings.iter().enumerate().flat_map(|(k, &strength)| {
            let shell = Bravais::shell(kind, shape.len(), k + 1).into_iter();
            shell.map(move |offset| Bond { offset, strength })
        });
        let torus = Lattice::new(shape, Boundary::Periodic).unwrap();
        Pairwise::from_bonds(Interaction::Ising, torus, 2, &bonds.collect::<Vec<_>>()).unwrap()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::target::Target;

    #[test]
    fn shells_have_the_numbers_of_neighbours_that_textbooks_give() {
        for (lattice, dimensions, neighbours) in [
            (None, 1, [2, 2, 2]),
            (None, 2, [4, 4, 4]),
            (None, 3, [6, 12, 8]),
            (None, 4, [8, 24, 32]),
            (Some(Bravais::Triangular), 2, [6, 6, 6]),
            (Some(Bravais::Fcc), 3, [12, 6, 24]),
            (Some(Bravais::Bcc), 3, [8, 6, 12]),
        ] {
            let counts = [1, 2, 3].map(|k| 2 * Bravais::shell(lattice, dimensions, k).len());
            assert_eq!(counts, neighbours, "{lattice:?} {dimensions}");
        }
        assert_eq!(Bravais::shell(None, 2, 1), [[1, 0], [0, 1]]);
        assert_eq!(Bravais::shell(None, 2, 2), [[1, 1], [1, -1]]);
        assert_eq!(Bravais::shell(None, 2, 3), [[2, 0], [0, 2]]);
        assert_eq!(Bravais::shell(Some(Bravais::Triangular), 2, 1), [[1, 1], [1, 0], [0, 1]]);
    }

    /// All spins alike: every site has half of its neighbours' bonds.
    #[test]
    fn models_on_shells_have_a_coupling_for_each() {
        let energy = |shape: &[usize], kind, couplings: &[f64]| {
            let target = crate::target::on_shells(shape, kind, couplings);
            target.energy(0, &vec![1; target.sites()]) / target.sites() as f64
        };
        let j1j2 = energy(&[6, 5], None, &[1.0, -0.6]);
        assert!((j1j2 + 2.0 - 1.2).abs() < 1e-12, "{j1j2}");
        let triangular = energy(&[4, 5], Some(Bravais::Triangular), &[-1.0, 0.25]);
        assert!((triangular - 3.0 + 0.75).abs() < 1e-12, "{triangular}");
    }

    fn bond(offset: &[i64], strength: f64) -> Bond {
        Bond { offset: offset.to_vec(), strength }
    }

    /// Every state's energy against the sum over sites and offsets, on tori where bonds coincide, too.
    #[test]
    fn energies_are_sums_over_sites_and_offsets() {
        let bonds =
            [bond(&[1, 0], 1.0), bond(&[0, 1], 0.7), bond(&[1, 1], -0.6), bond(&[1, -2], 0.3)];
        for boundary in [Boundary::Periodic, Boundary::Free] {
            for shape in [[2, 3], [3, 4], [2, 2]] {
                let lattice = Lattice::new(&shape, boundary).unwrap();
                let model = Pairwise::from_bonds(Interaction::Ising, lattice, 2, &bonds).unwrap();
                assert!(!model.is_plain());
                let sites = shape[0] * shape[1];
                for code in 0..1usize << sites {
                    let x: Vec<u8> = (0..sites).map(|i| (code >> i & 1) as u8).collect();
                    let spin = |row: i64, column: i64| {
                        let inside = (0..shape[0] as i64).contains(&row)
                            && (0..shape[1] as i64).contains(&column);
                        if boundary == Boundary::Free && !inside {
                            return 0.0;
                        }
                        let row = row.rem_euclid(shape[0] as i64) as usize;
                        let column = column.rem_euclid(shape[1] as i64) as usize;
                        2.0 * f64::from(x[row * shape[1] + column]) - 1.0
                    };
                    let mut energy = 0.0;
                    for row in 0..shape[0] as i64 {
                        for column in 0..shape[1] as i64 {
                            for bond in &bonds {
                                let other = spin(row + bond.offset[0], column + bond.offset[1]);
                                energy -= bond.strength * spin(row, column) * other;
                            }
                        }
                    }
                    assert!((model.energy(0, &x) - energy).abs() < 1e-12, "{shape:?} {code}");
                }
            }
        }
    }

    #[test]
    fn nearest_neighbours_of_one_strength_are_the_plain_model() {
        let torus = || Lattice::new(&[4, 5], Boundary::Periodic).unwrap();
        let build = |bonds: &[Bond]| Pairwise::from_bonds(Interaction::Ising, torus(), 2, bonds);
        let plain = build(&[bond(&[0, 1], 0.5), bond(&[1, 0], 0.5)]).unwrap();
        assert_eq!(plain, Pairwise::ising(torus(), 0.5, 0.0).unwrap());
        assert_eq!(plain.uniform_torus(), Some((4, 5, 0.5)));
        // A triangular lattice has equal couplings and no closed formula.
        let third = [bond(&[0, 1], 0.5), bond(&[1, 0], 0.5), bond(&[1, 1], 0.5)];
        assert_eq!(build(&third).unwrap().uniform_torus(), None);
        assert_eq!(build(&third[1..]).unwrap().uniform_torus(), None);
    }

    #[test]
    fn bonds_that_make_no_sense_are_refused_in_words() {
        let torus = |side| Lattice::new(&[side, side], Boundary::Periodic).unwrap();
        let build = |side, bonds: &[Bond]| {
            let model = Pairwise::from_bonds(Interaction::Potts, torus(side), 3, bonds);
            model.unwrap_err().to_string()
        };
        for (words, got) in [
            ("at least one bond", build(4, &[])),
            ("target.size = 2x2", build(2, &[bond(&[2, 0], 1.0)])),
            ("leads round the lattice", build(2, &[bond(&[1, 0], 1.0), bond(&[0, -2], 1.0)])),
            ("to another site", build(4, &[bond(&[0, 0], 1.0)])),
            ("each of the 2 axes", build(4, &[bond(&[1], 1.0)])),
            ("named once", build(4, &[bond(&[1, -1], 1.0), bond(&[-1, 1], 1.0)])),
            ("finite", build(4, &[bond(&[1, 0], f64::NAN)])),
            ("twice the sides", build(4, &[bond(&[i64::MIN + 1, 1], 1.0)])),
        ] {
            assert!(got.contains(words), "{got}");
        }
    }
}
