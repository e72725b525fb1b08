//! Reduce a state to its order parameter.

use crate::target::Target;

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

/// Which order parameter a target has.
#[derive(Clone, Debug, PartialEq)]
pub struct OrderParameter {
    q: usize,
    /// What values are in the sum of vectors, if it is neither Ising's order parameter nor Potts's.
    vectors: Option<Vec<[f64; 2]>>,
}

impl OrderParameter {
    /// That of a target: the mean of the vectors of a [`LatticeModel`](crate::target::LatticeModel) that has some, else [`Order`]'s.
    pub fn of(target: &dyn Target) -> Self {
        let vectors = target.lattice_model().and_then(|model| model.vectors());
        OrderParameter { q: target.q(), vectors: vectors.map(<[_]>::to_vec) }
    }

    /// What values are in the sum of vectors, if that is the order parameter.
    pub fn vectors(&self) -> Option<&[[f64; 2]]> {
        self.vectors.as_deref()
    }

    /// Of a state with `counts[s]` sites in value `s`. Vectors of one component have a mean with a sign, `m`; others have the length of the
    /// mean.
    pub fn of_counts(&self, counts: &[usize]) -> Order {
        let Some(vectors) = &self.vectors else { return Order::of_counts(counts) };
        let n = counts.iter().sum::<usize>() as f64;
        let along = |axis: usize| -> f64 {
            let parts = counts.iter().zip(vectors).map(|(&count, v)| count as f64 * v[axis]);
            parts.sum::<f64>() / n
        };
        let [x, y] = [along(0), along(1)];
        let squared = x * x + y * y;
        let m = if vectors.iter().all(|v| v[1] == 0.0) { x } else { squared.sqrt() };
        Order { m, abs: m.abs(), squared, fourth: squared * squared }
    }

    /// Of the state `x`.
    pub fn of_state(&self, x: &[u8]) -> Order {
        self.of_counts(&counts(x)[..self.q])
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
        let spins = OrderParameter { q: 3, vectors: Some(vec![[-1.0, 0.0], [0.0; 2], [1.0, 0.0]]) };
        let tilted = spins.of_state(&[0, 0, 1, 2, 0]);
        assert_eq!((tilted.m, tilted.abs), (-0.4, 0.4));
        assert!((tilted.squared - 0.16).abs() < 1e-15);
        let axes = vec![[1.0, 0.0], [0.0, 1.0], [-1.0, 0.0], [0.0, -1.0]];
        let clock = OrderParameter { q: 4, vectors: Some(axes) };
        let turned = clock.of_state(&[1, 1, 1, 3, 0, 0, 2, 1]);
        assert!((turned.m - (1.0f64 / 64.0 + 9.0 / 64.0).sqrt()).abs() < 1e-15);
        assert_eq!(turned.m, turned.abs);
        let even = Order::of(&[0, 1, 2], 3);
        assert!(even.m.abs() < 1e-15 && even.squared.abs() < 1e-15);
    }
}
