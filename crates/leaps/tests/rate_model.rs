//! Walkers that follow a network, trained or not: exact weights from events, a known bias from euler.

use std::sync::Arc;

use leaps::device::NoProgress;
use leaps::exact::{self, enumerate};
use leaps::net::{GlassSpec, MlpSpec, Net, NetSpec};
use leaps::observe::{Families, LogWeights, Segments, log_z};
use leaps::path::{Path, Schedule};
use leaps::rates::Parametrisation;
use leaps::sampler::{
    Ensemble, Lineage, NetworkWalk, NetworkWalkers, Population, Protocol, RateModel, Resampler,
    Resampling, Scheme, Span, WalkPlan, Walkers, anneal,
};
use leaps::target::{Boundary, Disorder, Lattice, Pairwise, Target};

fn torus(shape: &[usize]) -> Lattice {
    Lattice::new(shape, Boundary::Periodic).unwrap()
}

fn cuts(n: usize) -> Vec<f64> {
    (0..=n).map(|k| k as f64 / n as f64).collect()
}

struct Run {
    parametrisation: Parametrisation,
    scheme: Scheme,
    intervals: usize,
    substeps: usize,
    sweeps: u64,
    resampling: Resampling,
    walkers: usize,
    seed: u64,
}

/// An untrained network whose outputs are large enough to matter.
fn rate_model(target: &dyn Target, parametrisation: Parametrisation) -> RateModel {
    let net = Net::new(&NetSpec::Mlp(MlpSpec { hidden: 8 }), target).unwrap();
    let parameters: Vec<f32> = net.initial(3).iter().map(|p| 2.2 * p).collect();
    RateModel::new(&Arc::new(net), &parameters, parametrisation)
}

fn run(target: &Arc<dyn Target>, beta: f64, settings: &Run) -> (Ensemble, f64) {
    let rates = &rate_model(&**target, settings.parametrisation);
    let path = Path::new(&vec![beta; target.terms()], Schedule::Linear).unwrap();
    let cuts = (&cuts(settings.intervals)[..], settings.substeps);
    let plan = WalkPlan::with_substeps(&path, settings.scheme, cuts, &[]).unwrap();
    let (seed, resampling) = (settings.seed, settings.resampling);
    let plan = &plan.sweeps(settings.sweeps);
    let population = Population::new(settings.walkers, seed);
    let walk = NetworkWalk { target, path: &path, rates, plan, population };
    let mut walkers = NetworkWalkers::new(walk).unwrap();
    let protocol = Protocol { grid: &plan.grid, resampling, trace_points: 5, seed };
    let ensemble = anneal(&**target, &mut walkers, protocol, &NoProgress).unwrap();
    let passes = ensemble.cost.network_passes;
    (ensemble, passes)
}

fn targets() -> Vec<(&'static str, Arc<dyn Target>, f64)> {
    let glass = Pairwise::edwards_anderson(torus(&[3, 3]), Disorder::Gaussian, 2).unwrap();
    vec![
        ("ising", Arc::new(Pairwise::ising(torus(&[4, 4]), 1.0, 0.2).unwrap()), 0.4),
        ("potts", Arc::new(Pairwise::potts(torus(&[3, 3]), 3, 1.0, 0.3).unwrap()), 0.8),
        ("glass", Arc::new(glass.with_uniform_field(-0.2).unwrap()), 0.7),
    ]
}

#[test]
fn events_is_unbiased_with_an_untrained_network() {
    for (name, target, beta) in targets() {
        for (n, parametrisation) in Parametrisation::ALL.into_iter().enumerate() {
            let never = Resampling::NEVER;
            let often = Resampling { threshold: 0.7, resampler: Resampler::Systematic };
            // Without sweeps only the network moves walkers: the target must be warm.
            for (sweeps, resampling, (intervals, substeps), beta) in [
                (0, never, (12, 1), 0.5 * beta),
                (1, often, (12, 1), beta),
                (0, never, (3, 4), 0.5 * beta),
            ] {
                let lambda = vec![beta; target.terms()];
                let exact = enumerate::solve(&*target, &lambda, &NoProgress).unwrap().log_z;
                let settings = Run {
                    parametrisation,
                    scheme: Scheme::Events,
                    intervals,
                    substeps,
                    sweeps,
                    resampling,
                    walkers: 6000,
                    seed: n as u64,
                };
                let (ensemble, passes) = run(&target, beta, &settings);
                let log_z = ensemble.log_z();
                let z = (log_z.mean - exact) / log_z.error;
                println!(
                    "{name} {parametrisation:?} {log_z:?} {exact} ess {} passes {passes}",
                    ensemble.weights.ess()
                );
                assert!(z.abs() < 5.0 && log_z.error < 0.1, "{name} {parametrisation:?}: {z}");
                // Five parts of the path begin with a pass.
                let calls = if substeps == 1 { intervals as f64 } else { 5.0 };
                assert!(passes > calls + 0.4, "the network must make walkers jump: {passes}");
            }
        }
    }
}

