//! Two-sided estimates of log Z: Bennett's acceptance ratio of forward and reversed paths.
//!
//! Walkers that go along a path have log-weights $A$ with $\langle e^{A} \rangle = Z_1/Z_0$. Walkers that start from the target and go back along the reversed
//! path have the same quantity $A$ on their way, and among them its density is that of the others times $e^{A - \Delta}$, $\Delta = \log Z_1/Z_0$ (Crooks 1999). For any
//! constant $c$ and the logistic function $\sigma$ then
//!
//! $$\Delta = c + \log \langle \sigma(A - c) \rangle_\text{forward} - \log \langle \sigma(c - A) \rangle_\text{reversed},$$
//!
//! and the variance is least for $c = \Delta + \log(n_\text{forward}/n_\text{reversed})$ (Bennett 1976), to which $c$ is iterated here.

use super::{Estimate, Families, Jackknife};

/// The two-sided estimate of $\Delta$.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TwoSided {
    /// $\Delta = \log Z_1/Z_0$, with the error of both sides.
    pub difference: Estimate,
    /// What the two distributions have in common: 1/2 if they are the same, 0 if nothing connects them.
    pub overlap: f64,
}

/// Join log-weights $A$ of forward paths and of reversed ones. Reversed paths whose starts are not independent of each other are a family.
pub fn two_sided(forward: &[f64], reversed: &[f64], families: &Families) -> TwoSided {
    let ratio = (forward.len() as f64 / reversed.len() as f64).ln();
    let part = |c: f64| {
        let forward = forward.iter().map(|a| logistic(a - c)).sum::<f64>();
        let reversed = reversed.iter().map(|a| logistic(c - a)).sum::<f64>();
        forward - reversed
    };
    // The difference falls with c, from below the smallest log-weight to above the largest.
    let all = || forward.iter().chain(reversed).copied().filter(|a| a.is_finite());
    let (mut low, mut high) = (
        all().fold(f64::INFINITY, f64::min) - 50.0,
        all().fold(f64::NEG_INFINITY, f64::max) + 50.0,
    );
    for _ in 0..200 {
        let middle = 0.5 * (low + high);
        if part(middle) > 0.0 { low = middle } else { high = middle }
    }
    let c = 0.5 * (low + high);
    let side = |values: Vec<f64>, families: &Families| {
        let ones = vec![1.0; values.len()];
        Jackknife::new(1, &values, &ones, families).estimate(|mean| mean[0].ln())
    };
    let first =
        side(forward.iter().map(|a| logistic(a - c)).collect(), &Families::separate(forward.len()));
    let second = side(reversed.iter().map(|a| logistic(c - a)).collect(), families);
    let common: f64 = all().map(|a| logistic(a - c) * logistic(c - a)).sum();
    debug_assert!((first.mean - second.mean + ratio).abs() < 1e-6 || !c.is_finite());
    TwoSided {
        difference: Estimate::new(c + first.mean - second.mean, first.error.hypot(second.error)),
        overlap: 2.0 * common / (forward.len() + reversed.len()) as f64,
    }
}

fn logistic(x: f64) -> f64 {
    // No overflow on either side.
    if x < 0.0 { x.exp() / (1.0 + x.exp()) } else { 1.0 / (1.0 + (-x).exp()) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::{Purpose, Stream};

    /// Works of a Gaussian process: of mean `delta - s^2/2` forward and `delta + s^2/2` reversed.
    fn works(delta: f64, spread: f64, n: usize, seed: u64) -> (Vec<f64>, Vec<f64>) {
        let mut stream = Stream::new(seed, Purpose::Statistic, 0, 0);
        let mut normal = || {
            let (u, v) = (1.0 - stream.uniform(), stream.uniform());
            (-2.0 * u.ln()).sqrt() * (std::f64::consts::TAU * v).cos()
        };
        let shift = 0.5 * spread * spread;
        let forward = (0..n).map(|_| delta - shift + spread * normal()).collect();
        let reversed = (0..n / 2).map(|_| delta + shift + spread * normal()).collect();
        (forward, reversed)
    }

    #[test]
    fn both_sides_together_are_unbiased_and_their_errors_cover() {
        for spread in [0.3, 2.0] {
            let (mut squares, mut sum, seeds) = (0.0, 0.0, 300);
            for seed in 0..seeds {
                let (forward, reversed) = works(-7.3, spread, 400, seed);
                let families = Families::separate(reversed.len());
                let found = two_sided(&forward, &reversed, &families);
                let z = found.difference.with_exact(-7.3).z().unwrap();
                squares += z * z;
                sum += z;
                assert!(found.overlap > 0.0 && found.overlap <= 0.5);
            }
            let n = seeds as f64;
            let (rms, mean) = ((squares / n).sqrt(), sum / n);
            assert!((0.88..1.12).contains(&rms), "rms z {rms} at spread {spread}");
            assert!(mean.abs() < 4.0 / n.sqrt(), "mean z {mean} at spread {spread}");
        }
    }

    #[test]
    fn works_that_do_not_overlap_are_seen() {
        let (forward, reversed) = works(0.0, 12.0, 200, 1);
        let families = Families::separate(reversed.len());
        assert!(two_sided(&forward, &reversed, &families).overlap < 0.03);
    }
}
