//! Observables of weighted walkers: against enumeration, and bin by bin.

use leaps::Result;
use leaps::device::Draw;
use leaps::observe::LogWeights;
use leaps::observe::{
    Bins, Estimate, Families, Histogram, Measure, Observables, Segments, WeightedSamples,
};
use leaps::target::{Boundary, Lattice, Pairwise, Target, potential};

use super::stream;

fn torus(side: usize, coupling: f64, field: f64) -> Pairwise {
    let lattice = Lattice::new(&[side, side], Boundary::Periodic).unwrap();
    Pairwise::ising(lattice, coupling, field).unwrap()
}

/// All states of a small model, one after the other.
fn all_states(model: &dyn Target) -> Vec<u8> {
    let (n, q) = (model.sites(), model.q());
    (0..q.pow(n as u32))
        .flat_map(|code| (0..n).map(move |i| (code / q.pow(i as u32) % q) as u8))
        .collect()
}

/// Weigh every state of `model` by its probability.
fn enumerate(model: &dyn Target, lambda: &[f64]) -> WeightedSamples {
    let states = all_states(model);
    let log: Vec<f64> =
        states.chunks(model.sites()).map(|x| -potential(model, lambda, x)).collect();
    let families = Families::separate(log.len());
    WeightedSamples::new(model, lambda, &states, &LogWeights::new(log).unwrap(), &families).unwrap()
}

#[test]
fn averages_over_all_states_are_the_exact_ones() {
    let (model, beta, step) = (torus(3, 1.0, 0.3), 0.4407, 1e-4);
    let log_z =
        |lambda: [f64; 2]| enumerate(&model, &lambda).log_z(&Segments::new(9.0 * 2f64.ln())).mean;
    let ours = enumerate(&model, &[beta; 2]);
    let observables = ours.observables();
    // Energy and heat capacity are derivatives of log Z by the temperature, m by the field.
    let at = |scale: f64| log_z([beta * scale; 2]);
    let energy = -(at(1.0 + step) - at(1.0 - step)) / (2.0 * step * beta) / 9.0;
    let capacity = (at(1.0 + step) - 2.0 * at(1.0) + at(1.0 - step)) / (step * step) / 9.0;
    let tilt = |scale: f64| log_z([beta, beta * scale]);
    let m = -(tilt(1.0 + step) - tilt(1.0 - step)) / (2.0 * step * beta * 0.3) / 9.0;
    assert!((observables.energy_per_site.mean - energy).abs() < 1e-6);
    assert!((observables.heat_capacity_per_site.mean - capacity).abs() < 1e-5);
    assert!((observables.magnetization.mean - m).abs() < 1e-6);
    // The rest by direct sums with independent formulas.
    let states = all_states(&model);
    let (mut z, mut sums, mut waves) = (0.0, [0.0; 5], [0.0; 2]);
    for x in states.chunks(9) {
        let spin: Vec<f64> = x.iter().map(|&t| 2.0 * f64::from(t) - 1.0).collect();
        let weight = (-potential(&model, &[beta; 2], x)).exp();
        let m = spin.iter().sum::<f64>() / 9.0;
        z += weight;
        let neighbours: f64 = (0..9)
            .map(|i| spin[i] * (spin[i / 3 * 3 + (i + 1) % 3] + spin[(i + 3) % 9]) / 18.0)
            .sum();
        for (sum, value) in sums.iter_mut().zip([m.abs(), m * m, m.powi(4), neighbours, m]) {
            *sum += weight * value;
        }
        for (axis, wave) in waves.iter_mut().enumerate() {
            let angle = |i: usize| {
                std::f64::consts::TAU * (if axis == 0 { i / 3 } else { i % 3 }) as f64 / 3.0
            };
            let re: f64 = (0..9).map(|i| spin[i] * angle(i).cos()).sum();
            let im: f64 = (0..9).map(|i| spin[i] * angle(i).sin()).sum();
            *wave += weight * (re * re + im * im) / 9.0;
        }
    }
    let [abs, m2, m4, near, first] = sums.map(|s| s / z);
    let close =
        |ours: Estimate, exact: f64| assert!((ours.mean - exact).abs() < 1e-12, "{ours:?} {exact}");
    close(observables.magnetization, first);
    close(observables.abs_magnetization, abs);
    close(observables.magnetization_squared, m2);
    close(observables.binder, 1.0 - m4 / (3.0 * m2 * m2));
    // In a field, fluctuations are about the mean.
    close(observables.susceptibility_per_site, beta * 9.0 * (m2 - first * first));
    close(observables.correlation[0].value, 1.0);
    close(observables.correlation[1].value, near);
    assert_eq!(observables.correlation[0].value.error, 0.0);
    assert_eq!(observables.correlation.len(), 2);
    // Both axes are alike, so that the length is the textbook formula of one of them.
    let length = (9.0 * (m2 - first * first) / (waves[0] / z) - 1.0).sqrt()
        / (2.0 * (std::f64::consts::PI / 3.0).sin());
    close(observables.correlation_length.unwrap(), length);
    assert!((waves[0] - waves[1]).abs() < 1e-9);
}

