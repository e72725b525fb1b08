//! Walkers that follow a network, trained or not: exact weights from events, a known bias from euler.

use leaps::device::NoProgress;
use leaps::exact::{self, enumerate};
use leaps::net::{MlpSpec, Net, NetSpec};
use leaps::path::{Path, Schedule};
use leaps::rates::Parametrisation;
use leaps::sampler::{
    Ensemble, NetworkWalkers, Population, RateModel, Resampler, Resampling, Scheme, anneal,
    scheme_grid, scheme_grid_with_stops,
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
    sweeps: u64,
    resampling: Resampling,
    walkers: usize,
    seed: u64,
}

/// An untrained network whose outputs are large enough to matter.
fn run(target: &dyn Target, beta: f64, settings: &Run) -> (Ensemble, f64) {
    let net = Net::new(&NetSpec::Mlp(MlpSpec { hidden: 8 }), target).unwrap();
    let parameters: Vec<f32> = net.initial(3).iter().map(|p| 2.2 * p).collect();
    let flow = RateModel::new(&net, &parameters, settings.parametrisation);
    let path = Path::new(&vec![beta; target.terms()], Schedule::Linear).unwrap();
    let (grid, durations) = scheme_grid(&path, settings.scheme, &cuts(settings.intervals)).unwrap();
    let mut walkers = NetworkWalkers::new(
        target,
        &path,
        &flow,
        settings.scheme,
        durations,
        settings.sweeps,
        settings.walkers,
        settings.seed,
    )
    .unwrap();
    let ensemble =
        anneal(target, &mut walkers, &grid, &settings.resampling, 5, settings.seed, &NoProgress)
            .unwrap();
    (ensemble, walkers.passes())
}

fn targets() -> Vec<(&'static str, Pairwise, f64)> {
    vec![
        ("ising", Pairwise::ising(torus(&[4, 4]), 1.0, 0.2).unwrap(), 0.4),
        ("potts", Pairwise::potts(torus(&[3, 3]), 3, 1.0, 0.3).unwrap(), 0.8),
        (
            "glass",
            Pairwise::edwards_anderson(torus(&[3, 3]), Disorder::Gaussian, 2)
                .unwrap()
                .with_uniform_field(-0.2)
                .unwrap(),
            0.7,
        ),
    ]
}

