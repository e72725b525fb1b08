//! Lattices and bonds by offset: exact methods, samplers and kernels against enumeration, in fields.

use std::sync::Arc;

use leaps::device::Placement;
use leaps::exact;
use leaps::mcmc::lanes::Scan;
use leaps::mcmc::{AnyKernel, ChainSettings, run_chains};
use leaps::net::{HollowSpec, Net, NetSpec};
use leaps::observe::Recorder;
use leaps::path::{Path, Schedule};
use leaps::prelude::*;
use leaps::rates::Parametrisation;
use leaps::sampler::{
    Amount, Moves, NetworkWalk, Population, Protocol, RateModel, Resampler, Resampling, Scheme,
    Settings, Times, WalkPlan, anneal, sample,
};
use leaps::target::{Bond, Bravais, Density, Pairwise, TargetSpec};

fn bond(offset: &[i64], strength: f64) -> Bond {
    Bond { offset: offset.to_vec(), strength }
}

/// Small models on every lattice, all of them in a field, with inverse temperatures.
fn models() -> Vec<(&'static str, TargetSpec, f64)> {
    let square = || Ising::lattice(&[3, 4]);
    let bonds = [bond(&[1, 0], 1.0), bond(&[0, 1], -0.4), bond(&[1, -1], 0.6)];
    vec![
        ("chain", Ising::lattice(&[11]).on(Bravais::Chain).j2(-0.6).j3(0.3).field(0.2), 0.7),
        ("J1-J2", square().j2(-0.6).field(0.15), 0.6),
        ("J1-J2-J3, free", square().j2(0.4).j3(-0.5).boundary(Boundary::Free).field(-0.3), 0.7),
        (
            "triangular",
            Ising::lattice(&[3, 4]).on(Bravais::Triangular).coupling(-1.0).field(0.4),
            0.6,
        ),
        ("fcc", Ising::lattice(&[2, 2, 3]).on(Bravais::Fcc).coupling(-1.0).field(0.5), 0.3),
        (
            "fcc, free",
            Ising::lattice(&[2, 3, 2])
                .on(Bravais::Fcc)
                .boundary(Boundary::Free)
                .j2(-0.2)
                .field(0.3),
            0.4,
        ),
        ("bcc", Ising::lattice(&[3, 2, 2]).on(Bravais::Bcc).field(-0.2), 0.2),
        ("Potts, bonds", Potts::lattice(3, &[2, 4]).bonds(&bonds).field(0.3), 0.8),
        (
            "Potts, triangular",
            Potts::lattice(3, &[2, 3]).on(Bravais::Triangular).j2(0.2).field(-0.4),
            0.5,
        ),
    ]
}

fn settings(resampling: Resampling) -> Settings {
    Settings {
        walkers: 4000,
        times: Times::Uniform(20),
        moves: Moves {
            kernel: KernelName::HeatBath,
            amount: Amount::Steps(1),
            scan: Scan::Coloured,
            reversed: false,
        },
        resampling,
        trace_points: 10,
        stops: Vec::new(),
        seed: 5,
    }
}

#[test]
fn the_transfer_matrix_agrees_with_enumeration() {
    for (name, spec, beta) in models() {
        let problem = spec.beta(beta).unwrap();
        let lambda = vec![beta; problem.target.terms()];
        let solve = |method| exact::solve(&*problem.target, &lambda, Some(method), &NoProgress);
        let (sum, strip) =
            (solve(Method::Enumeration).unwrap(), solve(Method::TransferMatrix).unwrap());
        for (a, b) in [
            (sum.log_z, strip.log_z),
            (sum.energy, strip.energy),
            (sum.potential_variance, strip.potential_variance),
        ] {
            assert!((a - b).abs() < 1e-10 * (1.0 + a.abs()), "{name}: {a} and {b}");
        }
        assert!(solve(Method::Kaufman).is_err(), "{name}");
        assert!(problem.target.pairwise().is_some_and(|model| !model.is_plain()), "{name}");
    }
}

/// Reference values for J1 = 1, J2 = -0.6 at beta 1, computed outside this program.
#[test]
fn the_frustrated_square_lattice_has_its_known_free_energy() {
    let problem = Ising::square(8).j2(-0.6).beta(1.0).unwrap();
    let exact = exact::solve(&*problem.target, &[1.0], None, &NoProgress).unwrap();
    assert_eq!(exact.method, Method::TransferMatrix);
    assert!((exact.log_z - 80.0875630).abs() < 1e-6, "{}", exact.log_z);
    assert!((exact.energy_per_site(64) + 0.9805382).abs() < 1e-6);
    assert!((exact.heat_capacity_per_site(64) - 1.41078).abs() < 1e-5);
}

