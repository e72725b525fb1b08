//! Sum lagged products of time series in $O(T \log T)$ by a radix-2 Fourier transform.

use std::f64::consts::TAU;

use rayon::prelude::*;

/// Pairs of series transformed at a time: bounds the memory for many long chains.
const AT_ONCE: usize = 8;

/// A complex number.
type Complex = (f64, f64);

/// Transforms of one power-of-two size.
struct Fourier {
    /// $e^{-2\pi i k/n}$ for $k < n/2$.
    roots: Vec<Complex>,
}

impl Fourier {
    fn new(size: usize) -> Self {
        let root = |k: usize| {
            let angle = TAU * k as f64 / size as f64;
            (angle.cos(), -angle.sin())
        };
        Fourier { roots: (0..size / 2).map(root).collect() }
    }

    /// $\hat a_j = \sum_k a_k e^{-2\pi i jk/n}$ in place (Cooley and Tukey); `a.len()` is the power of two given.
    fn transform(&self, a: &mut [Complex]) {
        let n = a.len();
        debug_assert!(n.is_power_of_two() && self.roots.len() == n / 2);
        let shift = usize::BITS - n.trailing_zeros();
        for i in 1..n {
            let j = i.reverse_bits() >> shift;
            if i < j {
                a.swap(i, j);
            }
        }
        let mut half = 1;
        while half < n {
            let stride = n / (2 * half);
            for block in a.chunks_exact_mut(2 * half) {
                let (low, high) = block.split_at_mut(half);
                for (k, (x, y)) in low.iter_mut().zip(high).enumerate() {
                    let (re, im) = self.roots[k * stride];
                    let product = (y.0 * re - y.1 * im, y.0 * im + y.1 * re);
                    *y = (x.0 - product.0, x.1 - product.1);
                    *x = (x.0 + product.0, x.1 + product.1);
                }
            }
            half *= 2;
        }
    }
}

/// $\sum_c \sum_i (a^c_i - \mu)(a^c_{i+t} - \mu)$ over series $a^c$, for every lag $t$ below the longest length.
///
/// The same for any number of threads.
pub(super) fn lagged_products(series: &[&[f32]], mean: f64) -> Vec<f64> {
    let longest = series.iter().map(|s| s.len()).max().unwrap_or(0);
    if longest == 0 {
        return Vec::new();
    }
    let size = (2 * longest).next_power_of_two();
    let fourier = Fourier::new(size);
    // With one series as the real and one as the imaginary part, the power spectrum of the pair
    // transforms back to the sum of both autocorrelations in its real part.
    let power_of = |pair: &[&[f32]]| {
        let at = |which: usize, i: usize| {
            let value = pair.get(which).and_then(|s| s.get(i));
            value.map_or(0.0, |&v| f64::from(v) - mean)
        };
        let mut a = vec![(0.0, 0.0); size];
        for i in 0..longest {
            a[i] = (at(0, i), at(1, i));
        }
        fourier.transform(&mut a);
        a.into_iter().map(|(re, im)| re * re + im * im).collect::<Vec<f64>>()
    };
    let pairs: Vec<&[&[f32]]> = series.chunks(2).collect();
    let mut power = vec![(0.0, 0.0); size];
    for some in pairs.chunks(AT_ONCE) {
        let spectra: Vec<Vec<f64>> = some.par_iter().map(|pair| power_of(pair)).collect();
        for spectrum in spectra {
            power.iter_mut().zip(spectrum).for_each(|(sum, value)| sum.0 += value);
        }
    }
    // A power spectrum summed over pairs is real; forward and backward transforms of it differ only
    // by the sign of the part that is dropped.
    fourier.transform(&mut power);
    power.truncate(longest);
    power.into_iter().map(|(re, _)| re / size as f64).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn noise(n: usize) -> Vec<f32> {
        (0..n).map(|i| (i * i % 37) as f32 / 7.0 - 2.0).collect()
    }

    #[test]
    fn the_transform_is_its_definition() {
        for size in [1, 2, 8, 64] {
            let values = noise(2 * size);
            let mut a: Vec<Complex> =
                (0..size).map(|i| (f64::from(values[i]), f64::from(values[size + i]))).collect();
            let direct: Vec<Complex> = (0..size)
                .map(|j| {
                    a.iter().enumerate().fold((0.0, 0.0), |sum, (k, &(re, im))| {
                        let (sin, cos) = (-TAU * (j * k) as f64 / size as f64).sin_cos();
                        (sum.0 + re * cos - im * sin, sum.1 + re * sin + im * cos)
                    })
                })
                .collect();
            Fourier::new(size).transform(&mut a);
            for (a, b) in a.iter().zip(&direct) {
                assert!((a.0 - b.0).abs() < 1e-10 && (a.1 - b.1).abs() < 1e-10);
            }
        }
    }

    #[test]
    fn lagged_products_are_their_definition() {
        for lengths in [vec![1], vec![7], vec![16, 16, 16], vec![33, 5, 64, 12]] {
            let all = noise(lengths.iter().sum());
            let mut rest = &all[..];
            let mut series = Vec::new();
            for &n in &lengths {
                let (head, tail) = rest.split_at(n);
                series.push(head);
                rest = tail;
            }
            let ours = lagged_products(&series, 0.3);
            assert_eq!(ours.len(), *lengths.iter().max().unwrap());
            for (t, ours) in ours.iter().enumerate() {
                let direct: f64 = series
                    .iter()
                    .flat_map(|s| s.iter().zip(s.iter().skip(t)))
                    .map(|(&a, &b)| (f64::from(a) - 0.3) * (f64::from(b) - 0.3))
                    .sum();
                assert!((ours - direct).abs() < 1e-9, "lag {t}: {ours} {direct}");
            }
        }
        assert!(lagged_products(&[], 0.0).is_empty());
    }
}
