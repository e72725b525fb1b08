//! Reduce a state to its order parameter.

/// Powers of the order parameter of a state, per site.
///
/// With fractions $\rho_s$ of sites in value $s$: for two values $m = \rho_1 - \rho_0$, the magnetisation
/// of Ising spins; for more, $m = (q \max_s \rho_s - 1)/(q - 1)$, the Potts order parameter. The square is
/// $m^2 = (q \sum_s \rho_s^2 - 1)/(q - 1)$, the length of the vector order parameter, equal to the plain
/// square for two values; the fourth power is its square.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Order {
    /// `m`.
    pub m: f64,
    /// `|m|`.
    pub abs: f64,
    /// `m^2`.
    pub squared: f64,
    /// `m^4`.
    pub fourth: f64,
}

impl Order {
    /// The order parameter of a state with `counts[s]` sites in value `s`.
    pub fn of_counts(counts: &[usize]) -> Self {
        let n = counts.iter().sum::<usize>() as f64;
        let q = counts.len() as f64;
        let m = match counts {
            &[down, up] => (up as f64 - down as f64) / n,
            _ => (q * counts.iter().copied().max().unwrap_or(0) as f64 / n - 1.0) / (q - 1.0),
        };
        let squares: f64 = counts.iter().map(|&c| (c as f64 / n).powi(2)).sum();
        let squared = if counts.len() == 2 { m * m } else { (q * squares - 1.0) / (q - 1.0) };
        Order { m, abs: m.abs(), squared, fourth: squared * squared }
    }

    /// The order parameter of `x` with `q` values.
    pub fn of(x: &[u8], q: usize) -> Self {
        Self::of_counts(&counts(x)[..q])
    }
}

/// How many sites of `x` are in every value.
pub(super) fn counts(x: &[u8]) -> [usize; 256] {
    let mut counts = [0; 256];
    for &value in x {
        counts[value as usize] += 1;
    }
    counts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ordered_and_even_states() {
        assert_eq!(Order::of(&[1, 1, 1, 1], 2).m, 1.0);
        assert_eq!(Order::of(&[0, 0, 0, 1], 2).m, -0.5);
        assert_eq!(Order::of(&[0, 0, 0, 1], 2).squared, 0.25);
        let full = Order::of(&[2; 9], 3);
        assert_eq!((full.m, full.squared), (1.0, 1.0));
        let even = Order::of(&[0, 1, 2], 3);
        assert!(even.m.abs() < 1e-15 && even.squared.abs() < 1e-15);
    }
}
