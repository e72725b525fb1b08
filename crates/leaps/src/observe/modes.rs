//! Masses of the modes of a target, and whether they agree with its symmetry.
//!
//! Weights do not show a mode that walkers hardly ever reach. Where a symmetry makes modes equally likely, their masses do.

use serde::{Deserialize, Serialize};

use super::{Estimate, Jackknife, Layout};

/// More values than this have their modes left out.
const MANY_VALUES: usize = 32;

/// The probability of one mode: the states in which one value is on more sites than any other.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ModeMass {
    /// The value; of Ising spins, 0 is `m < 0` and 1 is `m > 0`.
    pub value: usize,
    /// Its probability, exact where a symmetry tells it.
    #[serde(flatten)]
    pub mass: Estimate,
}

/// Number of modes that are measured for so many values.
pub(super) fn count(q: usize) -> usize {
    if (2..=MANY_VALUES).contains(&q) { q } else { 0 }
}

/// The share of a state with `counts[s]` sites in value `s` in every mode: 1 for the most frequent value, and the same
/// part of 1 for each of those that tie.
pub(super) fn shares(counts: &[usize], shares: &mut [f64]) {
    let most = counts.iter().copied().max().unwrap_or(0);
    let tied = counts.iter().filter(|&&count| count == most).count() as f64;
    for (share, &count) in shares.iter_mut().zip(counts) {
        *share = if count == most { 1.0 / tied } else { 0.0 };
    }
}

/// The masses of all modes with their errors.
pub(super) fn masses(layout: &Layout, sums: &Jackknife) -> Vec<ModeMass> {
    let mass = |value| {
        let mass = sums.mean(layout.mode(value));
        let equal = 1.0 / layout.modes as f64;
        ModeMass { value, mass: if layout.equivalent { mass.with_exact(equal) } else { mass } }
    };
    (0..layout.modes).map(mass).collect()
}

/// The probability that masses as unequal as these, or more, come out where modes are equally likely; `None` where no
/// symmetry says that they are.
///
/// With the shares $u_f = \sum_{i \in f} w_i (y_i - 1/q) / \sum_i w_i$ of the families in what masses differ from $1/q$, the statistic is
/// $T^2 = d^T C^{-1} d$ with $d = \sum_f u_f$ and $C = \sum_f u_f u_f^T$, held against $\chi^2$ with $q - 1$ degrees of
/// freedom. The spread is taken about $1/q$, not about the masses found: a mode without any walker then counts for what it is. $T^2$ is
/// at most the number of families, and where $u_f$ and $-u_f$ are equally likely $P(T^2 > x) \le 2 e^{-x/2}$ for two modes, however uneven the weights are.
pub(super) fn equality(layout: &Layout, sums: &Jackknife) -> Option<f64> {
    if !layout.equivalent || layout.modes < 2 {
        return None;
    }
    // The last mode has what the others leave.
    let free = layout.modes - 1;
    let (mut sum, mut spread) = (vec![0.0; free], vec![0.0; free * free]);
    let equal = 1.0 / layout.modes as f64;
    sums.each_departure(layout.mode(0), &vec![equal; free], |part| {
        for (a, &one) in part.iter().enumerate() {
            sum[a] += one;
            for (b, &other) in part.iter().enumerate() {
                spread[a * free + b] += one * other;
            }
        }
    });
    Some(chi_square_tail(free, quadratic(&sum, spread)))
}

/// $d^T C^{-1} d$ by Cholesky's decomposition; directions in which nothing varies count for nothing.
fn quadratic(d: &[f64], mut c: Vec<f64>) -> f64 {
    let n = d.len();
    let trace: f64 = (0..n).map(|i| c[i * n + i]).sum();
    let ridge = 1e-9 * trace;
    let mut solved = d.to_vec();
    let mut square = 0.0;
    for i in 0..n {
        for j in 0..=i {
            let inner: f64 = (0..j).map(|k| c[i * n + k] * c[j * n + k]).sum();
            let rest = c[i * n + j] - inner;
            c[i * n + j] = match i == j {
                true => (rest.max(0.0) + ridge).sqrt(),
                false => rest / c[j * n + j],
            };
        }
        let inner: f64 = (0..i).map(|k| c[i * n + k] * solved[k]).sum();
        // Everything is 0 where no weight departs from equality at all.
        solved[i] = if trace > 0.0 { (d[i] - inner) / c[i * n + i] } else { 0.0 };
        square += solved[i] * solved[i];
    }
    square
}

