//! Histograms of weighted values, with errors and the distance between two.

use serde::Serialize;

use super::{Estimate, Families, Jackknife};
use crate::{Error, Result};

/// Most bins of a histogram.
const MAX_BINS: usize = 1 << 16;
/// Most numbers kept for the jackknife; more families are joined.
const MAX_SUMS: usize = 1 << 22;

/// Bins of equal width that cover `low..high`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Bins {
    low: f64,
    high: f64,
    count: usize,
}

impl Bins {
    /// `count` bins of equal width from `low` to `high > low`.
    pub fn new(low: f64, high: f64, count: usize) -> Result<Self> {
        let fits = low.is_finite() && high.is_finite() && low < high && (high - low).is_finite();
        if !fits || !(1..=MAX_BINS).contains(&count) {
            return Err(Error::invalid(
                "bins",
                format!("{count} from {low} to {high}"),
                format!("from 1 to {MAX_BINS}, between finite bounds, low below high"),
                "50 bins are usual",
            ));
        }
        Ok(Bins { low, high, count })
    }

    /// Lower bound of the first bin.
    pub fn low(&self) -> f64 {
        self.low
    }

    /// Upper bound of the last bin.
    pub fn high(&self) -> f64 {
        self.high
    }

    /// Number of bins.
    pub fn count(&self) -> usize {
        self.count
    }

    /// The bin of `value`; values outside, and NaN, fall into the nearer end bin, so that nothing is lost.
    ///
    /// Observables of discrete states often sit exactly on edges: one that is below an edge by less
    /// than 1e-4 of a bin counts as on it, so that rounding does not decide.
    pub fn of(&self, value: f64) -> usize {
        let position = (value - self.low) / (self.high - self.low) * self.count as f64 + 1e-4;
        (position.max(0.0) as usize).min(self.count - 1)
    }
}

/// The probability of every bin.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Histogram {
    /// The bins.
    pub bins: Bins,
    /// The share of the weight in every bin with its error; the shares sum to 1. An empty bin has error 0,
    /// which says that nothing was seen, not that nothing is there.
    pub mass: Vec<Estimate>,
}

/// How far two histograms are apart.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Distance {
    /// $\sum_b |p_b - p'_b|$, from 0 to 2.
    pub l1: f64,
    /// Half of it: the largest difference in the probability of any set of bins.
    pub total_variation: f64,
    /// The total variation that noise alone is expected to give, $\frac12 \sum_b \sqrt{2/\pi}\,\sqrt{\sigma_b^2 + \sigma_b'^2}$: a
    /// distance of this size says nothing.
    pub noise: f64,
}

impl Histogram {
    /// Bin `values` with `weights`, with errors by jackknife over `families`.
    pub fn new(bins: Bins, values: &[f64], weights: &[f64], families: &Families) -> Self {
        assert_eq!(values.len(), weights.len(), "one value per weight");
        assert_eq!(values.len(), families.len(), "one family per weight");
        let families = families.joined((MAX_SUMS / bins.count).max(64));
        let mut family_weights = vec![0.0; families.count()];
        let mut sums = vec![0.0; families.count() * bins.count];
        for (i, (&value, &weight)) in values.iter().zip(weights).enumerate() {
            if weight > 0.0 {
                family_weights[families.of(i)] += weight;
                sums[families.of(i) * bins.count + bins.of(value)] += weight;
            }
        }
        let jackknife = Jackknife::from_sums(vec![0.0; bins.count], family_weights, sums);
        Histogram { bins, mass: (0..bins.count).map(|bin| jackknife.mean(bin)).collect() }
    }

    /// The distance to a histogram with the same bins.
    pub fn distance(&self, other: &Histogram) -> Result<Distance> {
        if self.bins != other.bins {
            return Err(Error::invalid(
                "bins",
                format!("{:?}", other.bins),
                format!("{:?}", self.bins),
                "compare histograms over the same bins",
            ));
        }
        let pairs = || self.mass.iter().zip(&other.mass);
        let l1: f64 = pairs().map(|(a, b)| (a.mean - b.mean).abs()).sum();
        let noise: f64 = pairs().map(|(a, b)| a.error.hypot(b.error)).sum();
        let noise = 0.5 * (2.0 / std::f64::consts::PI).sqrt() * noise;
        Ok(Distance { l1, total_variation: 0.5 * l1, noise })
    }
}
