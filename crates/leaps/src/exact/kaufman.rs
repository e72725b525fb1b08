//! Evaluate Kaufman's formula for Ising spins on a finite torus, with its first two derivatives.
//!
//! For `m` rows and `n` columns at coupling $K > 0$ (B. Kaufman, Phys. Rev. 76, 1232 (1949)),
//! $$Z = \tfrac12 (2\sinh 2K)^{mn/2} \sum_{i=1}^{4} Z_i,\qquad
//!   Z_{1,2} = \prod_{r=1}^{n} 2{\cosh\atop\sinh}\tfrac m2\gamma_{2r-1},\quad
//!   Z_{3,4} = \prod_{r=0}^{n-1} 2{\cosh\atop\sinh}\tfrac m2\gamma_{2r},$$
//! $$\cosh\gamma_l = 1 + \delta_l,\quad \delta_l = \frac{(\sinh 2K-1)^2}{\sinh 2K} + 2\sin^2\frac{\pi l}{2n},\qquad
//!   \gamma_0 = 2K + \ln\tanh K.$$
//!
//! Written with $v = \min(\sinh 2K, 1/\sinh 2K)$ and $a_l = \gamma_l + \ln v$, which stays regular where
//! $\gamma_l$ diverges, every quantity is smooth from $K = 0$ to $K = \infty$:
//! $$Z_i (2\sinh 2K)^{mn/2} \propto \exp\Big(\tfrac m2 \sum_l a_l\Big) \prod_l (1 \pm y_l^m),
//!   \qquad y_l = e^{-\gamma_l} = v e^{-a_l}.$$
//! Only the factor of $\gamma_0$ in $Z_4$ changes sign, at the critical point; it is kept out of the logarithms.

use super::jet::Jet;
use super::modes::{Mode, Sector};
use super::{Exact, Method};
use crate::target::Target;
use crate::{Error, Result, finite};

/// The longest side that is accepted.
pub const MAX_SIDE: usize = 4096;

/// `log Z` and the two first cumulants of the bond sum $B = \sum_{\langle ij\rangle} s_i s_j$ under the
/// weight $e^{KB}$.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Torus {
    /// `log Z`.
    pub log_z: f64,
    /// $\langle B\rangle = d \log Z / dK$.
    pub bonds: f64,
    /// $\mathrm{Var}(B) = d^2 \log Z / dK^2$.
    pub bonds_variance: f64,
}

/// Solve the torus of `rows` by `columns` Ising spins at coupling $K = \beta J$.
///
/// A side of length 2 has two bonds between the same spins. Negative `K` is the antiferromagnet, which
/// maps onto `|K|` by turning one sublattice over if both sides are even.
///
/// # Errors
/// [`Error::NotApplicable`] for sides outside 2..=4096 and for negative `K` with an odd side;
/// [`Error::Invalid`] if `K` is not finite.
///
/// # Example
/// ```
/// let torus = leaps::exact::kaufman::torus(15, 15, 0.4407).unwrap();
/// assert!((torus.log_z - 209.8260701363).abs() < 1e-9);
/// ```
pub fn torus(rows: usize, columns: usize, k: f64) -> Result<Torus> {
    finite("coupling times beta", k)?;
    for side in [rows, columns] {
        if !(2..=MAX_SIDE).contains(&side) {
            return Err(refuse(format!("a side has {side} sites, not 2 to {MAX_SIDE}")));
        }
    }
    if k < 0.0 && (rows % 2 == 1 || columns % 2 == 1) {
        return Err(refuse(format!(
            "an antiferromagnet on {rows} x {columns} is frustrated; both sides must be even"
        )));
    }
    let log_z = log_z(rows.max(columns), rows.min(columns), k.abs());
    Ok(Torus {
        log_z: log_z.value,
        bonds: if k < 0.0 { -log_z.first } else { log_z.first },
        // Rounding can leave a tiny negative number where the true variance is exponentially small.
        bonds_variance: log_z.second.max(0.0),
    })
}

/// Solve a target that is a uniform zero-field Ising model on a periodic square lattice.
///
/// # Errors
/// As [`torus`], and [`Error::NotApplicable`] for any other target.
pub fn solve(target: &dyn Target, lambda: &[f64]) -> Result<Exact> {
    super::check_weights(target, lambda)?;
    let (rows, columns, coupling) =
        target.pairwise().and_then(|model| model.uniform_torus()).ok_or_else(|| {
            refuse("it needs uniform Ising couplings, no field, a periodic square lattice".into())
        })?;
    let k = lambda[0] * coupling;
    let torus = torus(rows, columns, k)?;
    // What the energy has beside its bonds is the same for all states.
    let constant = target.pairwise().map_or(0.0, |model| {
        let bonds = 2 * model.sites();
        model.energy_terms()[0].constant - coupling * bonds as f64
    });
    Ok(Exact {
        method: Method::Kaufman,
        log_z: torus.log_z - lambda[0] * constant,
        energy: constant - coupling * torus.bonds,
        potential_variance: k * k * torus.bonds_variance,
        order: None,
    })
}

