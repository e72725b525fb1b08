//! Check extremes, the choice of a method, refusals and interruption.

use std::sync::atomic::{AtomicU64, Ordering};

use leaps::Error;
use leaps::device::{NoProgress, Progress};
use leaps::exact::{self, Method, enumerate, kaufman, transfer};
use leaps::target::Boundary::{Free, Periodic};
use leaps::target::{Disorder, Interaction, Pairwise, Target};

use super::{Plain, assert_close, assert_same, ising, lattice, solve, three_terms};

#[test]
fn cold_and_hot_systems() {
    for side in [3, 4] {
        let n = (side * side) as f64;
        let model = ising(side, 0.0);
        for method in [Method::Enumeration, Method::TransferMatrix, Method::Kaufman] {
            let cold = solve(&model, &[1e3], Some(method));
            assert_close("cold", cold.log_z, 2.0 * n * 1e3 + 2f64.ln(), 1e-14);
            assert_close("cold", cold.energy, -2.0 * n, 1e-14);
            assert!((0.0..1e-9).contains(&cold.potential_variance), "{method} {cold:?}");
            let hot = solve(&model, &[0.0], Some(method));
            assert_close("hot", hot.log_z, n * 2f64.ln(), 1e-14);
            assert!(hot.energy.abs() < 1e-12 && hot.potential_variance == 0.0);
        }
    }
    // At low temperature only the ground states of a glass with fields are left, found one by one.
    let model = three_terms(&[3, 4], Periodic);
    let weights = [300.0, 200.0, 900.0];
    let sum = solve(&model, &weights, Some(Method::Enumeration));
    let strip = solve(&model, &weights, Some(Method::TransferMatrix));
    assert_same("cold glass", &strip, &sum);
}

/// What is wanted often must be cheap: together, answers take as long as a few of the dearest do.
#[test]
fn many_answers_are_cheap_ones() {
    let glass = |side: usize| {
        Pairwise::edwards_anderson(lattice(&[side, side], Free), Disorder::Pm1, 1).unwrap()
    };
    let known = |side, answers| exact::known_among(&glass(side), &[0.4], answers).is_some();
    assert!(known(16, 1) && known(16, 5) && !known(16, 99) && !known(18, 1));
    assert!(known(10, 99) && known(4, 1000), "small ones are cheap enough");
}

/// A field that decides a configuration only at its last site: plain weights would have underflowed.
#[test]
fn a_late_field_can_outweigh_an_early_one() {
    let model = Pairwise::uniform(Interaction::Ising, lattice(&[12], Free), 2, 1.0).unwrap();
    let mut fields = [0.0; 12];
    (fields[0], fields[11]) = (-0.9, 0.95);
    let model = model.with_fields(&fields).unwrap();
    let exact = solve(&model, &[1e3, 1e3], Some(Method::TransferMatrix));
    assert_close("late field", exact.energy, -11.0 - 0.05, 1e-12);
    assert_close("late field", exact.log_z, 1e3 * 11.05, 1e-12);
}

#[test]
fn order_parameters_follow_from_the_law() {
    // Four independent spins: <m^2> = 1/4, <m^4> = (3 n - 2) / n^3 = 10/64, <|m|> = 3/8.
    let free = Pairwise::ising(lattice(&[2, 2], Free), 1.0, 0.0).unwrap();
    let exact = solve(&free, &[0.0], None);
    assert_close(
        "chi",
        exact.susceptibility_per_site(4, 1.0, true).unwrap(),
        4.0 * (0.25 - 9.0 / 64.0),
        1e-14,
    );
    assert_close("binder", exact.binder().unwrap(), 1.0 - (10.0 / 64.0) / (3.0 / 16.0), 1e-14);
    let formula = solve(&ising(8, 0.0), &[0.3], None);
    assert_eq!((formula.binder(), formula.susceptibility_per_site(64, 1.0, true)), (None, None));
}

#[test]
fn the_best_method_is_chosen() {
    let glass = |shape: &[usize]| {
        Pairwise::edwards_anderson(lattice(shape, Periodic), Disorder::Pm1, 1).unwrap()
    };
    assert_eq!(solve(&ising(4, 0.0), &[0.4], None).method, Method::Enumeration);
    assert_eq!(solve(&ising(5, 0.0), &[0.4], None).method, Method::Kaufman);
    assert_eq!(solve(&glass(&[3, 9]), &[0.4], None).method, Method::TransferMatrix);
    assert_eq!(exact::known(&glass(&[5, 6]), &[0.4]).unwrap().method, Method::TransferMatrix);
    assert_eq!(exact::known(&ising(100, 0.0), &[0.4]).unwrap().method, Method::Kaufman);
    assert!(exact::known(&glass(&[16, 16]), &[0.4]).is_none());
    assert!(
        exact::known(&Plain(glass(&[4, 4])), &[0.4]).is_none(),
        "an unknown energy may be slow"
    );
    assert!(exact::known(&Plain(glass(&[3, 4])), &[0.4]).is_some());
    assert_eq!(serde_json::to_string(&Method::TransferMatrix).unwrap(), "\"transfer-matrix\"");
    assert_eq!(Method::Kaufman.to_string(), "kaufman");
}

