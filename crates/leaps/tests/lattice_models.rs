//! Samplers on models of pair tables and clusters against enumeration.
//!
//! All targets are lopsided: tables that are not symmetric, fields, free edges, unequal couplings. Thresholds are |z| < 5 at fixed seeds;
//! errors of log Z are about 0.01, so that a bias of 0.05 would be seen.

use leaps::Error;
use leaps::exact::{self, GroundMethod};
use leaps::mcmc::AnyKernel;
use leaps::prelude::*;
use leaps::target::{Bravais, InteractionSpec, TargetSpec};

/// Three values, V(s, s') != V(s', s), a three-site cluster, a field and free edges.
fn lopsided() -> Problem {
    let right = InteractionSpec::table(
        &[vec![0, 0], vec![0, 1]],
        &[0.1, -0.9, 0.4, 0.7, -0.3, -0.6, 0.2, 0.8, -1.1],
    );
    let down = InteractionSpec::strength(&[vec![0, 0], vec![1, 0]], 0.6);
    let three = [vec![0, 0], vec![0, 1], vec![1, 0]];
    let three =
        InteractionSpec { term: Some("three".into()), ..InteractionSpec::strength(&three, -0.5) };
    Clusters::lattice(3, &[2, 4])
        .spins(&[-1.0, 0.25, 1.5])
        .interactions(&[right, down, three])
        .boundary(Boundary::Free)
        .field(0.2)
        .beta(0.9)
        .unwrap()
}

fn problems() -> Vec<Problem> {
    let fields = [0.3, -0.2, 0.1, 0.4, -0.1, 0.2, 0.25, -0.3, 0.15];
    let free = Boundary::Free;
    vec![
        lopsided(),
        BlumeCapel::lattice(&[2, 4]).crystal_field(0.4).field(0.2).beta(0.7).unwrap(),
        Clock::lattice(5, &[2, 3]).coupling(0.9).field(0.3).boundary(free).beta(0.8).unwrap(),
        BaxterWu::triangular(3).fields(&fields).beta(0.35).unwrap(),
        LatticeGas::lattice(&[3, 4]).coupling(1.2).chemical_potential(-2.0).beta(0.9).unwrap(),
        AshkinTeller::lattice(&[2, 3]).four_spin(0.4).field(0.15).beta(0.45).unwrap(),
        frustrated(),
    ]
}

/// Blume and Capel's antiferromagnet on a triangular lattice, in a field.
fn frustrated() -> Problem {
    let capel = BlumeCapel::triangular(3).coupling(-1.0).crystal_field(0.3).field(0.25);
    capel.beta(0.8).unwrap()
}

fn near(estimate: Estimate, what: &str, problem: &Problem) {
    let z = estimate.z().unwrap_or_else(|| panic!("{what} has no exact value"));
    assert!(z.abs() < 5.0, "{}: {what} {estimate}, {z} sigmas", problem.description);
}

fn near_all(observables: &Observables, problem: &Problem) {
    for (name, estimate) in leaps::results::named(observables) {
        if estimate.exact.is_some() {
            near(estimate, name, problem);
        }
    }
    assert!(observables.energy_per_site.exact.is_some());
    assert!(observables.magnetization.exact.is_some());
}

/// A pair of values, and the strength of a bond: an energy.
type Pair = fn(usize, usize, f64) -> f64;