/// Wannier's antiferromagnet keeps an entropy: its lowest energy is a third of the bonds unsatisfied.
#[test]
fn the_triangular_antiferromagnet_is_frustrated() {
    let problem = Ising::triangular(3).coupling(-1.0).beta(1.0).unwrap();
    let ground = exact::ground_state(&*problem.target, 1.0, &NoProgress).unwrap();
    assert_eq!(ground.energy, -9.0);
    let square = Ising::square(4).coupling(-1.0).beta(1.0).unwrap();
    let ground = exact::ground_state(&*square.target, 1.0, &NoProgress).unwrap();
    assert_eq!(ground.energy, -32.0);
}

#[test]
fn annealed_walkers_find_log_z_on_every_lattice() {
    for (name, spec, beta) in models() {
        let target: Arc<dyn Target> = spec.beta(beta).unwrap().target;
        let lambda = vec![beta; target.terms()];
        let exact =
            exact::solve(&*target, &lambda, Some(Method::Enumeration), &NoProgress).unwrap();
        let path = Path::new(&lambda, Schedule::Linear).unwrap();
        let smc = Resampling { threshold: 0.9, resampler: Resampler::Systematic };
        for resampling in [Resampling::NEVER, smc] {
            let (ensemble, _) = sample(&target, &path, &settings(resampling), &NoProgress).unwrap();
            let log_z = ensemble.log_z();
            let z = (log_z.mean - exact.log_z) / log_z.error;
            // Errors are below 0.03: a bond left out or counted twice shifts log Z by more than 0.2.
            assert!(z.abs() < 5.0 && log_z.error < 0.03, "{name}: {log_z:?}, {}", exact.log_z);
        }
    }
}

/// Untrained hollow networks, whose outputs are large enough to matter, with the features of the target's bonds.
#[test]
fn walkers_of_a_network_find_log_z_on_every_lattice() {
    for (name, spec, beta) in models() {
        let target: Arc<dyn Target> = spec.beta(beta).unwrap().target;
        let spec = NetSpec::Hollow(HollowSpec { channels: 6, ..HollowSpec::default() });
        let net = Arc::new(Net::new(&spec, &*target).unwrap());
        assert!(matches!(net.spec(), NetSpec::Hollow(own) if own.bond_features), "{name}");
        let parameters: Vec<f32> = net.initial(3).iter().map(|p| 2.0 * p).collect();
        let rates = &RateModel::new(&net, &parameters, Parametrisation::Barker);
        let lambda = vec![0.5 * beta; target.terms()];
        let exact =
            exact::solve(&*target, &lambda, Some(Method::Enumeration), &NoProgress).unwrap();
        let path = &Path::new(&lambda, Schedule::Linear).unwrap();
        let cuts: Vec<f64> = (0..=12).map(|k| f64::from(k) / 12.0).collect();
        let plan = &WalkPlan::new(path, Scheme::Events, &cuts).unwrap();
        let population = Population::new(4000, 5);
        let walk = NetworkWalk { target: &target, path, rates, plan, population };
        let mut walkers = walk.on(&Placement::Cpu).unwrap();
        let resampling = Resampling::NEVER;
        let protocol = Protocol { grid: &plan.grid, resampling, trace_points: 1, seed: 5 };
        let ensemble = anneal(&*target, &mut *walkers, protocol, &NoProgress).unwrap();
        let log_z = ensemble.log_z();
        let z = (log_z.mean - exact.log_z) / log_z.error;
        assert!(z.abs() < 5.0 && log_z.error < 0.15, "{name}: {log_z:?}, {}", exact.log_z);
        // The network makes walkers jump: passes beyond one for every interval.
        assert!(ensemble.cost.network_passes > 12.05, "{name}: {}", ensemble.cost.network_passes);
    }
}

/// Sums of the energy.
struct Energy<'a> {
    target: &'a dyn Target,
    sum: f64,
    states: f64,
}

impl Recorder for Energy<'_> {
    fn record(&mut self, x: &[u8]) {
        self.sum += (0..self.target.terms()).map(|k| self.target.energy(k, x)).sum::<f64>();
        self.states += 1.0;
    }
}

