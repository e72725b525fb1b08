//! The family of targets that one network is trained on: over ranges of beta and a strength, or over random instances.

use std::sync::Arc;

use super::RunSpec;
use crate::path::{Path, Ranges};
use crate::target::{Disorder, Field, Geometry, Kind, Target, TargetSpec};
use crate::train::{Family, Instances, Member};
use crate::{Error, Result};

/// A family, ready to be trained on.
pub struct FamilyProblem {
    /// What its members share. Where fields (or another [`Strength`](crate::path::Strength)) have a range this has one of 1, and the path says how
    /// much of it there is.
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
            _ if !ranges.of.is_field() => self.strength(ranges.of).unwrap_or(0.0),
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
    /// The random instances to train on, if the configuration asks for them.
    pub fn instances(&self) -> Result<Option<Instances>> {
        let (train, target) = (&self.train, &self.target);
        train.check()?;
        let Some(count) = train.instances() else { return Ok(None) };
        let glass = target.kind == Some(Kind::SpinGlass);
        let plain = glass && target.geometry != Some(Geometry::Complete);
        let Some(lattice) = target.lattice()?.filter(|_| plain) else {
            let name = target.kind.map_or("", Kind::name);
            let name = if glass { "a spin glass without a lattice" } else { name };
            let condition = format!("left out for {name}");
            let advice = "couplings are drawn for a spin-glass on a lattice";
            return Err(Error::invalid("train.instances", count, condition, advice));
        };
        let walkers = train.walkers_per_instance();
        Ok(Some(Instances {
            lattice,
            disorder: target.couplings.unwrap_or(Disorder::Pm1),
            seed: self.seed,
            count,
            walkers,
            drawn: train.batch / walkers,
        }))
    }

    /// The ranges that the network is trained over, if there are any.
    pub fn ranges(&self) -> Option<Ranges> {
        self.train.ranges()
    }

    /// The family to train on, if the configuration has one. Its own target must be a member.
    pub fn family(&self) -> Result<Option<FamilyProblem>> {
        let train = &self.train;
        train.check()?;
        let Some(ranges) = train.ranges() else { return Ok(None) };
        if let Some([low, high]) = ranges.field {
            self.target.check_strength(ranges.of).map_err(|error| match error {
                Error::Invalid { condition, advice, .. } => {
                    let key = format!("train.{}_range", ranges.of.name());
                    Error::invalid(key, format!("[{low}, {high}]"), condition, advice)
                }
                other => other,
            })?;
        }
        let beta = self.target.beta.unwrap_or(1.0);
        let field = self.target.strength(ranges.of).unwrap_or(0.0);
        let spec = match ranges.field {
            Some(_) => self.target.clone().with_strength(ranges.of, 1.0),
            None => self.target.clone(),
        };
        let target: Arc<dyn Target> = spec.build()?;
        let path = |beta: f64, field: f64| {
            let ends: Vec<f64> = (0..target.terms())
                .map(|k| match target.term_name(k).as_str() {
                    name if ranges.field.is_some() && name == ranges.of.name() => beta * field,
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
