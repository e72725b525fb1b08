//! Make spin glasses: Ising spins with quenched random couplings.

use super::{Interaction, Lattice, Pairwise};
use crate::Result;
use crate::device::{Draw, Purpose, Stream};

/// The law of a coupling; both have mean 0 and variance 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
#[serde(rename_all = "lowercase")]
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
        let mut stream = Stream::new(seed, Purpose::Disorder, 0, 0);
        let edges: Vec<_> =
            lattice.bonds().into_iter().map(|(i, j)| (i, j, disorder.draw(&mut stream))).collect();
        let model = Self::from_edges(Interaction::Ising, lattice.sites(), 2, &edges)?;
        Ok(model.on_lattice(lattice))
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
