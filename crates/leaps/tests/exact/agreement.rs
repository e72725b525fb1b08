//! Check independent methods, thread counts and code paths against each other.

use leaps::device::NoProgress;
use leaps::exact::{Exact, Method, enumerate, transfer};
use leaps::observe::Order;
use leaps::target::Boundary::{Free, Periodic};
use leaps::target::{Disorder, Interaction, Pairwise, Target, potential};

use super::{Plain, assert_close, assert_same, lattice, solve, three_terms};

fn small_models() -> Vec<(String, Pairwise)> {
    let mut models = Vec::new();
    for boundary in [Periodic, Free] {
        for shape in
            [&[9][..], &[2], &[2, 2], &[2, 5], &[5, 2], &[3, 4], &[4, 3], &[2, 2, 3], &[2, 2, 2, 2]]
        {
            let n = shape.iter().product::<usize>();
            let at = || lattice(shape, boundary);
            let fields: Vec<f64> = (0..n).map(|i| (i as f64).cos()).collect();
            let mut add = |name: &str, model| {
                models.push((format!("{name} {shape:?} {boundary:?}"), model));
            };
            add("ising", Pairwise::ising(at(), 0.8, 0.0).unwrap());
            add("antiferromagnet", Pairwise::ising(at(), -0.7, 0.3).unwrap());
            add("glass", Pairwise::edwards_anderson(at(), Disorder::Gaussian, 3).unwrap());
            let uniform = Pairwise::uniform(Interaction::Ising, at(), 2, 1.0).unwrap();
            add("fields", uniform.with_fields(&fields).unwrap());
            add("terms", three_terms(shape, boundary));
            if n <= 10 {
                add("potts 3", Pairwise::potts(at(), 3, 1.1, 0.4).unwrap());
            }
            if n <= 6 {
                let potts = Pairwise::potts(at(), 5, -0.6, 0.0).unwrap();
                add("potts 5", potts.with_fields(&fields).unwrap());
            }
        }
    }
    models.push((
        "chain with long bonds".into(),
        Pairwise::from_edges(
            Interaction::Ising,
            9,
            2,
            &(0..7).map(|i| (i, i + 2, 0.3 * f64::from(i))).collect::<Vec<_>>(),
        )
        .unwrap(),
    ));
    models.push((
        "ring of edges".into(),
        Pairwise::from_edges(
            Interaction::Ising,
            8,
            2,
            &(0..8).map(|i| (i, (i + 1) % 8, 0.9 - 0.3 * f64::from(i))).collect::<Vec<_>>(),
        )
        .unwrap(),
    ));
    models
}

#[test]
fn enumeration_and_transfer_matrix_agree() {
    for (name, model) in small_models() {
        let lambda = &[0.7, -0.4, 0.9][..model.terms()];
        let sum = solve(&model, lambda, Some(Method::Enumeration));
        let strip = solve(&model, lambda, Some(Method::TransferMatrix));
        assert_same(&name, &strip, &sum);
        if model.uniform_torus().is_some() {
            let formula = solve(&model, lambda, Some(Method::Kaufman));
            assert_same(&name, &formula, &sum);
        }
    }
}

#[test]
fn larger_systems_agree_with_kaufman() {
    for (shape, coupling) in [([4, 30], 1.0), ([7, 6], 1.0), ([8, 4], -1.0), ([2, 100], 0.6)] {
        let model = Pairwise::ising(lattice(&shape, Periodic), coupling, 0.0).unwrap();
        for beta in [0.2, 0.45, 1.0] {
            let strip = solve(&model, &[beta], Some(Method::TransferMatrix));
            let formula = solve(&model, &[beta], Some(Method::Kaufman));
            assert_same(&format!("{shape:?} {coupling} {beta}"), &strip, &formula);
        }
    }
    // 2^20 states: every chunk is used.
    let model = Pairwise::ising(lattice(&[4, 5], Periodic), 1.0, 0.0).unwrap();
    let sum = solve(&model, &[0.43], Some(Method::Enumeration));
    assert_same("4 x 5", &sum, &solve(&model, &[0.43], Some(Method::Kaufman)));
}

