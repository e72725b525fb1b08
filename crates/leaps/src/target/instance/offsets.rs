//! Pairs that are the same bonds at every site of a lattice.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use crate::target::{Bond, Boundary, Lattice};

/// Most steps along an axis that are looked for where no line says what the lattice is.
const FARTHEST: i64 = 3;
/// Most offsets.
const MOST: usize = 512;

/// Steps along up to four axes.
type Steps = [i64; 4];

/// The steps from one site to another, the short way round, in the one of their two senses that is positive at first.
fn steps(lattice: &Lattice, from: u32, to: u32) -> (Steps, Steps) {
    let (mut there, mut back) = ([0; 4], [0; 4]);
    for (axis, &side) in lattice.shape().iter().enumerate() {
        let at = |site: u32| lattice.coordinate(site as usize, axis) as i64;
        let (step, side) = (at(to) - at(from), side as i64);
        let short = |step: i64| match lattice.boundary() {
            Boundary::Free => step,
            // Half of the way round is counted forwards.
            Boundary::Periodic => step - side * (2 * step + side - 1).div_euclid(2 * side),
        };
        (there[axis], back[axis]) = (short(step), short(-step));
    }
    if there >= back { (there, back) } else { (back, there) }
}

/// Pairs of sites that an offset joins.
fn joined(lattice: &Lattice, (there, back): (Steps, Steps)) -> usize {
    match lattice.boundary() {
        Boundary::Periodic if there == back => lattice.sites() / 2,
        Boundary::Periodic => lattice.sites(),
        Boundary::Free => {
            let sides = lattice.shape().iter().zip(there);
            sides.map(|(&side, step)| side - step.unsigned_abs() as usize).product()
        }
    }
}

/// The bonds at every site by offset, if pairs (every one once, with its weight) are that: nearest first, `J = -w`. Pairs of weight 0 are none.
pub(super) fn uniform(lattice: &Lattice, pairs: &[(u32, u32, f64)]) -> Option<Vec<Bond>> {
    let mut classes: BTreeMap<(Steps, Steps), (f64, usize)> = BTreeMap::new();
    for &(i, j, w) in pairs.iter().filter(|pair| pair.2 != 0.0) {
        let (weight, count) = classes.entry(steps(lattice, i, j)).or_insert((w, 0));
        if *weight != w {
            return None;
        }
        *count += 1;
        if classes.len() > MOST {
            return None;
        }
    }
    let mut bonds = Vec::new();
    for (class, (weight, count)) in classes {
        if count != joined(lattice, class) {
            return None;
        }
        // A step half round the lattice, there and back, is two bonds between the same sites.
        let parallel = if class.0 == class.1 { 2.0 } else { 1.0 };
        let offset = class.0[..lattice.shape().len()].to_vec();
        bonds.push(Bond { offset, strength: (0.0 - weight) / parallel });
    }
    let length = |bond: &Bond| bond.offset.iter().map(|step| step * step).sum::<i64>();
    bonds.sort_by_key(|bond| (length(bond), Reverse(bond.offset.clone())));
    (!bonds.is_empty()).then_some(bonds)
}

/// Whether the neighbours of the first site can be those of bonds that are looked for.
pub(super) fn likely(lattice: &Lattice, first: &[u32]) -> bool {
    let axes = lattice.shape().len();
    let near = |&end: &u32| steps(lattice, 0, end).0[..axes].iter().all(|s| s.abs() <= FARTHEST);
    let most = (2 * FARTHEST as usize + 1).pow(axes as u32);
    let next = |axis: usize| first.binary_search(&(lattice.stride(axis) as u32)).is_ok();
    first.len() < most && (0..axes).all(next) && first.iter().all(near)
}

