//! Ranges of inverse temperature and field, or what stands in its place, over which one network serves.

use serde::{Deserialize, Serialize};

use crate::{Error, Result};

/// The strength of a term of the energy that families and grids vary beside the temperature. The term has its name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Strength {
    /// The uniform field h.
    #[default]
    Field,
    /// The chemical potential mu of a lattice gas.
    ChemicalPotential,
    /// The crystal field D of Blume and Capel's model.
    CrystalField,
}

impl Strength {
    /// All of them.
    pub const ALL: [Strength; 3] =
        [Strength::Field, Strength::ChemicalPotential, Strength::CrystalField];

    /// The key of a target that has its value.
    pub fn name(self) -> &'static str {
        match self {
            Strength::Field => "field",
            Strength::ChemicalPotential => "chemical_potential",
            Strength::CrystalField => "crystal_field",
        }
    }

    /// Its sign in formulas and beside axes.
    pub fn symbol(self) -> &'static str {
        match self {
            Strength::Field => "h",
            Strength::ChemicalPotential => "mu",
            Strength::CrystalField => "D",
        }
    }

    /// Its name in words.
    pub fn words(self) -> String {
        self.name().replace('_', " ")
    }

    /// Whether it is the field.
    pub fn is_field(&self) -> bool {
        *self == Strength::Field
    }
}

/// The ranges over which a network is trained, and is conditioned on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Ranges {
    /// Inverse temperatures, lowest and highest.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub beta: Option<[f64; 2]>,
    /// Uniform fields, or strengths of another term, lowest and highest.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub field: Option<[f64; 2]>,
    /// What `field` is a range of.
    #[serde(skip_serializing_if = "Strength::is_field")]
    pub of: Strength,
}

impl Ranges {
    /// The ranges by name.
    fn list(&self) -> impl Iterator<Item = (&'static str, [f64; 2])> {
        let named = [("beta", self.beta), (self.of.name(), self.field)];
        named.into_iter().filter_map(|(name, range)| Some((name, range?)))
    }

    /// Refuse ranges that are none.
    pub fn check(&self) -> Result<()> {
        for (name, [low, high]) in self.list() {
            if !(low.is_finite() && high.is_finite() && low < high) {
                return Err(Error::invalid(
                    format!("train.{name}_range"),
                    format!("[{low}, {high}]"),
                    "two finite numbers, the smaller one first",
                    format!("leave it out for the {name} of the target alone"),
                ));
            }
        }
        Ok(())
    }

    /// How many numbers the network is conditioned on.
    pub fn conditions(&self) -> usize {
        self.list().count()
    }

    /// What the network is conditioned on for the member at `beta` and `field`, which must lie in the ranges.
    pub fn condition(&self, beta: f64, field: f64) -> Result<Vec<f64>> {
        self.list()
            .map(|(name, [low, high])| {
                let value = if name == "beta" { beta } else { field };
                if !(value >= low && value <= high) {
                    let condition = format!("from {low} to {high}");
                    let advice = "the network is trained over these alone";
                    return Err(Error::invalid(format!("target.{name}"), value, condition, advice));
                }
                Ok((2.0 * value - low - high) / (high - low))
            })
            .collect()
    }

    /// `count` members, as pairs of `beta` and `field`, spread over the ranges; what has no range is as given.
    ///
    /// One range is cut evenly, ends included. In two, the corners come first and then a sequence that leaves no large holes
    /// (additive recurrence with the powers of the plastic number).
    pub fn members(&self, count: usize, beta: f64, field: f64) -> Vec<(f64, f64)> {
        let at = |range: Option<[f64; 2]>, share: f64, fixed: f64| {
            range.map_or(fixed, |[low, high]| {
                // Rounding must not lead out of the range.
                ((1.0 - share) * low + share * high).clamp(low, high)
            })
        };
        (0..count)
            .map(|k| {
                let (u, v) = match (self.conditions(), k) {
                    (2, 0..4) => ((k % 2) as f64, (k / 2) as f64),
                    (2, _) => {
                        const PLASTIC: f64 = 1.324_717_957_244_746;
                        let n = (k - 3) as f64;
                        ((n / PLASTIC).fract(), (n / (PLASTIC * PLASTIC)).fract())
                    }
                    _ => {
                        let share = k as f64 / count.saturating_sub(1).max(1) as f64;
                        (share, share)
                    }
                };
                (at(self.beta, u, beta), at(self.field, v, field))
            })
            .collect()
    }

