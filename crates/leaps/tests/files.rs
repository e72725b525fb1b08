//! Targets from files: a uniform model is what its flags make, and clusters of several sites are sampled without bias.

use std::path::PathBuf;

use leaps::exact;
use leaps::prelude::*;
use leaps::spec::RunSpec;
use leaps::store::write_instance;
use leaps::target::{Format, Instance, Lattice, TargetSpec, Variables};

/// The pairs of J1-J2 on a torus.
fn frustrated(side: usize, [j1, j2]: [f64; 2]) -> Instance {
    let torus = Lattice::new(&[side, side], Boundary::Periodic).unwrap();
    let mut pairs: Vec<_> = torus.bonds().into_iter().map(|(i, j)| (i, j, -j1)).collect();
    for site in 0..side * side {
        let down = (site / side + 1) % side * side;
        for column in [site % side + 1, site % side + side - 1] {
            pairs.push((site as u32, (down + column % side) as u32, -j2));
        }
    }
    Instance {
        variables: Variables::Spins,
        sites: side * side,
        pairs,
        clusters: Vec::new(),
        fields: Vec::new(),
        constant: 0.0,
        lattice: None,
    }
}

fn written(folder: &tempfile::TempDir, name: &str, instance: &Instance, format: Format) -> PathBuf {
    let path = folder.path().join(name);
    write_instance(instance, &path, format).unwrap();
    path
}

/// The configuration of a target with all its defaults, and the network that it would train.
fn resolved(target: TargetSpec) -> (RunSpec, leaps::net::Net, Problem) {
    let target = TargetSpec { beta: Some(1.0), ..target };
    let spec = RunSpec { target, ..RunSpec::default() }.resolve().unwrap();
    let problem = spec.problem().unwrap();
    let net = spec.net(&*problem.target).unwrap();
    (spec, net, problem)
}

#[test]
fn a_uniform_model_from_a_file_is_that_of_flags() {
    let folder = tempfile::tempdir().unwrap();
    let (flags, net, _) = resolved(Ising::square(8).j2(-0.6));
    for (name, format) in
        [("a.txt", Format::Edges), ("a.npz", Format::Npz), ("a.coo", Format::CooSpin)]
    {
        let path = written(&folder, name, &frustrated(8, [1.0, -0.6]), format);
        let (file, own, problem) = resolved(EdgeList::file(path));
        assert_eq!(file.network, flags.network, "{name}");
        assert_eq!(own.spec(), net.spec(), "{name}");
        assert_eq!(own.parameters(), net.parameters(), "{name}");
        let lambda = vec![1.0; problem.target.terms()];
        let solved = exact::solve(&*problem.target, &lambda, None, &NoProgress).unwrap();
        assert_eq!(solved.method, Method::TransferMatrix);
        assert!((solved.log_z - 80.087_563_0).abs() < 1e-6, "{name}: {}", solved.log_z);
    }
}

/// Pairs, three- and four-spin terms without any symmetry, and fields, on no lattice.
const UNEVEN: &str = "0 1 0.8\n2 5 -0.6\n0 1 2 0.7\n1 3 4 -0.9\n2 4 5 0.4\n6 0 3 0.5\n3 5 6 7 0.6\n\
                      field 0 0.3\nfield 4 -0.2\nfield 7 0.25\nconstant 1.5\n";

fn uneven() -> (tempfile::TempDir, Problem) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("uneven.txt");
    std::fs::write(&path, UNEVEN).unwrap();
    let problem = EdgeList::file(path).beta(0.8).unwrap();
    (folder, problem)
}

/// log Z and the mean energy from the text itself.
fn by_hand(beta: f64) -> (f64, f64) {
    let lines = [
        (vec![0, 1], 0.8),
        (vec![2, 5], -0.6),
        (vec![0, 1, 2], 0.7),
        (vec![1, 3, 4], -0.9),
        (vec![2, 4, 5], 0.4),
        (vec![6, 0, 3], 0.5),
        (vec![3, 5, 6, 7], 0.6),
        (vec![0], -0.3),
        (vec![4], 0.2),
        (vec![7], -0.25),
    ];
    let energy = |code: usize| {
        let spin = |&i: &usize| 2.0 * (code >> i & 1) as f64 - 1.0;
        let term = |(own, j): &(Vec<usize>, f64)| -j * own.iter().map(spin).product::<f64>();
        1.5 + lines.iter().map(term).sum::<f64>()
    };
    let weight = |code: usize| f64::exp(-beta * energy(code));
    let z: f64 = (0..256).map(weight).sum();
    (z.ln(), (0..256).map(|code| energy(code) * weight(code)).sum::<f64>() / z)
}

fn near(estimate: Estimate, exact: f64, what: &str) {
    let z = (estimate.mean - exact) / estimate.error;
    assert!(z.abs() < 5.0 && estimate.error < 0.05, "{what}: {estimate}, exactly {exact}");
}

#[test]
fn clusters_are_solved_and_sampled() {
    let (_folder, problem) = uneven();
    let (log_z, energy) = by_hand(0.8);
    for method in [Method::Enumeration, Method::TransferMatrix] {
        let lambda = problem.path.ends();
        let solved = exact::solve(&*problem.target, lambda, Some(method), &NoProgress).unwrap();
        assert!((solved.log_z - log_z).abs() < 1e-11 && (solved.energy - energy).abs() < 1e-11);
    }
    let ais = Annealing::ais(problem.clone()).walkers(4000).seed(3).run().unwrap();
    near(ais.log_z, log_z, "AIS");
    near(ais.observables.energy_per_site, energy / 8.0, "AIS");
    let smc = Annealing::smc(problem.clone()).walkers(4000).seed(4);
    let smc = smc.kernel(KernelName::Metropolis).run().unwrap();
    near(smc.log_z, log_z, "SMC");
    for kernel in [KernelName::HeatBath, KernelName::Metropolis, KernelName::Gwg] {
        let job = Chains::new(problem.clone()).kernel(kernel).chains(16);
        let run = job.steps(3000).burn_in(200).seed(5).run().unwrap();
        near(run.estimates().energy_per_site, energy / 8.0, "chains");
    }
    let refused = Chains::new(problem.clone()).kernel(KernelName::Wolff).run();
    assert!(matches!(refused, Err(leaps::Error::NotApplicable { .. })));
    let found = Minimizing::new(problem.clone()).run().unwrap();
    let ground = exact::ground_state(&*problem.target, 1.0, &NoProgress).unwrap();
    assert!(found.proven && (found.lowest.energy - ground.energy).abs() < 1e-12);
}

#[test]
fn networks_train_on_clusters() {
    let (_folder, problem) = uneven();
    let (log_z, energy) = by_hand(0.8);
    for (kind, ess) in [(NetworkKind::HollowGraph, 0.3), (NetworkKind::Mlp, 0.15)] {
        let network = NetworkOptions { kind: Some(kind), ..NetworkOptions::default() };
        let model = Training::new(problem.clone()).network(network).steps(300).run().unwrap();
        let run = model.sampling().walkers(2000).run().unwrap();
        near(run.log_z, log_z, kind.name());
        near(run.observables.energy_per_site, energy / 8.0, kind.name());
        assert!(run.ess > ess, "{kind:?}: ESS {}", run.ess);
    }
}
