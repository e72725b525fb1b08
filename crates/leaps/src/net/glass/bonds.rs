//! The bonds of a spin glass in a form that does not depend on the gauge.
//!
//! With the couplings $J$ of an instance, a site $i$ has in direction $d$ the neighbour $j$ and
//!
//! - the pull $v_d = J_{ij} x_j$, which does not depend on $x_i$ and changes its sign with the gauge of $i$,
//! - the satisfaction $e_d = x_i v_d$ of the bond, which no gauge changes, and its size $|J_{ij}|$.
//!
//! The stack along a direction reads the satisfactions and sizes of all bonds of a site but the one that leads ahead, towards the site that will read it.
//! Beside the context the head of a site reads, with $n = 2D$ directions and $m = \sum_d v_d$,
//!
//! $$v_d v_{d'}\ (d < d'),\quad m v_d,\quad m^2/n,\quad m^4/n^3,\quad |J_{id}|,\quad
//! E,\quad \tanh 3(E + 0.55 D),\quad E^2,\quad F,$$
//!
//! where $E$ is the energy of all bonds that do not touch the site, over the number of sites, and $F$ the mean over plaquettes of the product of
//! their four couplings: how little the instance is frustrated.
//!
//! $E$ is a sum of whole numbers, exact in any order, so that it does not depend on $x_i$ to the last bit: couplings are rounded to multiples of $2^{-22}$ of
//! the sum of all sizes, which leaves $\pm J$ couplings as they are up to a common factor.

use crate::device::vector::{Real, Vector};
use crate::net::hollow::geometry::{Frame, Geometry};
use crate::net::network::Group;

/// No bond, in tables.
const NONE: u32 = u32::MAX;

/// Steps that the sum of the sizes of all couplings is divided into: twice as many, and as many more as there are bonds, must be whole numbers in single
/// precision.
pub(super) const STEPS: f64 = (1 << 22) as f64;

/// A sum of sizes that is not 0.
pub(super) const LEAST: f64 = 1e-30;

/// The middle of the energies for each dimension, where the hyperbolic tangent is steepest, and how steep it is.
pub(super) const MIDDLE: f64 = -0.55;
pub(super) const STEEPNESS: f64 = 3.0;

/// Directions of a lattice of 3 dimensions.
pub(super) const MOST: usize = 6;

/// Numbers that the head reads about the energy.
pub(in crate::net) const ENERGY: usize = 4;

/// The bonds of every site of a lattice.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Bonds {
    pub(super) dimensions: usize,
    pub(super) sites: usize,
    /// The neighbour of a site that a stack along each direction is read from, and the coupling to it: `[site * directions + direction]`.
    pub(super) neighbours: Vec<u32>,
    pub(super) couplings: Vec<u32>,
    /// The directions of the bonds that enter the stack along each direction.
    pub(super) entering: Vec<Vec<usize>>,
    /// The couplings around every plaquette.
    pub(super) plaquettes: Vec<[u32; 4]>,
}

impl Bonds {
    pub(crate) fn new(geometry: &Geometry) -> Self {
        let (lattice, sites) = (&geometry.lattice, geometry.sites);
        let dimensions = geometry.dimensions();
        let (mut neighbours, mut couplings) = (Vec::new(), Vec::new());
        for site in 0..sites {
            for (k, direction) in geometry.directions.iter().enumerate() {
                let neighbour = direction.before[site];
                // A bond belongs to its first site along the axis: an even direction looks from the second one back at it.
                let first = if k % 2 == 0 { neighbour as usize } else { site };
                let some = (neighbour as usize) < sites;
                neighbours.push(if some { neighbour } else { NONE });
                couplings.push(if some { (first * dimensions + k / 2) as u32 } else { NONE });
            }
        }
        let entering = (0..2 * dimensions)
            .map(|k| {
                let frame = Frame::along(lattice, k);
                let across = frame.axes()[1..].iter().flat_map(|&(axis, reversed)| {
                    let back = 2 * axis + usize::from(reversed);
                    [back, back ^ 1]
                });
                std::iter::once(k).chain(across).collect()
            })
            .collect();
        let mut plaquettes = Vec::new();
        for site in 0..sites {
            for a in 0..dimensions {
                for b in a + 1..dimensions {
                    if let (Some(along_a), Some(along_b)) =
                        (lattice.ahead(site, a, 1), lattice.ahead(site, b, 1))
                    {
                        let corner = [(site, a), (along_a, b), (along_b, a), (site, b)];
                        plaquettes
                            .push(corner.map(|(site, axis)| (site * dimensions + axis) as u32));
                    }
                }
            }
        }
        Bonds { dimensions, sites, neighbours, couplings, entering, plaquettes }
    }

