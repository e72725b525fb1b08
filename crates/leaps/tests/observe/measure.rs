//! Basic observables: against brute force, and their averages against enumeration.

use leaps::device::Draw;
use leaps::observe::{Measure, Order};
use leaps::target::{Boundary, Lattice, Pairwise, Target, potential};

use super::stream;

fn models() -> Vec<Pairwise> {
    let lattice = |shape: &[usize], boundary| Lattice::new(shape, boundary).unwrap();
    vec![
        Pairwise::ising(lattice(&[4, 5], Boundary::Periodic), 1.0, 0.3).unwrap(),
        Pairwise::ising(lattice(&[4, 5], Boundary::Free), 1.0, 0.3).unwrap(),
        Pairwise::potts(lattice(&[4, 5], Boundary::Periodic), 3, 1.0, 0.0).unwrap(),
        Pairwise::potts(lattice(&[3, 2, 4], Boundary::Periodic), 5, 1.0, 0.2).unwrap(),
        Pairwise::potts(lattice(&[3, 2, 4], Boundary::Free), 5, 1.0, 0.2).unwrap(),
        Pairwise::ising(lattice(&[300], Boundary::Periodic), 1.0, 0.0).unwrap(),
    ]
}

fn row(measure: &Measure<'_>, x: &[u8]) -> Vec<f64> {
    let mut row = vec![f64::NAN; measure.layout().width()];
    measure.row(x, &mut row);
    row
}

#[test]
fn rows_are_what_the_definitions_say() {
    let mut s = stream(50);
    for model in models() {
        let lambda = vec![0.7; model.terms()];
        let measure = Measure::new(&model, &lambda);
        let layout = measure.layout();
        let lattice = model.lattice().unwrap();
        let (n, q, axes) = (model.sites(), model.q(), lattice.shape().len());
        let shortest = *lattice.shape().iter().min().unwrap();
        let periodic = lattice.boundary() == Boundary::Periodic;
        assert_eq!(layout.distances, if periodic { shortest / 2 + 1 } else { shortest });
        for _ in 0..5 {
            let x: Vec<u8> = (0..n).map(|_| s.below(q) as u8).collect();
            let row = row(&measure, &x);
            let energy: f64 = (0..model.terms()).map(|k| model.energy(k, &x)).sum();
            let u = potential(&model, &lambda, &x);
            let order = Order::of(&x, q);
            let expected = [energy, energy * energy, u, u * u];
            assert!(row.iter().zip(expected).all(|(a, b)| (a - b).abs() < 1e-10));
            assert_eq!(row[4..8], [order.m, order.abs, order.squared, order.fourth]);
            for r in 0..layout.distances {
                let (mut equal, mut pairs) = (0.0, 0.0);
                for site in 0..n {
                    for other in (0..axes).filter_map(|axis| lattice.ahead(site, axis, r)) {
                        equal += f64::from(x[site] == x[other]);
                        pairs += 1.0;
                    }
                }
                let q = q as f64;
                let expected = (q * equal / pairs - 1.0) / (q - 1.0);
                assert!((row[layout.correlation(r)] - expected).abs() < 1e-13);
            }
            assert_eq!(layout.sides.len(), if periodic { axes } else { 0 });
            for (axis, &side) in layout.sides.iter().enumerate() {
                // As a double sum over pairs of sites, for spins in the plane of the simplex.
                let mut expected = 0.0;
                for i in 0..n {
                    for j in 0..n {
                        let apart =
                            lattice.coordinate(i, axis) as f64 - lattice.coordinate(j, axis) as f64;
                        let q = q as f64;
                        let product = (q * f64::from(x[i] == x[j]) - 1.0) / (q - 1.0);
                        expected += product * (std::f64::consts::TAU * apart / side as f64).cos()
                            / n as f64;
                    }
                }
                assert!((row[layout.structure(axis)] - expected).abs() < 1e-9);
            }
        }
    }
}

#[test]
fn an_ordered_state_has_full_correlation_and_no_structure() {
    for model in models() {
        let measure = Measure::new(&model, &vec![1.0; model.terms()]);
        let row = row(&measure, &vec![1; model.sites()]);
        let layout = measure.layout();
        assert!((0..layout.distances).all(|r| row[layout.correlation(r)] == 1.0));
        assert!((0..layout.sides.len()).all(|a| row[layout.structure(a)] < 1e-20));
        assert_eq!((row[layout.mode(0)], row[layout.mode(1)]), (0.0, 1.0));
    }
    let glass = Pairwise::sherrington_kirkpatrick(6, leaps::target::Disorder::Pm1, 1).unwrap();
    assert_eq!(Measure::new(&glass, &[1.0]).layout().width(), 8 + 2);
}

#[test]
fn distances_on_large_lattices_stop_at_64() {
    let large = Lattice::new(&[300, 300], Boundary::Periodic).unwrap();
    let model = Pairwise::ising(large, 1.0, 0.0).unwrap();
    assert_eq!(Measure::new(&model, &[0.4]).layout().distances, 65);
}
