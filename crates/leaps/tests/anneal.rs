//! AIS and SMC: log Z unbiased, laws right, errors honest, bytes independent of threads and batches.

use std::sync::Arc;

use leaps::Error;
use leaps::device::NoProgress;
use leaps::exact::enumerate;
use leaps::mcmc::KernelName;
use leaps::mcmc::lanes::Scan;
use leaps::observe::WeightedSamples;
use leaps::path::{Path, Schedule};
use leaps::sampler::{
    Amount, Ensemble, Moves, Resampler, Resampling, Settings, Times, WalkerWarning, sample,
};
use leaps::target::{Boundary, Disorder, Lattice, Pairwise, Target, potential};

fn torus(shape: &[usize]) -> Lattice {
    Lattice::new(shape, Boundary::Periodic).unwrap()
}

fn settings() -> Settings {
    Settings {
        walkers: 4000,
        times: Times::Uniform(20),
        moves: Moves {
            kernel: KernelName::HeatBath,
            amount: Amount::Steps(1),
            scan: Scan::Systematic,
            reversed: false,
        },
        resampling: Resampling::NEVER,
        trace_points: 10,
        stops: Vec::new(),
        seed: 3,
    }
}

fn run(target: &Arc<dyn Target>, beta: f64, settings: &Settings) -> Ensemble {
    let path = Path::new(&vec![beta; target.terms()], Schedule::Linear).unwrap();
    sample(target, &path, settings, &NoProgress).unwrap().0
}

/// Every state's probability, and log Z.
fn law(target: &dyn Target, lambda: &[f64]) -> (Vec<f64>, f64) {
    let log_z = enumerate::solve(target, lambda, &NoProgress).unwrap().log_z;
    (enumerate::law(target, lambda).unwrap(), log_z)
}

fn code(x: &[u8], q: usize) -> usize {
    x.iter().rev().fold(0, |code, &value| code * q + value as usize)
}

/// A target without tables: a three-body term beside a field.
struct Triplets;

impl Target for Triplets {
    fn sites(&self) -> usize {
        8
    }
    fn q(&self) -> usize {
        2
    }
    fn terms(&self) -> usize {
        2
    }
    fn energy(&self, term: usize, x: &[u8]) -> f64 {
        let spin = |i: usize| 2.0 * f64::from(x[i % 8]) - 1.0;
        match term {
            0 => -(0..8).map(|i| spin(i) * spin(i + 1) * spin(i + 2)).sum::<f64>(),
            _ => 0.3 * (0..8).map(spin).sum::<f64>(),
        }
    }
}

fn targets() -> Vec<(&'static str, Arc<dyn Target>, f64)> {
    vec![
        ("ising", Arc::new(Pairwise::ising(torus(&[3, 3]), 1.0, 0.25).unwrap()), 0.44),
        ("potts", Arc::new(Pairwise::potts(torus(&[2, 3]), 3, 1.0, 0.3).unwrap()), 0.9),
        (
            "glass",
            Arc::new(
                Pairwise::edwards_anderson(torus(&[3, 3]), Disorder::Gaussian, 2)
                    .unwrap()
                    .with_uniform_field(-0.2)
                    .unwrap(),
            ),
            0.8,
        ),
        (
            "complete",
            Arc::new(Pairwise::sherrington_kirkpatrick(9, Disorder::Pm1, 1).unwrap()),
            1.0,
        ),
        ("triplets", Arc::new(Triplets), 0.5),
    ]
}

/// Every kernel and every resampling scheme over the targets, kernels in turn.
fn runs() -> Vec<(String, Arc<dyn Target>, f64, Settings)> {
    let mut runs = Vec::new();
    let schemes = Resampler::ALL.map(|resampler| Resampling { threshold: 0.9, resampler });
    let mut kernels = KernelName::ALL.into_iter().cycle();
    for resampling in [Resampling::NEVER].into_iter().chain(schemes) {
        for (name, target, beta) in targets() {
            let kernel = loop {
                let kernel = kernels.next().unwrap();
                let cluster = matches!(kernel, KernelName::Wolff | KernelName::SwendsenWang);
                if !cluster || target.pairwise().is_some() {
                    break kernel;
                }
            };
            let mut settings = Settings { resampling, ..settings() };
            settings.moves.kernel = kernel;
            settings.moves.amount = Amount::Steps(4);
            runs.push((format!("{name} {kernel} {resampling:?}"), target, beta, settings));
        }
    }
    runs
}