#[test]
fn chains_have_the_enumerated_energy() {
    for (name, spec, beta) in models() {
        let target: Arc<dyn Target> = spec.beta(beta).unwrap().target;
        let lambda = vec![beta; target.terms()];
        let exact =
            exact::solve(&*target, &lambda, Some(Method::Enumeration), &NoProgress).unwrap();
        let model = Density::new(&*target, &lambda);
        for kernel in [
            KernelName::HeatBath,
            KernelName::Metropolis,
            KernelName::Wolff,
            KernelName::SwendsenWang,
        ] {
            let made = AnyKernel::new(kernel, &*target, &lambda).unwrap();
            let settings =
                ChainSettings { chains: 64, burn_in: 200, steps: 4000, thin: 4, seed: 9 };
            let make = |_| Energy { target: &*target, sum: 0.0, states: 0.0 };
            let outcomes = run_chains(&model, &made, &settings, make, &NoProgress).unwrap();
            let means: Vec<f64> =
                outcomes.iter().map(|o| o.recorder.sum / o.recorder.states).collect();
            let n = means.len() as f64;
            let mean = means.iter().sum::<f64>() / n;
            let variance = means.iter().map(|m| (m - mean).powi(2)).sum::<f64>() / (n - 1.0);
            let error = (variance / n).sqrt();
            let z = (mean - exact.energy) / error;
            // Errors are below 0.1 of energies that a single bond changes by 0.4 or more.
            assert!(
                z.abs() < 5.0 && error < 0.1,
                "{name} {kernel}: {mean}({error}), {}",
                exact.energy
            );
        }
    }
}

#[test]
fn keys_of_other_targets_are_refused_whatever_their_values() {
    // The largest seed is beyond the numbers of TOML.
    for seed in [1, u64::MAX] {
        let ising = TargetSpec { disorder_seed: Some(seed), ..Ising::square(3) };
        let error = ising.filled().unwrap_err().to_string();
        assert!(error.contains("target.disorder_seed") && error.contains("spin-glass"), "{error}");
    }
}

#[test]
fn descriptions_come_back_and_say_what_they_are() {
    for (name, spec, beta) in models() {
        let filled = TargetSpec { beta: Some(beta), ..spec }.filled().unwrap();
        let again: TargetSpec = serde_json::from_value(filled.without_gaps()).unwrap();
        assert_eq!(again, filled, "{name}");
        assert_eq!(again.filled().unwrap(), filled, "{name}");
    }
    let formula = |spec: TargetSpec| spec.filled().unwrap().formula();
    assert_eq!(
        formula(Ising::square(8).j2(-0.6).field(0.1)),
        "E = -1 sum_<ij> s_i s_j (offsets (1,0) (0,1)) + 0.6 sum_<<ij>> s_i s_j (offsets (1,1) (1,-1)) \
         + 0.1 sum_i s_i,  rho ~ exp(-1 E)"
    );
    let listed = Potts::square(3, 4).bonds(&[bond(&[1, 0], -0.5), bond(&[0, 2], 0.3)]);
    assert_eq!(
        formula(listed),
        "E = 0.5 sum_i [x_i = x_(i+(1,0))] - 0.3 sum_i [x_i = x_(i+(0,2))],  rho ~ exp(-1 E)"
    );
    assert_eq!(formula(Ising::square(8)), "E = -1 sum_<ij> s_i s_j,  rho ~ exp(-0.4407 E)");
    // What says nothing is not written.
    let plain = Ising::square(8).on(Bravais::Square).j2(0.0);
    assert_eq!(plain.filled().unwrap(), Ising::square(8).filled().unwrap());
    let words = Ising::triangular(6).j3(0.2).filled().unwrap().describe(36);
    assert_eq!(words, "Ising triangular 6x6 periodic, beta 1, J3 0.2");
}

