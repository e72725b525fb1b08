//! Searches beside exact ground states: every method, fields and couplings of both signs, stops and seeds.

use std::sync::atomic::{AtomicUsize, Ordering};

use super::*;
use crate::exact::ground_state;
use crate::problem::{IndependentSet, MaxCut, SpinGlass};
use crate::target::{Boundary, Disorder, EdgeWeights, Graph, Lattice, Pairwise, Target};

/// A glass with normal couplings and a field, small enough for an exact answer.
fn glass() -> Problem {
    let lattice = SpinGlass::lattice(&[6, 6], 4).couplings(Disorder::Gaussian);
    lattice.field(0.3).beta(1.0).unwrap()
}

fn optimum(problem: &Problem) -> f64 {
    ground_state(&*problem.target, 20.0, &NoProgress).unwrap().energy
}

#[test]
fn every_method_finds_the_ground_state_of_a_glass_in_a_field() {
    let problem = glass();
    let optimum = optimum(&problem);
    for (method, walkers, sweeps) in [
        (MinimizeMethod::Exact, 1, 1),
        (MinimizeMethod::Annealing, 64, 200),
        (MinimizeMethod::Tempering, 8, 200),
        (MinimizeMethod::Houdayer, 4, 200),
    ] {
        let job = Minimizing::new(problem.clone()).method(method).restarts(2);
        let run = job.walkers(walkers).sweeps(sweeps).run().unwrap();
        assert!((run.lowest.energy - optimum).abs() < 1e-9, "{method}: {:?}", run.lowest);
        assert_eq!((run.method.clone(), run.proven), (method.to_string(), true));
        let x: Vec<u8> = run.lowest.state.bytes().map(|digit| digit - b'0').collect();
        let own: f64 = (0..2).map(|term| problem.target.energy(term, &x)).sum();
        assert_eq!(own, run.lowest.energy, "{method}");
        assert!(run.found.restarts >= 1 && run.found.walkers >= run.found.restarts);
        assert_eq!(run.samples.energies.len(), run.restarts.len());
        assert!(run.restarts.iter().all(|restart| restart.energy >= optimum - 1e-9));
    }
}

#[test]
fn auto_is_exact_where_that_is_quick_and_anneals_elsewhere() {
    let run = Minimizing::new(glass()).run().unwrap();
    assert_eq!((run.method.as_str(), run.ended_by.as_str()), ("exact", "exact"));
    let large = SpinGlass::square(40, 1).beta(1.0).unwrap();
    let run = Minimizing::new(large).walkers(2).sweeps(20).restarts(1).run().unwrap();
    assert_eq!((run.method.as_str(), run.proven, run.optimum), ("annealing", false, None));
}

#[test]
fn unfrustrated_targets_are_proven_by_their_bound() {
    let lattice = Lattice::new(&[40, 40], Boundary::Periodic).unwrap();
    let ising = Pairwise::ising(lattice, 1.0, 0.2).unwrap();
    let job = Minimizing::new(Problem::new(ising, 1.0).unwrap()).walkers(64).sweeps(400);
    let run = job.restarts(1).run().unwrap();
    assert_eq!((run.proof.as_deref(), run.proven), (Some("bound"), true));
    assert!((run.lowest.energy + 3200.0 + 320.0).abs() < 1e-9, "{}", run.lowest.energy);
}

#[test]
fn restarts_repeat_and_differ_from_each_other() {
    let job = Minimizing::new(glass()).method(MinimizeMethod::Annealing);
    let job = job.walkers(3).sweeps(4).restarts(3);
    let (one, two) = (job.run().unwrap(), job.run().unwrap());
    assert_eq!(one.restarts, two.restarts);
    assert_eq!(one.samples.states, two.samples.states);
    let other = job.clone().seed(2).run().unwrap();
    let seeds: std::collections::BTreeSet<u64> =
        one.restarts.iter().chain(&other.restarts).map(|restart| restart.seed).collect();
    assert_eq!(seeds.len(), 6);
}

