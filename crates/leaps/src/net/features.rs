//! Turn a time into the numbers that time embeddings read.

/// Number of features.
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