    /// Directions, two for every axis.
    pub(super) fn directions(&self) -> usize {
        2 * self.dimensions
    }

    /// Couplings of an instance, bonds or not: one for every site and axis.
    pub(super) fn numbers(&self) -> usize {
        self.sites * self.dimensions
    }

    /// Numbers of a site that enter the stack: satisfactions and sizes.
    pub(crate) fn inputs(&self) -> usize {
        2 * (self.directions() - 1)
    }

    /// Numbers that the head reads beside the context.
    pub(crate) fn width(&self) -> usize {
        let n = self.directions();
        n * (n - 1) / 2 + n + 2 + n + ENERGY
    }

    /// The coupling of the bond of a site in direction `k`, and the neighbour's spin; 0 where there is none.
    #[inline(always)]
    unsafe fn bond<V: Vector>(&self, group: &Group<'_, V>, site: usize, k: usize) -> (V, V) {
        let at = site * self.directions() + k;
        match self.couplings[at] {
            // SAFETY: the caller has the instructions of the vector.
            NONE => unsafe { (V::zero(), V::zero()) },
            bond => (group.couplings[bond as usize], group.x[self.neighbours[at] as usize]),
        }
    }

    /// The pull on a site from direction `k`.
    #[inline(always)]
    pub(super) unsafe fn pull<V: Vector>(&self, group: &Group<'_, V>, site: usize, k: usize) -> V {
        // SAFETY: the caller has the instructions of the vector.
        unsafe {
            let (coupling, spin) = self.bond(group, site, k);
            coupling.mul(spin)
        }
    }

    /// Write what enters the stack along direction `k`, with a row of zeros for no site.
    #[inline(always)]
    pub(crate) unsafe fn enter<V: Vector>(&self, k: usize, group: &Group<'_, V>, x: &mut [V]) {
        let inputs = self.inputs();
        let (rows, none) = x.split_at_mut(self.sites * inputs);
        // SAFETY: the caller has the instructions of the vector.
        unsafe {
            none.fill(V::zero());
            for (site, row) in rows.chunks_exact_mut(inputs).enumerate() {
                let (satisfactions, sizes) = row.split_at_mut(inputs / 2);
                for (n, &face) in self.entering[k].iter().enumerate() {
                    let (coupling, spin) = self.bond(group, site, face);
                    satisfactions[n] = coupling.mul(spin).mul(group.x[site]);
                    sizes[n] = size(coupling);
                }
            }
        }
    }

    /// Write what the head reads beside the context into the last columns of the rows of `context`.
    #[inline(always)]
    pub(crate) unsafe fn write<V: Vector>(&self, group: &Group<'_, V>, context: &mut [V]) {
        let width = context.len() / self.sites;
        let first = width - self.width();
        // SAFETY: the caller has the instructions of the vector.
        unsafe {
            let (unit, per_unit) = self.unit(group);
            let all = self.whole_energy(group, per_unit);
            let frustration = self.mean_plaquette(group);
            for (site, row) in context.chunks_exact_mut(width).enumerate() {
                let (near, energy) = row[first..].split_at_mut(self.near());
                let mut bonds = [(V::zero(), V::zero()); MOST];
                for (k, bond) in bonds[..self.directions()].iter_mut().enumerate() {
                    *bond = self.bond(group, site, k);
                }
                self.write_near(&bonds, near);
                let own = self.own_energy(&bonds, group.x[site], per_unit);
                self.write_energy(all.sub(own).mul(unit), frustration, energy);
            }
        }
    }

    /// Numbers that the head reads about the bonds of a site; those about the energy follow.
    pub(in crate::net) fn near(&self) -> usize {
        self.width() - ENERGY
    }

