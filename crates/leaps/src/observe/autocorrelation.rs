//! Autocorrelation times: how many samples a correlated time series is worth.

use rayon::prelude::*;
use rustfft::{FftPlannerScalar, num_complex::Complex64};
use serde::Serialize;

use super::Estimate;

/// The window is the first lag that is this many autocorrelation times.
const WINDOW: f64 = 6.0;
/// A chain shorter than this many autocorrelation times is not to be trusted.
const LONG: f64 = 50.0;
/// Pairs of series transformed at a time: bounds the memory for many long chains.
const AT_ONCE: usize = 8;

/// The memory of one observable along chains of the same kind.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Autocorrelation {
    /// The integrated autocorrelation time $\tau = \frac12 + \sum_{t=1}^{W} \rho(t)$ in kept states, with the autocovariances
    /// averaged over chains about the common mean and Sokal's window, the first $W \ge 6\tau$. At least ½:
    /// anticorrelation is not credited. The error is Madras and Sokal's, $\tau\sqrt{2(2W+1)/T}$.
    ///
    /// A series that never changes has $\tau$ equal to half its length.
    pub time: Estimate,
    /// $T / (2\tau)$: how many independent states would know the mean equally well, over all chains.
    pub effective_samples: f64,
    /// Split R-hat, see [`split_r_hat`]; NaN (`null` in JSON) for chains of fewer than 4 states.
    pub r_hat: f64,
    /// Whether a chain is shorter than 50 autocorrelation times, so that $\tau$ itself, and every error that uses
    /// it, may be too small.
    pub short: bool,
    /// Whether the series never changes.
    pub constant: bool,
    /// `rho(t)` for `t` up to the window.
    #[serde(skip)]
    rho: Vec<f64>,
}

impl Autocorrelation {
    /// Analyse one observable of several chains, each a series in time.
    pub fn new(chains: &[&[f32]]) -> Self {
        Lags::new(chains).within(0)
    }

    /// The window $W$; 0 for a series that never changes.
    pub(super) fn window(&self) -> usize {
        self.rho.len() - 1
    }

    /// How much larger the error of the mean is than blocks of `length` states show, because
    /// correlations across their ends are lost to them: $\sqrt{\tau/\tau_b}$ with
    /// $\tau_b = \frac12 + \sum_{t<b} (1 - t/b) \rho(t)$.
    pub(super) fn block_inflation(&self, length: usize) -> f64 {
        let within: f64 = (1..self.rho.len().min(length))
            .map(|t| (1.0 - t as f64 / length as f64) * self.rho[t])
            .sum();
        (self.time.mean / (0.5 + within).max(0.25 * self.time.mean)).sqrt().max(1.0)
    }
}

/// Autocorrelations of one observable at all lags, of which a window is to be taken.
pub(super) struct Lags {
    /// `rho(t)`; none if the series never changes.
    rho: Vec<f64>,
    chains: usize,
    total: usize,
    shortest: usize,
    r_hat: f64,
}

impl Lags {
    pub fn new(chains: &[&[f32]]) -> Self {
        let total: usize = chains.iter().map(|c| c.len()).sum();
        let shortest = chains.iter().map(|c| c.len()).min().unwrap_or(0);
        let all = || chains.iter().flat_map(|c| c.iter()).map(|&v| f64::from(v));
        let first = all().next().unwrap_or(0.0);
        let mut rho = Vec::new();
        if all().any(|v| v != first) {
            rho = lagged_products(chains, all().sum::<f64>() / total as f64);
            for (lag, product) in rho.iter_mut().enumerate() {
                let pairs: usize = chains.iter().map(|c| c.len().saturating_sub(lag)).sum();
                *product /= pairs as f64;
            }
            let variance = rho[0];
            rho.iter_mut().for_each(|covariance| *covariance /= variance);
        }
        Lags { rho, chains: chains.len(), total, shortest, r_hat: split_r_hat(chains) }
    }

    /// Sum them up in Sokal's window; in `window` if that is longer and the sum larger, since what is there beyond the first is either a slow
    /// part or noise, which does not make chains any better.
    pub fn within(&self, window: usize) -> Autocorrelation {
        let Lags { ref rho, chains, total, shortest, r_hat } = *self;
        if rho.is_empty() {
            return Autocorrelation {
                time: Estimate::new(0.5 * shortest as f64, f64::INFINITY),
                effective_samples: chains as f64,
                r_hat,
                short: true,
                constant: true,
                rho: vec![1.0],
            };
        }
        let (mut lags, mut time) = (1, 0.5f64);
        while lags < rho.len() {
            time += rho[lags];
            lags += 1;
            if (lags - 1) as f64 >= WINDOW * time {
                break;
            }
        }
        let more = rho.get(lags..=window).map_or(0.0, |rest| rest.iter().sum());
        if more > 0.0 {
            (lags, time) = (window + 1, time + more);
        }
        let time = time.max(0.5);
        let error = time * (2.0 * (2 * lags - 1) as f64 / total as f64).sqrt();
        Autocorrelation {
            time: Estimate::new(time, error),
            effective_samples: total as f64 / (2.0 * time),
            r_hat,
            short: (shortest as f64) < LONG * time,
            constant: false,
            rho: rho[..lags].to_vec(),
        }
    }
}