#[test]
fn a_ring_is_the_textbook_transfer_matrix() {
    // Z = l+^n + l-^n with l± = e^K cosh h ± sqrt(e^2K sinh^2 h + e^-2K).
    let (n, k, h) = (1001, 0.8f64, 0.15f64);
    let ring = Pairwise::ising(lattice(&[n], Periodic), 1.0, -h / k).unwrap();
    let root = ((2.0 * k).exp() * h.sinh().powi(2) + (-2.0 * k).exp()).sqrt();
    let (large, small) = (k.exp() * h.cosh() + root, k.exp() * h.cosh() - root);
    let log_z = n as f64 * large.ln() + (small / large).powi(n as i32).ln_1p();
    let exact = solve(&ring, &[k, k], None);
    assert_eq!(exact.method, Method::TransferMatrix);
    assert_close("ring", exact.log_z, log_z, 1e-13);
}

/// Energies, variances and order parameters from the table of probabilities.
#[test]
fn enumeration_agrees_with_its_own_law() {
    for (name, model) in small_models() {
        if enumerate::states(&model).unwrap() > 4096 {
            continue;
        }
        let lambda = &[0.7, -0.4, 0.9][..model.terms()];
        let law = enumerate::law(&model, lambda).unwrap();
        assert_close("norm", law.iter().sum(), 1.0, 1e-13);
        let moments = enumerate::moments(&model, lambda, &NoProgress).unwrap();
        let (d, q) = (model.sites(), model.q());
        let (mut terms, mut u, mut u2) = (vec![0.0; lambda.len()], 0.0, 0.0);
        let mut order = [0.0; 4];
        for (index, p) in law.iter().enumerate() {
            let x: Vec<u8> = (0..d as u32).map(|i| (index / q.pow(i) % q) as u8).collect();
            let potential = potential(&model, lambda, &x);
            assert_close("p", *p, (-potential - moments.log_z).exp(), 1e-13);
            for (term, sum) in terms.iter_mut().enumerate() {
                *sum += p * model.energy(term, &x);
            }
            u += p * potential;
            u2 += p * potential * potential;
            let o = Order::of(&x, q);
            for (sum, power) in order.iter_mut().zip([o.m, o.abs, o.squared, o.fourth]) {
                *sum += p * power;
            }
        }
        for (a, b) in moments.terms.iter().zip(&terms) {
            assert_close(&name, *a, *b, 1e-12);
        }
        assert_close(&name, moments.energy, terms.iter().sum(), 1e-12);
        assert_close(&name, moments.potential, u, 1e-12);
        assert_close(&name, moments.potential_variance, u2 - u * u, 1e-11);
        let o = moments.order;
        for (a, b) in [o.m, o.abs, o.squared, o.fourth].into_iter().zip(order) {
            assert_close(&name, a, b, 1e-13);
        }
    }
}

#[test]
fn any_target_can_be_enumerated() {
    let model = three_terms(&[3, 5], Periodic);
    let lambda = [0.7, -0.4, 0.9];
    let fast = solve(&model, &lambda, Some(Method::Enumeration));
    let plain = solve(&Plain(model), &lambda, None);
    assert_same("plain", &fast, &plain);
    assert_close("order", fast.order.unwrap().fourth, plain.order.unwrap().fourth, 1e-12);
}

/// Almost a complete graph: a band of 3^10 configurations, which several threads share.
fn tangle() -> Pairwise {
    let pairs = (0..12u32).flat_map(|i| (0..i).map(move |j| (i, j)));
    let edges: Vec<_> = pairs
        .filter(|(i, j)| i - j <= 10)
        .map(|(i, j)| (i, j, f64::from(i * i + j).sin()))
        .collect();
    let model = Pairwise::from_edges(Interaction::Potts, 12, 3, &edges).unwrap();
    model.with_uniform_field(0.2).unwrap()
}

#[test]
fn wide_bands_agree_with_enumeration() {
    let model = tangle();
    let strip = solve(&model, &[0.8, 0.5], Some(Method::TransferMatrix));
    assert!(transfer::estimate(&model).unwrap().bytes >= 64.0 * 3f64.powi(10), "not wide");
    assert_same("tangle", &strip, &solve(&model, &[0.8, 0.5], Some(Method::Enumeration)));
}

#[test]
fn results_do_not_depend_on_the_number_of_threads() {
    let (glass, tangle) = (three_terms(&[4, 4], Periodic), tangle());
    let weights = [0.7, -0.4, 0.9];
    for (model, method) in [
        (&glass, Method::Enumeration),
        (&glass, Method::TransferMatrix),
        (&tangle, Method::TransferMatrix),
    ] {
        let lambda = &weights[..model.terms()];
        let answers: Vec<Exact> = [1, 2, 7]
            .into_iter()
            .map(|threads| {
                let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
                pool.install(|| solve(model, lambda, Some(method)))
            })
            .collect();
        assert!(answers.iter().all(|answer| *answer == answers[0]), "{method}");
    }
}
