//! Resamplers: heavy walkers are copied and light ones dropped, every expected count being right.

use crate::device::Stream;
use crate::observe::LogWeights;

/// How ancestors are drawn. Under each, walker `i` has `N w_i` children on average.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Resampler {
    /// `N` independent draws.
    Multinomial,
    /// One draw in each of `N` equal strata.
    Stratified,
    /// `N` equally spaced points behind one draw: counts are `floor` or `ceil` of `N w`.
    #[default]
    Systematic,
    /// `floor(N w)` copies each, the rest by independent draws.
    Residual,
}

impl Resampler {
    /// Every scheme.
    pub const ALL: [Resampler; 4] =
        [Resampler::Multinomial, Resampler::Stratified, Resampler::Systematic, Resampler::Residual];

    /// Draw an ancestor for every walker, in increasing order.
    ///
    /// A walker of weight zero is never an ancestor.
    pub fn ancestors(self, weights: &LogWeights, stream: &mut Stream) -> Vec<u32> {
        let n = weights.len();
        let relative = weights.relative();
        let mut chosen = Vec::with_capacity(n);
        match self {
            Resampler::Systematic => {
                let shift = stream.uniform();
                walk(relative, (0..n).map(|i| (i as f64 + shift) / n as f64), &mut chosen);
            }
            Resampler::Stratified => {
                let points: Vec<f64> =
                    (0..n).map(|i| (i as f64 + stream.uniform()) / n as f64).collect();
                walk(relative, points.into_iter(), &mut chosen);
            }
            Resampler::Multinomial => walk(relative, sorted(n, stream), &mut chosen),
            Resampler::Residual => {
                let mut rest = Vec::with_capacity(n);
                for (i, weight) in weights.normalised().into_iter().enumerate() {
                    let copies = (weight * n as f64).floor();
                    rest.push(weight * n as f64 - copies);
                    chosen.extend(std::iter::repeat_n(i as u32, copies as usize));
                }
                // Rounding can add up to one copy too many, or leave nothing to share out.
                chosen.truncate(n);
                let missing = n - chosen.len();
                if missing > 0 && rest.iter().all(|&r| r == 0.0) {
                    rest.copy_from_slice(relative);
                }
                walk(&rest, sorted(missing, stream), &mut chosen);
                chosen.sort_unstable();
            }
        }
        chosen
    }
}

/// `n` sorted uniform numbers.
fn sorted(n: usize, stream: &mut Stream) -> impl Iterator<Item = f64> {
    let mut points: Vec<f64> = (0..n).map(|_| stream.uniform()).collect();
    points.sort_unstable_by(f64::total_cmp);
    points.into_iter()
}

/// For each of the increasing `points` in [0, 1), append the walker whose stretch of the cumulative
/// weights holds it.
fn walk(weights: &[f64], points: impl Iterator<Item = f64>, chosen: &mut Vec<u32>) {
    let total: f64 = weights.iter().sum();
    // Rounding may leave the last points beyond the running sum: they go to the last live walker.
    let last = weights.iter().rposition(|&w| w > 0.0).unwrap_or(0);
    let (mut walker, mut reached) = (0, weights[0]);
    for point in points {
        while walker < last && reached <= point * total {
            walker += 1;
            reached += weights[walker];
        }
        chosen.push(walker as u32);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::Purpose;

    fn draw(scheme: Resampler, log: &[f64], step: u64) -> Vec<usize> {
        let weights = LogWeights::new(log.to_vec()).unwrap();
        let mut stream = Stream::new(11, Purpose::Resample, 0, step);
        let ancestors = scheme.ancestors(&weights, &mut stream);
        assert_eq!(ancestors.len(), log.len());
        assert!(ancestors.windows(2).all(|pair| pair[0] <= pair[1]));
        let mut counts = vec![0; log.len()];
        for ancestor in ancestors {
            counts[ancestor as usize] += 1;
        }
        counts
    }

    #[test]
    fn expected_counts_are_n_times_weight() {
        let w: [f64; 6] = [0.3, 0.02, 0.0, 0.41, 0.12, 0.15];
        let log: Vec<f64> = w.iter().map(|w| w.ln()).collect();
        let n = w.len() as f64;
        let rounds = 20_000;
        for scheme in Resampler::ALL {
            let (mut sum, mut square) = ([0.0; 6], [0.0; 6]);
            for step in 0..rounds {
                for (i, count) in draw(scheme, &log, step).into_iter().enumerate() {
                    sum[i] += count as f64;
                    square[i] += (count * count) as f64;
                }
            }
            for i in 0..6 {
                let mean = sum[i] / rounds as f64;
                let variance = square[i] / rounds as f64 - mean * mean;
                let error = (variance / rounds as f64).sqrt().max(1e-12);
                // Detects an expected count off by 0.05.
                assert!(((mean - n * w[i]) / error).abs() < 5.0, "{scheme:?} {i}: {mean}");
            }
        }
    }

    #[test]
    fn systematic_and_residual_counts_are_bounded() {
        let w: [f64; 5] = [0.37, 0.11, 0.26, 0.2, 0.06];
        let log: Vec<f64> = w.iter().map(|w| w.ln()).collect();
        for step in 0..500 {
            for (i, count) in draw(Resampler::Systematic, &log, step).into_iter().enumerate() {
                let exact = 5.0 * w[i];
                assert!(count as f64 >= exact.floor() && count as f64 <= exact.ceil());
            }
            for (i, count) in draw(Resampler::Residual, &log, step).into_iter().enumerate() {
                assert!(count as f64 >= (5.0 * w[i]).floor());
            }
        }
    }

    #[test]
    fn edge_weights_never_run_off_the_end() {
        let mut one_hot = vec![f64::NEG_INFINITY; 7];
        one_hot[6] = 0.0;
        let tiny = vec![1e-300f64.ln(), 0.0, 1e-300f64.ln()];
        let short: Vec<f64> = (0..1000).map(|i| (0.1 + (i % 7) as f64 * 1e-9).ln()).collect();
        for scheme in Resampler::ALL {
            for step in 0..50 {
                assert_eq!(draw(scheme, &one_hot, step)[6], 7);
                assert_eq!(draw(scheme, &tiny, step)[1], 3);
                draw(scheme, &short, step);
                draw(scheme, &[3.0], step);
            }
            let equal = draw(scheme, &[0.5; 64], 0);
            if scheme != Resampler::Multinomial {
                assert!(
                    equal.iter().all(|&c| scheme == Resampler::Stratified || c == 1),
                    "{scheme:?}"
                );
            }
        }
    }
}