#[test]
fn log_z_is_unbiased_for_every_kernel_and_scheme() {
    for (name, target, beta, settings) in runs() {
        let lambda = vec![beta; target.terms()];
        let (_, exact) = law(&*target, &lambda);
        let log_z = run(&target, beta, &settings).log_z();
        let z = (log_z.mean - exact) / log_z.error;
        // Errors are 0.003 to 0.04: a bias of 5 errors is found.
        assert!(z.abs() < 5.0 && log_z.error < 0.05, "{name}: {log_z:?}, exact {exact}");
    }
}

/// -2 log-likelihood ratio against the exact law with weighted counts scaled to `n` effective draws.
fn g_statistic(law: &[f64], shares: &[f64], n: f64) -> f64 {
    let terms = law.iter().zip(shares).filter(|(_, s)| **s > 0.0);
    2.0 * n * terms.map(|(p, s)| s * (s / p).ln()).sum::<f64>()
}

#[test]
fn the_reweighted_law_is_the_enumerated_one() {
    let target: Arc<dyn Target> = Arc::new(Pairwise::ising(torus(&[3, 3]), 1.0, 0.25).unwrap());
    let (law, _) = law(&*target, &[0.44, 0.44]);
    let path = Path::new(&[0.44, 0.44], Schedule::Trigonometric).unwrap();
    for kernel in [KernelName::HeatBath, KernelName::Metropolis] {
        let mut settings = Settings { walkers: 250_000, times: Times::Uniform(40), ..settings() };
        settings.moves.kernel = kernel;
        let (ensemble, _) = sample(&target, &path, &settings, &NoProgress).unwrap();
        let mut shares = vec![0.0; 512];
        for (x, w) in ensemble.states.chunks_exact(9).zip(ensemble.weights.normalised()) {
            shares[code(x, 2)] += w;
        }
        let n = ensemble.ess().mean * settings.walkers as f64;
        assert!(n > 1e5, "{n}");
        let g = g_statistic(&law, &shares, n);
        // 511 degrees of freedom: p = 1e-6 is at 511 + 4.75 sqrt(2 511) + 14 = 677. A probability off by
        // 2 % everywhere adds 40; the wrong sign of the field adds over 10^4.
        assert!(g < 677.0, "{kernel}: {g}");
        let flipped: Vec<f64> = (0..512).map(|code: usize| shares[511 - code]).collect();
        assert!(g_statistic(&law, &flipped, n) > 1e4);
    }
}

#[test]
fn errors_are_as_large_as_the_scatter_of_repeated_runs() {
    let target: Arc<dyn Target> =
        Arc::new(Pairwise::ising(torus(&[4, 4]), 1.0, -0.1 / 0.4407).unwrap());
    let exact = 16.2975361949;
    for resampling in [
        Resampling::NEVER,
        Resampling { threshold: 0.8, resampler: Resampler::Systematic },
        Resampling { threshold: 0.8, resampler: Resampler::Stratified },
    ] {
        let z: Vec<f64> = (0..200)
            .map(|seed| {
                let settings = Settings { walkers: 400, resampling, seed, ..settings() };
                let log_z = run(&target, 0.4407, &settings).log_z();
                (log_z.mean - exact) / log_z.error
            })
            .collect();
        let n = z.len() as f64;
        let mean = z.iter().sum::<f64>() / n;
        let spread = (z.iter().map(|z| (z - mean).powi(2)).sum::<f64>() / (n - 1.0)).sqrt();
        // The spread itself is known to 5 %; log of a mean is biased by half its variance.
        assert!((0.75..1.25).contains(&spread), "{resampling:?}: spread {spread}");
        assert!(mean.abs() < 5.0 / n.sqrt(), "{resampling:?}: mean {mean}");
    }
}

#[test]
fn estimates_along_the_path_are_right_everywhere() {
    let target: Arc<dyn Target> = Arc::new(Pairwise::ising(torus(&[3, 3]), 1.0, 0.25).unwrap());
    for threshold in [0.0, 0.9] {
        let resampling = Resampling { threshold, resampler: Resampler::Systematic };
        let ensemble = run(&target, 0.6, &Settings { walkers: 20_000, resampling, ..settings() });
        assert!(ensemble.trace.len() >= 10);
        assert_eq!(ensemble.segments.resamplings() > 0, threshold > 0.0);
        for point in &ensemble.trace {
            let (law, log_z) = law(&*target, &point.lambda);
            let (mut energy, mut first, mut second) = (0.0, 0.0, 0.0);
            for (code, p) in law.iter().enumerate() {
                let x: Vec<u8> = (0..9).map(|i| (code >> i & 1) as u8).collect();
                energy += p * potential(&*target, &[1.0, 1.0], &x) / 9.0;
                let u = potential(&*target, &point.lambda, &x);
                first += p * u;
                second += p * u * u;
            }
            let heat = (second - first * first) / 9.0;
            for (estimate, exact) in [
                (point.log_z, log_z),
                (point.energy_per_site, energy),
                (point.heat_capacity_per_site, heat),
            ] {
                let z = (estimate.mean - exact) / estimate.error;
                assert!(z.abs() < 5.0, "t = {}: {estimate:?}, exact {exact}", point.t);
            }
        }
    }
}

