//! Strengths of targets that families and grids vary: the uniform field, or what stands in its place.

use crate::path::Strength;
use crate::target::{Field, Kind, TargetSpec};
use crate::{Error, Result};

impl TargetSpec {
    /// The value of a strength; none if the target has none, or a field for every site.
    pub fn strength(&self, of: Strength) -> Option<f64> {
        match of {
            Strength::ChemicalPotential => self.chemical_potential,
            Strength::CrystalField => self.crystal_field,
            Strength::Field => match &self.field {
                Some(Field::Uniform(field)) => Some(*field),
                _ => None,
            },
        }
    }

    /// The same target with another value of a strength.
    pub fn with_strength(self, of: Strength, value: f64) -> Self {
        match of {
            Strength::ChemicalPotential => self.chemical_potential(value),
            Strength::CrystalField => self.crystal_field(value),
            Strength::Field => self.field(value),
        }
    }

    /// Refuse a strength that the target does not have.
    pub(crate) fn check_strength(&self, of: Strength) -> Result<()> {
        let has = |kind: &Kind| kind.keys().contains(&of.name());
        if self.kind.as_ref().is_some_and(has) {
            return Ok(());
        }
        let owners: Vec<&str> =
            Kind::ALL.iter().filter(|kind| has(kind)).map(|k| k.name()).collect();
        let value = self.strength(of).unwrap_or(0.0);
        let condition = format!("left out for {}", self.kind.map_or("", Kind::name));
        let advice = format!("it belongs to {}", owners.join(", "));
        Err(Error::invalid(format!("target.{}", of.name()), value, condition, advice))
    }
}
