//! Spin glasses: Ising spins with quenched random couplings.

use super::{Boundary, Interaction, Lattice, Pairwise, Target};
use crate::Result;
use crate::device::{Draw, Purpose, Stream};

/// The law of a coupling; both have mean 0 and variance 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Disorder {
    /// `+1` or `-1`, equally likely.
    Pm1,
    /// Standard normal.
    Gaussian,
}

impl Disorder {
    pub(super) fn draw(self, stream: &mut Stream) -> f64 {
        match self {
            Disorder::Pm1 => [-1.0, 1.0][stream.below(2)],
            Disorder::Gaussian => stream.normal(),
        }
    }
}

impl Pairwise {
    /// The Edwards-Anderson glass: `E = -sum_<ij> J_ij s_i s_j` on a lattice. The disorder depends on
    /// the seed and the lattice alone.
    pub fn edwards_anderson(lattice: Lattice, disorder: Disorder, seed: u64) -> Result<Self> {
        Self::glass_from(lattice, disorder, Stream::new(seed, Purpose::Disorder, 0, 0))
    }

    /// The Edwards-Anderson glass whose couplings are drawn from a stream, in the order of [`Lattice::bonds`].
    pub(crate) fn glass_from(
        lattice: Lattice,
        disorder: Disorder,
        mut stream: Stream,
    ) -> Result<Self> {
        let edges: Vec<_> =
            lattice.bonds().into_iter().map(|(i, j)| (i, j, disorder.draw(&mut stream))).collect();
        let model = Self::from_edges(Interaction::Ising, lattice.sites(), 2, &edges)?;
        Ok(model.on_lattice(lattice))
    }

    /// The couplings of Ising spins between neighbours on a chain or a square, cubic or hypercubic lattice: `[site * dimensions + axis]`, that of
    /// the bond from the site to the next one along the axis, 0 where there is no bond.
    ///
    /// `None` for other models: with a field, with several energy terms or other bonds, and on a torus with an axis of length 2, where two bonds join the
    /// same sites.
    pub fn axis_couplings(&self) -> Option<Vec<f32>> {
        let lattice = self.lattice()?;
        let [term] = self.energy_terms() else { return None };
        let doubled = lattice.boundary() == Boundary::Periodic && lattice.shape().contains(&2);
        let fields = term.fields.iter().any(|&field| field != 0.0);
        if self.interaction() != Interaction::Ising || fields || doubled {
            return None;
        }
        let dimensions = lattice.shape().len();
        let mut couplings = vec![0.0; self.sites() * dimensions];
        let along = |from: usize, to: usize| {
            (0..dimensions).find(|&axis| lattice.ahead(from, axis, 1) == Some(to))
        };
        for site in 0..self.sites() {
            let bonds = self.directed(site).zip(self.neighbours(site));
            for (bond, &end) in bonds {
                match along(site, end as usize) {
                    Some(axis) => couplings[site * dimensions + axis] += 0.5 * term.couplings[bond],
                    None => drop(along(end as usize, site)?),
                }
            }
        }
        Some(couplings.into_iter().map(|coupling| coupling as f32).collect())
    }

    /// The Sherrington-Kirkpatrick glass: every pair interacts with `J_ij / sqrt(sites)`.
    pub fn sherrington_kirkpatrick(sites: usize, disorder: Disorder, seed: u64) -> Result<Self> {
        let mut stream = Stream::new(seed, Purpose::Disorder, 0, 0);
        let scale = 1.0 / (sites as f64).sqrt();
        let mut edges = Vec::with_capacity(sites * sites.saturating_sub(1) / 2);
        for i in 0..sites as u32 {
            for j in i + 1..sites as u32 {
                edges.push((i, j, scale * disorder.draw(&mut stream)));
            }
        }
        Self::from_edges(Interaction::Ising, sites, 2, &edges)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn couplings_along_axes_give_the_energy() {
        use Boundary::{Free, Periodic};
        for (shape, boundary) in
            [(&[5][..], Periodic), (&[2, 4], Free), (&[3, 4], Periodic), (&[3, 4, 5], Periodic)]
        {
            let lattice = Lattice::new(shape, boundary).unwrap();
            let (sites, axes) = (lattice.sites(), shape.len());
            let glass = Pairwise::edwards_anderson(lattice.clone(), Disorder::Gaussian, 3).unwrap();
            let couplings = glass.axis_couplings().unwrap();
            let mut stream = Stream::new(1, Purpose::Statistic, 0, 0);
            let x: Vec<u8> = (0..sites).map(|_| stream.below(2) as u8).collect();
            let spin = |site: usize| 2.0 * f64::from(x[site]) - 1.0;
            let mut energy = 0.0;
            for (bond, &coupling) in couplings.iter().enumerate() {
                match lattice.ahead(bond / axes, bond % axes, 1) {
                    Some(next) => energy -= f64::from(coupling) * spin(bond / axes) * spin(next),
                    None => assert_eq!(coupling, 0.0),
                }
            }
            let want = glass.energy(0, &x);
            assert!((energy - want).abs() < 1e-5, "{shape:?} {boundary:?}: {energy} {want}");
        }
    }

    #[test]
    fn other_models_have_no_couplings_along_axes() {
        let torus = |shape: &[usize]| Lattice::new(shape, Boundary::Periodic).unwrap();
        let glass =
            |shape: &[usize]| Pairwise::edwards_anderson(torus(shape), Disorder::Pm1, 1).unwrap();
        let of = |model: Pairwise| model.axis_couplings().is_some();
        assert!(of(glass(&[3, 3])) && of(glass(&[4, 4]).with_uniform_field(0.0).unwrap()));
        assert!(!of(glass(&[3, 3]).with_uniform_field(0.1).unwrap()));
        assert!(!of(glass(&[2, 3])));
        assert!(!of(Pairwise::potts(torus(&[3, 3]), 2, 1.0, 0.0).unwrap()));
        assert!(!of(Pairwise::sherrington_kirkpatrick(9, Disorder::Pm1, 1).unwrap()));
        // A bond across a face, and one that is missing.
        let edges = |far| [(0, 1, 1.0), (1, far, -1.0)];
        let model = |far| Pairwise::from_edges(Interaction::Ising, 9, 2, &edges(far)).unwrap();
        assert!(!of(model(3).on_lattice(torus(&[3, 3]))));
        assert!(of(model(4).on_lattice(torus(&[3, 3]))));
        assert!(!of(model(4)));
    }
}
