//! Temperatures that exchange states: the product of their laws is invariant.

use leaps::device::NoProgress;

use super::chains::{Histogram, g_test};
use super::*;

/// `max |rho P - rho|` of a step on several states at once, with the product law `laws`.
fn joint_error(
    laws: &[&[f64]],
    sites: usize,
    q: usize,
    step: impl Fn(&mut [Vec<u8>], &mut Enumerator),
) -> f64 {
    let each = q.pow(sites as u32);
    let all = each.pow(laws.len() as u32);
    let states = |code: usize| -> Vec<Vec<u8>> {
        (0..laws.len()).map(|k| decode(code / each.pow(k as u32) % each, sites, q)).collect()
    };
    let rho: Vec<f64> = (0..all)
        .map(|code| states(code).iter().zip(laws).map(|(x, law)| law[encode(x, q)]).product())
        .collect();
    let mut moved = vec![0.0; all];
    let mut total = 0.0;
    for from in 0..all {
        branches(
            |draw| {
                let mut x = states(from);
                step(&mut x, draw);
                x.iter().rev().fold(0, |code, x| code * each + encode(x, q))
            },
            |to, p| {
                moved[to] += rho[from] * p;
                total += rho[from] * p;
            },
        );
    }
    assert!((total - 1.0).abs() < 1e-12);
    moved.iter().zip(&rho).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max)
}

fn ring() -> Pairwise {
    let edges = [(0, 1, 0.9), (1, 2, -0.6), (2, 0, 1.4)];
    let ring = Pairwise::from_edges(Interaction::Ising, 3, 2, &edges).unwrap();
    ring.with_fields(&[0.3, -0.2, 0.5]).unwrap()
}

#[test]
fn tempering_leaves_the_product_invariant() {
    let ring = ring();
    let ladder = vec![vec![0.2, 0.1], vec![0.7, 0.9]];
    let laws: Vec<_> = ladder.iter().map(|l| law(&Density::new(&ring, l))).collect();
    let laws: Vec<&[f64]> = laws.iter().map(|law| &law[..]).collect();
    let kernel = HeatBath::new(&ring).unwrap();
    let tempering = Tempering::new(&ring, ladder.clone(), &kernel, false).unwrap();
    let full = |x: &mut [Vec<u8>], draw: &mut Enumerator| tempering.clone().step(&ring, x, draw);
    assert!(joint_error(&laws, 3, 2, full) < 1e-13);
    // Two copies with Houdayer moves, one site of each state a step.
    let kernel = Gibbs::new(&ring).unwrap();
    let tempering = Tempering::new(&ring, ladder, &kernel, true).unwrap();
    let four = [laws[0], laws[1], laws[0], laws[1]];
    let full = |x: &mut [Vec<u8>], draw: &mut Enumerator| tempering.clone().step(&ring, x, draw);
    assert!(joint_error(&four, 3, 2, full) < 1e-13);
    // Exchanging between copies of different rungs would not be invariant, and is seen.
    let wrong = |x: &mut [Vec<u8>], _: &mut Enumerator| x.swap(0, 1);
    assert!(joint_error(&laws, 3, 2, wrong) > 1e-2);
}

#[test]
fn odd_pairs_and_three_rungs_are_invariant() {
    let ring = ring();
    let ladder = vec![vec![0.2, 0.1], vec![0.7, 0.9], vec![1.0, -0.3]];
    let laws: Vec<_> = ladder.iter().map(|l| law(&Density::new(&ring, l))).collect();
    let laws: Vec<&[f64]> = laws.iter().map(|law| &law[..]).collect();
    let kernel = Gibbs::new(&ring).unwrap();
    let mut tempering = Tempering::new(&ring, ladder, &kernel, false).unwrap();
    for odd in [false, true] {
        assert_eq!(tempering.at_odd_pairs(), odd);
        let swap =
            |x: &mut [Vec<u8>], draw: &mut Enumerator| tempering.clone().exchange(&ring, x, draw);
        assert!(joint_error(&laws, 3, 2, swap) < 1e-13);
        let mut x = vec![vec![0; 3]; 3];
        tempering.exchange(&ring, &mut x, &mut Stream::new(1, Purpose::Exchange, 0, 0));
    }
}

#[test]
fn houdayer_moves_conserve_the_energies_and_the_product() {
    let glass = glass(&[2, 2], Boundary::Free);
    let lambda = [0.8, 0.5];
    let model = Density::new(&glass, &lambda);
    let rho = law(&model);
    let houdayer = Houdayer::new(&glass).unwrap();
    let step = |x: &mut [Vec<u8>], draw: &mut Enumerator| {
        let before = model.potential(&x[0]) + model.potential(&x[1]);
        let (first, second) = x.split_at_mut(1);
        houdayer.clone().step(&mut first[0], &mut second[0], draw);
        assert!((model.potential(&x[0]) + model.potential(&x[1]) - before).abs() < 1e-12);
    };
    assert!(joint_error(&[&rho, &rho], 4, 2, step) < 1e-13);
    // More values: the same argument.
    let potts = potts(&[2, 2], Boundary::Free);
    let rho = law(&Density::new(&potts, &lambda));
    let houdayer = Houdayer::new(&potts).unwrap();
    let step = |x: &mut [Vec<u8>], draw: &mut Enumerator| {
        let (first, second) = x.split_at_mut(1);
        houdayer.clone().step(&mut first[0], &mut second[0], draw);
    };
    assert!(joint_error(&[&rho, &rho], 4, 3, step) < 1e-13);
}

#[test]
fn tempering_samples_its_last_rung() {
    let torus = ising(&[3, 3]);
    let ladder: Vec<Vec<f64>> = [0.1, 0.3, 0.5].iter().map(|&b| vec![b, b]).collect();
    let rho = law(&Density::new(&torus, &ladder[2]));
    let kernel = HeatBath::new(&torus).unwrap();
    let settings = ChainSettings { chains: 20, burn_in: 200, steps: 40_000, thin: 20, seed: 5 };
    let tempering =
        TemperingSettings { ladder, houdayer: true, exchange: true, table: None, chains: settings };
    let make = |_, _| Histogram { counts: vec![0; 512], q: 2 };
    let outcomes = run_tempering(&torus, &kernel, &tempering, make, &NoProgress).unwrap();
    // Houdayer moves tie the copies together, so each is tested on its own.
    for copy in 0..2 {
        let mut counts = vec![0; 512];
        for outcome in &outcomes {
            for (sum, count) in counts.iter_mut().zip(&outcome.recorders[copy].counts) {
                *sum += count;
            }
        }
        let z = g_test(&counts, &rho);
        assert!(z < 4.75, "{z}");
    }
    let first = &outcomes[0];
    assert!(first.round_trips > 100 && first.swap_rates.iter().all(|&rate| rate > 0.2));
}
