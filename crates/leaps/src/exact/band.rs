//! Push weighted sums over all earlier sites through one more site.
//!
//! The sites are in an order in which bonds join sites at most `width` apart, so the past acts on the future
//! through the last `width` sites alone. For every configuration of these an [`Entry`] holds the
//! summed weight of all pasts, and the mean and variance of their energies.

use rayon::prelude::*;

/// Entries handed to one thread at a time.
const GRAIN: usize = 1 << 13;

/// A mixture of pasts: its weight (plain or logarithm, see [`Domain`]), $\langle U\rangle$,
/// $\mathrm{Var}(U)$ and $\langle H\rangle$ with $U = \sum_k\lambda_k E_k$, $H = \sum_k E_k$.
///
/// Central moments, since $\langle U^2\rangle - \langle U\rangle^2$ would lose the variance of a cold system.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Entry {
    pub weight: f64,
    pub u: f64,
    pub variance: f64,
    pub h: f64,
}

/// How weights are stored.
pub(super) trait Domain: Send + Sync {
    /// The weight 1.
    const ONE: f64;
    /// The weight 0.
    const ZERO: f64;
    /// The weight $e^{\text{log}}$.
    fn from_log(log: f64) -> f64;
    /// The logarithm of a weight.
    fn to_log(weight: f64) -> f64;
    /// The product of two weights.
    fn times(a: f64, b: f64) -> f64;
    /// $a + b$ and $b / (a + b)$, for `b` not 0.
    fn plus(a: f64, b: f64) -> (f64, f64);
}

/// Plain numbers: fast, for weights within $e^{\pm 700}$ of each other.
pub(super) struct Linear;

/// Logarithms: for any weights.
pub(super) struct Log;

impl Domain for Linear {
    const ONE: f64 = 1.0;
    const ZERO: f64 = 0.0;
    fn from_log(log: f64) -> f64 {
        log.exp()
    }
    fn to_log(weight: f64) -> f64 {
        weight.ln()
    }
    #[inline]
    fn times(a: f64, b: f64) -> f64 {
        a * b
    }
    #[inline]
    fn plus(a: f64, b: f64) -> (f64, f64) {
        (a + b, b / (a + b))
    }
}

impl Domain for Log {
    const ONE: f64 = 0.0;
    const ZERO: f64 = f64::NEG_INFINITY;
    fn from_log(log: f64) -> f64 {
        log
    }
    fn to_log(weight: f64) -> f64 {
        weight
    }
    #[inline]
    fn times(a: f64, b: f64) -> f64 {
        a + b
    }
    #[inline]
    fn plus(a: f64, b: f64) -> (f64, f64) {
        let small = (-(a - b).abs()).exp();
        let share = if a > b { small } else { 1.0 } / (1.0 + small);
        (a.max(b) + small.ln_1p(), share)
    }
}

impl Entry {
    /// No past at all.
    pub fn nothing<D: Domain>() -> Self {
        Entry { weight: D::ZERO, ..Entry::default() }
    }

    /// The union of two sets of pasts.
    #[inline]
    pub fn mix<D: Domain>(self, other: Entry) -> Entry {
        if other.weight == D::ZERO {
            return self;
        }
        let (weight, share) = D::plus(self.weight, other.weight);
        let apart = other.u - self.u;
        Entry {
            weight,
            u: self.u + share * apart,
            variance: self.variance
                + share * (other.variance - self.variance)
                + share * (1.0 - share) * apart * apart,
            h: self.h + share * (other.h - self.h),
        }
    }

    /// Every past with an energy more.
    #[inline]
    pub fn shift<D: Domain>(self, by: &Shift) -> Entry {
        Entry {
            weight: D::times(self.weight, by.factor),
            u: self.u + by.u,
            variance: self.variance,
            h: self.h + by.h,
        }
    }
}

/// An energy `u` in `U` and `h` in `H`, with the weight $e^{-u}$.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Shift {
    pub factor: f64,
    pub u: f64,
    pub h: f64,
}

impl Shift {
    pub fn new<D: Domain>(u: f64, h: f64) -> Self {
        Shift { factor: D::from_log(-u), u, h }
    }
}

/// What the next site adds to the energy.
pub(super) struct Site<'a> {
    /// Field energies, per value.
    pub local: &'a [Shift],
    /// Bonds to sites that stay: the period `q^(k-1)` of the digit of site `n - k` in the index of the
    /// configurations of all sites that stay, and the energy of equal values.
    pub near: &'a [(usize, Shift)],
    /// The bond to the oldest site, which leaves.
    pub oldest: Shift,
    /// Whether the oldest site leaves; not before the band is full.
    pub full: bool,
}