/// The energies of all states, of pairs by offset and strength on a torus or with free edges and of single sites; and the number of sites.
fn by_hand(
    shape: [i64; 2],
    free: bool,
    bonds: &[([i64; 2], f64)],
    (q, pair): (usize, Pair),
    site: impl Fn(usize) -> f64,
) -> (Vec<f64>, usize) {
    let sites = (shape[0] * shape[1]) as usize;
    let at = |i: usize, offset: [i64; 2]| -> Option<usize> {
        let to = [i as i64 / shape[1] + offset[0], i as i64 % shape[1] + offset[1]];
        let inside = (0..2).all(|axis| (0..shape[axis]).contains(&to[axis]));
        let wrapped = to[0].rem_euclid(shape[0]) * shape[1] + to[1].rem_euclid(shape[1]);
        (inside || !free).then_some(wrapped as usize)
    };
    let energies = (0..q.pow(sites as u32)).map(|code| {
        let x: Vec<usize> = (0..sites).map(|i| code / q.pow(i as u32) % q).collect();
        let mut energy: f64 = x.iter().map(|&value| site(value)).sum();
        for i in 0..sites {
            for &(offset, strength) in bonds {
                energy += at(i, offset).map_or(0.0, |j| pair(x[i], x[j], strength));
            }
        }
        energy
    });
    (energies.collect(), sites)
}

/// Couplings by offset of the named models against sums over all states that are written out here.
#[test]
fn named_models_have_the_bonds_of_their_lattice() {
    let triangle = [([1, 0], -1.0), ([0, 1], -1.0), ([1, 1], -1.0)];
    let capel: Pair = |a, b, j| -j * (a as f64 - 1.0) * (b as f64 - 1.0);
    let gas: Pair = |a, b, j| -j * (a * b) as f64;
    let hours: Pair = |a, b, j| -j * (std::f64::consts::TAU * (a as f64 - b as f64) / 5.0).cos();
    // Nearest neighbours alone have the four-spin coupling.
    let teller: Pair = |a, b, j| {
        let spin = |bit: usize| 2.0 * bit as f64 - 1.0;
        let (s, t) = (spin(a / 2) * spin(b / 2), spin(a % 2) * spin(b % 2));
        let (k, j) = if j == 1.0 { (0.4, 1.0) } else { (0.0, j) };
        -j * (s + t) - k * s * t
    };
    let uneven: Pair = |a, b, j| j * [[0.1, -0.9, 0.4], [0.7, -0.3, -0.6], [0.2, 0.8, -1.1]][a][b];
    let second = [([1, 0], 1.0), ([0, 1], 1.0), ([1, 1], -0.7), ([1, -1], -0.7)];
    let listed = [([1, 0], 1.0), ([1, -1], -0.5)];
    let bond = |&(offset, strength): &([i64; 2], f64)| leaps::target::Bond {
        offset: offset.to_vec(),
        strength,
    };
    let table = [0.1, -0.9, 0.4, 0.7, -0.3, -0.6, 0.2, 0.8, -1.1];
    let between = InteractionSpec::table(&[], &table).between_neighbours(1);
    let clusters = Clusters::lattice(3, &[3, 3]).on(Bravais::Triangular).interactions(&[between]);
    let ahead = [([1, 0], 1.0), ([0, 1], 1.0), ([1, 1], 1.0)];
    for (spec, (energies, sites)) in [
        (
            BlumeCapel::triangular(3).coupling(-1.0).crystal_field(0.3).field(0.25),
            by_hand([3, 3], false, &triangle, (3, capel), |x| {
                let s = x as f64 - 1.0;
                0.3 * s * s + 0.25 * s
            }),
        ),
        (
            LatticeGas::lattice(&[3, 4]).j2(-0.7).chemical_potential(-1.0),
            by_hand([3, 4], false, &second, (2, gas), |x| x as f64),
        ),
        (
            Clock::lattice(5, &[2, 3])
                .bonds(&listed.each_ref().map(bond))
                .boundary(Boundary::Free)
                .field(0.2),
            by_hand([2, 3], true, &listed, (5, hours), |x| {
                0.2 * (std::f64::consts::TAU * x as f64 / 5.0).cos()
            }),
        ),
        (
            AshkinTeller::lattice(&[2, 4]).four_spin(0.4).j2(-0.7),
            by_hand([2, 4], false, &second, (4, teller), |_| 0.0),
        ),
        (clusters, by_hand([3, 3], false, &ahead, (3, uneven), |_| 0.0)),
    ] {
        let problem = spec.beta(0.6).unwrap();
        let z: f64 = energies.iter().map(|energy| f64::exp(-0.6 * energy)).sum();
        let mean = energies.iter().map(|energy| energy * f64::exp(-0.6 * energy)).sum::<f64>() / z;
        assert_eq!(problem.target.sites(), sites);
        for method in [Method::Enumeration, Method::TransferMatrix] {
            let lambda = problem.path.ends();
            let solved = exact::solve(&*problem.target, lambda, Some(method), &NoProgress).unwrap();
            let what = format!("{} by {method}", problem.description);
            assert!((solved.log_z - z.ln()).abs() < 1e-9, "{what}: {} {}", solved.log_z, z.ln());
            assert!((solved.energy - mean).abs() < 1e-8, "{what}: {} {mean}", solved.energy);
        }
    }
}

