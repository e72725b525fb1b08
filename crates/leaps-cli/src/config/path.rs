//! Describe how the weights of the energy terms grow, once for the command line and for the file.

use std::collections::BTreeMap;

use clap::{Args, ValueEnum};
use leaps::path::{Path, Schedule};
use leaps::target::{Pairwise, Target};
use leaps::{Error, Result};
use serde::{Deserialize, Serialize};

use super::value::{Points, number};

/// The shapes of a schedule.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ScheduleName {
    Linear,
    Trigonometric,
    Geometric,
    Piecewise,
    Adaptive,
}

/// How to go from the uniform distribution to the target.
#[derive(Clone, Debug, PartialEq, Args, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[command(next_help_heading = "Path")]
pub struct PathSpec {
    /// Growth of the weights: linear, trigonometric, geometric, piecewise or adaptive
    #[arg(
        long,
        value_enum,
        default_value = "linear",
        hide_possible_values = true,
        value_name = "SHAPE"
    )]
    pub schedule: ScheduleName,
    /// Last step over first step of a geometric schedule; below 1 dwells near the target
    #[arg(long, default_value = "0.1", value_name = "R", value_parser = number)]
    pub ratio: f64,
    /// Points (t, s) of a piecewise schedule, from 0:0 to 1:1
    #[arg(long, default_value = "0:0,1:1", value_name = "T:S,...")]
    pub table: Points,
    /// Conditional effective sample size that each adaptive step keeps, in (0, 1)
    #[arg(long, default_value = "0.99", value_name = "X", value_parser = number)]
    pub conditional_ess: f64,
    /// Schedules of single energy terms, such as field = "trigonometric"
    #[arg(skip)]
    pub terms: BTreeMap<String, ScheduleName>,
}

impl Default for PathSpec {
    fn default() -> Self {
        super::defaults()
    }
}

impl PathSpec {
    /// Refuse values outside their ranges.
    pub fn check(&self) -> Result<()> {
        Schedule::geometric(self.ratio)?;
        Schedule::piecewise(&self.table.0)?;
        if !(self.conditional_ess > 0.0 && self.conditional_ess < 1.0) {
            return Err(Error::invalid(
                "path.conditional_ess",
                self.conditional_ess,
                "between 0 and 1",
                "0.95 is usual; closer to 1 makes smaller steps",
            ));
        }
        for (name, schedule) in &self.terms {
            if *schedule == ScheduleName::Adaptive {
                return Err(Error::invalid(
                    format!("path.terms.{name}"),
                    "adaptive",
                    "linear, trigonometric, geometric or piecewise",
                    "set path.schedule = \"adaptive\" for the whole path",
                ));
            }
        }
        Ok(())
    }

    /// The conditional effective sample size to keep, if the schedule is adaptive.
    pub fn adaptive(&self) -> Option<f64> {
        (self.schedule == ScheduleName::Adaptive).then_some(self.conditional_ess)
    }

    /// Whether some term uses this shape.
    pub fn uses(&self, schedule: ScheduleName) -> bool {
        self.schedule == schedule || self.terms.values().any(|name| *name == schedule)
    }

    fn shape(&self, name: ScheduleName) -> Result<Schedule> {
        match name {
            // An adaptive run chooses its own times along the straight path.
            ScheduleName::Linear | ScheduleName::Adaptive => Ok(Schedule::Linear),
            ScheduleName::Trigonometric => Ok(Schedule::Trigonometric),
            ScheduleName::Geometric => Schedule::geometric(self.ratio),
            ScheduleName::Piecewise => Schedule::piecewise(&self.table.0),
        }
    }

    /// The path of `target` up to inverse temperature `beta`.
    pub fn build(&self, target: &Pairwise, beta: f64) -> Result<Path> {
        self.build_to(target, &vec![beta; target.terms()])
    }

    /// The path of `target` up to these weights of its terms.
    pub fn build_to(&self, target: &Pairwise, ends: &[f64]) -> Result<Path> {
        self.check()?;
        let names: Vec<String> = (0..target.terms()).map(|k| target.term_name(k)).collect();
        if let Some((stranger, schedule)) =
            self.terms.iter().find(|(name, _)| !names.contains(name))
        {
            return Err(Error::invalid(
                format!("path.terms.{stranger}"),
                format!("{schedule:?}").to_lowercase(),
                format!("a schedule of an energy term of this target: {}", names.join(", ")),
                "remove the key, or give the target that term",
            ));
        }
        let schedules: Result<Vec<Schedule>> = names
            .iter()
            .map(|name| self.shape(self.terms.get(name).copied().unwrap_or(self.schedule)))
            .collect();
        Path::with_schedules(ends, schedules?)
    }
}