#[test]
fn a_reached_energy_ends_the_search() {
    let problem = glass();
    let wanted = optimum(&problem) + 1.0;
    let job = Minimizing::new(problem).method(MinimizeMethod::Annealing).walkers(64).sweeps(100);
    let run = job.target_energy(wanted).run().unwrap();
    assert_eq!(run.ended_by, "target-energy");
    assert!(run.lowest.energy <= wanted);
}

/// Asks for a stop at the n-th look.
struct Impatient(AtomicUsize);

impl Progress for Impatient {
    fn stopped(&self) -> bool {
        self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |n| n.checked_sub(1)).is_err()
    }
}

#[test]
fn a_stop_keeps_what_was_found() {
    for method in [MinimizeMethod::Annealing, MinimizeMethod::Tempering, MinimizeMethod::Houdayer] {
        for looks in [0, 3, 40] {
            let mut job = Minimizing::new(SpinGlass::square(24, 1).beta(1.0).unwrap());
            job = job.method(method).walkers(4).sweeps(200).restarts(1000);
            let progress = Impatient(AtomicUsize::new(looks));
            let context = Context { progress: &progress, ..Context::default() };
            let run = job.run_in(&context, &NoProgress).unwrap();
            assert!(run.interrupted(), "{method} {looks}");
            assert!(run.lowest.energy < -550.0, "{method}: a local minimum at least");
            assert_eq!(run.samples.energies.len(), run.restarts.len());
        }
    }
    let limit = Minimizing::new(SpinGlass::square(24, 1).beta(1.0).unwrap());
    let run = limit.time_limit(Duration::from_nanos(1)).run().unwrap();
    assert_eq!(run.ended_by, "time-limit");
    assert!(run.restarts[0].unfinished);
}

#[test]
fn settings_that_mean_nothing_are_refused() {
    let job = || Minimizing::new(glass());
    let one = MinimizeSpec { temperatures: 1, ..MinimizeSpec::default() };
    for (job, key) in [
        (job().walkers(0), "walkers"),
        (job().sweeps(0), "sweeps"),
        (job().restarts(0), "restarts"),
        (job().target_energy(f64::NAN), "target_energy"),
        (job().method(MinimizeMethod::Network), "method"),
        (Minimizing { beta: Some(-1.0), ..job() }, "beta"),
        (Minimizing { settings: one, ..job() }, "temperatures"),
    ] {
        let refused = job.run().unwrap_err().to_string();
        assert!(refused.contains(key), "{refused}");
    }
}

/// An energy without pairs: every site wants the number of its neighbour to the left plus one.
struct Staircase;

impl Target for Staircase {
    fn sites(&self) -> usize {
        12
    }

    fn q(&self) -> usize {
        4
    }

    fn energy(&self, _: usize, x: &[u8]) -> f64 {
        let steps = x.windows(2).filter(|pair| pair[1] == (pair[0] + 1) % 4).count();
        f64::from(x[0]) - steps as f64
    }
}

#[test]
fn any_energy_is_minimized() {
    for method in [MinimizeMethod::Annealing, MinimizeMethod::Tempering] {
        let problem = Problem::new(Staircase, 1.0).unwrap();
        let job = Minimizing::new(problem).method(method).walkers(16).sweeps(200);
        let run = job.restarts(1).run().unwrap();
        assert_eq!(run.lowest.state, "012301230123", "{method}");
        assert_eq!((run.lowest.energy, run.proven), (-11.0, false));
    }
    let problem = Problem::new(Staircase, 1.0).unwrap();
    let refused = Minimizing::new(problem).method(MinimizeMethod::Houdayer).run();
    assert!(matches!(refused, Err(Error::NotApplicable { .. })));
}

/// A graph by rudy's parameters, in rudy's format, as the problem that users make of it.
fn of_graph(folder: &std::path::Path, graph: &Graph, sets: bool) -> Problem {
    let path = folder.join("graph.txt");
    std::fs::write(&path, graph.to_text()).unwrap();
    let spec = if sets { IndependentSet::file(&path) } else { MaxCut::file(&path) };
    spec.beta(1.0).unwrap()
}