#[test]
fn bonds_of_named_models_are_said_in_words() {
    let formula = |spec: TargetSpec| spec.filled().unwrap().formula();
    assert_eq!(
        formula(BlumeCapel::triangular(4).coupling(-1.0).field(0.1)),
        "E = 1 sum_<ij> s_i s_j (offsets (1,1) (1,0) (0,1)) + 0.1 sum_i s_i, s = x - 1,  rho ~ exp(-1 E)"
    );
    assert_eq!(
        formula(BaxterWu::triangular(3)),
        "E = -1 sum_triangles s_i s_j s_k (offsets (0,0) (0,1) (1,0) and (0,1) (1,0) (1,1)),  \
         rho ~ exp(-0.4407 E)"
    );
    let between = InteractionSpec::strength(&[], 0.5).between_neighbours(2);
    assert_eq!(
        formula(Clusters::lattice(2, &[4, 4]).interactions(&[between])),
        "E = -0.5 sum_<<ij>> s_i s_j (offsets (1,1) (1,-1)), s = [-1.0, 1.0][x],  rho ~ exp(-1 E)"
    );
    let words = BlumeCapel::triangular(4).j2(0.3).filled().unwrap().describe(16);
    assert_eq!(words, "Blume-Capel triangular 4x4 periodic, beta 1, J2 0.3");
    for (spec, words) in [
        (BaxterWu::triangular(3).on(Bravais::Triangular), "target.lattice"),
        (LatticeGas::square(4).on(Bravais::Fcc), "target.lattice = fcc"),
        (Clock::square(5, 2).j3(1.0), "target.size = 2x2"),
        (
            Clusters::lattice(2, &[4, 4])
                .interactions(&[InteractionSpec::strength(&[], 1.0).between_neighbours(4)]),
            "neighbours 4",
        ),
    ] {
        let error = spec.beta(0.5).unwrap_err().to_string();
        assert!(error.contains(words), "{error}");
    }
}

#[test]
fn walkers_find_log_z_and_observables() {
    for problem in problems() {
        let ais = Annealing::ais(problem.clone()).walkers(4000).seed(3).run().unwrap();
        near(ais.log_z, "log Z", &problem);
        near_all(&ais.observables, &problem);
        let smc = Annealing::smc(problem.clone()).walkers(4000).kernel(KernelName::Metropolis);
        let smc = smc.seed(4).run().unwrap();
        near(smc.log_z, "log Z", &problem);
        near_all(&smc.observables, &problem);
    }
}

#[test]
fn chains_find_observables() {
    for problem in problems() {
        for kernel in [KernelName::HeatBath, KernelName::Metropolis, KernelName::Gwg] {
            let job = Chains::new(problem.clone()).kernel(kernel).chains(16);
            let run = job.steps(3000).burn_in(200).seed(5).run().unwrap();
            near_all(&run.estimates(), &problem);
        }
        let job = Chains::new(problem.clone()).tempering(5).chains(16);
        let run = job.steps(1500).burn_in(100).seed(6).run().unwrap();
        near(run.log_z.unwrap(), "log Z", &problem);
        near_all(&run.estimates(), &problem);
    }
}