/// $P(\chi^2_k > x)$: the regularised upper incomplete gamma function $Q(k/2, x/2)$.
fn chi_square_tail(degrees: usize, x: f64) -> f64 {
    let (a, x) = (0.5 * degrees as f64, 0.5 * x);
    if x <= 0.0 {
        return 1.0;
    }
    // Gamma(1) = 1 and Gamma(1/2) = sqrt(pi), then by a Gamma(a).
    let start = if degrees.is_multiple_of(2) { 1.0 } else { 0.5 };
    let steps = (a - start) as usize;
    let log_gamma = (0..steps).map(|k| (start + k as f64).ln()).sum::<f64>()
        + if start == 1.0 { 0.0 } else { 0.5 * std::f64::consts::PI.ln() };
    let front = (a * x.ln() - x - log_gamma).exp();
    if x < a + 1.0 {
        // The series of the lower function.
        let (mut term, mut sum) = (1.0 / a, 1.0 / a);
        for k in 1..1000 {
            term *= x / (a + k as f64);
            sum += term;
        }
        return (1.0 - front * sum).clamp(0.0, 1.0);
    }
    // Legendre's continued fraction, from far down.
    let tail = (1..200)
        .rev()
        .map(f64::from)
        .fold(0.0, |tail, k| k * (k - a) / (x + 2.0 * k + 1.0 - a - tail));
    (front / (x + 1.0 - a - tail)).clamp(0.0, 1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tails_are_those_of_tables() {
        for (degrees, x, tail) in [
            (1, 3.841_458_820_694_124, 0.05),
            (1, 15.136_705_226_623_606, 1e-4),
            (2, 18.420_680_743_952_367, 1e-4),
            (4, 9.487_729_036_781_154, 0.05),
            (4, 0.297_109_480_506_532, 0.99),
            (5, 1.145_476_226_061_769, 0.95),
            (31, 44.985_343_280_365_06, 0.05),
        ] {
            let found = chi_square_tail(degrees, x);
            assert!((found / tail - 1.0).abs() < 1e-6, "{degrees} {x}: {found}");
        }
        assert_eq!(chi_square_tail(3, 0.0), 1.0);
        assert!(chi_square_tail(1, 400.0) < 1e-80);
    }

    #[test]
    fn quadratic_forms_are_solved() {
        // C = [[4, 2], [2, 3]]: its inverse is [[3, -2], [-2, 4]] / 8.
        let found = quadratic(&[1.0, 2.0], vec![4.0, 2.0, 2.0, 3.0]);
        assert!((found - 11.0 / 8.0).abs() < 1e-6, "{found}");
        // Rank one, as when all walkers are in one mode: (n u)^T (n u u^T)^-1 (n u) = n.
        let (u, n) = ([0.8, -0.2, -0.2], 7.0);
        let c: Vec<f64> = u.iter().flat_map(|a| u.iter().map(move |b| n * a * b)).collect();
        let found = quadratic(&u.map(|x| n * x), c);
        assert!((found - n).abs() < 1e-5, "{found}");
        assert_eq!(quadratic(&[0.0], vec![0.0]), 0.0);
    }

    #[test]
    fn ties_are_shared() {
        let of = |counts: &[usize]| {
            let mut found = vec![9.0; counts.len()];
            shares(counts, &mut found);
            found
        };
        assert_eq!(of(&[3, 1]), [1.0, 0.0]);
        assert_eq!(of(&[2, 2]), [0.5, 0.5]);
        assert_eq!(of(&[1, 4, 4, 0]), [0.0, 0.5, 0.5, 0.0]);
    }
}