/// A network that is shown couplings has exact weights on any instance, also on another than that it was built for.
#[test]
fn a_network_that_is_shown_couplings_is_unbiased_on_any_instance() {
    use Boundary::{Free, Periodic};
    let spec = NetSpec::Glass(GlassSpec { channels: 8, ..GlassSpec::default() });
    for (shape, boundary, disorder) in [
        (&[4, 4][..], Periodic, Disorder::Pm1),
        (&[4, 4], Free, Disorder::Gaussian),
        (&[3, 2, 2], Free, Disorder::Pm1),
    ] {
        let glass = |seed| -> Arc<dyn Target> {
            let lattice = Lattice::new(shape, boundary).unwrap();
            Arc::new(Pairwise::edwards_anderson(lattice, disorder, seed).unwrap())
        };
        let net = Arc::new(Net::new(&spec, &*glass(1)).unwrap());
        // Outputs large enough to matter.
        let parameters: Vec<f32> = net.initial(3).iter().map(|p| 2.2 * p).collect();
        for (seed, beta) in [(1, 0.4), (2, 0.4), (3, 0.25)] {
            let target = &glass(seed);
            let couplings = target.pairwise().unwrap().axis_couplings().unwrap();
            let rates = RateModel::new(&net, &parameters, Parametrisation::Barker);
            let rates = &rates.on_instance(&couplings);
            let path = &Path::new(&[beta], Schedule::Linear).unwrap();
            let plan = &WalkPlan::new(path, Scheme::Events, &cuts(12)).unwrap();
            let population = Population::new(6000, seed);
            let walk = NetworkWalk { target, path, rates, plan, population };
            let mut walkers = NetworkWalkers::new(walk).unwrap();
            let resampling = Resampling::NEVER;
            let protocol = Protocol { grid: &plan.grid, resampling, trace_points: 5, seed };
            let ensemble = anneal(&**target, &mut walkers, protocol, &NoProgress).unwrap();
            let exact = enumerate::solve(&**target, &[beta], &NoProgress).unwrap().log_z;
            let (log_z, passes) = (ensemble.log_z(), ensemble.cost.network_passes);
            let z = (log_z.mean - exact) / log_z.error;
            println!("{shape:?} {boundary:?} {seed}: {log_z:?} {exact} passes {passes}");
            assert!(z.abs() < 5.0 && log_z.error < 0.1, "{shape:?} {boundary:?} {seed}: {z}");
            assert!(passes > 12.4, "the network must make walkers jump: {passes}");
        }
    }
}

/// Walkers that go back from exact samples have weights whose mean is the inverse of the others'.
#[test]
fn the_way_back_has_the_inverse_weight() {
    for (name, target, beta) in targets() {
        let beta = 0.5 * beta;
        let lambda = vec![beta; target.terms()];
        let exact = enumerate::solve(&*target, &lambda, &NoProgress).unwrap().log_z;
        let log_z0 = target.sites() as f64 * (target.q() as f64).ln();
        let path = &Path::new(&lambda, Schedule::Linear).unwrap();
        let forward = &WalkPlan::new(path, Scheme::Events, &cuts(12)).unwrap();
        let substeps = WalkPlan::with_substeps(path, Scheme::Events, (&cuts(3), 4), &[]).unwrap();
        let plans = &[forward.reversed().unwrap(), substeps.reversed().unwrap()];
        let all = Parametrisation::ALL.into_iter().enumerate();
        for ((n, parametrisation), plan) in
            all.flat_map(|one| plans.iter().map(move |plan| (one, plan)))
        {
            let (count, seed) = (6000, 10 + n as u64);
            let rates = &rate_model(&*target, parametrisation).reversed();
            let population = Population::new(count, seed);
            let target = &target;
            let mut walkers =
                NetworkWalkers::new(NetworkWalk { target, path, rates, plan, population }).unwrap();
            let (starts, _) = exact::draw(&**target, &lambda, count, seed, &NoProgress).unwrap();
            walkers.start_at(&starts).unwrap();
            let mut lineage = Lineage::new(count, 0.0, seed);
            let span = Span::whole(&plan.grid);
            walkers.advance(span, &Resampling::NEVER, &mut lineage, &NoProgress).unwrap();
            let weights = LogWeights::new(lineage.log_weights).unwrap();
            let families = Families::separate(count);
            let found = log_z(&weights, &families, &Segments::new(0.0));
            let z = found.with_exact(log_z0 - exact).z().unwrap();
            assert!(z.abs() < 5.0 && found.error < 0.1, "{name} {parametrisation:?}: {z}");
            let passes = walkers.cost().unwrap().network_passes;
            let calls = if plan.calls.is_empty() { 12.0 } else { 3.0 };
            assert!(passes > calls + 0.4, "the network must make walkers jump: {passes}");
        }
        let euler = (&cuts(4)[..], 2);
        assert!(WalkPlan::with_substeps(path, Scheme::Euler, euler, &[]).is_err());
        assert!(forward.clone().sweeps(1).reversed().is_err());
        assert!(WalkPlan::new(path, Scheme::Euler, &cuts(4)).unwrap().reversed().is_err());
    }
}

