//! Descriptions of paths, once for the command line, for configurations and for models.

use std::collections::BTreeMap;

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use toml::Value;

use super::{Path, Schedule};
use crate::parse;
use crate::{Error, Result};

/// The shapes of a schedule.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum ScheduleName {
    /// [`Schedule::Linear`].
    #[default]
    Linear,
    /// [`Schedule::Trigonometric`].
    Trigonometric,
    /// [`Schedule::Geometric`].
    Geometric,
    /// [`Schedule::Piecewise`].
    Piecewise,
    /// Linear, cut where a pilot run says.
    Adaptive,
}

/// How to go from the uniform distribution to the target.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "clap", derive(clap::Args))]
#[serde(default, deny_unknown_fields)]
#[cfg_attr(feature = "clap", command(next_help_heading = "Path"))]
pub struct PathSpec {
    /// Growth of the weights: linear, trigonometric, geometric, piecewise or adaptive
    #[cfg_attr(
        feature = "clap",
        arg(long, value_enum, default_value_t, hide_possible_values = true, value_name = "SHAPE")
    )]
    pub schedule: ScheduleName,
    /// Last step over first step of a geometric schedule; below 1 dwells near the target
    #[cfg_attr(feature = "clap", arg(long, default_value_t = PathSpec::default().ratio, value_name = "R", value_parser = parse::number))]
    pub ratio: f64,
    /// Points (t, s) of a piecewise schedule, from 0:0 to 1:1
    #[cfg_attr(feature = "clap", arg(long, default_value_t = PathSpec::default().table, value_name = "T:S,..."))]
    pub table: Points,
    /// Conditional effective sample size that each adaptive step keeps, in (0, 1)
    #[cfg_attr(feature = "clap", arg(long, default_value_t = PathSpec::default().conditional_ess, value_name = "X", value_parser = parse::number))]
    pub conditional_ess: f64,
    /// Schedules of single energy terms, such as field = "trigonometric"
    #[cfg_attr(feature = "clap", arg(skip))]
    pub terms: BTreeMap<String, ScheduleName>,
}

impl Default for PathSpec {
    fn default() -> Self {
        PathSpec {
            schedule: ScheduleName::Linear,
            ratio: 0.1,
            table: Points(vec![(0.0, 0.0), (1.0, 1.0)]),
            conditional_ess: 0.99,
            terms: BTreeMap::new(),
        }
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

    /// The path to the weights `ends` of the energy terms of these names.
    pub fn build(&self, names: &[String], ends: &[f64]) -> Result<Path> {
        self.check()?;
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

/// The points `(t, s)` of a piecewise linear schedule; `0:0,0.5:0.8,1:1` on the command line.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "Value", into = "Value")]
pub struct Points(pub Vec<(f64, f64)>);

const POINTS: &str = "points such as 0:0,0.5:0.8,1:1 (in a file [[0, 0], [0.5, 0.8], [1, 1]])";

impl FromStr for Points {
    type Err = String;

    fn from_str(text: &str) -> std::result::Result<Self, String> {
        let point = |word: &str| {
            let (t, s) = word.split_once(':')?;
            Some((t.trim().parse().ok()?, s.trim().parse().ok()?))
        };
        let points: Option<Vec<_>> = text.split(',').map(point).collect();
        points.map(Points).ok_or_else(|| POINTS.to_owned())
    }
}

impl TryFrom<Value> for Points {
    type Error = String;

    fn try_from(value: Value) -> std::result::Result<Self, String> {
        let point = |value: &Value| match parse::list(value.as_array()?)?[..] {
            [t, s] => Some((t, s)),
            _ => None,
        };
        let points: Option<Vec<_>> = match &value {
            Value::String(text) => return text.parse(),
            Value::Array(points) => points.iter().map(point).collect(),
            _ => None,
        };
        points.map(Points).ok_or_else(|| POINTS.to_owned())
    }
}

impl From<Points> for Value {
    fn from(points: Points) -> Value {
        let point = |(t, s)| Value::Array(vec![Value::Float(t), Value::Float(s)]);
        Value::Array(points.0.into_iter().map(point).collect())
    }
}

impl fmt::Display for Points {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let words: Vec<String> = self.0.iter().map(|(t, s)| format!("{t}:{s}")).collect();
        f.write_str(&words.join(","))
    }
}
