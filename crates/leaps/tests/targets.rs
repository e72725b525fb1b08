//! Every target: energy changes are differences of energies, and the path's slope is a derivative.

use leaps::path::{Path, Schedule};
use leaps::target::{Boundary, Disorder, Interaction, Lattice, Pairwise, Target, potential};

/// A target with only the required methods, to test the defaults.
struct Plain(Pairwise);

impl Target for Plain {
    fn sites(&self) -> usize {
        self.0.sites()
    }
    fn q(&self) -> usize {
        self.0.q()
    }
    fn terms(&self) -> usize {
        self.0.terms()
    }
    fn energy(&self, term: usize, x: &[u8]) -> f64 {
        self.0.energy(term, x)
    }
}

fn square(side: usize, boundary: Boundary) -> Lattice {
    Lattice::new(&[side, side], boundary).unwrap()
}

fn targets() -> Vec<Pairwise> {
    let torus = || square(3, Boundary::Periodic);
    vec![
        Pairwise::ising(torus(), 1.0, 0.3).unwrap(),
        Pairwise::ising(square(2, Boundary::Periodic), 0.7, -0.2).unwrap(),
        Pairwise::ising(square(3, Boundary::Free), -1.0, 0.0).unwrap(),
        Pairwise::uniform(Interaction::Ising, torus(), 2, 1.0)
            .unwrap()
            .with_fields(&[0.1, -0.2, 0.3, 0.0, 0.5, -0.6, 0.7, 0.8, -0.9])
            .unwrap(),
        Pairwise::potts(torus(), 3, 1.0, 0.4).unwrap(),
        Pairwise::potts(torus(), 5, -0.5, 0.0).unwrap(),
        Pairwise::edwards_anderson(torus(), Disorder::Gaussian, 3).unwrap(),
        Pairwise::edwards_anderson(torus(), Disorder::Pm1, 3).unwrap(),
        Pairwise::sherrington_kirkpatrick(7, Disorder::Gaussian, 3).unwrap(),
        Pairwise::random_boltzmann_machine(4, 3, 1.0, 3).unwrap(),
    ]
}

/// Every state with 512 or fewer of them, else a spread of 300.
fn states(target: &dyn Target) -> Vec<Vec<u8>> {
    let (d, q) = (target.sites(), target.q());
    let all = (q as u128).pow(d as u32);
    let step = (all / 300).max(1) | 1;
    (0..all)
        .step_by(if all <= 512 { 1 } else { step as usize })
        .map(|mut code| {
            (0..d)
                .map(|_| {
                    let value = (code % q as u128) as u8;
                    code /= q as u128;
                    value
                })
                .collect()
        })
        .collect()
}

fn check_changes(target: &dyn Target) {
    let lambda: Vec<f64> = (0..target.terms()).map(|k| 0.8 - 0.5 * k as f64).collect();
    let (d, q) = (target.sites(), target.q());
    let mut all = vec![f64::NAN; d * q];
    for mut x in states(target) {
        let original = x.clone();
        let before = potential(target, &lambda, &x);
        target.changes(&lambda, &mut x, &mut all);
        for site in 0..d {
            for value in 0..q as u8 {
                let mut y = x.clone();
                y[site] = value;
                let expected = potential(target, &lambda, &y) - before;
                let (mut after, mut anew) = (all.clone(), all.clone());
                target.changes_after(&lambda, &mut y, site, &mut after);
                target.changes(&lambda, &mut y, &mut anew);
                assert_eq!(after, anew, "after site {site} took value {value}");
                let one = target.change(&lambda, &mut x, site, value);
                assert!((one - expected).abs() < 1e-12, "{one} {expected}");
                assert!((all[site * q + value as usize] - expected).abs() < 1e-12);
            }
        }
        assert_eq!(x, original, "a lent state is given back as it was");
    }
}

#[test]
fn changes_are_differences_of_energies() {
    for target in targets() {
        check_changes(&target);
        check_changes(&Plain(target));
    }
}

#[test]
fn the_slope_of_the_path_is_the_time_derivative_of_the_potential() {
    for target in targets() {
        let ends: Vec<f64> = (0..target.terms()).map(|k| 0.4 + k as f64).collect();
        let schedules = [Schedule::Trigonometric, Schedule::geometric(0.2).unwrap()];
        let path = Path::with_schedules(&ends, schedules[..ends.len()].to_vec()).unwrap();
        let (t, h) = (0.37, 1e-5);
        for x in states(&target).iter().step_by(37) {
            let slope = potential(&target, &path.slope(t), x);
            let at = |t: f64| potential(&target, &path.lambda(t), x);
            assert!((slope - (at(t + h) - at(t - h)) / (2.0 * h)).abs() < 1e-7);
        }
    }
}

#[test]
fn disorder_is_a_function_of_the_seed() {
    let glass = |seed| {
        Pairwise::edwards_anderson(square(8, Boundary::Periodic), Disorder::Gaussian, seed).unwrap()
    };
    assert_eq!(glass(5), glass(5));
    assert_ne!(glass(5), glass(6));
}

#[test]
fn impossible_models_are_refused() {
    let torus = || square(3, Boundary::Periodic);
    assert!(Pairwise::ising(torus(), f64::NAN, 0.0).is_err());
    assert!(Pairwise::ising(torus(), 1.0, f64::INFINITY).is_err());
    assert!(Pairwise::potts(torus(), 1, 1.0, 0.0).is_err());
    assert!(Pairwise::potts(torus(), 256, 1.0, 0.0).is_err());
    assert!(Pairwise::uniform(Interaction::Ising, torus(), 3, 1.0).is_err());
    assert!(Pairwise::ising(torus(), 1.0, 0.0).unwrap().with_fields(&[1.0; 8]).is_err());
    assert!(Pairwise::from_edges(Interaction::Ising, 3, 2, &[(0, 3, 1.0)]).is_err());
    assert!(Pairwise::boltzmann_machine(&[1.0; 5], &[0.0; 2], &[0.0; 3]).is_err());
}