/// The effective sample size of one chain as the DISCS benchmark takes it from a series:
/// $T / (-1 + 2\sum_{t=0} (1 - t/T) \rho(t))$, the chain's own mean subtracted, the sum ending before the first
/// negative $\rho(t)$. A series that never changes counts as 1.
pub fn discs_ess(series: &[f32]) -> f64 {
    let n = series.len() as f64;
    if series.windows(2).all(|pair| pair[0] == pair[1]) {
        return 1.0;
    }
    let mean = series.iter().map(|&v| f64::from(v)).sum::<f64>() / n;
    let products = lagged_products(&[series], mean);
    // products[t] / (n - t) is the covariance; times (1 - t/n) that is products[t] / n.
    let sum: f64 = products.iter().take_while(|&&p| p >= 0.0).map(|p| p / products[0]).sum();
    n / (2.0 * sum - 1.0)
}

/// Split R-hat (Gelman et al., *Bayesian Data Analysis*, 3rd ed., 11.4): every chain is cut in two, and
/// with the variance $B/n$ of the $n$-state halves' means and the mean variance $W$ within a half,
/// $\hat R = \sqrt{\frac{n-1}{n} + \frac{B}{n W}}$.
///
/// About 1 when all halves agree; infinite if they differ and none moves; NaN for fewer than 4 states.
pub fn split_r_hat(chains: &[&[f32]]) -> f64 {
    let n = chains.iter().map(|c| c.len()).min().unwrap_or(0) / 2;
    if n < 2 {
        return f64::NAN;
    }
    let halves = || chains.iter().flat_map(|c| [&c[..n], &c[c.len() - n..]]);
    let moments = |half: &[f32]| {
        let mean = half.iter().map(|&v| f64::from(v)).sum::<f64>() / n as f64;
        let square: f64 = half.iter().map(|&v| (f64::from(v) - mean).powi(2)).sum();
        (mean, square / (n - 1) as f64)
    };
    let moments: Vec<(f64, f64)> = halves().map(moments).collect();
    let m = moments.len() as f64;
    let within = moments.iter().map(|h| h.1).sum::<f64>() / m;
    let mean = moments.iter().map(|h| h.0).sum::<f64>() / m;
    let between = moments.iter().map(|h| (h.0 - mean).powi(2)).sum::<f64>() / (m - 1.0);
    if between == 0.0 {
        return 1.0;
    }
    let n = n as f64;
    ((n - 1.0) / n + between / within).sqrt()
}

/// $\sum_c \sum_i (a^c_i - \mu)(a^c_{i+t} - \mu)$ over series $a^c$, for every lag $t$ below the longest length, in
/// $O(T \log T)$ by Fourier transforms.
///
/// The same for any number of threads; the scalar planner keeps it the same at any SIMD level, too.
fn lagged_products(series: &[&[f32]], mean: f64) -> Vec<f64> {
    let longest = series.iter().map(|s| s.len()).max().unwrap_or(0);
    let size = (2 * longest).next_power_of_two();
    let fourier = FftPlannerScalar::new().plan_fft_forward(size);
    // With one series as the real and one as the imaginary part, the power spectrum of the pair
    // transforms back to the sum of both autocorrelations in its real part.
    let power_of = |pair: &&[&[f32]]| {
        let at = |which: usize, i: usize| {
            let value = pair.get(which).and_then(|s| s.get(i));
            value.map_or(0.0, |&v| f64::from(v) - mean)
        };
        let mut a: Vec<_> = (0..longest).map(|i| Complex64::new(at(0, i), at(1, i))).collect();
        a.resize(size, Complex64::ZERO);
        fourier.process(&mut a);
        a.into_iter().map(|z| z.norm_sqr()).collect::<Vec<f64>>()
    };
    let pairs: Vec<&[&[f32]]> = series.chunks(2).collect();
    let mut power = vec![Complex64::ZERO; size];
    for some in pairs.chunks(AT_ONCE) {
        let spectra: Vec<Vec<f64>> = some.par_iter().map(power_of).collect();
        for spectrum in spectra {
            power.iter_mut().zip(spectrum).for_each(|(sum, value)| *sum += value);
        }
    }
    // A power spectrum summed over pairs is real; forward and backward transforms of it differ only
    // by the sign of the part that is dropped.
    fourier.process(&mut power);
    power[..longest].iter().map(|z| z.re / size as f64).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lagged_products_are_their_definition_for_any_number_of_threads() {
        let all: Vec<f32> = (0..9000).map(|i| (i * i % 37) as f32 / 7.0 - 2.0).collect();
        let pool = |n| rayon::ThreadPoolBuilder::new().num_threads(n).build().unwrap();
        for lengths in [vec![1], vec![7], vec![16; 3], vec![33, 5, 64, 12], vec![3000, 2999, 1500]]
        {
            let mut rest = &all[..];
            let series: Vec<&[f32]> =
                lengths.iter().map(|&n| rest.split_off(..n).unwrap()).collect();
            let ours = pool(1).install(|| lagged_products(&series, 0.3));
            assert_eq!(ours, pool(3).install(|| lagged_products(&series, 0.3)));
            assert_eq!(ours.len(), *lengths.iter().max().unwrap());
            for (t, product) in ours.iter().enumerate() {
                let direct: f64 = series
                    .iter()
                    .flat_map(|s| s.iter().zip(s.iter().skip(t)))
                    .map(|(&a, &b)| (f64::from(a) - 0.3) * (f64::from(b) - 0.3))
                    .sum();
                assert!((product - direct).abs() < 1e-12 * ours[0], "{t}: {product} {direct}");
            }
        }
        assert!(lagged_products(&[], 0.0).is_empty());
    }
}