/// 20,000 uniform 3x3 states weighted to the target: every observable within 5 errors of enumeration, and
/// no error above 0.03, so that a bias of 0.15 would be seen.
#[test]
fn weighted_samples_agree_with_enumeration() {
    let (model, lambda) = (torus(3, 1.0, 0.3), [0.2, 0.2]);
    let exact = enumerate(&model, &lambda).observables();
    let mut s = stream(60);
    let states: Vec<u8> = (0..20_000 * 9).map(|_| s.below(2) as u8).collect();
    let log = states.chunks(9).map(|x| -potential(&model, &lambda, x)).collect();
    let weights = LogWeights::new(log).unwrap();
    let samples =
        WeightedSamples::new(&model, &lambda, &states, &weights, &Families::separate(20_000))
            .unwrap();
    let list = |o: &Observables| {
        let mut list = vec![
            o.energy_per_site,
            o.magnetization,
            o.abs_magnetization,
            o.magnetization_squared,
            o.binder,
            o.heat_capacity_per_site,
            o.susceptibility_per_site,
            o.correlation_length.unwrap(),
        ];
        list.extend(o.correlation.iter().skip(1).map(|c| c.value));
        list
    };
    for (ours, exact) in list(&samples.observables()).into_iter().zip(list(&exact)) {
        let z = ours.with_exact(exact.mean).z().unwrap();
        assert!(z.abs() < 5.0 && ours.error < 0.03, "{ours:?} {exact:?}");
        assert!(ours.error > 1e-4, "{ours:?}");
    }
}

#[test]
fn serialises_with_the_promised_names() {
    let observables = enumerate(&torus(2, 1.0, 0.0), &[0.4]).observables();
    let value = serde_json::to_value(&observables).unwrap();
    let mut names: Vec<&str> = value.as_object().unwrap().keys().map(String::as_str).collect();
    names.sort_unstable();
    let promised = [
        "abs_magnetization",
        "binder",
        "correlation_length",
        "energy_per_site",
        "heat_capacity_per_site",
        "magnetization",
        "magnetization_squared",
        "susceptibility_per_site",
    ];
    assert_eq!(names, promised);
    let first = serde_json::to_string(&observables.correlation[0]).unwrap();
    assert_eq!(first, r#"{"r":0,"mean":1.0,"error":0.0}"#);
}

#[test]
fn wrong_shapes_and_values_are_refused() {
    let model = torus(2, 1.0, 0.0);
    let weights = LogWeights::new(vec![0.0; 2]).unwrap();
    let make = |states: &[u8], families: usize| -> Result<WeightedSamples> {
        WeightedSamples::new(&model, &[0.4], states, &weights, &Families::separate(families))
    };
    assert!(make(&[0, 1, 0, 1, 0, 0, 0, 0], 2).is_ok());
    assert!(make(&[0, 1, 0, 1, 0, 0, 0], 2).is_err());
    assert!(make(&[0, 1, 0, 1, 0, 0, 0, 0], 3).is_err());
    let message = make(&[0, 1, 0, 1, 0, 2, 0, 0], 2).unwrap_err().to_string();
    assert!(message.contains("walker 1"), "{message}");
}

#[test]
fn the_number_of_threads_does_not_matter() {
    let model = torus(6, 1.0, 0.1);
    let mut s = stream(61);
    let states: Vec<u8> = (0..500 * 36).map(|_| s.below(2) as u8).collect();
    let weights = LogWeights::new((0..500).map(|_| s.normal()).collect()).unwrap();
    let run = |threads: usize| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        let families = Families::separate(500);
        let make = || WeightedSamples::new(&model, &[0.4, 0.4], &states, &weights, &families);
        pool.install(make).unwrap().observables()
    };
    // As text: a length that is undefined is not equal to itself.
    assert_eq!(format!("{:?}", run(1)), format!("{:?}", run(7)));
}