#[test]
fn means_over_sites_are_those_of_enumeration() {
    let [_, capel, _, _, gas, teller, _] = &problems()[..] else { panic!("seven problems") };
    for (problem, name, values) in [
        (capel, "quadrupole", vec![1.0, 0.0, 1.0]),
        (gas, "density", vec![0.0, 1.0]),
        (teller, "polarization", vec![1.0, -1.0, -1.0, 1.0]),
    ] {
        let (target, lambda) = (&*problem.target, problem.path.ends());
        let (sites, q) = (target.sites(), target.q());
        let law = exact::enumerate::law(target, lambda).unwrap();
        let mean: f64 = law
            .iter()
            .enumerate()
            .map(|(state, p)| {
                let value = |site: usize| values[state / q.pow(site as u32) % q];
                p * (0..sites).map(value).sum::<f64>() / sites as f64
            })
            .sum();
        let run = Annealing::ais(problem.clone()).walkers(8000).seed(7).run().unwrap();
        let found = match name {
            "quadrupole" => run.observables.quadrupole,
            "density" => run.observables.density,
            _ => run.observables.polarization,
        };
        near(found.unwrap().with_exact(mean), name, problem);
        let run = Chains::new(problem.clone()).chains(16).steps(2000).seed(8).run().unwrap();
        let names: Vec<_> = leaps::results::named(&run.estimates());
        let found = names.iter().find(|(own, _)| *own == name).unwrap().1;
        near(found.with_exact(mean), name, problem);
    }
}

#[test]
fn cluster_moves_are_for_pairs() {
    for problem in problems() {
        let clusters_of_three = ["three", "triangles"]
            .iter()
            .any(|name| problem.target.term_names().contains(&(*name).into()));
        for kernel in [KernelName::Wolff, KernelName::SwendsenWang] {
            let job = Chains::new(problem.clone()).kernel(kernel).chains(16).steps(3000);
            let run = job.burn_in(100).seed(9).run();
            match clusters_of_three {
                true => assert!(matches!(run, Err(Error::NotApplicable { .. }))),
                false => near_all(&run.unwrap().estimates(), &problem),
            }
        }
    }
}

/// Annealing changes the weights below clusters.
#[test]
fn annealing_moves_clusters_of_pairs() {
    for problem in problems().into_iter().filter(|problem| problem.target.pairwise().is_none()) {
        if AnyKernel::new(KernelName::SwendsenWang, &*problem.target, problem.path.ends()).is_err()
        {
            continue;
        }
        let job = Annealing::ais(problem.clone()).kernel(KernelName::SwendsenWang);
        let mut job = job.walkers(2000).intervals(20).seed(3);
        job.walkers.two_sided = true;
        let run = job.run().unwrap();
        near(run.log_z, "log Z", &problem);
        near(run.two_sided.as_ref().unwrap().log_z, "log Z of both sides", &problem);
        near_all(&run.observables, &problem);
    }
}

/// Potts pairs go to GPUs, their chains where they are measured as Ising's or Potts's.
#[test]
fn gpus_have_tables_that_are_potts_pairs() {
    let gas = LatticeGas::lattice(&[3, 4]).chemical_potential(-2.0).beta(0.9).unwrap();
    let hours = Clock::square(3, 3).beta(0.5).unwrap();
    assert!(Annealing::ais(gas.clone()).gpu_has().is_ok() && Chains::new(gas).gpu_has().is_ok());
    assert!(Annealing::ais(hours.clone()).gpu_has().is_ok());
    let error = Chains::new(hours).gpu_has().unwrap_err().to_string();
    assert!(error.contains("order parameter"), "{error}");
    let error = Annealing::ais(lopsided()).gpu_has().unwrap_err().to_string();
    assert!(error.contains("Potts pairs"), "{error}");
}