fn refuse(reason: String) -> Error {
    Error::not_applicable("Kaufman's formula", reason)
}

/// `log Z` as a function of `K >= 0`: `m` sites along the transfer direction, `n` modes.
fn log_z(m: usize, n: usize, k: f64) -> Jet {
    let (m_real, sites) = (m as f64, (m * n) as f64);
    let below = (2.0 * k).sinh() < 1.0;
    // v(K), and sites * log(sinh 2K) where v is its inverse.
    let (v, ln_sinh) = if below {
        let (s, c) = ((2.0 * k).sinh(), (2.0 * k).cosh());
        (Jet::new(s, 2.0 * c, 4.0 * s), Jet::default())
    } else {
        let e = (-4.0 * k).exp();
        let v = 2.0 * (-2.0 * k).exp() / (1.0 - e);
        let coth = (1.0 + e) / (1.0 - e);
        let ln = 2.0 * k - std::f64::consts::LN_2 + (-e).ln_1p();
        (
            Jet::new(v, -2.0 * v * coth, 4.0 * v + 8.0 * v * v * v),
            Jet::new(ln, 2.0 * coth, -4.0 * v * v),
        )
    };
    // Everything below is a function of v; K enters by the chain rule at the end.
    let (mut odd, mut even) = (Sector::default(), Sector::default());
    for l in 1..2 * n {
        let mode = Mode::new(v.value, l, n);
        if l % 2 == 1 { &mut odd } else { &mut even }.add(&mode, m);
    }
    let zero = Mode::zero(v.value, k, below);
    even.modes = even.modes + zero.a;
    let power = zero.power(m);
    even.cosh = even.cosh + Jet::new(1.0 + power.value, power.first, power.second).ln();
    let sign = if below { -1.0 } else { 1.0 };
    let zero_sinh =
        Jet::new(-(-m_real * zero.gamma).exp_m1(), -power.first, -power.second).scale(sign);

    let half = 0.5 * m_real;
    let logs = [
        odd.modes.scale(half) + odd.cosh,
        odd.modes.scale(half) + odd.sinh,
        even.modes.scale(half) + even.cosh,
        even.modes.scale(half) + even.sinh,
    ];
    // Relative to the largest, derivatives included: the square of the whole energy would swamp its
    // variance. A hyperbolic cosine exceeds the sine of the same modes.
    let reference = if logs[0].value > logs[2].value { logs[0] } else { logs[2] };
    let [first, second, third, fourth] = logs.map(|jet| (jet + reference.scale(-1.0)).exp());
    let sum = first + second + third + zero_sinh * fourth;
    let mut total = v.chain(reference + sum.scale(0.5).ln()) + ln_sinh.scale(sites);
    total.value += 0.5 * sites * std::f64::consts::LN_2;
    total
}

#[cfg(test)]
mod tests {
    use super::*;

    const CRITICAL: f64 = 0.440_686_793_509_771_5;

    /// `log Z` and the cumulants of `B` by summing over all states.
    fn brute(rows: usize, columns: usize, k: f64) -> Torus {
        let n = rows * columns;
        let bonds = |state: u32| -> f64 {
            let spin = |i: usize, j: usize| {
                f64::from(state >> (i % rows * columns + j % columns) & 1) * 2.0 - 1.0
            };
            let pair = |i, j| spin(i, j) * (spin(i + 1, j) + spin(i, j + 1));
            (0..rows).map(|i| (0..columns).map(|j| pair(i, j)).sum::<f64>()).sum()
        };
        let all: Vec<f64> = (0..1u32 << n).map(bonds).collect();
        let top = all.iter().map(|b| k * b).fold(f64::NEG_INFINITY, f64::max);
        let mean = |f: &dyn Fn(f64) -> f64| -> f64 {
            all.iter().map(|&b| (k * b - top).exp() * f(b)).sum()
        };
        let z = mean(&|_| 1.0);
        let average = mean(&|b| b) / z;
        let variance = mean(&|b| (b - average).powi(2)) / z;
        Torus { log_z: top + z.ln(), bonds: average, bonds_variance: variance }
    }

    fn close(a: f64, b: f64, tolerance: f64) -> bool {
        (a - b).abs() <= tolerance * (1.0 + b.abs())
    }

    #[test]
    fn agrees_with_brute_force_on_every_small_torus() {
        for (rows, columns) in [(2, 2), (2, 3), (3, 2), (2, 5), (3, 3), (3, 4), (4, 3), (2, 7)] {
            for k in [1e-3, 0.1, 0.3, 0.44, CRITICAL, 0.4407, 0.6, 1.5] {
                let (exact, brute) = (torus(rows, columns, k).unwrap(), brute(rows, columns, k));
                assert!(close(exact.log_z, brute.log_z, 1e-13), "{rows} {columns} {k}");
                assert!(close(exact.bonds, brute.bonds, 1e-12), "{rows} {columns} {k}");
                assert!(
                    close(exact.bonds_variance, brute.bonds_variance, 1e-11),
                    "{rows} {columns} {k}: {exact:?} {brute:?}"
                );
            }
        }
        for (rows, columns) in [(2, 2), (2, 4), (4, 2)] {
            let (exact, brute) = (torus(rows, columns, -0.4).unwrap(), brute(rows, columns, -0.4));
            assert!(close(exact.log_z, brute.log_z, 1e-13));
            assert!(close(exact.bonds, brute.bonds, 1e-13));
            assert!(close(exact.bonds_variance, brute.bonds_variance, 1e-12));
        }
    }

