//! Build the family of targets that one network is trained on, from ranges of beta and field.

use std::sync::Arc;

use super::RunSpec;
use crate::path::{Path, Ranges};
use crate::target::{Field, Kind, Target, TargetSpec};
use crate::train::{Family, Member};
use crate::{Error, Result};

/// A family, ready to be trained on.
pub struct FamilyProblem {
    /// What its members share. Where fields have a range this has a field of strength 1, and the path says how much of it there is.
    pub target: Arc<dyn Target>,
    /// The path to the configuration's own target.
    pub path: Path,
    /// The members.
    pub family: Family,
}

impl TargetSpec {
    /// What a network for these ranges is conditioned on for this target.
    pub fn condition(&self, ranges: &Ranges) -> Result<Vec<f64>> {
        let field = match &self.field {
            None => 0.0,
            Some(Field::Uniform(field)) => *field,
            Some(_) if ranges.field.is_none() => 0.0,
            Some(_) => {
                let condition = "one number for a network that was trained over a range of it";
                let advice = "fields that differ from site to site have no range";
                return Err(Error::invalid("target.field", "(a list)", condition, advice));
            }
        };
        ranges.condition(self.beta.unwrap_or(1.0), field)
    }
}

impl RunSpec {
    /// The ranges that the network is trained over, if there are any.
    pub fn ranges(&self) -> Option<Ranges> {
        self.train.ranges()
    }

    /// The family to train on, if the configuration has one. Its own target must be a member.
    pub fn family(&self) -> Result<Option<FamilyProblem>> {
        let train = &self.train;
        train.check()?;
        let Some(ranges) = train.ranges() else { return Ok(None) };
        if let (Some([low, high]), None) = (ranges.field, &self.target.field) {
            let condition = format!("left out for {}", self.target.kind.map_or("", Kind::name));
            let advice = "it belongs to ising, potts, spin-glass";
            let shown = format!("[{low}, {high}]");
            return Err(Error::invalid("train.field_range", shown, condition, advice));
        }
        let beta = self.target.beta.unwrap_or(1.0);
        let field = match &self.target.field {
            Some(Field::Uniform(field)) => *field,
            _ => 0.0,
        };
        let mut spec = self.target.clone();
        if ranges.field.is_some() {
            spec.field = Some(Field::Uniform(1.0));
        }
        let target: Arc<dyn Target> = Arc::new(spec.build()?);
        let path = |beta: f64, field: f64| {
            let ends: Vec<f64> = (0..target.terms())
                .map(|k| match target.term_name(k).as_str() {
                    "field" if ranges.field.is_some() => beta * field,
                    _ => beta,
                })
                .collect();
            self.path.build(&target.term_names(), &ends)
        };
        let members: Result<Vec<Member>> = ranges
            .members(train.members(), beta, field)
            .into_iter()
            .map(|(beta, field)| {
                let condition = ranges.condition(beta, field)?;
                Ok(Member { path: path(beta, field)?, condition })
            })
            .collect();
        let family = Family { condition: self.target.condition(&ranges)?, members: members? };
        let path = path(beta, field)?;
        Ok(Some(FamilyProblem { target, path, family }))
    }
}
