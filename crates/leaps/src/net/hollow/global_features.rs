//! Global features: what all other sites add up to.
//!
//! Convolutions see the neighbourhood well and the lattice as a whole badly, yet near a critical point it is the magnetisation and the
//! energy that fluctuate slowly. A site $i$ therefore also sees, of the configuration without itself,
//!
//! - how often every value occurs, $n_s = \sum_{j \ne i} [x_j = s]$ (of two values: the sum of the spins), and
//! - how many bonds between equal values there are, $n_b = \sum_{\langle jk \rangle \not\ni i} [x_j = x_k]$ (the sum of the products of spins).
//!
//! Where a target has bonds beyond those to nearest neighbours along the axes, those of every strength are counted on their own, and so is the order that
//! such models compete for: stripes and the like, $n_{a,s} = g_a(i) \sum_{j \ne i} g_a(j) [x_j = s]$ with the sign
//! $g_a(j) = \prod_{k \in a} (-1)^{j_k}$ for every choice $a$ of axes on which signs can alternate. The sign $g_a(i)$ of the site itself makes it
//! the order as seen from there, so that the network still does the same at every site.
//!
//! Where the energies of a target are tables, the [gains of every table](super::table_features) are counted in place of bonds.
//!
//! Each is brought to a number $z$ that is 0 for independent values and 1 for all of one kind (in perfect order), and read as $T_1(z)$, $T_2(z)$,
//! $T_3(z)$ (Chebyshev polynomials) and $y / (1 + |y|)$ with $y = \sqrt N z$, which resolves small $z$.
//! Counts are whole numbers, exact in any order of the sites, so that they do not depend on $x_i$ to the last bit.

use std::collections::BTreeMap;

use super::table_features::{self, TableClass, WriteGains};
use crate::device::vector::Vector;
use crate::target::{Bond, Boundary, Bravais, Lattice, LatticeModel};

/// Functions of each count.
pub(super) const FUNCTIONS: usize = 4;

/// How a count becomes a number from -1 to 1: `z = factor * count + offset`.
pub(super) type Scale = (f64, f64);

/// Bonds that are counted together.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct BondClass {
    /// Where bonds lead from every site, the number of sites where there is none: `[2 * offset + sense][site]`, forwards and backwards.
    pub(super) ends: Vec<Vec<u32>>,
    pub(super) scale: Scale,
}

/// The interactions of a target that global features are about.
#[derive(Clone, Copy)]
pub(crate) enum Counted<'a> {
    /// Bonds at every site; none are those to nearest neighbours, and no order is looked for.
    Bonds(&'a [Bond]),
    /// Tables over clusters of sites.
    Tables(&'a LatticeModel),
}

/// What is counted, and how counts become numbers.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct GlobalFeatures {
    inputs: usize,
    pub(super) values: Scale,
    pub(super) classes: Vec<BondClass>,
    pub(super) tables: Vec<TableClass>,
    /// The sign of every site, 1 or -1, for each order.
    pub(super) orders: Vec<Vec<i8>>,
    /// What brings an order to 1 at most.
    pub(super) order_factor: f64,
    /// `sqrt(N)`.
    pub(super) root: f64,
}

/// Offsets of bonds, those of one strength together in the order in which strengths are first named.
fn by_strength(bonds: &[Bond]) -> Vec<Vec<Vec<i64>>> {
    let (mut classes, mut known) = (Vec::<Vec<_>>::new(), BTreeMap::new());
    for bond in bonds {
        let class = *known.entry(bond.strength.to_bits()).or_insert(classes.len());
        classes.resize_with(classes.len().max(class + 1), Vec::new);
        classes[class].push(bond.offset.clone());
    }
    classes
}

/// The signs of sites for every way in which they can alternate along some axes: with the lattice's period where it is periodic.
fn alternating(lattice: &Lattice) -> Vec<Vec<i8>> {
    let fits = |side: usize| lattice.boundary() == Boundary::Free || side.is_multiple_of(2);
    let axes: Vec<usize> =
        (0..lattice.shape().len()).filter(|&axis| fits(lattice.shape()[axis])).collect();
    let sign = |site: usize, chosen: usize| {
        let chosen = axes.iter().enumerate().filter(|(k, _)| chosen >> k & 1 == 1);
        let steps: usize = chosen.map(|(_, &axis)| lattice.coordinate(site, axis)).sum();
        if steps.is_multiple_of(2) { 1 } else { -1 }
    };
    let signs = |chosen| (0..lattice.sites()).map(|site| sign(site, chosen)).collect();
    (1..1usize << axes.len()).map(signs).collect()
}

