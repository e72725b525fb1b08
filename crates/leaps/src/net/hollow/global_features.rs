//! Global features: what all other sites add up to.
//!
//! Convolutions see the neighbourhood well and the lattice as a whole badly, yet near a critical point it is the magnetisation and the
//! energy that fluctuate slowly. A site $i$ therefore also sees, of the configuration without itself,
//!
//! - how often every value occurs, $n_s = \sum_{j \ne i} [x_j = s]$ (of two values: the sum of the spins), and
//! - how many bonds between equal values there are, $n_b = \sum_{\langle jk \rangle \not\ni i} [x_j = x_k]$ (the sum of the products of spins),
//!
//! each brought to a number $z$ that is 0 for independent values and 1 for all of one kind, as $T_1(z)$, $T_2(z)$, $T_3(z)$ (Chebyshev polynomials)
//! and $y / (1 + |y|)$ with $y = \sqrt N z$, which resolves small $z$.
//! Counts are whole numbers, exact in any order of the sites, so that they do not depend on $x_i$ to the last bit.

use super::geometry::Geometry;
use crate::device::vector::Vector;

/// Functions of each count.
const FUNCTIONS: usize = 4;

/// How counts become numbers from -1 to 1: `z = factor * count + offset`.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct GlobalFeatures {
    inputs: usize,
    pub(super) q: (f64, f64),
    pub(super) bonds: (f64, f64),
    /// `sqrt(N)`.
    pub(super) root: f64,
}

impl GlobalFeatures {
    pub(super) fn new(geometry: &Geometry, inputs: usize) -> Self {
        let none = geometry.sites as u32;
        // Every other direction is another one backwards.
        let before = geometry.directions.iter().step_by(2).flat_map(|d| &d.before);
        let bonds = before.filter(|&&site| site != none).count();
        let scale = |all: usize| match inputs {
            1 => (1.0 / all.max(1) as f64, 0.0),
            q => (q as f64 / (all.max(1) * (q - 1)) as f64, -1.0 / (q - 1) as f64),
        };
        let root = (geometry.sites as f64).sqrt();
        GlobalFeatures { inputs, q: scale(geometry.sites), bonds: scale(bonds), root }
    }

    /// Global features of a site.
    pub(super) fn width(&self) -> usize {
        FUNCTIONS * (self.inputs + 1)
    }

    /// Write global features into the last columns of the rows of `context`: the functions of every value's count, then those of the
    /// bonds'. `x` has a row of zeros for no site.
    #[inline(always)]
    pub(super) unsafe fn write<V: Vector>(&self, geometry: &Geometry, x: &[V], context: &mut [V]) {
        let (sites, inputs) = (geometry.sites, self.inputs);
        let width = context.len() / sites;
        let first = width - self.width();
        // SAFETY: the caller has the instructions of the vector.
        unsafe {
            for s in 0..inputs {
                let mut all = V::zero();
                for site in 0..sites {
                    all = all.add(x[site * inputs + s]);
                }
                for (i, row) in context.chunks_exact_mut(width).enumerate() {
                    let others = all.sub(x[i * inputs + s]);
                    functions(others, self.q, self.root, &mut row[first + FUNCTIONS * s..]);
                }
            }
            let mut all = V::zero();
            for direction in geometry.directions.iter().step_by(2) {
                for (i, &before) in direction.before.iter().enumerate() {
                    all = equal(&x[i * inputs..], &x[before as usize * inputs..], inputs, all);
                }
            }
            for (i, row) in context.chunks_exact_mut(width).enumerate() {
                let mut own = V::zero();
                for direction in &geometry.directions {
                    let before = direction.before[i] as usize;
                    own = equal(&x[i * inputs..], &x[before * inputs..], inputs, own);
                }
                let to = &mut row[first + FUNCTIONS * inputs..];
                functions(all.sub(own), self.bonds, self.root, to);
            }
        }
    }
}

/// Add 1 to `count` if two values are equal; for spins, their product.
#[inline(always)]
unsafe fn equal<V: Vector>(a: &[V], b: &[V], inputs: usize, mut count: V) -> V {
    for s in 0..inputs {
        // SAFETY: the caller has the instructions of the vector.
        count = unsafe { a[s].fma(b[s], count) };
    }
    count
}

/// The functions of a count.
#[inline(always)]
unsafe fn functions<V: Vector>(count: V, (factor, offset): (f64, f64), root: f64, out: &mut [V]) {
    // SAFETY: the caller has the instructions of the vector.
    unsafe {
        let z = count.fma(V::constant(factor), V::constant(offset));
        let square = z.mul(z);
        let y = z.mul(V::constant(root));
        let size = y.max(V::zero().sub(y));
        out[0] = z;
        out[1] = square.fma(V::constant(2.0), V::constant(-1.0));
        out[2] = z.mul(square.fma(V::constant(4.0), V::constant(-3.0)));
        out[3] = y.mul(V::constant(1.0).add(size).reciprocal());
    }
}
