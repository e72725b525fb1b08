//! Errors of log Z and of the effective sample size, with and without resampling.

use leaps::device::{Draw, Stream};
use leaps::observe::LogWeights;
use leaps::observe::{Families, Segments, ess, lee_whiteley, log_z};

use super::{mean_and_rms, stream};

/// The end of a sequential Monte Carlo run.
struct Run {
    weights: LogWeights,
    families: Families,
    closed: Segments,
}

/// Tilt a standard normal number to `exp(-x^2/2 - tilt x)`, log Z = tilt^2/2, in 10 steps with an invariant
/// autoregressive move of correlation `memory` after each, resampling at ESS below `threshold`.
fn tilt(s: &mut Stream, tilt: f64, memory: f64, threshold: f64, systematic: bool) -> Run {
    let (n, steps) = (200, 10);
    let mut x: Vec<f64> = (0..n).map(|_| s.normal()).collect();
    let (mut log, mut ids) = (vec![0.0; n], (0..n as u32).collect::<Vec<_>>());
    let mut closed = Segments::new(0.0);
    for k in 1..=steps {
        let now = tilt * k as f64 / steps as f64;
        log.iter_mut().zip(&x).for_each(|(a, x)| *a -= tilt / steps as f64 * x);
        let weights = LogWeights::new(log.clone()).unwrap();
        if k < steps && weights.ess() < threshold {
            closed.close(&weights);
            let parents = resample(s, &weights.normalised(), systematic);
            x = parents.iter().map(|&i| x[i]).collect();
            ids = parents.iter().map(|&i| ids[i]).collect();
            log.fill(0.0);
        }
        if k < steps {
            for x in &mut x {
                *x = -now + memory * (*x + now) + (1.0 - memory * memory).sqrt() * s.normal();
            }
        }
    }
    Run { weights: LogWeights::new(log).unwrap(), families: Families::new(&ids), closed }
}

fn resample(s: &mut Stream, shares: &[f64], systematic: bool) -> Vec<usize> {
    let n = shares.len();
    if !systematic {
        return (0..n).map(|_| s.pick(shares)).collect();
    }
    let (offset, mut sum, mut parents) = (s.uniform(), 0.0, Vec::new());
    for (i, share) in shares.iter().enumerate() {
        sum += n as f64 * share;
        while parents.len() < n && parents.len() as f64 + offset < sum {
            parents.push(i);
        }
    }
    parents.resize(n, n - 1);
    parents
}

/// Over 400 runs each, the z-scores' root mean square is known to 4 %; it must not exceed 1.15, and where
/// the estimator claims accuracy it must exceed 0.85.
#[test]
fn log_z_scatters_as_its_error_says() {
    for (case, memory, threshold, systematic, lowest) in [
        ("no resampling", 0.5, 0.0, true, 0.85),
        ("systematic, rarely", 0.5, 0.5, true, 0.85),
        ("systematic, always, slow moves", 0.9, 1.1, true, 0.85),
        ("multinomial, rarely", 0.5, 0.5, false, 0.6),
        ("multinomial, always", 0.5, 1.1, false, 0.2),
    ] {
        let runs: Vec<Run> = (0..400)
            .map(|r| tilt(&mut stream(2000 + r), 1.5, memory, threshold, systematic))
            .collect();
        let scores: Vec<f64> = runs
            .iter()
            .map(|run| {
                let exact = 1.5 * 1.5 / 2.0;
                log_z(&run.weights, &run.families, &run.closed).with_exact(exact).z().unwrap()
            })
            .collect();
        let (mean, rms) = mean_and_rms(&scores);
        assert!((lowest..1.15).contains(&rms), "{case}: {rms}");
        assert!(mean.abs() < 0.3, "{case}: {mean}");
    }
}

/// With multinomial resampling at every step the expected variance is Lee and Whiteley's, whose
/// estimate times (Z/Z_exact)^2 is unbiased; |z| < 5 detects a third of the variance here.
#[test]
fn lee_and_whiteley_are_unbiased_for_multinomial_resampling() {
    let exact = 1.5f64 * 1.5 / 2.0;
    let differences: Vec<f64> = (0..1000)
        .map(|r| {
            let run = tilt(&mut stream(3000 + r), 1.5, 0.5, 1.1, false);
            assert_eq!(run.closed.resamplings(), 9);
            let ratio = (run.closed.log_z() + run.weights.log_mean() - exact).exp();
            lee_whiteley(&run.weights, &run.families, 9) * ratio * ratio - (ratio - 1.0).powi(2)
        })
        .collect();
    let (mean, rms) = mean_and_rms(&differences);
    assert!((mean / rms * 1000f64.sqrt()).abs() < 5.0, "{mean} {rms}");
}

#[test]
fn without_resampling_all_agree() {
    let mut s = stream(5);
    let n = 5000;
    let log: Vec<f64> = (0..n).map(|_| 0.5 * s.normal()).collect();
    let weights = LogWeights::new(log).unwrap();
    let (families, closed) = (Families::separate(n), Segments::new(7.0));
    let ours = log_z(&weights, &families, &closed);
    assert_eq!(ours.mean, 7.0 + weights.log_mean());
    let relative = (1.0 / weights.ess() - 1.0) / (n as f64 - 1.0);
    assert!((ours.error / relative.sqrt() - 1.0).abs() < 2e-3);
    assert!((lee_whiteley(&weights, &families, 0) / relative - 1.0).abs() < 1e-8);
}

#[test]
fn extremes_have_honest_errors() {
    let closed = Segments::default();
    let equal = LogWeights::new(vec![0.3; 7]).unwrap();
    assert_eq!(log_z(&equal, &Families::separate(7), &closed).error, 0.0);
    assert_eq!(
        (ess(&equal, &Families::separate(7)).mean, ess(&equal, &Families::separate(7)).error),
        (1.0, 0.0)
    );
    assert_eq!(log_z(&equal, &Families::new(&[2; 7]), &closed).error, f64::INFINITY);
    let one = LogWeights::new(vec![4.0]).unwrap();
    assert_eq!(log_z(&one, &Families::separate(1), &closed).error, f64::INFINITY);
    assert_eq!(ess(&one, &Families::separate(1)).error, f64::INFINITY);
    let hot = LogWeights::new(vec![f64::NEG_INFINITY, 0.0]).unwrap();
    assert_eq!(log_z(&hot, &Families::separate(2), &closed).error, f64::INFINITY);
    let heavy = LogWeights::new(vec![0.0, -60.0, -60.0]).unwrap();
    let error = log_z(&heavy, &Families::separate(3), &closed).error;
    // Deviations -59.3, 0, 0.
    assert!((error - (60.0 - 2f64.ln()) * 2.0 / 3.0).abs() < 1e-9, "{error}");
}

/// ESS of lognormal weights is exp(-sigma^2); 400 replications as above.
#[test]
fn the_effective_sample_size_scatters_as_its_error_says() {
    let sigma = 0.5;
    let scores: Vec<f64> = (0..400)
        .map(|r| {
            let mut s = stream(4000 + r);
            let weights = LogWeights::new((0..500).map(|_| sigma * s.normal()).collect()).unwrap();
            let exact = f64::exp(-sigma * sigma);
            ess(&weights, &Families::separate(500)).with_exact(exact).z().unwrap()
        })
        .collect();
    let (mean, rms) = mean_and_rms(&scores);
    assert!((0.85..1.2).contains(&rms) && mean.abs() < 0.3, "{mean} {rms}");
}