#[test]
fn contradictions_are_refused_by_their_keys() {
    for (spec, words) in [
        (Ising::square(2).j3(1.0), "target.size = 2x2"),
        (Ising::square(4).on(Bravais::Fcc).j2(1.0), "target.lattice = fcc"),
        (
            TargetSpec { dimensions: Some(2), ..Ising::square(4) }.on(Bravais::Chain),
            "target.lattice",
        ),
        (Ising::square(4).j2(1.0).bonds(&[bond(&[1, 0], 1.0)]), "target.j2 = 1"),
        (Ising::square(4).coupling(2.0).bonds(&[bond(&[1, 0], 1.0)]), "target.coupling = 2"),
        (Ising::square(4).bonds(&[bond(&[1, 0, 0], 1.0)]), "each of the 2 axes"),
        (Ising::square(4).j2(f64::NAN), "target.j2"),
        (SpinGlass::square(4, 1).j2(1.0), "target.j2 = 1.0: must be left out for spin-glass"),
    ] {
        let error = spec.beta(0.5).unwrap_err().to_string();
        assert!(error.contains(words), "{error}");
    }
}

/// A uniform lattice alone may go to a GPU.
#[test]
fn plain_models_stay_as_they_were() {
    let torus = Lattice::new(&[5, 6], Boundary::Periodic).unwrap();
    let spec = Ising::lattice(&[5, 6]).coupling(0.8).filled().unwrap();
    let built = spec.build().unwrap();
    assert_eq!(built.pairwise(), Some(&Pairwise::ising(torus, 0.8, 0.0).unwrap()));
}

/// Structure factors at all wave vectors: chains and walkers against sums over all states and sites, |z| < 5. Errors are about 2 % of stripes, of
/// staggered order and of that of three sublattices, so that a tenth of them would be seen.
#[test]
fn structure_factors_are_those_of_enumeration() {
    for (name, spec, beta, peak) in [
        ("J1-J2", Ising::square(4).j2(-0.7).field(0.3), 0.7, "(0 pi)"),
        (
            "triangular antiferromagnet",
            Ising::triangular(3).coupling(-1.0).field(0.8),
            0.7,
            "(2pi/3 2pi/3)",
        ),
        ("Potts", Potts::lattice(3, &[2, 4]).coupling(-1.0).field(0.4), 0.9, "(pi pi)"),
    ] {
        let problem = spec.beta(beta).unwrap();
        let (target, lambda) = (&*problem.target, problem.path.ends());
        let (sites, q) = (target.sites(), target.q());
        let lattice = target.lattice().unwrap();
        let law = exact::enumerate::law(target, lambda).unwrap();
        let expected = |k: &[f64]| -> f64 {
            let waves: Vec<(f64, f64)> = (0..sites)
                .map(|site| {
                    let along = |axis: usize| k[axis] * lattice.coordinate(site, axis) as f64;
                    let angle: f64 = (0..k.len()).map(along).sum();
                    (angle.cos(), angle.sin())
                })
                .collect();
            let of = |state: usize| -> f64 {
                let mut sums = vec![(0.0, 0.0); q];
                let mut rest = state;
                for (cos, sin) in &waves {
                    let sum = &mut sums[rest % q];
                    *sum = (sum.0 + cos, sum.1 + sin);
                    rest /= q;
                }
                // The mean over values is taken away: without it k = 0 has more than N m^2.
                let mean = sums.iter().fold((0.0, 0.0), |all, own| (all.0 + own.0, all.1 + own.1));
                let mean = (mean.0 / q as f64, mean.1 / q as f64);
                let square: f64 =
                    sums.iter().map(|s| (s.0 - mean.0).powi(2) + (s.1 - mean.1).powi(2)).sum();
                q as f64 / (q as f64 - 1.0) * square / sites as f64
            };
            law.iter().enumerate().map(|(state, p)| p * of(state)).sum()
        };
        let near = |found: &Observables, what: &str| {
            assert!(found.structure_factor.len() > 3, "{name} {what}");
            let largest =
                found.structure_factor.iter().max_by(|a, b| a.value.mean.total_cmp(&b.value.mean));
            assert!(largest.unwrap().to_string().ends_with(peak) || peak == "(0 pi)", "{name}");
            for own in &found.structure_factor {
                let exact = expected(&own.k);
                let z = own.value.with_exact(exact).z().unwrap();
                assert!(z.abs() < 5.0, "{name} {what} {own} {} {exact}: {z}", own.value);
                assert!(own.value.error < 0.05 * exact + 0.02, "{name} {what} {own} {}", own.value);
            }
        };
        let ais = Annealing::ais(problem.clone()).walkers(6000).seed(3).run().unwrap();
        near(&ais.observables, "ais");
        assert_eq!(ais.structure_factor, ais.observables.structure_factor);
        let chains = Chains::new(problem.clone()).kernel(KernelName::Metropolis).chains(16);
        near(&chains.steps(4000).burn_in(200).seed(4).run().unwrap().estimates(), "chains");
    }
}