#[test]
fn modes_are_alike_where_values_are() {
    let exact = |problem: Problem| {
        let run = Annealing::ais(problem).walkers(2000).seed(2).run().unwrap();
        let masses = run.observables.mode_masses.clone();
        masses.iter().for_each(|mode| assert!(mode.mass.z().is_none_or(|z| z.abs() < 5.0)));
        masses.iter().map(|mode| mode.mass.exact).collect::<Vec<_>>()
    };
    assert_eq!(exact(Clock::square(4, 3).beta(0.5).unwrap()), [Some(0.25); 4]);
    // The spin 0 is not like the others, and no field is needed for that.
    assert_eq!(exact(BlumeCapel::square(3).crystal_field(0.8).beta(1.0).unwrap()), [None; 3]);
    assert_eq!(exact(AshkinTeller::square(2).four_spin(0.5).beta(0.5).unwrap()), [None; 4]);
}

#[test]
fn lowest_energies_are_found_and_proven() {
    for problem in problems() {
        let target = &*problem.target;
        let ground = exact::ground_state(target, 1.0, &NoProgress).unwrap();
        let law = exact::enumerate::law(target, problem.path.ends()).unwrap();
        let (likeliest, _) = law.iter().enumerate().max_by(|a, b| a.1.total_cmp(b.1)).unwrap();
        let q = target.q();
        let x: Vec<u8> =
            (0..target.sites()).map(|i| (likeliest / q.pow(i as u32) % q) as u8).collect();
        let energy: f64 = (0..target.terms()).map(|term| target.energy(term, &x)).sum();
        assert!((ground.energy - energy).abs() < 1e-9, "{}", problem.description);
        assert!(matches!(ground.method, GroundMethod::Enumeration | GroundMethod::Elimination));
        let found = Minimizing::new(problem.clone()).run().unwrap();
        assert!((found.lowest.energy - energy).abs() < 1e-9 && found.proven);
    }
}

#[test]
fn the_same_seed_gives_the_same_states() {
    let run = |walkers: usize| {
        let run = Annealing::smc(lopsided()).walkers(walkers).intervals(20).run().unwrap();
        (run.log_z.mean.to_bits(), run.samples.states)
    };
    assert_eq!(run(300), run(300));
    let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build().unwrap();
    assert_eq!(pool.install(|| run(300)), run(300));
}

#[test]
fn networks_train_on_them_and_stay_unbiased() {
    use leaps::net::NetworkKind;
    for (problem, kind, ess) in [
        (lopsided(), NetworkKind::Mlp, 0.1),
        (lopsided(), NetworkKind::HollowGraph, 0.2),
        (
            BlumeCapel::square(3).crystal_field(0.4).field(0.2).beta(0.6).unwrap(),
            NetworkKind::Hollow,
            0.4,
        ),
    ] {
        let network = NetworkOptions { kind: Some(kind), ..NetworkOptions::default() };
        let model = Training::new(problem.clone()).network(network).steps(300).run().unwrap();
        let run = model.sampling().walkers(1000).run().unwrap();
        near(run.log_z, "log Z", &problem);
        assert!(run.ess > ess, "{kind:?}: ESS {}", run.ess);
    }
}

/// Three-spin terms in a field: what weights say of log Z, energy and order against enumeration.
#[test]
fn networks_know_triangles() {
    let options = NetworkOptions { kind: Some(NetworkKind::Hollow), ..NetworkOptions::default() };
    let problem = BaxterWu::triangular(3).field(0.15).beta(0.4).unwrap();
    let training = Training::new(problem.clone()).network(options);
    let model = training.steps(150).batch(128).run().unwrap();
    let run = model.sampling().walkers(2000).seed(2).run().unwrap();
    let solve = |method| exact::solve(&*problem.target, problem.path.ends(), method, &NoProgress);
    let known = solve(Some(Method::Enumeration)).unwrap();
    near(run.log_z.with_exact(known.log_z), "log Z", &problem);
    let energy = known.energy_per_site(problem.target.sites());
    near(run.observables.energy_per_site.with_exact(energy), "energy", &problem);
    near_all(&run.observables, &problem);
    assert!(run.ess > 0.1, "ESS {}", run.ess);
}