/// Whether no other lattice could be meant: there are bonds to the next sites along all axes, and sides are long beside all bonds.
pub(super) fn is_safe(lattice: &Lattice, bonds: &[Bond]) -> bool {
    let axes = lattice.shape().len();
    let next = |axis: usize| {
        let along = |bond: &Bond| (0..axes).all(|a| bond.offset[a] == i64::from(a == axis));
        bonds.iter().any(along)
    };
    let steps = bonds.iter().flat_map(|bond| &bond.offset);
    let reach = steps.map(|step| step.unsigned_abs() as usize).max().unwrap_or(0);
    let room = match lattice.boundary() {
        Boundary::Periodic => 2 * reach + 2,
        Boundary::Free => reach + 2,
    };
    (0..axes).all(next) && lattice.shape().iter().all(|&side| side >= room)
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::super::{Format, Instance, PlacedBonds, Variables};
    use super::*;
    use crate::target::{Bravais, Interaction, Pairwise, Target};

    fn shells(shape: &[usize], kind: Option<Bravais>, couplings: &[f64]) -> Vec<Bond> {
        let shell = |(k, &strength): (usize, &f64)| {
            let offsets = Bravais::shell(kind, shape.len(), k + 1).into_iter();
            offsets.map(move |offset| Bond { offset, strength }).collect::<Vec<_>>()
        };
        couplings.iter().enumerate().flat_map(shell).collect()
    }

    /// The pairs of a uniform model, in no order.
    fn instance(lattice: &Lattice, bonds: &[Bond]) -> Instance {
        let ends = |(site, bond): (usize, &Bond)| {
            Some((lattice.at(site, &bond.offset)? as u32, site as u32, -bond.strength))
        };
        let all = (0..lattice.sites()).rev().flat_map(|site| bonds.iter().map(move |b| (site, b)));
        Instance {
            variables: Variables::Spins,
            sites: lattice.sites(),
            pairs: all.filter_map(ends).collect(),
            clusters: Vec::new(),
            fields: vec![0.25; lattice.sites()],
            constant: 0.0,
            lattice: None,
        }
    }

    fn back(instance: &Instance, format: Format) -> Instance {
        let text = instance.to_text(format).unwrap().into_bytes();
        Instance::parse(text, Path::new("x"), Some(format)).unwrap().0
    }

    /// Offsets and strengths, in either sense.
    fn sorted(bonds: &[Bond]) -> Vec<(Vec<i64>, f64)> {
        let mut all: Vec<_> = bonds.iter().map(|b| (b.offset.clone(), b.strength)).collect();
        all.sort_by(|a, b| a.0.cmp(&b.0));
        all
    }

    #[test]
    fn bonds_at_every_site_are_recognised_with_and_without_a_line() {
        let uneven = [([1, 0], 1.0), ([0, 1], 0.5), ([2, 1], -0.25)];
        let uneven = uneven.map(|(o, strength)| Bond { offset: o.to_vec(), strength }).to_vec();
        for (shape, boundary, bonds, words) in [
            (&[8, 8][..], Boundary::Periodic, shells(&[8, 8], None, &[1.0, -0.5]), "square 8x8"),
            (&[8, 9], Boundary::Periodic, shells(&[8, 9], None, &[1.0, -0.5, 0.25]), "(0,2)"),
            (&[5, 4], Boundary::Free, shells(&[5, 4], None, &[-1.0, 0.5]), "J = 0.5 at offsets"),
            (
                &[6, 5],
                Boundary::Periodic,
                shells(&[6, 5], Some(Bravais::Triangular), &[-1.0]),
                "triangular 6x5 periodic, J = -1 at offsets (1,0) (0,1) (1,1) at every site: exact",
            ),
            (
                &[4, 4, 5],
                Boundary::Periodic,
                shells(&[4, 4, 5], Some(Bravais::Fcc), &[-1.0]),
                "fcc 4x4x5",
            ),
            (&[6, 6], Boundary::Periodic, uneven, "J = -0.25 at offsets (2,1)"),
            (
                &[5, 6],
                Boundary::Periodic,
                shells(&[5, 6], None, &[1.0])
                    .into_iter()
                    .map(|bond| Bond { strength: 1.0 + bond.offset[0] as f64, ..bond })
                    .collect(),
                "J = 2 at offsets (1,0), J = 1 at offsets (0,1)",
            ),
        ] {
            let lattice = Lattice::new(shape, boundary).unwrap();
            let known = Pairwise::from_bonds(Interaction::Ising, lattice.clone(), 2, &bonds);
            let known = known.unwrap().with_uniform_field(0.25).unwrap();
            let plain = instance(&lattice, &bonds);
            for format in [Format::Edges, Format::CooSpin, Format::Bqm, Format::Qubo] {
                let own = back(&plain, format);
                let model = own.model().unwrap();
                assert_eq!(model.lattice(), Some(&lattice), "{shape:?} as {format}");
                assert_eq!(sorted(model.offsets()), sorted(&bonds), "{shape:?} as {format}");
                assert!(model.is_uniform() && own.describe_lattice().unwrap().contains(words));
                let x: Vec<u8> = (0..lattice.sites()).map(|i| (i * i / 3 % 2) as u8).collect();
                let apart = own.energy(&x) - known.energy(0, &x) - known.energy(1, &x);
                assert!(apart.abs() < 1e-11, "{shape:?} as {format}: {apart}");
            }
            let named = Instance { lattice: Some(lattice.clone()), ..plain.clone() };
            let named = back(&named, Format::Edges);
            assert_eq!(named.model().unwrap(), back(&plain, Format::Edges).model().unwrap());
        }
        // In the order of flags it is the same model to the last bit.
        let torus = Lattice::new(&[8, 8], Boundary::Periodic).unwrap();
        let bonds = shells(&[8, 8], None, &[1.0, -0.6]);
        let known = Pairwise::from_bonds(Interaction::Ising, torus.clone(), 2, &bonds).unwrap();
        let plain = Instance { fields: Vec::new(), ..instance(&torus, &bonds) };
        assert_eq!(back(&plain, Format::Edges).model().unwrap(), known);
    }

    #[test]
    fn short_sides_need_the_line() {
        let lattice = Lattice::new(&[2, 4], Boundary::Periodic).unwrap();
        let bonds = shells(&[2, 4], None, &[1.0, -0.6]);
        let known = Pairwise::from_bonds(Interaction::Ising, lattice.clone(), 2, &bonds).unwrap();
        let plain = instance(&lattice, &bonds);
        assert_eq!(plain.recognised(), None);
        let named = Instance { lattice: Some(lattice.clone()), fields: Vec::new(), ..plain };
        let model = named.model().unwrap();
        assert!(model.is_uniform() && !model.is_plain());
        for code in 0..256usize {
            let x: Vec<u8> = (0..8).map(|i| (code >> i & 1) as u8).collect();
            assert!((model.energy(0, &x) - known.energy(0, &x)).abs() < 1e-12);
        }
    }

    #[test]
    fn bonds_that_differ_are_placed_by_the_line_alone() {
        let lattice = Lattice::new(&[6, 6], Boundary::Periodic).unwrap();
        let bonds = shells(&[6, 6], None, &[1.0, -0.5]);
        let even = instance(&lattice, &bonds);
        let change = |change: fn(&mut Instance)| {
            let mut own = even.clone();
            change(&mut own);
            own
        };
        for own in [
            change(|own| own.pairs[7].2 = 0.3),
            change(|own| own.pairs.truncate(own.pairs.len() - 1)),
            change(|own| own.pairs.push((0, 15, -1.0))),
        ] {
            assert_eq!(own.recognised(), None);
            assert!(own.model().unwrap().lattice().is_none());
            let named = Instance { lattice: Some(lattice.clone()), ..own.clone() };
            assert_eq!(named.recognised(), Some((lattice.clone(), PlacedBonds::Others)));
            let model = named.model().unwrap();
            assert!(model.lattice() == Some(&lattice) && !model.is_uniform());
            let x: Vec<u8> = (0..36).map(|i| (i * i / 5 % 2) as u8).collect();
            let apart = model.energy(0, &x) + model.energy(1, &x) - own.energy(&x);
            assert!(apart.abs() < 1e-12);
        }
        // A pair more of the strength of all others is not uniform, either.
        let mut plain = instance(&lattice, &shells(&[6, 6], None, &[1.0]));
        plain.pairs.push((0, 14, -1.0));
        plain.lattice = Some(lattice);
        assert!(!plain.model().unwrap().is_uniform());
    }
}