#[test]
fn bytes_do_not_depend_on_threads() {
    for (name, target, beta, settings) in runs() {
        let settings = Settings { walkers: 150, ..settings };
        let in_pool = |threads: usize| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            pool.install(|| {
                let ensemble = run(&target, beta, &settings);
                let bits: Vec<u64> = ensemble.weights.log().iter().map(|w| w.to_bits()).collect();
                (ensemble.states, bits, ensemble.families)
            })
        };
        let one = in_pool(1);
        for threads in [2, 7, 16] {
            assert!(in_pool(threads) == one, "{name}: {threads} threads");
        }
    }
}

#[test]
fn no_walker_depends_on_the_others() {
    for kernel in [KernelName::HeatBath, KernelName::Metropolis, KernelName::Gwg] {
        for (name, target, beta) in targets() {
            let mut settings = settings();
            settings.moves.kernel = kernel;
            let many = run(&target, beta, &Settings { walkers: 200, ..settings.clone() });
            let few = run(&target, beta, &Settings { walkers: 70, ..settings });
            let bytes = 70 * target.sites();
            assert_eq!(many.states[..bytes], few.states[..], "{name} {kernel}");
            assert_eq!(many.weights.log()[..70], few.weights.log()[..], "{name} {kernel}");
        }
    }
}

#[test]
fn single_site_updates_add_up_to_sweeps() {
    // The same updates in the same order, whether in one interval of a sweep or with nothing to weigh
    // between them: 9 times more intervals at a constant temperature.
    let target: Arc<dyn Target> =
        Arc::new(Pairwise::edwards_anderson(torus(&[3, 3]), Disorder::Gaussian, 5).unwrap());
    let table = [(0.0, 0.0), (0.1, 1.0), (1.0, 1.0)];
    let path = Path::new(&[0.7], Schedule::piecewise(&table).unwrap()).unwrap();
    for kernel in [KernelName::HeatBath, KernelName::Metropolis] {
        let mut by_site = Settings { walkers: 100, times: Times::Uniform(90), ..settings() };
        by_site.moves.kernel = kernel;
        by_site.moves.amount = Amount::Updates(1);
        let mut by_sweep = by_site.clone();
        by_sweep.moves.amount = Amount::Updates(9);
        by_sweep.times = Times::Uniform(10);
        let (a, _) = sample(&target, &path, &by_site, &NoProgress).unwrap();
        let (b, _) = sample(&target, &path, &by_sweep, &NoProgress).unwrap();
        // Only the first tenth of the path differs in temperature, and there only the weights.
        let exact = law(&*target, &[0.7]).1;
        for ensemble in [&a, &b] {
            let log_z = ensemble.log_z();
            assert!((log_z.mean - exact).abs() < 5.0 * log_z.error, "{log_z:?} {exact}");
        }
        // Energies kept in step are energies measured afresh.
        for (x, energy) in a.states.chunks_exact(9).zip(&a.energies) {
            assert!((target.energy(0, x) - energy).abs() < 1e-12);
        }
    }
}

#[test]
fn adaptive_times_even_out_the_steps_and_stay_exact() {
    let target: Arc<dyn Target> =
        Arc::new(Pairwise::ising(torus(&[4, 4]), 1.0, -0.1 / 0.4407).unwrap());
    let path = Path::new(&[0.4407, 0.4407], Schedule::geometric(30.0).unwrap()).unwrap();
    let settings = Settings {
        times: Times::Adaptive { conditional_ess: 0.95, pilot_walkers: 1000 },
        resampling: Resampling { threshold: 0.5, resampler: Resampler::Systematic },
        walkers: 20_000,
        ..settings()
    };
    let (ensemble, grid) = sample(&target, &path, &settings, &NoProgress).unwrap();
    assert!((5..60).contains(&grid.intervals()), "{}", grid.intervals());
    // A geometric schedule hurries at the end, where an adaptive grid must be finer.
    let first = grid.time(1) - grid.time(0);
    let n = grid.intervals();
    assert!(grid.time(n - 1) - grid.time(n - 2) < 0.5 * first);
    let log_z = ensemble.log_z();
    assert!((log_z.mean - 16.2975361949).abs() < 5.0 * log_z.error, "{log_z:?}");
}

