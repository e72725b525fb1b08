//! Log-weights of an ensemble: the only place where an effective sample size is computed.

use crate::{Error, Result};

/// Log-weights of an ensemble, checked when made and not changed afterwards.
///
/// A weight may be zero (`-inf`), but not all of them, and none may be NaN or infinite.
#[derive(Clone, Debug, PartialEq)]
pub struct LogWeights {
    log: Vec<f64>,
    /// `exp(log - max)`.
    relative: Vec<f64>,
    max: f64,
    sum: f64,
}

impl LogWeights {
    /// Check and take over log-weights.
    pub fn new(log: Vec<f64>) -> Result<Self> {
        if log.is_empty() {
            return Err(Error::Weights("the ensemble is empty".into()));
        }
        if let Some((i, &bad)) =
            log.iter().enumerate().find(|(_, w)| w.is_nan() || **w == f64::INFINITY)
        {
            return Err(Error::Weights(format!("walker {i} has log-weight {bad}")));
        }
        let max = log.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        if max == f64::NEG_INFINITY {
            return Err(Error::Weights("every walker has weight zero".into()));
        }
        let relative: Vec<f64> = log.iter().map(|w| (w - max).exp()).collect();
        let sum = relative.iter().sum();
        Ok(LogWeights { log, relative, max, sum })
    }

    /// Number of walkers.
    pub fn len(&self) -> usize {
        self.log.len()
    }

    /// Never: an empty ensemble is refused. Present for custom's sake.
    pub fn is_empty(&self) -> bool {
        self.log.is_empty()
    }

    /// The log-weights.
    pub fn log(&self) -> &[f64] {
        &self.log
    }

    /// The weights divided by the largest: in [0, 1], safe to sum.
    pub fn relative(&self) -> &[f64] {
        &self.relative
    }

    /// The weights divided by their sum.
    pub fn normalised(&self) -> Vec<f64> {
        self.relative.iter().map(|w| w / self.sum).collect()
    }

    /// `log((1/N) sum exp(log))`: the estimate of `log Z_1 - log Z_0`.
    pub fn log_mean(&self) -> f64 {
        self.max + (self.sum / self.len() as f64).ln()
    }

    /// `(1/N) sum log`, a lower bound of [`log_mean`](Self::log_mean) (the ELBO's part).
    pub fn mean_log(&self) -> f64 {
        self.log.iter().sum::<f64>() / self.len() as f64
    }

    /// Effective sample size as a fraction: `(sum w)^2 / (N sum w^2)`, in [1/N, 1].
    pub fn ess(&self) -> f64 {
        let squares: f64 = self.relative.iter().map(|w| w * w).sum();
        (self.sum * self.sum / (self.len() as f64 * squares)).min(1.0)
    }

    /// How heavy the tail of the weights is: the shape `k` of a generalised Pareto distribution fitted to the largest of them
    /// (Zhang and Stephens 2009; Vehtari et al. 2024). Means converge as usual below 1/2, slowly up to 0.7; above that the
    /// largest weights have not been seen yet. `None` for fewer than 100 walkers, or if the largest are all alike.
    pub fn tail_index(&self) -> Option<f64> {
        let n = self.len() as f64;
        let count = (0.2 * n).min(3.0 * n.sqrt()) as usize;
        if count < 20 {
            return None;
        }
        let mut sorted = self.relative.clone();
        sorted.sort_unstable_by(f64::total_cmp);
        let (rest, top) = sorted.split_at(sorted.len() - count);
        let threshold = rest[rest.len() - 1];
        let excess: Vec<f64> = top.iter().map(|w| w - threshold).filter(|x| *x > 0.0).collect();
        if excess.len() < 20 {
            return None;
        }
        let m = excess.len() as f64;
        let shape = |b: f64| excess.iter().map(|x| (-b * x).ln_1p()).sum::<f64>() / m;
        // The posterior mean of b = -k / scale over a grid, flat in the quantiles of its prior.
        let (points, largest) = (30 + m.sqrt() as usize, excess[excess.len() - 1]);
        let quartile = excess[((m / 4.0 + 0.5) as usize).max(1) - 1];
        let grid: Vec<(f64, f64)> = (1..=points)
            .map(|j| {
                let spread = 1.0 - (points as f64 / (j as f64 - 0.5)).sqrt();
                let b = 1.0 / largest + spread / (3.0 * quartile);
                let k = shape(b);
                (b, m * ((-b / k).ln() - k - 1.0))
            })
            .filter(|(_, log)| log.is_finite())
            .collect();
        let top = grid.iter().map(|(_, log)| *log).fold(f64::NEG_INFINITY, f64::max);
        let sum: f64 = grid.iter().map(|(_, log)| (log - top).exp()).sum();
        let b = grid.iter().map(|(b, log)| b * (log - top).exp()).sum::<f64>() / sum;
        // Ten observations' worth of 1/2, for few weights say little.
        let k = (m * shape(b) + 5.0) / (m + 10.0);
        k.is_finite().then_some(k)
    }