#[test]
fn histograms_hold_the_weight_and_know_their_noise() {
    let bins = Bins::new(0.0, 1.0, 20).unwrap();
    // Multiples of 1/20 sit on edges, whichever way they were rounded.
    for k in 0..20 {
        let value = f64::from(k) / 20.0;
        assert_eq!((bins.of(value), bins.of(f64::from(value as f32))), (k as usize, k as usize));
    }
    assert_eq!((bins.of(-3.0), bins.of(1.0), bins.of(f64::INFINITY)), (0, 19, 19));
    assert!(Bins::new(1.0, 1.0, 5).is_err() && Bins::new(0.0, f64::NAN, 5).is_err());
    assert!(Bins::new(0.0, 1.0, 0).is_err() && Bins::new(-f64::MAX, f64::MAX, 5).is_err());

    let n = 4000;
    let uniform = |r: u32, power: f64| {
        let mut s = stream(70 + r);
        let values: Vec<f64> = (0..n).map(|_| s.uniform().powf(power)).collect();
        Histogram::new(bins, &values, &vec![1.0; n], &Families::separate(n))
    };
    let (a, b, c) = (uniform(0, 1.0), uniform(1, 1.0), uniform(2, 1.3));
    assert!((a.mass.iter().map(|m| m.mean).sum::<f64>() - 1.0).abs() < 1e-12);
    for mass in &a.mass {
        // Binomial errors, and the true mass within 5 of them.
        let binomial = (mass.mean * (1.0 - mass.mean) / (n as f64 - 1.0)).sqrt();
        assert!((mass.error / binomial - 1.0).abs() < 1e-9);
        assert!((mass.mean - 0.05).abs() < 5.0 * mass.error);
    }
    let (same, other) = (a.distance(&b).unwrap(), a.distance(&c).unwrap());
    assert_eq!(same.l1, 2.0 * same.total_variation);
    assert!((0.5..1.6).contains(&(same.total_variation / same.noise)), "{same:?}");
    assert!(other.total_variation > 2.0 * other.noise, "{other:?}");
    assert_eq!(a.distance(&a).unwrap().l1, 0.0);
    let coarse = Bins::new(0.0, 1.0, 10).unwrap();
    assert!(a.distance(&Histogram::new(coarse, &[0.5], &[1.0], &Families::separate(1))).is_err());
}

#[test]
fn histograms_of_samples_are_of_the_energy_per_site_and_of_the_order() {
    let model = torus(2, 1.0, 0.0);
    let samples = enumerate(&model, &[0.0]);
    // Energies per site of the 2x2 torus: -2 (2 states), 0 (12 states), +2 (2 states).
    let energies = samples.energy_histogram(Bins::new(-3.0, 3.0, 3).unwrap());
    let shares: Vec<f64> = energies.mass.iter().map(|m| m.mean).collect();
    assert_eq!(shares, [0.125, 0.75, 0.125]);
    let order = samples.abs_magnetization_histogram(Bins::new(0.0, 1.0, 4).unwrap());
    let shares: Vec<f64> = order.mass.iter().map(|m| m.mean).collect();
    assert_eq!(shares, [0.375, 0.0, 0.5, 0.125]);
    assert_eq!(samples.column(0).len(), 16);
    assert_eq!(samples.layout().width(), Measure::new(&model, &[0.0]).layout().width());
}
