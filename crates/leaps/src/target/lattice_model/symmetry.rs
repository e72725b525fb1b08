//! Symmetries of lattice models that make the order parameter vanish on average.

use super::{ClusterTable, LatticeModel, SiteMean};

impl LatticeModel {
    /// What values are in the order parameter, if it is neither Ising's nor Potts's.
    pub fn vectors(&self) -> Option<&[[f64; 2]]> {
        self.vectors.as_deref()
    }

    /// Further averages over sites that users look at.
    pub fn site_means(&self) -> &[SiteMean] {
        &self.site_means
    }

    /// Whether the energy is the same with all values inverted, or turned by one: the vectors of the order parameter then have no mean.
    /// A model without vectors has none to vanish.
    pub fn symmetric(&self) -> bool {
        let Some(vectors) = &self.vectors else { return false };
        let near = |a: f64, b: f64| (a - b).abs() < 1e-12;
        let opposite =
            |v: &[f64; 2]| vectors.iter().position(|w| near(w[0], -v[0]) && near(w[1], -v[1]));
        let inversion: Option<Vec<usize>> = vectors.iter().map(opposite).collect();
        let sum = |axis: usize| vectors.iter().map(|v| v[axis]).sum::<f64>();
        let turn: Vec<usize> = (1..self.q).chain([0]).collect();
        let turn = (near(sum(0), 0.0) && near(sum(1), 0.0)).then_some(turn);
        [inversion, turn].into_iter().flatten().any(|values| self.invariant(&values))
    }

    /// Whether the energy is the same with all values turned by one: every value is then as frequent as any other.
    pub fn equivalent(&self) -> bool {
        let turn: Vec<usize> = (1..self.q).chain([0]).collect();
        self.invariant(&turn)
    }

    /// Whether no energy changes when every value `s` becomes `values[s]`.
    fn invariant(&self, values: &[usize]) -> bool {
        let rows = self.site_energies.iter().flat_map(|term| term.chunks_exact(self.q));
        let same = |a: f64, b: f64, scale: f64| (a - b).abs() <= 1e-13 * scale;
        let sites = rows.into_iter().all(|row| {
            let scale = row.iter().fold(0.0, |most: f64, e| most.max(e.abs()));
            values.iter().zip(row).all(|(&to, from)| same(row[to], *from, scale))
        });
        let table = |table: &ClusterTable| {
            let scale = table.energies.iter().fold(0.0, |most: f64, e| most.max(e.abs()));
            table.energies.iter().enumerate().all(|(from, energy)| {
                let (mut rest, mut to, mut stride) = (from, 0, 1);
                for _ in &table.offsets {
                    to += values[rest % self.q] * stride;
                    rest /= self.q;
                    stride *= self.q;
                }
                same(table.energies[to], *energy, scale)
            })
        };
        sites && self.tables.iter().all(table)
    }
}