#[test]
fn refusals_say_why() {
    let glass = Pairwise::edwards_anderson(lattice(&[16, 16], Periodic), Disorder::Pm1, 1).unwrap();
    let error = exact::solve(&glass, &[1.0], None, &NoProgress).unwrap_err();
    let text = error.to_string();
    assert!(matches!(error, Error::NotApplicable { .. }));
    for part in ["Kaufman", "enumeration", "2^256", "transfer matrix", "operations"] {
        assert!(text.contains(part), "{text}");
    }
    let odd = Pairwise::ising(lattice(&[3, 4], Periodic), -1.0, 0.0).unwrap();
    assert!(matches!(kaufman::solve(&odd, &[1.0]), Err(Error::NotApplicable { .. })));
    assert!(matches!(
        kaufman::solve(&ising(4, 0.1), &[1.0, 0.0]),
        Err(Error::NotApplicable { .. })
    ));
    let plain = Plain(ising(4, 0.0));
    assert!(matches!(transfer::estimate(&plain), Err(Error::NotApplicable { .. })));
    assert!(matches!(enumerate::law(&ising(5, 0.0), &[1.0]), Err(Error::NotApplicable { .. })));
    for lambda in [&[][..], &[1.0, 2.0], &[f64::NAN]] {
        for method in [Method::Enumeration, Method::TransferMatrix, Method::Kaufman] {
            let result = exact::solve(&ising(4, 0.0), lambda, Some(method), &NoProgress);
            assert!(matches!(result, Err(Error::Invalid { .. })), "{lambda:?} {method}");
        }
    }
}

/// An energy that is `bad` where the first two sites are both 1.
struct Broken(f64);

impl Target for Broken {
    fn sites(&self) -> usize {
        6
    }
    fn q(&self) -> usize {
        2
    }
    fn energy(&self, _: usize, x: &[u8]) -> f64 {
        if x[..2] == [1, 1] { self.0 } else { f64::from(x[2]) }
    }
}

#[test]
fn energies_that_are_not_numbers() {
    for bad in [f64::NAN, f64::NEG_INFINITY] {
        for result in [
            exact::solve(&Broken(bad), &[1.0], None, &NoProgress).map(|_| ()),
            enumerate::law(&Broken(bad), &[1.0]).map(|_| ()),
        ] {
            match result {
                Err(Error::NonFinite { state, .. }) => {
                    assert!(state.starts_with("[1,1"), "{state}")
                }
                other => panic!("{other:?}"),
            }
        }
    }
    // Forbidden states have no weight: three of four corners remain.
    let hard = solve(&Broken(f64::INFINITY), &[1.0], None);
    assert_close("hard", hard.log_z, (24.0 * (1.0 + f64::exp(-1.0))).ln(), 1e-14);
    assert_close("hard", hard.energy, 1.0 / (1.0 + f64::exp(1.0)), 1e-14);
    assert_eq!(enumerate::law(&Broken(f64::INFINITY), &[1.0]).unwrap()[3], 0.0);
    for method in [Method::Enumeration, Method::TransferMatrix] {
        let overflow = exact::solve(&ising(3, 0.1), &[1e308, 1e308], Some(method), &NoProgress);
        assert!(matches!(overflow, Err(Error::NonFinite { .. })), "{method} {overflow:?}");
    }
}

/// Counts the work and stops it after some of it.
struct Counter {
    total: AtomicU64,
    done: AtomicU64,
    limit: u64,
}

impl Progress for Counter {
    fn total(&self, units: u64) {
        self.total.store(units, Ordering::Relaxed);
    }
    fn advance(&self, done: u64) {
        self.done.fetch_add(done, Ordering::Relaxed);
    }
    fn stopped(&self) -> bool {
        self.done.load(Ordering::Relaxed) >= self.limit
    }
}

#[test]
fn work_is_reported_and_can_be_stopped() {
    let counter = |limit| Counter { total: AtomicU64::new(0), done: AtomicU64::new(0), limit };
    let model = ising(4, 0.2);
    for method in [Method::Enumeration, Method::TransferMatrix] {
        let progress = counter(u64::MAX);
        exact::solve(&model, &[0.4, 0.4], Some(method), &progress).unwrap();
        let (total, done) = (progress.total.into_inner(), progress.done.into_inner());
        assert!(total > 0 && total == done, "{method}: {done} of {total}");
        let stopped = exact::solve(&model, &[0.4, 0.4], Some(method), &counter(total / 4));
        assert!(matches!(stopped, Err(Error::Interrupted)));
    }
}
