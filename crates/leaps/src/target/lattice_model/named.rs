//! Lattice models that have names.

use super::{ClusterTable, LatticeModel, SiteMean};
use crate::Result;
use crate::target::{Bond, Couplings, Lattice};

/// Spins of two values.
pub(in crate::target) const ISING: [f64; 2] = [-1.0, 1.0];
const SPIN_ONE: [f64; 3] = [-1.0, 0.0, 1.0];
/// The name of the term of fields, which families of targets know it by.
const FIELD: &str = "field";

/// A table of pairs for every bond; `energy` is that of a bond of some strength.
fn tables(
    lattice: &Lattice,
    couplings: impl Into<Couplings>,
    q: usize,
    energy: impl Fn(f64, usize, usize) -> f64,
) -> Result<Vec<ClusterTable>> {
    let here = vec![0; lattice.shape().len()];
    let table = |bond: Bond| {
        let energies = (0..q * q).map(|pair| energy(bond.strength, pair / q, pair % q));
        ClusterTable::new("bonds", &[here.clone(), bond.offset], energies.collect())
    };
    Ok(couplings.into().on(lattice)?.into_iter().map(table).collect())
}

impl LatticeModel {
    /// Blume and Capel's spins -1, 0, +1 (values 0, 1, 2): $E = -J \sum_{\langle ij\rangle} s_i s_j + D \sum_i s_i^2$, with $D$ as the
    /// term `crystal_field` if it is not 0. Results have the mean of $s^2$ as `quadrupole`.
    pub fn blume_capel(
        lattice: Lattice,
        couplings: impl Into<Couplings>,
        crystal_field: f64,
    ) -> Result<Self> {
        let s = SPIN_ONE;
        let mut tables = tables(&lattice, couplings, 3, |j, a, b| -j * s[a] * s[b])?;
        let squares = s.map(|s| s * s).to_vec();
        if crystal_field != 0.0 {
            let site = vec![vec![0; lattice.shape().len()]];
            let energies = squares.iter().map(|square| crystal_field * square).collect();
            tables.push(ClusterTable::new("crystal_field", &site, energies));
        }
        let model = Self::new(lattice, 3, tables)?.named("Blume-Capel model");
        let mean = SiteMean { name: "quadrupole", values: squares };
        Ok(model.with_vectors(s.map(|s| [s, 0.0]).to_vec()).with_site_mean(mean))
    }

    /// Clocks with `q` hours: $E = -J \sum_{\langle ij\rangle} \cos(2\pi (x_i - x_j)/q)$.
    pub fn clock(lattice: Lattice, q: usize, couplings: impl Into<Couplings>) -> Result<Self> {
        let angle = |x: usize| std::f64::consts::TAU * x as f64 / q as f64;
        // The hours apart, the short way round: tables are symmetric to the last bit.
        let apart = |a: usize, b: usize| a.abs_diff(b).min(q - a.abs_diff(b));
        let tables = tables(&lattice, couplings, q, |j, a, b| -j * angle(apart(a, b)).cos())?;
        let vectors = (0..q).map(|x| match q {
            2 => [angle(x).cos(), 0.0],
            _ => [angle(x).cos(), angle(x).sin()],
        });
        let vectors = vectors.collect();
        Ok(Self::new(lattice, q, tables)?.named("clock model").with_vectors(vectors))
    }

    /// Baxter and Wu's three-spin model on a triangular lattice, drawn as a square one with one diagonal: $E = -J \sum_{\triangle}
    /// s_i s_j s_k$ over all triangles, two for each site; bonds go along (0, 1), (1, 0) and (1, -1).
    pub fn baxter_wu(lattice: Lattice, coupling: f64) -> Result<Self> {
        let triangles = [[[0, 0], [0, 1], [1, 0]], [[0, 1], [1, 0], [1, 1]]];
        let table = |places: [[i64; 2]; 3]| {
            let offsets: Vec<Vec<i64>> = places.iter().map(|place| place.to_vec()).collect();
            ClusterTable::product("triangles", &offsets, coupling, &ISING)
        };
        let model = Self::new(lattice, 2, triangles.map(table).to_vec())?;
        Ok(model.named("Baxter-Wu model"))
    }