impl GlobalFeatures {
    /// Global features of a lattice with these interactions.
    pub(super) fn new(lattice: &Lattice, counted: Counted<'_>, inputs: usize) -> Self {
        let (sites, axes) = (lattice.sites(), lattice.shape().len());
        let scale = |all: usize| match inputs {
            1 => (1.0 / all.max(1) as f64, 0.0),
            q => (q as f64 / (all.max(1) * (q - 1)) as f64, -1.0 / (q - 1) as f64),
        };
        let (offsets, orders) = match counted {
            Counted::Bonds([]) => (vec![Bravais::shell(None, axes, 1)], Vec::new()),
            Counted::Bonds(bonds) => (by_strength(bonds), alternating(lattice)),
            Counted::Tables(_) => (Vec::new(), Vec::new()),
        };
        let tables = match counted {
            Counted::Bonds(_) => Vec::new(),
            Counted::Tables(model) => table_features::classes(model, inputs.max(2)),
        };
        let class = |offsets: Vec<Vec<i64>>| {
            let senses = offsets.iter().flat_map(|offset| [offset.clone(), opposite(offset)]);
            let ends = |offset: Vec<i64>| -> Vec<u32> {
                (0..sites).map(|i| lattice.at(i, &offset).unwrap_or(sites) as u32).collect()
            };
            let ends: Vec<Vec<u32>> = senses.map(ends).collect();
            let all = ends.iter().step_by(2).flatten().filter(|&&end| end != sites as u32).count();
            BondClass { ends, scale: scale(all) }
        };
        // In perfect order every other site has a value of more than two.
        let most = if inputs == 1 { 1.0 } else { 2.0 };
        GlobalFeatures {
            inputs,
            values: scale(sites),
            classes: offsets.into_iter().map(class).collect(),
            tables,
            orders,
            order_factor: most / sites as f64,
            root: (sites as f64).sqrt(),
        }
    }

    /// Numbers that are counted at a site.
    pub(super) fn counts(&self) -> usize {
        self.inputs + self.classes.len() + self.tables.len() + self.orders.len() * self.inputs
    }

    /// How the count of a class of bonds or tables becomes a number.
    pub(super) fn class_scale(&self, k: usize) -> Scale {
        match k.checked_sub(self.classes.len()) {
            None => self.classes[k].scale,
            Some(table) => self.tables[table].scale,
        }
    }

    /// Global features of a site.
    pub(super) fn width(&self) -> usize {
        FUNCTIONS * self.counts()
    }

    /// Write global features into the last columns of the rows of `context`: the functions of every value's count, those of the
    /// bonds' or tables', class by class, and those of the orders', value by value. `x` has a row of zeros for no site.
    #[inline(always)]
    pub(super) unsafe fn write<V: Vector>(&self, x: &[V], context: &mut [V]) {
        let inputs = self.inputs;
        let sites = x.len() / inputs - 1;
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
                    functions(others, self.values, self.root, &mut row[first + FUNCTIONS * s..]);
                }
            }
            for (k, class) in self.classes.iter().enumerate() {
                let mut all = V::zero();
                for ends in class.ends.iter().step_by(2) {
                    for (i, &end) in ends.iter().enumerate() {
                        all = equal(&x[i * inputs..], &x[end as usize * inputs..], inputs, all);
                    }
                }
                let column = first + FUNCTIONS * (inputs + k);
                for (i, row) in context.chunks_exact_mut(width).enumerate() {
                    let mut own = V::zero();
                    for ends in &class.ends {
                        let end = ends[i] as usize;
                        own = equal(&x[i * inputs..], &x[end * inputs..], inputs, own);
                    }
                    functions(all.sub(own), class.scale, self.root, &mut row[column..]);
                }
            }
            for (k, class) in self.tables.iter().enumerate() {
                let (root, column) = (self.root, first + FUNCTIONS * (inputs + k));
                V::call(WriteGains { class, x, inputs, root, context, width, column });
            }
            for (k, signs) in self.orders.iter().enumerate() {
                for s in 0..inputs {
                    let scale = (self.order_factor, 0.0);
                    let mut all = V::zero();
                    for (site, &sign) in signs.iter().enumerate() {
                        all = x[site * inputs + s].fma(V::constant(f64::from(sign)), all);
                    }
                    let count = inputs + self.classes.len() + k * inputs + s;
                    let column = first + FUNCTIONS * count;
                    for (i, row) in context.chunks_exact_mut(width).enumerate() {
                        // The site's own sign times the sum over the others.
                        let all = all.mul(V::constant(f64::from(signs[i])));
                        let others = all.sub(x[i * inputs + s]);
                        functions(others, scale, self.root, &mut row[column..]);
                    }
                }
            }
        }
    }
}

/// The same bond, backwards.
fn opposite(offset: &[i64]) -> Vec<i64> {
    offset.iter().map(|step| -step).collect()
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
pub(super) unsafe fn functions<V: Vector>(
    count: V,
    (factor, offset): (f64, f64),
    root: f64,
    out: &mut [V],
) {
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
