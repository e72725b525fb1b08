//! Tests of features per class of bonds, on lattices with bonds beyond nearest neighbours.

use super::*;
use crate::target::Bravais;

/// Bonds of strengths that differ from shell to shell of a lattice.
pub(super) fn shells(lattice: Option<Bravais>, dimensions: usize, strengths: &[f64]) -> Vec<Bond> {
    let shell = |(k, &strength): (usize, &f64)| {
        let offsets = Bravais::shell(lattice, dimensions, k + 1);
        offsets.into_iter().map(move |offset| Bond { offset, strength })
    };
    strengths.iter().enumerate().flat_map(shell).collect()
}

/// Lattices with bonds beyond nearest neighbours: J1-J2, with third neighbours, triangular, fcc, anisotropic; sides on which signs can alternate, and others.
pub(super) fn bonded() -> Vec<(Lattice, usize, Vec<Bond>)> {
    use Boundary::{Free, Periodic};
    let bond = |offset: &[i64], strength| Bond { offset: offset.to_vec(), strength };
    vec![
        (lattice(&[4, 6], Periodic), 2, shells(None, 2, &[1.0, -0.6])),
        (lattice(&[4, 5], Periodic), 3, shells(None, 2, &[1.0, -0.6, 0.2])),
        (lattice(&[5, 4], Free), 2, shells(None, 2, &[0.7, 0.7, 0.3])),
        (lattice(&[4, 4], Periodic), 2, shells(Some(Bravais::Triangular), 2, &[-1.0])),
        (lattice(&[4, 3, 4], Periodic), 2, shells(Some(Bravais::Fcc), 3, &[-1.0, 0.4])),
        (
            lattice(&[4, 4], Periodic),
            4,
            vec![bond(&[1, 0], 1.0), bond(&[0, 1], 0.5), bond(&[1, -2], -0.1)],
        ),
        (lattice(&[8], Periodic), 2, vec![bond(&[1], 1.0), bond(&[2], -0.5), bond(&[4], 0.1)]),
    ]
}

#[test]
fn networks_with_features_of_bonds_are_hollow_and_their_gradients_finite_differences() {
    for (lattice, q, bonds) in bonded() {
        let (io, sites) = (if q == 2 { 1 } else { q }, lattice.sites());
        let spec = HollowSpec { channels: 3, head: Some(5), ..HollowSpec::default() };
        let network = Hollow::new(&spec, &lattice, Counted::Bonds(&bonds), io, io).unwrap();
        assert!(network.spec().bond_features);
        testing::check_network(&network, sites, io, io);
        let plain = HollowSpec { bond_features: false, ..spec };
        let plain = Hollow::new(&plain, &lattice, Counted::Bonds(&bonds), io, io).unwrap();
        assert!(!plain.spec().bond_features);
        let own = Hollow::new(&plain.spec(), &lattice, Counted::Bonds(&[]), io, io).unwrap();
        assert_eq!(plain.stack.entering, own.stack.entering);
    }
}

/// Bonds of equal strength are counted together, and signs alternate along axes of even length.
#[test]
fn counts_are_those_of_strengths_and_of_axes_that_fit() {
    let counted = |(lattice, q, bonds): &(Lattice, usize, Vec<Bond>)| {
        let io = if *q == 2 { 1 } else { *q };
        let f = GlobalFeatures::new(lattice, Counted::Bonds(bonds), io);
        (f.classes.iter().map(|c| c.ends.len() / 2).collect::<Vec<_>>(), f.orders.len())
    };
    let counts: Vec<_> = bonded().iter().map(counted).collect();
    let expected = [
        (vec![2, 2], 3),
        (vec![2, 2, 2], 1),
        (vec![4, 2], 3),
        (vec![3], 3),
        (vec![6, 3], 3),
        (vec![1, 1, 1], 3),
        (vec![1, 1, 1], 1),
    ];
    assert_eq!(counts, expected);
}

/// A state and its shift by one site along an axis have the same features, at places that are shifted, too.
#[test]
fn features_of_bonds_are_those_of_a_shifted_state_at_shifted_sites() {
    for (lattice, q, bonds) in bonded() {
        if lattice.boundary() == Boundary::Free {
            continue;
        }
        let (io, n) = (if q == 2 { 1 } else { q }, lattice.sites());
        let f = GlobalFeatures::new(&lattice, Counted::Bonds(&bonds), io);
        let mut stream = Stream::new(4, Purpose::Statistic, 0, 0);
        let state: Vec<usize> = (0..n).map(|_| stream.below(q)).collect();
        let context = |value_at: &dyn Fn(usize) -> usize| {
            let spin = |s: usize| 2.0 * s as f64 - 1.0;
            let one = |i: usize, s: usize| match io {
                1 => spin(value_at(i)),
                _ => f64::from(value_at(i) == s),
            };
            let mut x: Vec<Array<f64>> =
                (0..n * io).map(|k| Array([one(k / io, k % io); WIDTH])).collect();
            x.resize((n + 1) * io, Array([0.0; WIDTH]));
            let mut context = vec![Array([f64::NAN; WIDTH]); n * f.width()];
            // SAFETY: plain arrays need no special instructions.
            unsafe { f.write(&x, &mut context) };
            context.iter().map(|c| c.0[0]).collect::<Vec<f64>>()
        };
        let here = context(&|i| state[i]);
        for axis in 0..lattice.shape().len() {
            let there = context(&|i| state[lattice.ahead(i, axis, 1).unwrap()]);
            for site in 0..n {
                let next = lattice.ahead(site, axis, 1).unwrap();
                let row = |all: &[f64], i: usize| all[i * f.width()..][..f.width()].to_vec();
                assert_eq!(row(&there, site), row(&here, next), "{:?} {site}", lattice.shape());
            }
        }
    }
}
