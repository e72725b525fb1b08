//! Features of the bonds of a spin glass that the head reads, for one walker: sixteen sites in lanes.

use std::sync::Arc;

use super::bonds::{Bonds, ENERGY, MOST};
use crate::device::vector::{Array, Floats, Vector, WIDTH, cast, cast_mut};
use crate::net::network::Group;

/// The spins of a walker, its instance and the sums over its bonds.
#[derive(Clone, Debug)]
pub(in crate::net) struct BondFeatures {
    bonds: Arc<Bonds>,
    instance: Vec<f32>,
    spins: Vec<f32>,
    /// Spins, and couplings and neighbours' spins along every direction, sixteen sites in lanes: `[direction][site / 16]`.
    x: Vec<Array<f32>>,
    couplings: Vec<Array<f32>>,
    neighbours: Vec<Array<f32>>,
    /// Minus the energy of the bonds of every site, in units, and the unit and its inverse.
    own: Vec<Array<f32>>,
    unit: [Array<f32>; 2],
    frustration: Array<f32>,
    /// What the head reads about the bonds of a site, in lanes, and of the energy, sixteen sites in lanes.
    near: Vec<Array<f32>>,
    energy: Vec<Array<f32>>,
    /// Whether the unit is that of the instance; sites whose bonds have changed.
    measured: bool,
    touched: Vec<u32>,
}

fn zeros(n: usize) -> Vec<Array<f32>> {
    vec![Array([0.0; WIDTH]); n]
}

impl BondFeatures {
    pub(in crate::net) fn new(bonds: &Arc<Bonds>) -> Self {
        let blocks = bonds.sites.div_ceil(WIDTH);
        BondFeatures {
            instance: vec![0.0; bonds.numbers()],
            spins: vec![1.0; bonds.sites],
            x: zeros(blocks),
            couplings: zeros(blocks * bonds.directions()),
            neighbours: zeros(blocks * bonds.directions()),
            own: zeros(blocks),
            unit: [Array([0.0; WIDTH]); 2],
            frustration: Array([0.0; WIDTH]),
            near: zeros(bonds.sites * bonds.near().div_ceil(WIDTH)),
            energy: zeros(blocks * ENERGY),
            measured: false,
            touched: Vec::new(),
            bonds: Arc::clone(bonds),
        }
    }

    /// Show the couplings of an instance, from the next time on that all spins are [set](Self::set).
    pub(in crate::net) fn set_couplings(&mut self, couplings: &[f32]) {
        self.instance.copy_from_slice(couplings);
        self.measured = false;
    }

    /// The coupling of the bond of a site along a direction, and the neighbour, if there is one.
    fn bond(&self, site: usize, k: usize) -> Option<(f32, usize)> {
        let at = site * self.bonds.directions() + k;
        let neighbour = self.bonds.neighbours[at] as usize;
        (neighbour < self.bonds.sites)
            .then(|| (self.instance[self.bonds.couplings[at] as usize], neighbour))
    }

    /// Put in all spins; `rows` are what enters the stacks: `[direction][site or none]`, in lanes.
    pub(in crate::net) fn set(&mut self, values: &[u8], rows: &mut [Array<f32>]) {
        let blocks = self.x.len();
        for (site, &value) in values.iter().enumerate() {
            self.spins[site] = 2.0 * f32::from(value) - 1.0;
        }
        for site in 0..values.len() {
            let (block, lane) = (site / WIDTH, site % WIDTH);
            self.x[block].0[lane] = self.spins[site];
            for k in 0..self.bonds.directions() {
                if let Some((coupling, neighbour)) = self.bond(site, k) {
                    self.couplings[k * blocks + block].0[lane] = coupling;
                    self.neighbours[k * blocks + block].0[lane] = self.spins[neighbour];
                }
            }
            self.enter(site, rows);
        }
        self.touched.clear();
        self.touched.extend(0..values.len() as u32);
    }

    /// Change one spin, and what enters the stacks.
    pub(in crate::net) fn change(&mut self, site: usize, value: u8, rows: &mut [Array<f32>]) {
        let blocks = self.x.len();
        self.spins[site] = 2.0 * f32::from(value) - 1.0;
        self.x[site / WIDTH].0[site % WIDTH] = self.spins[site];
        self.enter(site, rows);
        self.touched.push(site as u32);
        for k in 0..self.bonds.directions() {
            if let Some((_, neighbour)) = self.bond(site, k) {
                // Directions come in pairs: back along this one leads to the site itself.
                let spin = &mut self.neighbours[(k ^ 1) * blocks + neighbour / WIDTH];
                spin.0[neighbour % WIDTH] = self.spins[site];
                self.enter(neighbour, rows);
                self.touched.push(neighbour as u32);
            }
        }
    }

