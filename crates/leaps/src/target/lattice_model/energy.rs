//! Energies of lattice models and their changes.

use super::{LatticeModel, Link, View};
use crate::target::{Lattice, Pairwise, Target};

/// A cluster, seen from one of its sites.
pub(crate) struct Through<'a> {
    /// The term that its energies are a part of.
    pub term: usize,
    /// The number of its table.
    pub table: usize,
    /// Its table.
    pub energies: &'a [f64],
    /// What the energies are multiplied by.
    pub scale: f64,
    /// How far apart energies of two values of the site are.
    pub stride: usize,
    /// The other sites.
    pub others: &'a [u32],
    /// How far apart energies of two of their values are.
    pub strides: &'a [usize],
}

impl LatticeModel {
    /// The clusters through a site.
    #[inline]
    pub(super) fn links(&self, site: usize) -> &[Link] {
        &self.links[self.starts[site] as usize..self.starts[site + 1] as usize]
    }

    /// How a link's cluster is seen from its site, and its other sites.
    #[inline]
    pub(super) fn others(&self, link: &Link) -> (&View, &[u32]) {
        let view = &self.views[link.view as usize];
        (view, &self.others[link.first as usize..][..view.others.len()])
    }

    /// The energies of a link's cluster for the values of the site, which are `stride` apart.
    #[inline]
    fn row(&self, link: &Link, x: &[u8]) -> (&View, &[f64]) {
        let (view, others) = self.others(link);
        let mut base = 0;
        for (&site, stride) in others.iter().zip(&view.others) {
            base += x[site as usize] as usize * stride;
        }
        (view, &self.tables[view.table as usize].energies[base..])
    }

    /// The clusters of two and more sites through a site.
    pub(crate) fn through(&self, site: usize) -> impl Iterator<Item = Through<'_>> {
        self.links(site).iter().map(|link| {
            let (view, others) = self.others(link);
            Through {
                term: view.term as usize,
                table: view.table as usize,
                energies: &self.tables[view.table as usize].energies,
                scale: link.scale,
                stride: view.stride,
                others,
                strides: &view.others,
            }
        })
    }

    /// What a value of a site costs by itself, by term.
    pub(crate) fn site_energies(&self, site: usize, value: usize) -> impl Iterator<Item = f64> {
        let at = site * self.q + value;
        self.site_energies.iter().map(move |own| own.get(at).copied().unwrap_or(0.0))
    }

    /// Add what the step of `site` from `old` to `new` changes in every term; it does not matter which of them `x` has there.
    #[inline]
    pub(crate) fn add_changes(
        &self,
        x: &[u8],
        site: usize,
        [old, new]: [u8; 2],
        energies: &mut [f64],
    ) {
        let (old, new) = (old as usize, new as usize);
        for (own, energy) in self.site_energies.iter().zip(energies.iter_mut()) {
            if let Some(row) = own.get(site * self.q..(site + 1) * self.q) {
                *energy += row[new] - row[old];
            }
        }
        for link in self.links(site) {
            let (view, row) = self.row(link, x);
            energies[view.term as usize] +=
                link.scale * (row[new * view.stride] - row[old * view.stride]);
        }
    }

    /// `sum_k lambda_k E_k` of all that a site is part of, for every value of it.
    #[inline]
    fn local_energies(&self, lambda: &[f64], x: &[u8], site: usize, out: &mut [f64]) {
        out.fill(0.0);
        for (own, &weight) in self.site_energies.iter().zip(lambda) {
            if let Some(row) = own.get(site * self.q..(site + 1) * self.q) {
                out.iter_mut().zip(row).for_each(|(out, energy)| *out += weight * energy);
            }
        }
        for link in self.links(site) {
            let (view, row) = self.row(link, x);
            let weight = lambda[view.term as usize] * link.scale;
            for (out, energy) in out.iter_mut().zip(row.iter().step_by(view.stride)) {
                *out += weight * energy;
            }
        }
    }
}

impl Target for LatticeModel {
    fn sites(&self) -> usize {
        self.sites
    }

    fn q(&self) -> usize {
        self.q
    }

    fn terms(&self) -> usize {
        self.terms.len()
    }

    fn name(&self) -> String {
        self.name.clone()
    }

    fn term_name(&self, term: usize) -> String {
        self.terms[term].clone()
    }

    fn energy(&self, term: usize, x: &[u8]) -> f64 {
        let rows = self.site_energies[term].chunks_exact(self.q);
        let mut energy: f64 = rows.zip(x).map(|(row, &value)| row[value as usize]).sum();
        for (site, &value) in x.iter().enumerate() {
            for link in self.links(site) {
                let (view, row) = self.row(link, x);
                if view.place > 0 {
                    break; // every cluster is met once at its first place
                }
                if view.term as usize == term {
                    energy += link.scale * row[value as usize * view.stride];
                }
            }
        }
        energy
    }

    fn change(&self, lambda: &[f64], x: &mut [u8], site: usize, value: u8) -> f64 {
        let (old, new) = (x[site] as usize, value as usize);
        let mut change = 0.0;
        for (own, &weight) in self.site_energies.iter().zip(lambda) {
            if let Some(row) = own.get(site * self.q..(site + 1) * self.q) {
                change += weight * (row[new] - row[old]);
            }
        }
        for link in self.links(site) {
            let (view, row) = self.row(link, x);
            let by = row[new * view.stride] - row[old * view.stride];
            change += lambda[view.term as usize] * link.scale * by;
        }
        change
    }

    fn changes(&self, lambda: &[f64], x: &mut [u8], out: &mut [f64]) {
        for (site, row) in out.chunks_exact_mut(self.q).enumerate() {
            self.site_changes(lambda, x, site, row);
        }
    }

    fn changes_after(&self, lambda: &[f64], x: &mut [u8], site: usize, out: &mut [f64]) {
        let others = self.links(site).iter().flat_map(|link| self.others(link).1);
        for site in others.map(|&other| other as usize).chain([site]) {
            self.site_changes(lambda, x, site, &mut out[site * self.q..][..self.q]);
        }
    }

    fn site_changes(&self, lambda: &[f64], x: &mut [u8], site: usize, out: &mut [f64]) {
        self.local_energies(lambda, x, site, out);
        let own = out[x[site] as usize];
        out.iter_mut().for_each(|energy| *energy -= own);
    }

    fn lattice(&self) -> Option<&Lattice> {
        self.lattice.as_ref()
    }

    fn pairwise(&self) -> Option<&Pairwise> {
        self.pairwise.as_ref()
    }

    fn lattice_model(&self) -> Option<&LatticeModel> {
        Some(self)
    }
}