#[test]
fn observables_of_the_ensemble_are_right() {
    let target: Arc<dyn Target> = Arc::new(Pairwise::ising(torus(&[3, 3]), 1.0, 0.25).unwrap());
    let settings = Settings { walkers: 20_000, ..settings() };
    let ensemble = run(&target, 0.44, &settings);
    let samples = WeightedSamples::new(
        &*target,
        &[0.44, 0.44],
        &ensemble.states,
        &ensemble.weights,
        &ensemble.families,
    )
    .unwrap();
    let (law, _) = law(&*target, &[0.44, 0.44]);
    let m: f64 = law
        .iter()
        .enumerate()
        .map(|(code, p)| p * (2.0 * f64::from(code.count_ones()) - 9.0) / 9.0)
        .sum();
    let estimate = samples.observables().magnetization;
    // A positive field lowers the magnetisation: energy is + h sum s.
    assert!(m < -0.2);
    assert!((estimate.mean - m).abs() < 5.0 * estimate.error, "{estimate:?} {m}");
}

/// An energy that is not a number in some states.
struct Broken;

impl Target for Broken {
    fn sites(&self) -> usize {
        6
    }
    fn q(&self) -> usize {
        2
    }
    fn energy(&self, _term: usize, x: &[u8]) -> f64 {
        if x.iter().all(|&t| t == 1) { f64::NAN } else { 1.0 }
    }
}

#[test]
fn an_energy_that_is_not_a_number_stops_the_run() {
    let path = Path::new(&[1.0], Schedule::Linear).unwrap();
    let broken: Arc<dyn Target> = Arc::new(Broken);
    for kernel in [KernelName::Metropolis, KernelName::RandomWalk, KernelName::Gwg] {
        let mut settings = settings();
        settings.moves.kernel = kernel;
        match sample(&broken, &path, &settings, &NoProgress) {
            Err(Error::NonFinite { seed: 3, state, .. }) => assert_eq!(state, "[1,1,1,1,1,1]"),
            other => panic!("{kernel}: {:?}", other.map(|_| "ran")),
        }
    }
}

#[test]
fn impossible_settings_are_refused() {
    let target: Arc<dyn Target> = Arc::new(Pairwise::ising(torus(&[3, 3]), 1.0, 0.0).unwrap());
    let path = Path::new(&[0.4], Schedule::Linear).unwrap();
    let never = Resampling::NEVER;
    let mut by_site = settings();
    by_site.moves = Moves {
        kernel: KernelName::Wolff,
        amount: Amount::Updates(1),
        scan: Scan::Systematic,
        reversed: false,
    };
    for bad in [
        Settings { walkers: 0, ..settings() },
        Settings { times: Times::Uniform(0), ..settings() },
        Settings { times: Times::Given(vec![0.0, 0.5, 0.4, 1.0]), ..settings() },
        Settings { times: Times::Given(vec![0.1, 1.0]), ..settings() },
        Settings {
            times: Times::Adaptive { conditional_ess: 1.0, pilot_walkers: 100 },
            ..settings()
        },
        Settings { resampling: Resampling { threshold: 1.5, ..never }, ..settings() },
        Settings { resampling: Resampling { threshold: f64::NAN, ..never }, ..settings() },
        by_site,
    ] {
        match sample(&target, &path, &bad, &NoProgress) {
            Err(Error::Invalid { .. }) => {}
            other => panic!("{bad:?}: {:?}", other.map(|_| "ran")),
        }
    }
}

#[test]
fn runs_that_should_not_be_believed_say_so() {
    let target: Arc<dyn Target> = Arc::new(Pairwise::ising(torus(&[12, 12]), 1.0, 0.0).unwrap());
    let resampling = Resampling { threshold: 0.5, resampler: Resampler::Systematic };
    let coarse = Settings { walkers: 500, times: Times::Uniform(4), resampling, ..settings() };
    let warnings = run(&target, 0.4407, &coarse).warnings();
    assert!(warnings.iter().any(|w| matches!(w, WalkerWarning::LargeSteps { .. })), "{warnings:?}");
    assert!(
        warnings.iter().any(|w| matches!(w, WalkerWarning::FewFamilies { .. })),
        "{warnings:?}"
    );
    let hasty = Settings { resampling: Resampling::NEVER, ..coarse };
    let warnings = run(&target, 0.4407, &hasty).warnings();
    assert!(warnings.iter().any(|w| matches!(w, WalkerWarning::FewWalkers { .. })), "{warnings:?}");
    let fine = Settings { walkers: 2000, times: Times::Uniform(200), resampling, ..settings() };
    assert_eq!(run(&target, 0.4407, &fine).warnings(), []);
}