    /// Write what enters the stacks at a site: satisfactions and sizes of its bonds.
    fn enter(&self, site: usize, rows: &mut [Array<f32>]) {
        let wide = self.bonds.inputs().div_ceil(WIDTH);
        let planes = rows.chunks_exact_mut((self.bonds.sites + 1) * wide);
        for (plane, faces) in planes.zip(&self.bonds.entering) {
            let row = &mut plane[site * wide..][..wide];
            for (n, &face) in faces.iter().enumerate() {
                let (coupling, neighbour) = self
                    .bond(site, face)
                    .map_or((0.0, 0.0), |(coupling, j)| (coupling, self.spins[j]));
                let (size, satisfaction) =
                    (faces.len() + n, coupling * neighbour * self.spins[site]);
                row[n / WIDTH].0[n % WIDTH] = satisfaction;
                row[size / WIDTH].0[size % WIDTH] = coupling.abs();
            }
        }
    }

    /// What the head reads about the bonds of every site, in lanes.
    pub(in crate::net) fn near(&self) -> &[Array<f32>] {
        &self.near
    }

    /// Compute what has changed; `changed` are the sites for which the head reads other bonds.
    #[inline(always)]
    pub(in crate::net) unsafe fn update<L: Floats>(&mut self, mut changed: impl FnMut(u32)) {
        let (n, blocks) = (self.bonds.directions(), self.x.len());
        let (couplings, neighbours) = (cast::<L>(&self.couplings), cast::<L>(&self.neighbours));
        let x = cast::<L>(&self.x);
        // SAFETY: the caller has the instructions of the level.
        unsafe {
            if !self.measured {
                self.measured = true;
                // Every lane has the same instance.
                let same: Vec<_> =
                    self.instance.iter().map(|&coupling| Array([coupling; WIDTH])).collect();
                let up = vec![Array([1.0; WIDTH]); self.bonds.sites];
                let (same, up) = (cast::<L>(&same), cast::<L>(&up));
                // Nothing of this depends on the time.
                let group = Group { x: up, t: L::V::zero(), features: &[], couplings: same };
                let (unit, per_unit) = self.bonds.unit(&group);
                cast_mut::<L>(&mut self.unit).copy_from_slice(&[unit, per_unit]);
                cast_mut::<L>(std::slice::from_mut(&mut self.frustration))[0] =
                    self.bonds.mean_plaquette(&group);
            }
            let per_unit = cast::<L>(&self.unit)[1];
            let mut row = [Array([0.0; WIDTH]); 64];
            let wide = self.bonds.near().div_ceil(WIDTH);
            let mut last = usize::MAX;
            for &site in &self.touched {
                let (site, block) = (site as usize, site as usize / WIDTH);
                if block != last {
                    let mut bonds = [(L::V::zero(), L::V::zero()); MOST];
                    for (k, bond) in bonds[..n].iter_mut().enumerate() {
                        *bond = (couplings[k * blocks + block], neighbours[k * blocks + block]);
                    }
                    self.bonds.write_near(&bonds, cast_mut::<L>(&mut row));
                    cast_mut::<L>(&mut self.own)[block] =
                        self.bonds.own_energy(&bonds, x[block], per_unit);
                    last = block;
                }
                for (c, number) in row[..self.bonds.near()].iter().enumerate() {
                    self.near[site * wide + c / WIDTH].0[c % WIDTH] = number.0[site % WIDTH];
                }
                changed(site as u32);
            }
            self.touched.clear();
        }
    }

    /// What the head reads about the energy, sixteen sites in lanes.
    #[inline(always)]
    pub(in crate::net) unsafe fn energy<L: Floats>(&mut self) -> &[L::V] {
        let own = cast::<L>(&self.own);
        // SAFETY: the caller has the instructions of the level.
        unsafe {
            let mut twice = L::V::zero();
            for &own in own {
                twice = twice.add(own);
            }
            // Every bond belongs to two sites. Whole numbers are exact in any order below 2^24, and these are at most 2^23 and the number of bonds.
            let all = L::V::splat(0.5 * twice.sum());
            let (unit, frustration) =
                (cast::<L>(&self.unit)[0], cast::<L>(std::slice::from_ref(&self.frustration))[0]);
            let rows = cast_mut::<L>(&mut self.energy).chunks_exact_mut(ENERGY);
            for (row, &own) in rows.zip(own) {
                self.bonds.write_energy(all.sub(own).mul(unit), frustration, row);
            }
        }
        cast::<L>(&self.energy)
    }

    /// Write the sums of the outputs `o` of every site and its pulls.
    #[inline(always)]
    pub(in crate::net) unsafe fn contract<L: Floats>(&self, o: &[L::V], out: &mut [L::V]) {
        let (n, blocks) = (self.bonds.directions(), out.len());
        let (couplings, neighbours) = (cast::<L>(&self.couplings), cast::<L>(&self.neighbours));
        for (block, (o, out)) in o.chunks_exact(n).zip(out).enumerate() {
            // SAFETY: the caller has the instructions of the level.
            unsafe {
                *out = L::V::zero();
                for (k, o) in o.iter().enumerate() {
                    let at = k * blocks + block;
                    *out = o.fma(couplings[at].mul(neighbours[at]), *out);
                }
            }
        }
    }
}
