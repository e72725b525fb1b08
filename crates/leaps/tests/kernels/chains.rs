//! Chains of kernels: their law, threads, stops, adaptation.

use leaps::Error;
use leaps::device::{NoProgress, Progress};
use leaps::observe::Recorder;

use super::*;

/// Counts the states it is shown.
pub struct Histogram {
    pub counts: Vec<u64>,
    pub q: usize,
}

impl Recorder for Histogram {
    fn record(&mut self, x: &[u8]) {
        self.counts[encode(x, self.q)] += 1;
    }
}

/// Counts how often it is called.
struct Counter(u64);

impl Recorder for Counter {
    fn record(&mut self, _x: &[u8]) {
        self.0 += 1;
    }
}

/// Normal score of a G-test of `counts` against `law`, states of small expectation pooled.
pub fn g_test(counts: &[u64], law: &[f64]) -> f64 {
    let n: u64 = counts.iter().sum();
    let (mut g, mut cells) = (0.0, 0.0);
    let mut cell = |count: f64, expected: f64| {
        if expected > 0.0 {
            cells += 1.0;
            if count > 0.0 {
                g += 2.0 * count * (count / expected).ln();
            }
        }
    };
    let mut rest = (0.0, 0.0);
    for (&count, &p) in counts.iter().zip(law) {
        let (count, expected) = (count as f64, n as f64 * p);
        if expected < 10.0 {
            rest = (rest.0 + count, rest.1 + expected);
        } else {
            cell(count, expected);
        }
    }
    cell(rest.0, rest.1);
    // Wilson and Hilferty: the cube root of a chi-square is nearly normal.
    let k: f64 = cells - 1.0;
    let spread = 2.0 / (9.0 * k);
    ((g / k).cbrt() - (1.0 - spread)) / spread.sqrt()
}

#[test]
fn chains_sample_the_enumerated_law() {
    let torus = ising(&[3, 3]);
    let lambda = [0.25, 0.6];
    let model = Density::new(&torus, &lambda);
    let rho = law(&model);
    for (name, thin) in [
        (KernelName::HeatBath, 12),
        (KernelName::Metropolis, 12),
        (KernelName::Wolff, 40),
        (KernelName::SwendsenWang, 8),
        (KernelName::Dmala, 60),
    ] {
        let settings =
            ChainSettings { chains: 20, burn_in: 300, steps: 4000 * thin, thin, seed: 5 };
        let kernel = AnyKernel::new(name, &torus, &lambda).unwrap();
        let make = |_| Histogram { counts: vec![0; 512], q: 2 };
        let outcomes = run_chains(&model, &kernel, &settings, make, &NoProgress).unwrap();
        let mut counts = vec![0; 512];
        for outcome in &outcomes {
            for (sum, count) in counts.iter_mut().zip(&outcome.recorder.counts) {
                *sum += count;
            }
        }
        assert_eq!(counts.iter().sum::<u64>(), 80_000);
        // One in a million by chance; a state of probability 0.01 off by 15 % would be seen.
        let z = g_test(&counts, &rho);
        assert!(z < 4.75, "{name}: {z}");
        counts[7] += 400;
        assert!(g_test(&counts, &rho) > 4.75, "{name}: the test sees 400 states too many");
    }
}

#[test]
fn chains_do_not_depend_on_threads() {
    let torus = potts(&[4, 4], Boundary::Periodic);
    let lambda = [0.7, 0.7];
    let model = Density::new(&torus, &lambda);
    let kernel = AnyKernel::new(KernelName::Dlmc, &torus, &lambda).unwrap();
    let settings = ChainSettings { chains: 9, burn_in: 50, steps: 70, thin: 7, seed: 5 };
    let ladder = vec![vec![0.2, 0.2], vec![0.5, 0.4], lambda.to_vec()];
    let tempering =
        TemperingSettings { ladder, houdayer: true, exchange: true, table: None, chains: settings };
    let run = |threads: usize| {
        rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap().install(|| {
            let make = |_| Counter(0);
            let chains = run_chains(&model, &kernel, &settings, make, &NoProgress).unwrap();
            let make = |_, _| Counter(0);
            let ladders = run_tempering(&torus, &kernel, &tempering, make, &NoProgress).unwrap();
            let of_chains: Vec<_> =
                chains.into_iter().map(|c| (c.recorder.0, c.acceptance, c.last)).collect();
            let of_ladders: Vec<_> = ladders
                .into_iter()
                .map(|c| (c.acceptance, c.swap_rates, c.round_trips, c.last))
                .collect();
            (of_chains, of_ladders)
        })
    };
    let one = run(1);
    assert_eq!(one.0[0].0, 10);
    for threads in [2, 7] {
        assert_eq!(run(threads), one);
    }
}

#[test]
fn chains_stop_when_asked_and_when_numbers_do() {
    struct Stopped;
    impl Progress for Stopped {
        fn stopped(&self) -> bool {
            true
        }
    }
    struct Broken;
    impl Target for Broken {
        fn sites(&self) -> usize {
            3
        }
        fn q(&self) -> usize {
            2
        }
        fn energy(&self, _term: usize, x: &[u8]) -> f64 {
            if x == [0, 1, 1] { f64::NAN } else { 0.0 }
        }
    }
    let make = |_| Histogram { counts: vec![0; 8], q: 2 };
    let mut settings = ChainSettings { chains: 2, burn_in: 0, steps: 10_000, thin: 1, seed: 5 };
    let model = Density::new(&Broken, &[1.0]);
    for name in KernelName::ALL {
        let Ok(kernel) = AnyKernel::new(name, &Broken, &[1.0]) else { continue };
        let error = run_chains(&model, &kernel, &settings, make, &NoProgress).err().unwrap();
        assert!(matches!(error, Error::NonFinite { .. }), "{name}: {error}");
    }
    let kernel = Gibbs::new(&Triples).unwrap();
    let model = Density::new(&Triples, &[1.0]);
    let make = |_| Histogram { counts: vec![0; 81], q: 3 };
    let error = run_chains(&model, &kernel, &settings, make, &Stopped).err().unwrap();
    assert!(matches!(error, Error::Interrupted));
    settings.thin = 0;
    assert!(run_chains(&model, &kernel, &settings, make, &NoProgress).is_err());
}

#[test]
fn adaptation_finds_the_acceptance_it_aims_for() {
    let torus = Pairwise::ising(lattice(&[6, 6], Boundary::Periodic), 1.0, 0.0).unwrap();
    let model = Density::new(&torus, &[0.25]);
    for (name, aim) in [
        (KernelName::RandomWalk, 0.237),
        (KernelName::PathAuxiliary, 0.574),
        (KernelName::Dmala, 0.574),
        (KernelName::Dlmc, 0.574),
    ] {
        let kernel = AnyKernel::new(name, &torus, &[0.25]).unwrap();
        let settings =
            ChainSettings { chains: 4, burn_in: 10_000, steps: 10_000, thin: 1, seed: 5 };
        let make = |_| Counter(0);
        for outcome in run_chains(&model, &kernel, &settings, make, &NoProgress).unwrap() {
            let acceptance = outcome.acceptance;
            assert!((acceptance - aim).abs() < 0.05, "{name}: {acceptance}");
        }
    }
}
