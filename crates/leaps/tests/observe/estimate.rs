//! The jackknife: against its definition, against known variances, and its coverage.

use leaps::device::Draw;
use leaps::observe::{Estimate, Families, Jackknife};

use super::{mean_and_rms, stream};

/// The definition, in quadratic time.
fn brute(
    width: usize,
    rows: &[f64],
    weights: &[f64],
    ids: &[u32],
    g: impl Fn(&[f64]) -> f64,
) -> (f64, f64) {
    let value = |without: Option<u32>| {
        let mut sum = vec![0.0; width];
        let mut total = 0.0;
        for (i, &weight) in weights.iter().enumerate().filter(|&(i, _)| Some(ids[i]) != without) {
            total += weight;
            (0..width).for_each(|c| sum[c] += weight * rows[i * width + c]);
        }
        g(&sum.iter().map(|s| s / total).collect::<Vec<_>>())
    };
    let mut families = ids.to_vec();
    families.sort_unstable();
    families.dedup();
    let n = families.len() as f64;
    let values: Vec<f64> = families.iter().map(|&f| value(Some(f))).collect();
    let mean = values.iter().sum::<f64>() / n;
    let variance = (n - 1.0) / n * values.iter().map(|v| (v - mean).powi(2)).sum::<f64>();
    (value(None), variance.sqrt())
}

fn variance(m: &[f64]) -> f64 {
    m[1] - m[0] * m[0]
}

#[test]
fn sums_give_what_the_definition_gives() {
    let mut s = stream(0);
    for families in [3, 17, 60] {
        let n = 60;
        let mut rows = Vec::new();
        for _ in 0..n {
            let x = 50.0 + s.normal();
            rows.extend([x, x * x]);
        }
        let weights: Vec<f64> = (0..n).map(|_| (1.5 * s.normal()).exp()).collect();
        let ids: Vec<u32> = (0..n as u32).map(|i| 5 * (i % families)).collect();
        let jackknife = Jackknife::new(2, &rows, &weights, &Families::new(&ids));
        assert_eq!(jackknife.families(), families as usize);
        for g in [variance, |m: &[f64]| m[0], |m: &[f64]| m[1] / m[0]] {
            let (mean, error) = brute(2, &rows, &weights, &ids, g);
            let ours = jackknife.estimate(g);
            assert!((ours.mean - mean).abs() < 1e-11 * mean.abs().max(1.0));
            assert!((ours.error - error).abs() < 1e-8 * error, "{} {error}", ours.error);
        }
        let (one, same) = (jackknife.mean(0), jackknife.estimate(|m| m[0]));
        assert!((one.error - same.error).abs() < 1e-10 * same.error && one.mean == same.mean);
    }
}

#[test]
fn the_error_of_a_mean_is_the_textbook_one() {
    let values = [1.0, 4.0, 2.0, 9.0, 3.0];
    let ours = Jackknife::new(1, &values, &[2.0; 5], &Families::separate(5)).mean(0);
    let sample_variance = 38.8 / 4.0; // sum (x - 3.8)^2 = 38.8
    assert!((ours.mean - 3.8).abs() < 1e-15);
    assert!((ours.error - f64::sqrt(sample_variance / 5.0)).abs() < 1e-14);
}

#[test]
fn extremes_have_honest_errors() {
    let separate = Families::separate(3);
    // A constant: no error, whatever the weights; not even a rounding error.
    let constant =
        Jackknife::new(2, &[0.1, 0.01, 0.1, 0.01, 0.1, 0.01], &[0.3, 0.7, 1e-9], &separate);
    assert_eq!(constant.mean(0), Estimate::new(0.1, 0.0));
    assert_eq!(constant.estimate(|m| m[1] / m[0]).error, 0.0);
    // One walker, or one walker with all the weight, or one family: no idea.
    let one = Jackknife::new(1, &[2.0], &[1.0], &Families::separate(1)).mean(0);
    assert_eq!((one.mean, one.error), (2.0, f64::INFINITY));
    let hot = Jackknife::new(1, &[f64::INFINITY, 2.0, 3.0], &[0.0, 1.0, 0.0], &separate).mean(0);
    assert_eq!((hot.mean, hot.error), (2.0, f64::INFINITY));
    let kin = Jackknife::new(1, &[1.0, 2.0, 3.0], &[1.0; 3], &Families::new(&[4; 3])).mean(0);
    assert_eq!((kin.mean, kin.error), (2.0, f64::INFINITY));
    // A family with nearly all the weight: the others decide, with all their digits.
    let weights = [1.0, 1e-20, 1e-20];
    let heavy = Jackknife::new(1, &[0.0, 10.0, 10.0], &weights, &separate).mean(0);
    assert!((heavy.error - 10.0 * 2.0 / 3.0).abs() < 1e-12, "{}", heavy.error);
    // Undefined values are not passed off as numbers.
    let undefined = Jackknife::new(1, &[0.0; 3], &[1.0; 3], &separate).estimate(|m| m[0] / m[0]);
    assert!(undefined.mean.is_nan() && undefined.error == f64::INFINITY);
}

