//! Instances that are lattices whose sites are numbered row by row: nearest neighbours, or bonds that are the same at every site.

use super::{Instance, Lattice, offsets};
use crate::target::{Bond, Boundary};

/// Fields that differ by less than this share of the couplings are the same: sums of weights round.
const ROUNDING: f64 = 1e-13;

/// The bonds of an instance that is placed on a lattice.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum PlacedBonds {
    /// A coupling J for every bond to a next site along an axis, in the order of [`Lattice::bonds`].
    Nearest(Vec<f64>),
    /// The same at every site, by offset.
    Offsets(Vec<Bond>),
    /// Bonds beyond nearest neighbours that differ from site to site.
    Others,
}

impl Instance {
    /// The lattice that the sites are on, and the bonds there: those to nearest neighbours, or others that are the same at every site.
    ///
    /// A lattice that the file names is taken, whatever the pairs; nearest neighbours without a pair have no coupling. Else one of two or three dimensions
    /// is looked for, all of whose bonds must be there, nearest neighbours among them.
    pub fn recognised(&self) -> Option<(Lattice, PlacedBonds)> {
        let pairs = self.merged();
        let Some(lattice) = &self.lattice else { return found(self.sites, &pairs) };
        let nearest = couplings(lattice, &pairs, true);
        let same = |all: &Vec<f64>| all.windows(2).all(|pair| pair[0] == pair[1]);
        let bonds = match nearest {
            Some(all) if same(&all) => PlacedBonds::Nearest(all),
            nearest => match offsets::uniform(lattice, &pairs) {
                Some(bonds) => PlacedBonds::Offsets(bonds),
                None => nearest.map_or(PlacedBonds::Others, PlacedBonds::Nearest),
            },
        };
        Some((lattice.clone(), bonds))
    }

    /// The same with equal fields where they differ by rounding alone.
    pub(super) fn with_even_fields(mut self) -> Self {
        let scale = self.pairs.iter().map(|pair| pair.2.abs()).fold(0.0, f64::max);
        if let Some(&one) = self.fields.first() {
            let most = ROUNDING * (one.abs() + 8.0 * scale);
            if self.fields.iter().all(|h| (h - one).abs() <= most) {
                if one.abs() <= most { self.fields.clear() } else { self.fields.fill(one) }
            }
        }
        self
    }
}

/// A lattice that the pairs are recognised as.
fn found(sites: usize, pairs: &[(u32, u32, f64)]) -> Option<(Lattice, PlacedBonds)> {
    let first: Vec<u32> = pairs.iter().take_while(|pair| pair.0 == 0).map(|pair| pair.1).collect();
    let lattices = || {
        shapes(sites).into_iter().flat_map(|shape| {
            [Boundary::Free, Boundary::Periodic]
                .into_iter()
                .filter_map(move |boundary| Lattice::new(&shape, boundary).ok())
        })
    };
    let plain = lattices().find_map(|lattice| {
        // Most are ruled out by the neighbours of the first site.
        (neighbours_of_first(&lattice) == first).then_some(())?;
        let couplings = couplings(&lattice, pairs, false)?;
        Some((lattice, couplings))
    });
    let further = || {
        lattices().find_map(|lattice| {
            offsets::likely(&lattice, &first).then_some(())?;
            let bonds = offsets::uniform(&lattice, pairs)?;
            offsets::is_safe(&lattice, &bonds).then_some((lattice, PlacedBonds::Offsets(bonds)))
        })
    };
    match plain {
        // Strengths that differ from axis to axis alone are those of every site.
        Some((lattice, all)) if all.windows(2).any(|pair| pair[0] != pair[1]) => {
            let bonds = match offsets::uniform(&lattice, pairs) {
                Some(bonds) => PlacedBonds::Offsets(bonds),
                None => PlacedBonds::Nearest(all),
            };
            Some((lattice, bonds))
        }
        Some((lattice, all)) => Some((lattice, PlacedBonds::Nearest(all))),
        None => further(),
    }
}

/// Sides of two or three axes, each at least 2, with so many sites together.
fn shapes(sites: usize) -> Vec<Vec<usize>> {
    let divisors: Vec<usize> =
        (2..).take_while(|d| d * d <= sites).filter(|d| sites.is_multiple_of(*d)).collect();
    let large = divisors.iter().rev().filter(|d| *d * *d != sites).map(|d| sites / d);
    let all: Vec<usize> = divisors.iter().copied().chain(large).collect();
    let mut shapes: Vec<Vec<usize>> = all.iter().map(|&a| vec![a, sites / a]).collect();
    for &a in &all {
        let rest = sites / a;
        let second = all.iter().filter(|&&b| b < rest && rest.is_multiple_of(b));
        shapes.extend(second.map(|&b| vec![a, b, rest / b]));
    }
    shapes
}

/// The neighbours of site 0, in order.
fn neighbours_of_first(lattice: &Lattice) -> Vec<u32> {
    let mut all = Vec::new();
    for (axis, &side) in lattice.shape().iter().enumerate() {
        let stride = lattice.stride(axis);
        all.push(stride as u32);
        if lattice.boundary() == Boundary::Periodic && side > 2 {
            all.push(((side - 1) * stride) as u32);
        }
    }
    all.sort_unstable();
    all
}

/// `-w` of every bond of a lattice, if the pairs are its bonds and, unless some may be missing, all of them.
fn couplings(lattice: &Lattice, pairs: &[(u32, u32, f64)], some: bool) -> Option<Vec<f64>> {
    let bonds = lattice.bonds();
    let mut order: Vec<u32> = (0..bonds.len() as u32).collect();
    let ends = |bond: u32| {
        let (i, j) = bonds[bond as usize];
        (i.min(j), i.max(j))
    };
    order.sort_unstable_by_key(|&bond| (ends(bond), bond));
    let mut couplings = vec![0.0; bonds.len()];
    let (mut pairs, mut at) = (pairs.iter().peekable(), 0);
    while at < order.len() {
        let here = ends(order[at]);
        // A periodic axis of two sites has two bonds between the same ones.
        let parallel = order[at..].iter().take_while(|&&bond| ends(bond) == here).count();
        match pairs.peek() {
            Some(&&(i, j, w)) if (i, j) == here => {
                for &bond in &order[at..at + parallel] {
                    couplings[bond as usize] = (0.0 - w) / parallel as f64;
                }
                pairs.next();
            }
            _ if !some => return None,
            _ => {}
        }
        at += parallel;
    }
    pairs.peek().is_none().then_some(couplings)
}