/// All wave vectors and all offsets of an anisotropic model in a field: walkers and chains against sums over all states, |z| < 5. Neither is connected.
/// Along rows and columns correlations differ by 0.5, along the two diagonals by 0.2; errors are about 0.01.
#[test]
fn maps_of_correlations_are_those_of_enumeration() {
    let bonds = [bond(&[1, 0], 1.0), bond(&[0, 1], -0.4), bond(&[1, -1], 0.6)];
    for (name, spec) in [
        ("Ising", Ising::lattice(&[3, 4]).bonds(&bonds).field(0.2)),
        ("Potts", Potts::lattice(3, &[2, 4]).bonds(&bonds[..2]).field(0.3)),
    ] {
        let problem = spec.beta(0.7).unwrap();
        let (target, lambda) = (&*problem.target, problem.path.ends());
        let (sites, q) = (target.sites(), target.q());
        let lattice = target.lattice().unwrap();
        let law = exact::enumerate::law(target, lambda).unwrap();
        let away = |site: usize, offset: &[i64]| {
            let along = |axis: usize| {
                let side = lattice.shape()[axis] as i64;
                (lattice.coordinate(site, axis) as i64 + offset[axis]).rem_euclid(side) as usize
            };
            along(0) * lattice.shape()[1] + along(1)
        };
        let correlation = |offset: &[i64]| -> f64 {
            let of = |state: usize| -> f64 {
                let value = |site: usize| state / q.pow(site as u32) % q;
                let pair = |site: &usize| value(*site) == value(away(*site, offset));
                let equal = (0..sites).filter(pair).count();
                (q as f64 * equal as f64 / sites as f64 - 1.0) / (q as f64 - 1.0)
            };
            law.iter().enumerate().map(|(state, p)| p * of(state)).sum()
        };
        let all: Vec<f64> = (0..sites)
            .map(|site| correlation(&[0, 1].map(|a| lattice.coordinate(site, a) as i64)))
            .collect();
        let structure = |k: &[f64]| -> f64 {
            let wave = |site: usize| -> f64 {
                (0..2).map(|a| k[a] * lattice.coordinate(site, a) as f64).sum::<f64>().cos()
            };
            all.iter().enumerate().map(|(site, g)| g * wave(site)).sum()
        };
        let near = |found: &Observables, what: &str| {
            let (waves, offsets) = (&found.structure_factor_map, &found.correlation_map);
            assert!(waves.len() == offsets.len() && waves.len() > sites / 2, "{name} {what}");
            let waves = waves.iter().map(|own| (own.to_string(), own.value, structure(&own.k)));
            let offsets = offsets
                .iter()
                .map(|own| (format!("{:?}", own.offset), own.value, correlation(&own.offset)));
            for (place, value, exact) in waves.chain(offsets) {
                if value.error < 1e-12 {
                    assert!((value.mean - exact).abs() < 1e-9, "{name} {what} {place}");
                    continue; // a site beside itself
                }
                let z = value.with_exact(exact).z().unwrap();
                assert!(z.abs() < 5.0, "{name} {what} {place} {value} {exact}: {z}");
                assert!(value.error < 0.03 * exact.abs() + 0.02, "{name} {what} {place} {value}");
            }
        };
        let ais = Annealing::ais(problem.clone()).walkers(6000).seed(3).structure_factor();
        near(&ais.run().unwrap().estimates(), "ais");
        let chains = Chains::new(problem.clone()).kernel(KernelName::Metropolis).chains(16);
        let chains = chains.steps(4000).burn_in(200).seed(4).structure_factor().run().unwrap();
        near(&chains.estimates(), "chains");
        // What is measured beside them is what it was.
        let plain = Chains::new(problem.clone()).kernel(KernelName::Metropolis).chains(16);
        let plain = plain.steps(4000).burn_in(200).seed(4).run().unwrap();
        assert_eq!(plain.observables, chains.observables);
        assert!(plain.structure_factor_map.is_empty());
    }
    let free = Ising::lattice(&[3, 4]).boundary(Boundary::Free).beta(0.3).unwrap();
    let error = Chains::new(free).structure_factor().run().unwrap_err().to_string();
    assert!(error.contains("sample.structure_factor") && error.contains("periodic"), "{error}");
}