    /// Write what the head reads about the bonds of a site: a coupling and a spin for every direction.
    #[inline(always)]
    pub(super) unsafe fn write_near<V: Vector>(&self, bonds: &[(V, V); MOST], row: &mut [V]) {
        let (n, mut at) = (self.directions(), 0);
        // SAFETY: the caller has the instructions of the vector.
        unsafe {
            let (mut pulls, mut m) = ([V::zero(); MOST], V::zero());
            for k in 0..n {
                pulls[k] = bonds[k].0.mul(bonds[k].1);
                m = m.add(pulls[k]);
            }
            for k in 0..n {
                for other in k + 1..n {
                    row[at] = pulls[k].mul(pulls[other]);
                    at += 1;
                }
            }
            for k in 0..n {
                row[at + k] = m.mul(pulls[k]);
                row[at + n + 2 + k] = size(bonds[k].0);
            }
            let square = m.mul(m);
            row[at + n] = square.mul(V::constant(1.0 / n as f64));
            row[at + n + 1] = square.mul(square).mul(V::constant((n as f64).powi(-3)));
        }
    }

    /// Minus the energy of the bonds of a site, in units: a whole number.
    #[inline(always)]
    pub(super) unsafe fn own_energy<V: Vector>(
        &self,
        bonds: &[(V, V); MOST],
        x: V,
        per_unit: V,
    ) -> V {
        // SAFETY: the caller has the instructions of the vector.
        unsafe {
            let mut own = V::zero();
            for &(coupling, spin) in &bonds[..self.directions()] {
                own = whole(coupling, per_unit).mul(spin).fma(x, own);
            }
            own
        }
    }

    /// Write what the head reads about minus the energy of all bonds that do not touch a site.
    #[inline(always)]
    pub(super) unsafe fn write_energy<V: Vector>(&self, others: V, frustration: V, row: &mut [V]) {
        // SAFETY: the caller has the instructions of the vector.
        unsafe {
            let energy = others.mul(V::constant(-1.0 / self.sites as f64));
            let middle = V::constant(-MIDDLE * self.dimensions as f64);
            let y = energy.add(middle).mul(V::constant(2.0 * STEEPNESS));
            row[0] = energy;
            row[1] = y.sigmoid().fma(V::constant(2.0), V::constant(-1.0));
            row[2] = energy.mul(energy);
            row[3] = frustration;
        }
    }

    /// What couplings are rounded to multiples of, and its inverse.
    #[inline(always)]
    pub(super) unsafe fn unit<V: Vector>(&self, group: &Group<'_, V>) -> (V, V) {
        // SAFETY: the caller has the instructions of the vector.
        unsafe {
            let mut sum = V::constant(LEAST);
            for site in 0..self.sites {
                for k in (1..self.directions()).step_by(2) {
                    sum = sum.add(size(self.bond(group, site, k).0));
                }
            }
            let unit = sum.mul(V::constant(1.0 / STEPS));
            (unit, unit.reciprocal())
        }
    }

    /// Minus the energy of all bonds, in units: a whole number.
    #[inline(always)]
    unsafe fn whole_energy<V: Vector>(&self, group: &Group<'_, V>, per_unit: V) -> V {
        // SAFETY: the caller has the instructions of the vector.
        unsafe {
            let mut all = V::zero();
            for site in 0..self.sites {
                for k in (1..self.directions()).step_by(2) {
                    let (coupling, spin) = self.bond(group, site, k);
                    all = whole(coupling, per_unit).mul(spin).fma(group.x[site], all);
                }
            }
            all
        }
    }

    /// The mean over plaquettes of the product of their couplings.
    #[inline(always)]
    pub(super) unsafe fn mean_plaquette<V: Vector>(&self, group: &Group<'_, V>) -> V {
        // SAFETY: the caller has the instructions of the vector.
        unsafe {
            let mut sum = V::zero();
            for &[a, b, c, d] in &self.plaquettes {
                let [a, b, c, d] = [a, b, c, d].map(|bond| group.couplings[bond as usize]);
                sum = a.mul(b).fma(c.mul(d), sum);
            }
            sum.mul(V::constant(1.0 / self.plaquettes.len().max(1) as f64))
        }
    }
}

/// The size of a number.
#[inline(always)]
unsafe fn size<V: Vector>(number: V) -> V {
    // SAFETY: the caller has the instructions of the vector.
    unsafe { number.max(V::zero().sub(number)) }
}

/// A coupling in units, rounded to a whole number.
#[inline(always)]
unsafe fn whole<V: Vector>(coupling: V, per_unit: V) -> V {
    // SAFETY: the caller has the instructions of the vector.
    unsafe {
        let shift = V::constant(V::Scalar::ROUNDING);
        coupling.fma(per_unit, shift).sub(shift)
    }
}
