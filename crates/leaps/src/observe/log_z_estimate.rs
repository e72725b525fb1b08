//! log Z and the effective sample size of weighted walkers, with their errors.

use super::{Estimate, Families, Jackknife};
use crate::observe::LogWeights;

/// What resampling took out of the weights: add to it whenever weights are reset.
///
/// $\log Z = \log Z_0 + \sum_\text{segments} \log \frac1N \sum_i e^{A_i}$, each segment from one resampling to the next.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Segments {
    log_z: f64,
    resamplings: usize,
}

impl Segments {
    /// No resampling yet; `log_z0` is the log normalisation of the first distribution of the path.
    pub fn new(log_z0: f64) -> Self {
        Segments { log_z: log_z0, resamplings: 0 }
    }

    /// A segment ends: walkers are about to be resampled by `weights` and their weights reset.
    pub fn close(&mut self, weights: &LogWeights) {
        self.close_at(weights.log_mean());
    }

    /// [`close`](Self::close), by the log mean weight alone.
    pub(crate) fn close_at(&mut self, log_mean: f64) {
        self.log_z += log_mean;
        self.resamplings += 1;
    }

    /// $\log Z_0$ plus what the closed segments have added.
    pub fn log_z(&self) -> f64 {
        self.log_z
    }

    /// Number of closed segments, $R$.
    pub fn resamplings(&self) -> usize {
        self.resamplings
    }
}

/// log Z with its standard error, from the closed segments and the last one's weights.
///
/// With the share $S_f$ of family $f$ in the final weights, leaving out the family's walker at the start
/// changes the estimate by $d_f = \log(1 - S_f)$, up to a constant, and
///
/// $$\mathrm{error}^2 = \frac{N-1}{N} \sum_{f=1}^N (d_f - \bar d)^2,$$
///
/// the $N$ families including those that died out, with $d_f = 0$. Without resampling this is the plain
/// jackknife of the log mean weight. With systematic resampling its errors agree with the scatter of
/// repeated runs. With multinomial resampling they are too large, by up to $\sqrt{R + 1}$, because chance
/// makes families unequal even where weights are equal; [`lee_whiteley`] corrects for that, but is far too small, or
/// negative, for systematic resampling, and an error should not be too small. One family with all the weight: infinite.
pub fn log_z(weights: &LogWeights, families: &Families, closed: &Segments) -> Estimate {
    let mean = closed.log_z + weights.log_mean();
    let shares = shares(weights, families);
    genealogical(mean, weights.len(), (0..shares.len()).map(|family| rest(&shares, family).ln()))
}

/// The entropy $\log Z + \langle U \rangle$ with its standard error, from the potential $U$ of every walker. The errors of the two parts depend on
/// each other, and mostly cancel: leaving out a family changes the sum by $\log(1 - S_f)$ and by what the mean of $U$ changes.
pub fn entropy(
    weights: &LogWeights,
    families: &Families,
    closed: &Segments,
    potentials: &[f64],
) -> Estimate {
    assert_eq!(weights.len(), potentials.len(), "one potential per weight");
    let normalised = weights.normalised();
    // A walker of weight 0 may have any potential.
    let held = || normalised.iter().zip(potentials).enumerate().filter(|(_, (w, _))| **w > 0.0);
    let mean: f64 = held().map(|(_, (w, u))| w * u).sum();
    let shares = shares(weights, families);
    let mut departures = vec![0.0; families.count()];
    held().for_each(|(i, (w, u))| departures[families.of(i)] += w * (u - mean));
    let deviation = |family: usize| {
        let rest = rest(&shares, family);
        rest.ln() - departures[family] / rest
    };
    let value = closed.log_z + weights.log_mean() + mean;
    genealogical(value, weights.len(), (0..shares.len()).map(deviation))
}

/// What is left of the weights without a family.
fn rest(shares: &[f64], family: usize) -> f64 {
    let share = shares[family];
    // A share near 1: sum the others instead of losing their digits.
    if share < 0.5 {
        1.0 - share
    } else {
        shares.iter().enumerate().filter(|&(f, _)| f != family).map(|(_, s)| s).sum()
    }
}

/// The error of an estimate from what leaving out every living family changes; the others of `walkers` families change nothing.
fn genealogical(mean: f64, walkers: usize, deviations: impl Iterator<Item = f64>) -> Estimate {
    let n = walkers as f64;
    let (first, second) = deviations.fold((0.0, 0.0), |(a, b), d| (a + d, b + d * d));
    if n < 2.0 || !f64::is_finite(second) {
        return Estimate::new(mean, f64::INFINITY);
    }
    // Equal shares have no spread; what rounding leaves of it is not an error.
    let spread = second - first * first / n;
    let noise = 4.0 * f64::EPSILON * second;
    Estimate::new(mean, ((n - 1.0) / n * if spread > noise { spread } else { 0.0 }).sqrt())
}

/// The estimator of Lee and Whiteley (2018) of the relative variance of $Z$ after $R$ **multinomial** resamplings:
/// $1 - \left(\frac{N}{N-1}\right)^{R+1} \left(1 - \sum_f S_f^2\right)$.
///
/// Unbiased (times $Z^2$) for that scheme; a single value may be negative. Without resampling it is
/// $(1/\mathrm{ESS} - 1)/(N - 1)$. Other schemes need [`log_z`].
pub fn lee_whiteley(weights: &LogWeights, families: &Families, resamplings: usize) -> f64 {
    let together: f64 = shares(weights, families).iter().map(|s| s * s).sum();
    let n = weights.len() as f64;
    1.0 - (n / (n - 1.0)).powf(resamplings as f64 + 1.0) * (1.0 - together)
}

/// The share of every family in the weights.
fn shares(weights: &LogWeights, families: &Families) -> Vec<f64> {
    assert_eq!(weights.len(), families.len(), "one family per weight");
    let mut shares = vec![0.0; families.count()];
    for (i, share) in weights.normalised().into_iter().enumerate() {
        shares[families.of(i)] += share;
    }
    shares
}

/// The effective sample size as a fraction in (0, 1] ([`LogWeights::ess`]), with its jackknife error.
pub fn ess(weights: &LogWeights, families: &Families) -> Estimate {
    let rows: Vec<f64> = weights.relative().iter().flat_map(|&w| [w, w * w]).collect();
    let jackknife = Jackknife::new(2, &rows, &vec![1.0; weights.len()], families);
    let spread = jackknife.estimate(|m| m[0] * m[0] / m[1]);
    Estimate::new(weights.ess(), spread.error)
}