    /// Conditional effective sample size of a step that would multiply the weights by
    /// `exp(increment)`: `(sum W v)^2 / sum W v^2` with normalised `W`, in (0, 1].
    ///
    /// It judges one step on its own, however uneven the weights already are (Zhou, Johansen, Aston 2016).
    pub fn conditional_ess(&self, increment: impl Fn(usize) -> f64) -> f64 {
        let top = (0..self.len())
            .filter(|&i| self.relative[i] > 0.0)
            .map(&increment)
            .fold(f64::NEG_INFINITY, f64::max);
        let (mut first, mut second) = (0.0, 0.0);
        for (i, &weight) in self.relative.iter().enumerate() {
            if weight > 0.0 {
                let v = (increment(i) - top).exp();
                first += weight * v;
                second += weight * v * v;
            }
        }
        (first * first / (self.sum * second)).min(1.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn refuses_what_is_not_a_weight() {
        for bad in [vec![], vec![f64::NAN, 0.0], vec![f64::INFINITY], vec![f64::NEG_INFINITY; 3]] {
            assert!(LogWeights::new(bad).is_err());
        }
        let one = LogWeights::new(vec![f64::NEG_INFINITY, 3.0]).unwrap();
        assert_eq!(one.ess(), 0.5);
        assert!((one.log_mean() - (3.0 - 2f64.ln())).abs() < 1e-15);
    }

    #[test]
    fn large_weights_do_not_overflow() {
        let w = LogWeights::new(vec![1e4, 1e4 + 1.0, 1e4 - 5.0]).unwrap();
        let small = LogWeights::new(vec![0.0, 1.0, -5.0]).unwrap();
        assert!((w.ess() - small.ess()).abs() < 1e-12);
        assert!((w.log_mean() - 1e4 - small.log_mean()).abs() < 1e-9);
    }

    #[test]
    fn the_tail_index_is_that_of_pareto_weights() {
        for n in [1000, 20_000] {
            for k in [0.1, 0.4, 0.9, 1.5] {
                // Quantiles of a Pareto distribution, in a scrambled order.
                let at = |i: usize| ((i * 7919 % n) as f64 + 0.5) / n as f64;
                let found = LogWeights::new((0..n).map(|i| -k * at(i).ln()).collect())
                    .unwrap()
                    .tail_index();
                assert!((found.unwrap() - k).abs() < 0.15, "{k}: {found:?}");
            }
        }
        // Weights with an end have none to speak of; equal ones say nothing.
        let even = LogWeights::new((1..=1000).map(|i| f64::from(i).ln()).collect()).unwrap();
        assert!(even.tail_index().unwrap() < 0.0);
        assert_eq!(LogWeights::new(vec![1.0; 1000]).unwrap().tail_index(), None);
    }

    proptest! {
        #[test]
        fn laws(log in proptest::collection::vec(-50.0f64..50.0, 1..60), shift in -1e4f64..1e4) {
            let n = log.len() as f64;
            let w = LogWeights::new(log.clone()).unwrap();
            let shifted = LogWeights::new(log.iter().map(|a| a + shift).collect()).unwrap();
            prop_assert!((w.ess() - shifted.ess()).abs() < 1e-9);
            prop_assert!((w.log_mean() + shift - shifted.log_mean()).abs() < 1e-8);
            prop_assert!(w.ess() >= 1.0 / n - 1e-12 && w.ess() <= 1.0);
            prop_assert!(w.mean_log() <= w.log_mean() + 1e-12);
            prop_assert!((w.normalised().iter().sum::<f64>() - 1.0).abs() < 1e-12);
            // From equal weights the conditional ESS of the whole step is the ESS after it.
            let equal = LogWeights::new(vec![0.0; log.len()]).unwrap();
            prop_assert!((equal.conditional_ess(|i| log[i]) - w.ess()).abs() < 1e-9);
        }
    }
}