    #[test]
    fn derivatives_are_those_of_log_z() {
        for (rows, columns) in [(5, 9), (16, 16), (2, 64), (33, 8)] {
            for k in [0.05, 0.3, 0.4406, CRITICAL, 0.45, 0.9] {
                let h = 1e-4;
                let [low, here, high] = [k - h, k, k + h].map(|k| torus(rows, columns, k).unwrap());
                let slope = (high.log_z - low.log_z) / (2.0 * h);
                let curvature = (high.bonds - low.bonds) / (2.0 * h);
                assert!(close(here.bonds, slope, 1e-5), "{} {slope}", here.bonds);
                assert!(close(here.bonds_variance, curvature, 1e-4));
            }
        }
    }

    #[test]
    fn extreme_couplings_keep_their_digits() {
        for (rows, columns) in [(3, 3), (5, 4), (64, 64), (7, 4096)] {
            let n = (rows * columns) as f64;
            let zero = torus(rows, columns, 0.0).unwrap();
            assert!(close(zero.log_z, n * 2f64.ln(), 1e-15));
            assert_eq!(zero.bonds, 0.0);
            assert!(close(zero.bonds_variance, 2.0 * n, 1e-12));
            for k in [1e-12, 1e-9, 1e-6] {
                let hot = torus(rows, columns, k).unwrap();
                // Closed loops of length 3 wind round a side of 3; what is left out is of relative
                // order K^2.
                let loops = [rows, columns].iter().filter(|&&side| side == 3).count() as f64;
                let expected = 2.0 * n * k + loops * n * k * k;
                assert!(
                    (hot.bonds / expected - 1.0).abs() < 2e-13 + 4.0 * k * k,
                    "{rows} {columns} {k}"
                );
                assert!((hot.bonds_variance / (2.0 * n) - 1.0).abs() < 1e-5);
            }
            for k in [10.0, 50.0, 1e3, 1e300] {
                let cold = torus(rows, columns, k).unwrap();
                assert!(close(cold.log_z, 2.0 * n * k + 2f64.ln(), 1e-14));
                assert!(close(cold.bonds, 2.0 * n, 1e-14));
                assert!((0.0..1e-15).contains(&cold.bonds_variance));
            }
        }
    }

    /// Onsager's bulk `log Z / N` at the critical point: `ln(2)/2 + 2 G / pi`, `G` Catalan's constant.
    #[test]
    fn large_tori_approach_the_bulk() {
        let bulk = 0.5 * 2f64.ln() + 2.0 * 0.915_965_594_177_219 / std::f64::consts::PI;
        let excess = |side: usize| {
            let torus = torus(side, side, CRITICAL).unwrap();
            let n = (side * side) as f64;
            // The critical energy is sqrt 2 per site, the heat capacity grows as log L.
            assert!((torus.bonds / n - 2f64.sqrt()).abs() < 1.0 / side as f64);
            assert!(torus.bonds_variance.is_finite() && torus.bonds_variance > n);
            torus.log_z - n * bulk
        };
        // The excess is a universal constant (0.6399..., the free energy of the critical Ising
        // field on the square torus), up to O(1/L^2).
        let (half, full) = (excess(2048), excess(4096));
        assert!((half - 0.6399).abs() < 1e-4 && (full - 0.6399).abs() < 1e-4, "{half} {full}");
    }

    #[test]
    fn long_strips_are_one_eigenvalue() {
        for k in [0.3, CRITICAL, 0.6] {
            // On a long strip the sectors differ by factors beyond the range of plain numbers.
            let thin = torus(4096, 2, k).unwrap();
            assert_eq!(thin, torus(2, 4096, k).unwrap());
            // The largest eigenvalue of the transfer matrix between pairs of spins.
            let (cosh, sinh) = ((2.0 * k).cosh(), (2.0 * k).sinh());
            let largest = 2.0 * cosh * cosh + (4.0 * cosh * cosh * sinh * sinh + 4.0).sqrt();
            assert!(close(thin.log_z, 4096.0 * largest.ln(), 1e-13), "{k}");
            assert!(thin.bonds_variance.is_finite());
        }
    }

    #[test]
    fn refuses_what_it_cannot_do() {
        for (rows, columns, k) in [(3, 4, -0.1), (4, 5, -1.0), (1, 4, 0.1), (4, 4097, 0.1)] {
            assert!(matches!(torus(rows, columns, k), Err(Error::NotApplicable { .. })));
        }
        assert!(matches!(torus(4, 4, f64::NAN), Err(Error::Invalid { .. })));
    }
}