/// Half of a step's weight comes from its end, wherever walkers are looked at. Euler makes the same steps, so that its weights give K
/// at every one of them.
#[test]
fn trapezoid_is_weighed_to_the_end_of_every_stretch() {
    let target: &Arc<dyn Target> =
        &(Arc::new(Pairwise::ising(torus(&[4, 4]), 1.0, 0.2).unwrap()) as _);
    let rates = &rate_model(&**target, Parametrisation::Barker);
    let path = &Path::new(&[0.3, 0.3], Schedule::Trigonometric).unwrap();
    let after = |scheme: Scheme, end: usize| -> Vec<f64> {
        let plan = &WalkPlan::new(path, scheme, &cuts(8)).unwrap();
        let population = Population::new(50, 3);
        let walk = NetworkWalk { target, path, rates, plan, population };
        let mut lineage = Lineage::new(50, 0.0, 3);
        let span = Span { grid: &plan.grid, intervals: 1..end };
        NetworkWalkers::new(walk)
            .unwrap()
            .advance(span, &Resampling::NEVER, &mut lineage, &NoProgress)
            .unwrap();
        lineage.log_weights
    };
    for end in [3, 6] {
        let (trapezoid, euler) = (after(Scheme::Trapezoid, end), after(Scheme::Euler, end));
        let (first, next) = (after(Scheme::Euler, 2), after(Scheme::Euler, end + 1));
        for i in 0..50 {
            let wanted = euler[i] + 0.5 * (next[i] - euler[i] - first[i]);
            assert!((trapezoid[i] - wanted).abs() < 1e-9, "{} {wanted}", trapezoid[i]);
        }
    }
}

/// Normal score of a chi-square test of the weighted law of walkers against enumeration, state by state.
fn law_score(scheme: Scheme, (intervals, substeps): (usize, usize)) -> (f64, f64) {
    let target: Arc<dyn Target> = Arc::new(Pairwise::ising(torus(&[3, 3]), 1.0, 0.3).unwrap());
    let beta = 0.15;
    let settings = Run {
        parametrisation: Parametrisation::Barker,
        scheme,
        intervals,
        substeps,
        sweeps: 0,
        resampling: Resampling::NEVER,
        walkers: 400_000,
        seed: 11,
    };
    let (ensemble, _) = run(&target, beta, &settings);
    let lambda = [beta, beta];
    let law = enumerate::law(&*target, &lambda).unwrap();
    let exact = enumerate::solve(&*target, &lambda, &NoProgress).unwrap().log_z;
    // Weights are known up to nothing: their mean over walkers in a state is the state's part of Z / Z_0.
    let (mut first, mut second) = (vec![0.0; law.len()], vec![0.0; law.len()]);
    for (x, log_weight) in ensemble.states.chunks(9).zip(ensemble.weights.log()) {
        let state = x.iter().rev().fold(0, |code, &value| 2 * code + value as usize);
        first[state] += log_weight.exp();
        second[state] += (2.0 * log_weight).exp();
    }
    let (n, ratio) = (settings.walkers as f64, (exact - 9.0 * 2f64.ln()).exp());
    let chi: f64 = (0..law.len())
        .map(|state| {
            let (mean, square) = (first[state] / n, second[state] / n);
            (mean - law[state] * ratio).powi(2) / ((square - mean * mean) / n)
        })
        .sum();
    // Wilson and Hilferty: the cube root of a chi-square is nearly normal.
    let (k, part) = (law.len() as f64, 2.0 / (9.0 * law.len() as f64));
    (((chi / k).cbrt() - (1.0 - part)) / part.sqrt(), ensemble.weights.ess() * n)
}

