//! Exact answers: published numbers, agreement of independent methods, extremes and refusals.

#[path = "exact/agreement.rs"]
mod agreement;
#[path = "exact/limits.rs"]
mod limits;

use leaps::device::NoProgress;
use leaps::exact::{self, Exact, Method};
use leaps::target::{Boundary, Disorder, Lattice, Pairwise, Target, Term};

use Boundary::Periodic;

fn lattice(shape: &[usize], boundary: Boundary) -> Lattice {
    Lattice::new(shape, boundary).unwrap()
}

fn ising(side: usize, field: f64) -> Pairwise {
    Pairwise::ising(lattice(&[side, side], Periodic), 1.0, field).unwrap()
}

fn potts(side: usize, q: usize) -> Pairwise {
    Pairwise::potts(lattice(&[side, side], Periodic), q, 1.0, 0.0).unwrap()
}

fn solve(target: &dyn Target, lambda: &[f64], method: Option<Method>) -> Exact {
    exact::solve(target, lambda, method, &NoProgress).unwrap()
}

fn assert_close(what: &str, a: f64, b: f64, tolerance: f64) {
    assert!((a - b).abs() <= tolerance * (1.0 + b.abs()), "{what}: {a} {b}");
}

/// Energy and variance too, not only log Z.
fn assert_same(what: &str, a: &Exact, b: &Exact) {
    assert_close(what, a.log_z, b.log_z, 1e-12);
    assert_close(what, a.energy, b.energy, 1e-11);
    assert_close(what, a.potential_variance, b.potential_variance, 1e-10);
}

/// All bonds doubled in a second term with its own weight, and a third term with per-site fields and a
/// constant.
fn three_terms(shape: &[usize], boundary: Boundary) -> Pairwise {
    let model =
        Pairwise::edwards_anderson(lattice(shape, boundary), Disorder::Gaussian, 5).unwrap();
    let other: Vec<f64> = model.energy_terms()[0].couplings.iter().map(|a| 0.5 - a * a).collect();
    let sites = model.sites();
    let fields = (0..2 * sites).map(|i| ((i * i) as f64).sin()).collect();
    let term = |name: &str, couplings, fields, constant| Term {
        name: name.into(),
        couplings,
        fields,
        constant,
    };
    model.with_term(term("second", other, Vec::new(), -0.25)).with_term(term(
        "third",
        Vec::new(),
        fields,
        2.0,
    ))
}

/// Only the required methods: energies from scratch in every state.
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

#[test]
fn ising_ground_truth() {
    let table = [
        (0.28, 10, 77.7106812141),
        (0.28, 15, 174.8456087594),
        (0.4407, 3, 9.0204049137),
        (0.4407, 4, 15.5222462867),
        (0.4407, 5, 23.8868061561),
        (0.4407, 6, 34.1122622436),
        (0.4407, 10, 93.6122501656),
        (0.4407, 15, 209.8260701363),
        (0.4407, 16, 238.6471694184),
        (0.4407, 32, 952.6674684005),
        (0.4407, 64, 3808.7493136671),
    ];
    for (k, side, log_z) in table {
        let exact = solve(&ising(side, 0.0), &[k], Some(Method::Kaufman));
        assert!((exact.log_z - log_z).abs() < 1e-9, "{side} {k}: {}", exact.log_z);
    }
    let energies = [
        (0.4407, 15, -1.45574698),
        (0.4407, 16, -1.45316676),
        (0.4407, 32, -1.43378404),
        (0.28, 15, -0.64294844),
    ];
    for (k, side, energy) in energies {
        let exact = solve(&ising(side, 0.0), &[k], None);
        assert!((exact.energy_per_site(side * side) - energy).abs() < 1e-8);
    }
    // Six decimals are all that is given of the 24 x 24 torus.
    let exact = solve(&ising(24, 0.0), &[0.4407], None);
    assert!((exact.log_z - 536.155559).abs() < 1e-6);
    assert!((exact.energy_per_site(576) + 1.440249).abs() < 1e-6);
}

/// Weight `exp(K sum ss + h sum s)`: our field term is `+mu s`, so `mu = -h / beta`.
#[test]
fn ising_in_a_field_ground_truth() {
    let table = [(3, 9.3196014985), (4, 16.2975361949), (5, 25.3785618827), (6, 36.5229844155)];
    for (side, log_z) in table {
        let model = ising(side, -0.1 / 0.4407);
        let lambda = [0.4407, 0.4407];
        let transfer = solve(&model, &lambda, Some(Method::TransferMatrix));
        assert!((transfer.log_z - log_z).abs() < 1e-9, "{side}: {}", transfer.log_z);
        if side <= 4 {
            let sum = solve(&model, &lambda, None);
            assert_eq!(sum.method, Method::Enumeration);
            assert!((sum.log_z - log_z).abs() < 1e-9);
            assert!(sum.order.unwrap().m > 0.1, "a positive h favours up spins");
        }
    }
}

#[test]
fn potts_ground_truth() {
    let table = [
        (3, 3, 1.001, 19.6254849948),
        (4, 3, 1.001, 34.0619243892),
        (5, 3, 1.001, 52.6304139466),
        (6, 3, 1.001, 75.3283752864),
        (4, 4, 1.0, 35.0082606580),
    ];
    for (side, q, k, log_z) in table {
        let exact = solve(&potts(side, q), &[k], Some(Method::TransferMatrix));
        assert!((exact.log_z - log_z).abs() < 1e-9, "{side} {q}: {}", exact.log_z);
    }
    let exact = solve(&potts(3, 3), &[1.001], None);
    assert!((exact.log_z - 19.6254849948).abs() < 1e-9);
}