/// The laws of G11 (a torus of +-1), G6 (random, +-1) and G1 (random, all 1), smaller, with optima that are proven.
#[test]
fn every_method_reaches_the_optimum_of_graphs_by_rudys_parameters() {
    let torus = Lattice::new(&[20, 4], Boundary::Periodic).unwrap();
    let random = |density, weights, seed| Graph::random(40, density, weights, seed).unwrap();
    let graphs = [
        ("torus", Graph::on_lattice(&torus, EdgeWeights::Pm1, 1), false),
        ("random +-1", random(0.12, EdgeWeights::Pm1, 1), false),
        ("random 1", random(0.12, EdgeWeights::One, 2), false),
        ("set", random(0.12, EdgeWeights::One, 3), true),
    ];
    let folder = tempfile::tempdir().unwrap();
    for (name, graph, sets) in graphs {
        let problem = of_graph(folder.path(), &graph, sets);
        let ground = ground_state(&*problem.target, 20.0, &NoProgress).unwrap();
        for (method, walkers, sweeps) in [
            (MinimizeMethod::Annealing, 64, 400),
            (MinimizeMethod::Tempering, 8, 200),
            (MinimizeMethod::Houdayer, 4, 200),
        ] {
            let job = Minimizing::new(problem.clone()).method(method).walkers(walkers);
            let run = job.sweeps(sweeps).restarts(2).run().unwrap();
            assert_eq!(run.lowest.energy, ground.energy, "{name}, {method}");
            let x: Vec<u8> = run.lowest.state.bytes().map(|digit| digit - b'0').collect();
            match sets {
                false => assert_eq!(run.cut, Some(-ground.energy), "{name}, {method}"),
                true => {
                    assert_eq!(graph.independent(&x), Some(-ground.energy as usize), "{method}")
                }
            }
            assert_eq!(run.set_size, sets.then_some(-ground.energy as usize), "{name}, {method}");
        }
    }
}

#[cfg(feature = "models")]
fn with_network() -> Minimizing {
    let model = Model::open("ising-15-critical").unwrap();
    let problem = model.problem().unwrap();
    let model = Some((model, "ising-15-critical".to_owned()));
    Minimizing { model, ..Minimizing::new(problem) }.walkers(4).sweeps(100)
}

/// Walkers that are stopped on their way are where their network has brought them; what was found before them stays.
#[cfg(feature = "models")]
#[test]
fn a_stop_keeps_the_walkers_of_a_network() {
    let job = with_network();
    // One thread looks as often every time.
    let context = Context { threads: Some(1), ..Context::default() };
    let round = |progress: &Impatient| {
        context.install(|| job.round(MinimizeMethod::Network, None, 1, progress)).unwrap()
    };
    let all = Impatient(AtomicUsize::new(usize::MAX));
    let whole = round(&all);
    let looks = usize::MAX - all.0.into_inner();
    let [at_once, late] = [0, looks / 2].map(|looks| round(&Impatient(AtomicUsize::new(looks))));
    assert!(!whole.unfinished && at_once.unfinished && late.unfinished);
    assert_eq!(late.states.len(), whole.states.len());
    assert!(late.states != at_once.states && late.states != whole.states, "they are on their way");
    let energy = |states: &[u8]| -> f64 {
        states.chunks_exact(225).map(|x| job.problem.target.energy(0, x)).sum::<f64>() / 4.0
    };
    let energies = [&at_once, &late, &whole].map(|round| energy(&round.states));
    assert!(energies[0] > -80.0 && energies[2] < -200.0, "{energies:?}");
    assert!(energies[2] < energies[1] && energies[1] < energies[0], "{energies:?}");

    for (looks, restarts) in [(0, 1), (looks / 2, 1), (looks + looks / 2, 2)] {
        let progress = Impatient(AtomicUsize::new(looks));
        let context = Context { progress: &progress, threads: Some(1), ..Context::default() };
        let run = job.clone().restarts(1000).run_in(&context, &NoProgress).unwrap();
        assert!(run.interrupted(), "{looks}");
        assert_eq!(run.restarts.len(), restarts, "{looks}");
        let unfinished: Vec<bool> = run.restarts.iter().map(|restart| restart.unfinished).collect();
        assert_eq!(unfinished.iter().position(|&stopped| stopped), Some(restarts - 1));
        assert_eq!(run.samples.energies.len(), restarts);
    }
}