    /// The ranges in words.
    pub fn describe(&self) -> String {
        let words: Vec<String> =
            self.list().map(|(name, [low, high])| format!("{name} from {low} to {high}")).collect();
        words.join(", ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_fill_the_ranges() {
        let both = Ranges { beta: Some([0.2, 0.4]), field: Some([-0.1, 0.3]), ..Ranges::default() };
        let members = both.members(64, 9.0, 9.0);
        for corner in [(0.2, -0.1), (0.4, -0.1), (0.2, 0.3), (0.4, 0.3)] {
            let near = |m: &&(f64, f64)| (m.0 - corner.0).abs() + (m.1 - corner.1).abs() < 1e-12;
            assert_eq!(members.iter().filter(near).count(), 1, "{corner:?}");
        }
        // No square of a fifth of the sides is empty.
        for (i, j) in (0..25).map(|k| (k / 5, k % 5)) {
            let within = |c: f64, k: i32| {
                (c + 1.0) / 0.4 >= f64::from(k) && (c + 1.0) / 0.4 <= f64::from(k + 1)
            };
            let found = members.iter().filter(|(beta, field)| {
                let c = both.condition(*beta, *field).unwrap();
                within(c[0], i) && within(c[1], j)
            });
            assert!(found.count() > 0, "square {i}, {j}");
        }
        let uneven =
            Ranges { beta: Some([0.15, 0.45]), field: Some([-0.7, 0.1]), ..Ranges::default() };
        for (beta, field) in uneven.members(500, 0.0, 0.0) {
            uneven.condition(beta, field).unwrap();
        }
        let one = Ranges { beta: None, field: Some([-1.0, 1.0]), ..Ranges::default() };
        assert_eq!(one.members(3, 0.5, 9.0), [(0.5, -1.0), (0.5, 0.0), (0.5, 1.0)]);
        assert_eq!(one.members(1, 0.5, 9.0), [(0.5, -1.0)]);
    }

    #[test]
    fn conditions_go_from_minus_one_to_one() {
        let both = Ranges { beta: Some([0.2, 0.4]), field: Some([-0.1, 0.3]), ..Ranges::default() };
        let condition = both.condition(0.4, 0.0).unwrap();
        assert!((condition[0] - 1.0).abs() < 1e-12 && (condition[1] + 0.5).abs() < 1e-12);
        let error = both.condition(0.41, 0.0).unwrap_err().to_string();
        assert!(error.starts_with("target.beta = 0.41: must be from 0.2 to 0.4"), "{error}");
        assert!(both.condition(0.3, f64::NAN).is_err());
        assert_eq!(Ranges::default().condition(7.0, 7.0).unwrap(), Vec::<f64>::new());
    }

    #[test]
    fn bad_ranges_are_refused() {
        for bad in [[0.4, 0.2], [0.3, 0.3], [f64::NAN, 0.3], [0.0, f64::INFINITY]] {
            let refused = |ranges: Ranges| ranges.check().unwrap_err().to_string();
            let error = refused(Ranges { beta: Some(bad), ..Ranges::default() });
            assert!(error.starts_with("train.beta_range = ["), "{error}");
            let field = Ranges { field: Some(bad), ..Ranges::default() };
            let error = refused(field);
            assert!(error.starts_with("train.field_range = ["), "{error}");
            let error = refused(Ranges { of: Strength::CrystalField, ..field });
            assert!(error.starts_with("train.crystal_field_range = ["), "{error}");
        }
        assert!(Ranges { beta: Some([0.1, 0.2]), ..Ranges::default() }.check().is_ok());
    }
}