#[test]
fn events_is_unbiased_with_an_untrained_network() {
    for (name, target, beta) in targets() {
        for (n, parametrisation) in Parametrisation::ALL.into_iter().enumerate() {
            let never = Resampling::NEVER;
            let often = Resampling { threshold: 0.7, resampler: Resampler::Systematic };
            // Without sweeps only the network moves walkers: the target must be warm.
            for (sweeps, resampling, beta) in [(0, never, 0.5 * beta), (1, often, beta)] {
                let lambda = vec![beta; target.terms()];
                let exact = enumerate::solve(&target, &lambda, &NoProgress).unwrap().log_z;
                let settings = Run {
                    parametrisation,
                    scheme: Scheme::Events,
                    intervals: 12,
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
                assert!(passes > 12.4, "the network must make walkers jump: {passes}");
            }
        }
    }
}

/// Half of a step's weight comes from its end, wherever walkers are looked at. Euler makes the same steps, so that its weights tell K
/// at every one of them.
#[test]
fn trapezoid_is_weighed_to_the_end_of_every_stretch() {
    let target = Pairwise::ising(torus(&[4, 4]), 1.0, 0.2).unwrap();
    let net = Net::new(&NetSpec::Mlp(MlpSpec { hidden: 8 }), &target).unwrap();
    let parameters: Vec<f32> = net.initial(3).iter().map(|p| 2.2 * p).collect();
    let flow = RateModel::new(&net, &parameters, Parametrisation::Barker);
    let path = Path::new(&[0.3, 0.3], Schedule::Trigonometric).unwrap();
    let after = |scheme: Scheme, end: usize| -> Vec<f64> {
        let (grid, durations) = scheme_grid(&path, scheme, &cuts(8)).unwrap();
        let mut walkers =
            NetworkWalkers::new(&target, &path, &flow, scheme, durations, 0, 50, 3).unwrap();
        let mut log_weights = vec![0.0; 50];
        walkers.advance(&grid, 1..end, &mut log_weights, &NoProgress).unwrap();
        log_weights
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
fn law_score(scheme: Scheme) -> (f64, f64) {
    let (target, beta) = (Pairwise::ising(torus(&[3, 3]), 1.0, 0.3).unwrap(), 0.15);
    let settings = Run {
        parametrisation: Parametrisation::Barker,
        scheme,
        intervals: 4,
        sweeps: 0,
        resampling: Resampling::NEVER,
        walkers: 400_000,
        seed: 11,
    };
    let (ensemble, _) = run(&target, beta, &settings);
    let lambda = [beta, beta];
    let law = enumerate::law(&target, &lambda).unwrap();
    let exact = enumerate::solve(&target, &lambda, &NoProgress).unwrap().log_z;
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
    let (score, effective) = law_score(Scheme::Events);
    println!("events: {score}, {effective} effective walkers");
    assert!(effective > 1e5, "{effective}");
    assert!(score.abs() < 4.75, "{score}");
    let (score, _) = law_score(Scheme::Euler);
    println!("euler: {score}");
    assert!(score > 10.0, "the test sees the bias of 4 euler steps: {score}");
}

/// Measure at stops that no interval of the plain grid ends at; every estimate against the exact value at its temperature.
fn stops_agree(name: &str, target: &Pairwise, beta: f64, sweeps: u64, threshold: f64, at: &[f64]) {
    let net = Net::new(&NetSpec::Mlp(MlpSpec { hidden: 8 }), target).unwrap();
    let parameters: Vec<f32> = net.initial(3).iter().map(|p| 2.2 * p).collect();
    let flow = RateModel::new(&net, &parameters, Parametrisation::Relu);
    let schedule = Schedule::geometric(0.3).unwrap();
    let path = Path::new(&vec![beta; target.terms()], schedule).unwrap();
    let stops: Vec<f64> = at.iter().map(|at| path.time(at / beta).unwrap()).collect();
    let (grid, durations) =
        scheme_grid_with_stops(&path, Scheme::Events, &cuts(7), &stops).unwrap();
    assert!((durations.iter().sum::<f64>() - 1.0).abs() < 1e-12);
    let mut walkers =
        NetworkWalkers::new(target, &path, &flow, Scheme::Events, durations, sweeps, 6000, 5)
            .unwrap();
    let resampling = Resampling { threshold, resampler: Resampler::Systematic };
    let ensemble = anneal(target, &mut walkers, &grid, &resampling, 3, 5, &NoProgress).unwrap();
    assert_eq!(ensemble.stops.len(), at.len());
    for (&at, stop) in at.iter().zip(&ensemble.stops) {
        let exact = exact::known(target, &vec![at; target.terms()]).unwrap();
        let (sites, seen) = (target.sites(), &stop.observables);
        assert!((stop.lambda[0] - at).abs() < 1e-12);
        assert!(
            stop.ess.mean > 0.15,
            "{name} at {at}: too heavy a tail for errors, {:?}",
            stop.ess
        );
        // An error of the weights at a stop, such as half of the last interval left out, is tens of sigmas here.
        let mut pairs = vec![
            (stop.log_z, exact.log_z),
            (seen.energy_per_site, exact.energy_per_site(sites)),
            (seen.heat_capacity_per_site, exact.heat_capacity_per_site(sites)),
        ];
        pairs.extend(exact.order.map(|order| (seen.abs_magnetization, order.abs)));
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
    let field = Pairwise::ising(torus(&[4, 4]), 1.0, 0.2).unwrap();
    stops_agree("untrained", &field, 0.15, 0, 0.0, &[0.05, 0.1, 0.15]);
    stops_agree("resampled", &field, 0.4, 1, 0.9, &[0.1, 0.25, 0.4]);
    let plain = Pairwise::ising(torus(&[6, 6]), 1.0, 0.0).unwrap();
    assert_eq!(exact::known(&plain, &[0.3]).unwrap().method, exact::Method::Kaufman);
    stops_agree("kaufman", &plain, 0.4407, 1, 0.5, &[0.05, 0.2, 0.4407]);
}