    /// A lattice gas, whose sites are empty (0) or occupied (1): $E = -J \sum_{\langle ij\rangle} n_i n_j - \mu \sum_i n_i$, the last
    /// as the term `chemical_potential`. Results have the mean of $n$ as `density`.
    pub fn lattice_gas(
        lattice: Lattice,
        couplings: impl Into<Couplings>,
        chemical_potential: f64,
    ) -> Result<Self> {
        let mut tables = tables(&lattice, couplings, 2, |j, a, b| -j * (a * b) as f64)?;
        if chemical_potential != 0.0 {
            let site = vec![vec![0; lattice.shape().len()]];
            let energies = vec![0.0, -chemical_potential];
            tables.push(ClusterTable::new("chemical_potential", &site, energies));
        }
        let mean = SiteMean { name: "density", values: vec![0.0, 1.0] };
        Ok(Self::new(lattice, 2, tables)?.named("lattice gas").with_site_mean(mean))
    }

    /// Ashkin and Teller's two spins $\sigma$ and $\tau$ at every site, value $(1 + \sigma) + (1 + \tau)/2$: $E = -J
    /// \sum_{\langle ij\rangle} (\sigma_i \sigma_j + \tau_i \tau_j) - K \sum_{\langle ij\rangle} \sigma_i \sigma_j \tau_i \tau_j$.
    /// Results have the mean of $\sigma\tau$ as `polarization`. Bonds of four spins may be others than those of two.
    pub fn ashkin_teller(
        lattice: Lattice,
        couplings: impl Into<Couplings>,
        four_spin: impl Into<Couplings>,
    ) -> Result<Self> {
        let (s, t) = (|x: usize| ISING[x / 2], |x: usize| ISING[x % 2]);
        let four_spin = four_spin.into().on(&lattice)?;
        let of = |pair: &[Vec<i64>], bonds: &[Bond]| {
            let own = bonds.iter().find(|bond| bond.offset == pair[1]);
            own.map_or(0.0, |bond| bond.strength)
        };
        // One table for a bond of both sorts.
        let two = couplings.into().on(&lattice)?;
        let only = four_spin.iter().filter(|four| two.iter().all(|own| own.offset != four.offset));
        let only: Vec<Bond> = only.map(|four| Bond { strength: 0.0, ..four.clone() }).collect();
        let mut tables = tables(&lattice, [&two[..], &only[..]].concat(), 4, |_, _, _| 0.0)?;
        for table in &mut tables {
            let (j, k) = (of(&table.offsets, &two), of(&table.offsets, &four_spin));
            for (pair, energy) in table.energies.iter_mut().enumerate() {
                let (a, b) = (pair / 4, pair % 4);
                let (first, second) = (s(a) * s(b), t(a) * t(b));
                *energy = -j * (first + second) - k * first * second;
            }
        }
        let half = std::f64::consts::FRAC_1_SQRT_2;
        let vectors = (0..4).map(|x| [half * s(x), half * t(x)]).collect();
        let mean = SiteMean { name: "polarization", values: (0..4).map(|x| s(x) * t(x)).collect() };
        let model = Self::new(lattice, 4, tables)?.named("Ashkin-Teller model");
        Ok(model.with_vectors(vectors).with_site_mean(mean))
    }

    /// The model in fields, as the term `field`: $+h_i$ times `spins[x_i]` at site $i$, one field for all sites or one for each.
    ///
    /// # Errors
    /// Another number of fields than sites, or such that are not finite.
    pub fn with_fields(self, fields: &[f64], spins: &[f64]) -> Result<Self> {
        let sites = self.sites;
        let all = match fields {
            [0.0] => return Ok(self),
            [one] => vec![*one; sites],
            many => many.to_vec(),
        };
        if all.len() != sites {
            return Err(crate::Error::invalid(
                "target.field",
                format!("{} values", all.len()),
                format!("one number, or one for each of the {sites} sites"),
                "give the full list",
            ));
        }
        let energies: Vec<f64> =
            all.iter().flat_map(|h| spins.iter().map(move |spin| h * spin)).collect();
        self.with_site_energies(FIELD, &energies).map_err(|error| match error {
            crate::Error::Invalid { value, condition, advice, .. } => {
                crate::Error::invalid("target.field", value, condition, advice)
            }
            other => other,
        })
    }
}