#[test]
fn the_weighted_law_is_the_exact_one_state_by_state() {
    for parts in [(4, 1), (1, 3)] {
        let (score, effective) = law_score(Scheme::Events, parts);
        println!("events {parts:?}: {score}, {effective} effective walkers");
        assert!(effective > 1e5, "{effective}");
        assert!(score.abs() < 4.75, "{score}");
    }
    let (score, _) = law_score(Scheme::Euler, (4, 1));
    println!("euler: {score}");
    assert!(score > 10.0, "the test sees the bias of 4 euler steps: {score}");
}

/// Measure at stops that no interval of the plain grid ends at; every estimate against the exact value at its temperature.
fn stops_agree(name: &str, target: &Arc<dyn Target>, (sweeps, threshold): (u64, f64), at: &[f64]) {
    let (beta, rates) = (at[at.len() - 1], &rate_model(&**target, Parametrisation::Relu));
    let schedule = Schedule::geometric(0.3).unwrap();
    let path = Path::new(&vec![beta; target.terms()], schedule).unwrap();
    let stops: Vec<f64> = at.iter().map(|at| path.time(at / beta).unwrap()).collect();
    let plan = WalkPlan::with_stops(&path, Scheme::Events, &cuts(7), &stops).unwrap();
    let plan = &plan.sweeps(sweeps);
    assert!((plan.durations.iter().sum::<f64>() - 1.0).abs() < 1e-12);
    let population = Population::new(6000, 5);
    let walk = NetworkWalk { target, path: &path, rates, plan, population };
    let mut walkers = NetworkWalkers::new(walk).unwrap();
    let resampling = Resampling { threshold, resampler: Resampler::Systematic };
    let protocol = Protocol { grid: &plan.grid, resampling, trace_points: 3, seed: 5 };
    let ensemble = anneal(&**target, &mut walkers, protocol, &NoProgress).unwrap();
    assert_eq!(ensemble.stops.len(), at.len());
    for (&at, stop) in at.iter().zip(&ensemble.stops) {
        let exact = exact::known(&**target, &vec![at; target.terms()]).unwrap();
        let (sites, found) = (target.sites(), &stop.observables);
        assert!((stop.lambda[0] - at).abs() < 1e-12);
        assert!(
            stop.ess.mean > 0.15,
            "{name} at {at}: too heavy a tail for errors, {:?}",
            stop.ess
        );
        // An error of the weights at a stop, such as half of the last interval left out, is tens of sigmas here.
        let mut pairs = vec![
            (stop.log_z, exact.log_z),
            (found.energy_per_site, exact.energy_per_site(sites)),
            (found.heat_capacity_per_site, exact.heat_capacity_per_site(sites)),
        ];
        pairs.extend(exact.order.map(|order| (found.abs_magnetization, order.abs)));
        for (estimate, exact) in pairs {
            let z = estimate.with_exact(exact).z().unwrap();
            assert!(z.abs() < 4.0, "{name} at {at}: {estimate:?}, exact {exact}, {z} sigmas");
        }
    }
    let last = &ensemble.stops[at.len() - 1];
    assert_eq!((last.t, last.log_z), (1.0, ensemble.log_z()));
}

#[test]
fn stops_on_the_way_are_exact_at_their_temperatures() {
    let ising = |side, field| -> Arc<dyn Target> {
        Arc::new(Pairwise::ising(torus(&[side, side]), 1.0, field).unwrap())
    };
    let field = ising(4, 0.2);
    stops_agree("untrained", &field, (0, 0.0), &[0.05, 0.1, 0.15]);
    stops_agree("resampled", &field, (1, 0.9), &[0.1, 0.25, 0.4]);
    let plain = ising(6, 0.0);
    assert_eq!(exact::known(&*plain, &[0.3]).unwrap().method, exact::Method::Kaufman);
    stops_agree("kaufman", &plain, (1, 0.5), &[0.05, 0.2, 0.4407]);
}