/// Move from the entries of one band to those of the next, and return the largest weight.
///
/// Site `n - k` is digit `k - 1` of the index, the newest the fastest; the oldest is summed over and
/// the new site becomes digit 0.
pub(super) fn step<D: Domain>(q: usize, old: &[Entry], new: &mut [Entry], site: &Site) -> f64 {
    match q {
        2 => step_all::<D, 2>(q, old, new, site),
        3 => step_all::<D, 3>(q, old, new, site),
        _ => step_all::<D, 0>(q, old, new, site),
    }
}

/// `Q` is `q` where it is known to the compiler, else 0.
fn step_all<D: Domain, const Q: usize>(
    q: usize,
    old: &[Entry],
    new: &mut [Entry],
    site: &Site,
) -> f64 {
    let grain = GRAIN * q;
    if new.len() <= grain {
        return step_part::<D, Q>(q, old, new, 0, site);
    }
    new.par_chunks_mut(grain)
        .enumerate()
        .map(|(chunk, part)| step_part::<D, Q>(q, old, part, chunk * GRAIN, site))
        .reduce(|| f64::NEG_INFINITY, f64::max)
}

/// The part of the new entries whose other sites are configurations `first..`.
fn step_part<D: Domain, const Q: usize>(
    q: usize,
    old: &[Entry],
    new: &mut [Entry],
    first: usize,
    site: &Site,
) -> f64 {
    let q = if Q == 0 { q } else { Q };
    let stride = old.len() / q;
    let mut top = f64::NEG_INFINITY;
    // The digit of each near site and how long it lasts: counting is cheaper than dividing.
    let mut digits: Vec<(usize, usize)> = (site.near.iter())
        .map(|&(period, _)| (first / period % q, period - first % period))
        .collect();
    for (offset, row) in new.chunks_exact_mut(q).enumerate() {
        let rest = first + offset;
        for (value, out) in row.iter_mut().enumerate() {
            let sum = if site.full {
                let mut sum = Entry::nothing::<D>();
                for oldest in 0..q {
                    let past = old[oldest * stride + rest];
                    let past = if oldest == value { past.shift::<D>(&site.oldest) } else { past };
                    sum = if oldest == 0 { past } else { sum.mix::<D>(past) };
                }
                sum
            } else {
                old[rest]
            };
            *out = sum.shift::<D>(&site.local[value]);
        }
        for ((period, shift), (digit, left)) in site.near.iter().zip(&mut digits) {
            row[*digit] = row[*digit].shift::<D>(shift);
            *left -= 1;
            if *left == 0 {
                *left = *period;
                *digit = if *digit + 1 == q { 0 } else { *digit + 1 };
            }
        }
        for out in row {
            top = top.max(out.weight);
        }
    }
    top
}

#[cfg(test)]
mod tests {
    use super::*;

    fn union<D: Domain>(logs: &[f64]) -> Entry {
        logs.iter().enumerate().fold(Entry::nothing::<D>(), |sum, (i, &log)| {
            let one = Entry { weight: D::ONE, u: 0.0, variance: 0.0, h: i as f64 };
            let one = one.shift::<D>(&Shift::new::<D>(-log, 1.0));
            if i == 0 { one } else { sum.mix::<D>(one) }
        })
    }

    #[test]
    fn both_domains_mix_alike() {
        let logs = [0.3, -1.7, 2.5, 0.0];
        let (plain, log) = (union::<Linear>(&logs), union::<Log>(&logs));
        let z: f64 = logs.iter().map(|l| l.exp()).sum();
        let mean = logs.iter().map(|l| -l * l.exp()).sum::<f64>() / z;
        let variance = logs.iter().map(|l| (-l - mean).powi(2) * l.exp()).sum::<f64>() / z;
        for (entry, log_weight) in [(plain, plain.weight.ln()), (log, log.weight)] {
            assert!((log_weight - z.ln()).abs() < 1e-14);
            assert!((entry.u - mean).abs() < 1e-14);
            assert!((entry.variance - variance).abs() < 1e-14);
        }
        assert!((plain.h - log.h).abs() < 1e-14);
    }

    #[test]
    fn nothing_changes_nothing() {
        let one = Entry { weight: 0.0, u: 2.0, variance: 1.0, h: 3.0 };
        assert_eq!(one.mix::<Log>(Entry::nothing::<Log>()), one);
        assert_eq!(Entry::nothing::<Log>().mix::<Log>(one).u, 2.0);
        let one = Entry { weight: 1.0, ..one };
        assert_eq!(one.mix::<Linear>(Entry::nothing::<Linear>()), one);
        assert_eq!(Entry::nothing::<Linear>().mix::<Linear>(one).variance, 1.0);
    }
}