#[test]
fn json_has_null_for_what_is_not_a_number() {
    let estimate = Estimate::new(1.5, f64::INFINITY);
    let text = serde_json::to_string(&estimate).unwrap();
    assert_eq!(text, r#"{"mean":1.5,"error":null}"#);
    assert_eq!(serde_json::from_str::<Estimate>(&text).unwrap(), estimate);
    let text = serde_json::to_string(&Estimate::new(1.0, 0.5).with_exact(2.0)).unwrap();
    assert_eq!(text, r#"{"mean":1.0,"error":0.5,"exact":2.0}"#);
    assert_eq!(serde_json::from_str::<Estimate>(&text).unwrap().z(), Some(-2.0));
}

/// Over 600 replications the squared error of a variance estimate is on average the true one, 2/N for
/// normal numbers: |z| < 5 detects an error bar off by 4 %.
#[test]
fn errors_of_a_variance_are_the_known_ones() {
    let (replications, n) = (600, 100);
    let mut scores = Vec::new();
    for r in 0..replications {
        let mut s = stream(r);
        let rows: Vec<f64> = (0..n)
            .flat_map(|_| {
                let x = s.normal();
                [x, x * x]
            })
            .collect();
        let jackknife = Jackknife::new(2, &rows, &vec![1.0; n], &Families::separate(n));
        let squared = jackknife.estimate(variance).error.powi(2);
        // The jackknife's variance of s^2 has relative bias O(1/N) and relative scatter
        // sqrt(E[(x^2-1)^4]/4 - 1) / sqrt(N) = sqrt(14/N).
        scores.push((squared / (2.0 / n as f64) - 1.0) / (14.0 / n as f64).sqrt());
    }
    let z = mean_and_rms(&scores).0 * f64::from(replications).sqrt();
    assert!(z.abs() < 5.0, "{z}");
}

/// Weighted estimates scatter as their errors say: over 600 replications the z-scores' standard
/// deviation, known to 3 %, is in 0.85..1.15, and their mean detects a bias of 0.2 errors (|z| < 5).
#[test]
fn weighted_errors_cover() {
    let (replications, n, shift) = (600, 2000, 0.5);
    let (mut means, mut variances, mut kin) = (Vec::new(), Vec::new(), Vec::new());
    for r in 0..replications {
        let mut s = stream(1000 + r);
        // Samples of N(0, 1) weighted to N(shift, 1): w = exp(shift x).
        let x: Vec<f64> = (0..n).map(|_| s.normal()).collect();
        let rows: Vec<f64> = x.iter().flat_map(|&x| [x, x * x]).collect();
        let weights: Vec<f64> = x.iter().map(|x| (shift * x).exp()).collect();
        let jackknife = Jackknife::new(2, &rows, &weights, &Families::separate(n));
        means.push(jackknife.mean(0).with_exact(shift).z().unwrap());
        variances.push(jackknife.estimate(variance).with_exact(1.0).z().unwrap());
        // Families of random size whose members are copies of each other.
        let copies: Vec<usize> = (0..n).flat_map(|i| vec![i; s.below(4)]).collect();
        let pick = |values: &[f64]| copies.iter().map(|&i| values[i]).collect::<Vec<_>>();
        let families = Families::new(&copies.iter().map(|&i| i as u32).collect::<Vec<_>>());
        let jackknife = Jackknife::new(1, &pick(&x), &pick(&weights), &families);
        kin.push(jackknife.mean(0).with_exact(shift).z().unwrap());
    }
    for (name, z) in [("mean", means), ("variance", variances), ("families", kin)] {
        let (mean, rms) = mean_and_rms(&z);
        assert!((0.85..1.15).contains(&rms), "{name}: {rms}");
        assert!(mean.abs() < 0.3, "{name}: {mean}"); // of order 1/sqrt(N) for ratios
    }
}
