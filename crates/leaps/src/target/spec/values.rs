//! Sizes of lattices and magnetic fields, which have more than one spelling.

use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use toml::Value;

use crate::parse::{self, TOO_LARGE, is_too_large};
use crate::{Error, Result, file};

/// Sites along the axes of a lattice: one number for all, or one for each.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "Value", into = "Value")]
pub struct Size(pub Vec<usize>);

const SIZE: &str = "a length such as 15, or lengths such as 15x20";

impl FromStr for Size {
    type Err = String;

    fn from_str(text: &str) -> std::result::Result<Self, String> {
        let sides: std::result::Result<Vec<usize>, _> = text.split('x').map(str::parse).collect();
        sides.map(Size).map_err(|_| match text.split('x').find(|side| is_too_large(side)) {
            Some(_) => format!("{SIZE}, {TOO_LARGE} each"),
            None => SIZE.to_owned(),
        })
    }
}

impl TryFrom<Value> for Size {
    type Error = String;

    fn try_from(value: Value) -> std::result::Result<Self, String> {
        let side = |value: &Value| value.as_integer().and_then(|n| usize::try_from(n).ok());
        let sides = match &value {
            Value::String(text) => return text.parse(),
            Value::Array(sides) if !sides.is_empty() => sides.iter().map(side).collect(),
            one => side(one).map(|n| vec![n]),
        };
        sides.map(Size).ok_or_else(|| SIZE.to_owned())
    }
}

impl From<Size> for Value {
    fn from(size: Size) -> Value {
        let side = |&n: &usize| Value::Integer(i64::try_from(n).unwrap_or(i64::MAX));
        match &size.0[..] {
            [one] => side(one),
            many => Value::Array(many.iter().map(side).collect()),
        }
    }
}

impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.iter().map(usize::to_string).collect::<Vec<_>>().join("x"))
    }
}

/// A magnetic field: the same everywhere, one value for each site, or a file of those.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "Value", into = "Value")]
#[non_exhaustive]
pub enum Field {
    /// The same at every site.
    Uniform(f64),
    /// One value for each site.
    Sites(Vec<f64>),
    /// A text file with one value for each site.
    File(PathBuf),
}

impl FromStr for Field {
    type Err = String;

    fn from_str(text: &str) -> std::result::Result<Self, String> {
        if let Ok(value) = text.parse() {
            return Ok(Field::Uniform(value));
        }
        if !text.contains(',') {
            return Ok(Field::File(PathBuf::from(text)));
        }
        let values: std::result::Result<Vec<f64>, _> =
            text.split(',').map(|word| word.trim().parse()).collect();
        values
            .map(Field::Sites)
            .map_err(|_| "a number, numbers with commas between them, or a file".to_owned())
    }
}

impl TryFrom<Value> for Field {
    type Error = String;

    fn try_from(value: Value) -> std::result::Result<Self, String> {
        match &value {
            Value::String(text) => text.parse(),
            Value::Array(values) => parse::list(values)
                .map(Field::Sites)
                .ok_or_else(|| "a list of numbers, one for each site".to_owned()),
            one => parse::of_value(one)
                .map(Field::Uniform)
                .ok_or_else(|| "a number, a list of numbers or the name of a file".to_owned()),
        }
    }
}

impl From<Field> for Value {
    fn from(field: Field) -> Value {
        match field {
            Field::Uniform(value) => Value::Float(value),
            Field::Sites(values) => Value::Array(values.into_iter().map(Value::Float).collect()),
            Field::File(path) => Value::String(path.display().to_string()),
        }
    }
}

impl Field {
    /// The values, read from the file if they are in one; one value stands for all sites.
    pub fn values(&self) -> Result<Vec<f64>> {
        match self {
            Field::Uniform(value) => Ok(vec![*value]),
            Field::Sites(values) => Ok(values.clone()),
            Field::File(path) => read_numbers(path),
        }
    }
}

/// Numbers separated by white space or commas; `#` starts a comment.
fn read_numbers(path: &Path) -> Result<Vec<f64>> {
    let text = file::read_text(path)?;
    let mut values = Vec::new();
    for (number, line) in text.lines().enumerate() {
        let content = line.split('#').next().unwrap_or("");
        for word in content.split(|c: char| c.is_whitespace() || c == ',') {
            if word.is_empty() {
                continue;
            }
            let value = word.parse().ok().filter(|x: &f64| x.is_finite());
            values.push(value.ok_or_else(|| Error::Parse {
                path: path.into(),
                line: number + 1,
                column: word.as_ptr() as usize - line.as_ptr() as usize + 1,
                reason: format!("'{word}' is not a finite number"),
            })?);
        }
    }
    Ok(values)
}
