//! Features of times and of what a network is conditioned on.

/// Number of features of a time.
pub(crate) const FEATURES: usize = 9;

/// `t - 1/2` and `cos(pi k t)` for k = 1 to 8.
pub(crate) fn features(t: f64) -> [f64; FEATURES] {
    let mut out = [0.0; FEATURES];
    out[0] = t - 0.5;
    for (k, out) in out.iter_mut().enumerate().skip(1) {
        *out = (std::f64::consts::PI * k as f64 * t).cos();
    }
    out
}

/// Number of features of a network conditioned on so many numbers beside the time.
pub(crate) const fn features_with(conditions: usize) -> usize {
    FEATURES + 2 * conditions
}

/// [`features`] of the time, then `c` and `c t` of every number `c` that the network is conditioned on: with the second it knows the weights of the
/// energy terms at this time as well as their final values.
pub(crate) fn conditioned_features(t: f64, condition: &[f64]) -> impl Iterator<Item = f64> {
    features(t).into_iter().chain(condition.iter().flat_map(move |&c| [c, c * t]))
}
