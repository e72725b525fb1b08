//! Ground states beside brute force: fields, couplings of both signs, several values, graphs and lattices.

use super::order::Rule;
use super::*;
use crate::device::{NoProgress, Purpose, Stream};
use crate::target::{Boundary, Disorder, EdgeWeights, Graph, Interaction, Lattice};

/// The lowest energy of all states, one by one.
fn brute(target: &dyn Target) -> f64 {
    let (sites, q) = (target.sites(), target.q());
    let state = |mut k: usize| -> Vec<u8> {
        (0..sites)
            .map(|_| {
                let value = (k % q) as u8;
                k /= q;
                value
            })
            .collect()
    };
    let energy = |x: &[u8]| (0..target.terms()).map(|term| target.energy(term, x)).sum::<f64>();
    (0..q.pow(sites as u32)).map(|k| energy(&state(k))).fold(f64::INFINITY, f64::min)
}

/// A model with random couplings, parallel bonds and a field for every site.
fn random(interaction: Interaction, sites: usize, q: usize, seed: u64) -> Pairwise {
    let mut stream = Stream::new(seed, Purpose::Disorder, 0, 0);
    let mut edges = Vec::new();
    for i in 0..sites as u32 {
        for j in i + 1..sites as u32 {
            if stream.uniform() < 0.4 {
                edges.push((i, j, stream.normal()));
            }
        }
    }
    edges.push((0, 1, 0.3));
    edges.push((1, 0, -0.8));
    let fields: Vec<f64> = (0..sites).map(|_| 0.7 * stream.normal() + 0.2).collect();
    Pairwise::from_edges(interaction, sites, q, &edges).unwrap().with_fields(&fields).unwrap()
}

fn check(model: &Pairwise) {
    let wanted = brute(model);
    let found = ground_state(model, 1.0, &NoProgress).unwrap();
    assert_eq!(found.method, GroundMethod::Elimination);
    assert!((found.energy - wanted).abs() < 1e-10, "{} {wanted}", found.energy);
    let states = enumerate::states(model).unwrap();
    let state = search(model, states, &NoProgress).unwrap().unwrap();
    let energy: f64 = (0..model.terms()).map(|term| model.energy(term, &state)).sum();
    assert!((energy - wanted).abs() < 1e-10, "{energy} {wanted}");
    assert!(energy_bound(model) <= wanted + 1e-10);
}

#[test]
fn graphs_with_fields_have_the_lowest_energy_of_all_states() {
    for seed in 1..6 {
        check(&random(Interaction::Ising, 11, 2, seed));
        check(&random(Interaction::Potts, 7, 3, seed));
    }
}

#[test]
fn lattices_have_the_lowest_energy_of_all_states() {
    for (shape, boundary) in [
        (&[3, 5][..], Boundary::Free),
        (&[4, 4], Boundary::Periodic),
        (&[2, 2, 3], Boundary::Periodic),
        (&[16], Boundary::Periodic),
    ] {
        let lattice = Lattice::new(shape, boundary).unwrap();
        let glass = Pairwise::edwards_anderson(lattice, Disorder::Gaussian, 3).unwrap();
        check(&glass.with_uniform_field(0.3).unwrap());
    }
}

#[test]
fn problems_on_graphs_have_the_best_answer_of_all() {
    for seed in 1..5 {
        let graph = Graph::random(14, 0.3, EdgeWeights::Pm1, seed).unwrap();
        check(&Pairwise::max_cut(&graph).unwrap());
        let set = Pairwise::independent_set(&graph).unwrap();
        check(&set);
        let found = ground_state(&set, 1.0, &NoProgress).unwrap();
        assert_eq!(graph.independent(&found.state), Some(-found.energy as usize));
    }
}

#[test]
fn long_strips_are_eliminated_and_wide_lattices_are_not() {
    let strip = Lattice::new(&[8, 200], Boundary::Free).unwrap();
    let strip = Pairwise::ising(strip, 1.0, 0.1).unwrap();
    let found = ground_state(&strip, 1.0, &NoProgress).unwrap();
    assert!(found.state.iter().all(|&value| value == 0), "the field prefers spin -1");
    assert!((found.energy - energy_bound(&strip)).abs() < 1e-9);
    let wide = Lattice::new(&[40, 40], Boundary::Periodic).unwrap();
    let wide = Pairwise::edwards_anderson(wide, Disorder::Pm1, 1).unwrap();
    let refused = ground_state(&wide, 1.0, &NoProgress);
    assert!(matches!(refused, Err(Error::NotApplicable { .. })));
}

/// The torus of the graph G11, narrow but closed: with the fewest partners first rings are closed around 23 sites.
#[test]
fn long_tori_are_eliminated_along_their_length() {
    let torus = |shape: &[usize]| {
        let lattice = Lattice::new(shape, Boundary::Periodic).unwrap();
        Pairwise::max_cut(&Graph::on_lattice(&lattice, EdgeWeights::Pm1, 1)).unwrap()
    };
    for shape in [[100, 8], [8, 100]] {
        let order = Order::of(&torus(&shape), MAX_EFFORT).expect("it is narrow");
        let most = if shape[0] == 100 { 16 } else { 20 };
        assert!((16..=most).contains(&order.width()), "{shape:?}: {}", order.width());
    }
    // Whatever the order, the energy is the same.
    let small = torus(&[12, 4]);
    let found = |rule| {
        let order = Order::by(&small, 1.0, rule).unwrap();
        let state = eliminate(&small, &order, &NoProgress).unwrap();
        (0..small.terms()).map(|term| small.energy(term, &state)).sum::<f64>()
    };
    let listed: Vec<usize> = (0..48).collect();
    let energies =
        [Rule::Fewest, Rule::Listed(listed), Rule::Listed(order::layers(&small))].map(found);
    assert!(energies.iter().all(|energy| *energy == energies[0]), "{energies:?}");
}

/// An energy without pairs: few states are looked at one by one.
struct Parity;

impl Target for Parity {
    fn sites(&self) -> usize {
        5
    }

    fn q(&self) -> usize {
        3
    }

    fn energy(&self, _: usize, x: &[u8]) -> f64 {
        let sum: usize = x.iter().enumerate().map(|(i, &value)| (i + 1) * value as usize).sum();
        if sum == 7 { -1.0 } else { (sum % 4) as f64 }
    }
}

#[test]
fn any_energy_with_few_states_is_searched() {
    let found = ground_state(&Parity, 1.0, &NoProgress).unwrap();
    assert_eq!((found.method, found.energy), (GroundMethod::Enumeration, -1.0));
    assert_eq!(brute(&Parity), -1.0);
}
