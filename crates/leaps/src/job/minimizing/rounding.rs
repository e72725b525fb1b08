//! Rounding of energies: which are the same but for it, and whether it hides what they are made of.

use crate::target::{Pairwise, Target};

/// Rounding of a sum, in units of the last place of the sum of all sizes.
const ULPS: f64 = 64.0;
/// Rounding of energies of which nobody knows what they are made of, as a part of them.
const UNKNOWN: f64 = 1e-12;

/// How far apart two computations of one energy may be.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rounding {
    /// The difference that rounding can make; unknown for energies that are no sums of ours.
    difference: Option<f64>,
    /// Whether that is less than what any bond or field can change.
    resolved: bool,
}

impl Rounding {
    pub(super) fn of(target: &dyn Target) -> Self {
        match (target.lattice_model(), target.pairwise()) {
            (Some(model), _) => Self::of_sizes(model.sizes()),
            (None, Some(model)) => Self::of_sizes(sizes(model)),
            (None, None) => Rounding { difference: None, resolved: true },
        }
    }

    /// Of an energy that is a sum of numbers of these sizes.
    fn of_sizes(sizes: Vec<f64>) -> Self {
        let sizes = || sizes.iter().copied().filter(|&size| size > 0.0);
        let difference = ULPS * f64::EPSILON * sizes().sum::<f64>();
        Rounding {
            difference: Some(difference),
            resolved: sizes().all(|size| difference < 0.5 * size),
        }
    }

    /// Whether two energies are the same but for rounding.
    pub(super) fn same(&self, a: f64, b: f64) -> bool {
        let allowed = self.difference.unwrap_or(UNKNOWN * a.abs().max(b.abs()));
        a == b || (a.is_finite() && b.is_finite() && (a - b).abs() <= allowed)
    }

    /// Whether an energy is as low as another, and rounding cannot have hidden that it is not.
    pub(super) fn reaches(&self, energy: f64, other: f64) -> bool {
        self.resolved && (energy <= other || self.same(energy, other))
    }
}

/// Sizes of all bonds, and of what fields change.
fn sizes(model: &Pairwise) -> Vec<f64> {
    let ones = vec![1.0; model.energy_terms().len()];
    let mut sizes: Vec<f64> = model.total_couplings(&ones).iter().map(|a| a.abs()).collect();
    for row in model.total_fields(&ones).chunks_exact(model.q()) {
        sizes.extend(row.iter().map(|value| (value - row[0]).abs()));
    }
    sizes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn energies_are_told_apart_at_every_scale() {
        for scale in [1e-12, 1.0, 1e12] {
            let rounding = Rounding::of_sizes(vec![scale; 1000]);
            assert!(rounding.same(-500.0 * scale, -500.0 * scale * (1.0 + 1e-15)));
            assert!(!rounding.same(-500.0 * scale, -499.0 * scale));
            assert!(rounding.reaches(-500.0 * scale, -500.0 * scale));
            assert!(!rounding.reaches(-499.0 * scale, -500.0 * scale));
        }
        assert!(!rounding_with(1e13).reaches(-1e13 - 147.0, -1e13 - 890.0));
        // One bond so large that the others are below its last place proves nothing.
        assert!(rounding_with(1e13).resolved && !rounding_with(1e18).resolved);
        assert!(!Rounding { difference: None, resolved: true }.same(1.0, f64::INFINITY));
    }

    fn rounding_with(large: f64) -> Rounding {
        let mut sizes = vec![1.0; 900];
        sizes.push(large);
        Rounding::of_sizes(sizes)
    }
}
