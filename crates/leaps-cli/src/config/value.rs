//! Read values that have more than one spelling: lattice sizes, fields, schedule tables, counts.

use std::ffi::OsString;
use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use clap::builder::{OsStringValueParser, StringValueParser, TypedValueParser};
use leaps::{Error, Result};
use serde::{Deserialize, Serialize};
use toml::Value;

/// What to say of a whole number beyond those of TOML, which end at 2^63.
pub const TOO_LARGE: &str = "at most 9223372036854775807";

/// A whole number on the command line, such as a random seed; `1e6` counts as one. TOML integers end at 2^63.
pub fn seed(text: &str) -> std::result::Result<u64, String> {
    let plain = || u64::try_from(text.parse::<i64>().ok()?).ok();
    let scientific: Option<f64> = text.parse().ok();
    let whole = scientific.filter(|value| *value >= 0.0 && value.fract() == 0.0);
    let exact = whole.filter(|value| *value <= 1e15).map(|value| value as u64);
    plain().or(exact).ok_or_else(|| match whole {
        Some(_) => format!("{TOO_LARGE}, or 1e15 with an exponent"),
        None => "a whole number such as 1000 or 1e6".to_owned(),
    })
}

/// The same as a number of things.
pub fn count(text: &str) -> std::result::Result<usize, String> {
    usize::try_from(seed(text)?).map_err(|_| format!("at most {}", usize::MAX))
}

/// Whether a text is a whole number that TOML cannot hold.
pub fn is_too_large(text: &str) -> bool {
    let digits = text.strip_prefix('+').unwrap_or(text).replace('_', "");
    !digits.is_empty()
        && digits.bytes().all(|b| b.is_ascii_digit())
        && digits.parse::<i64>().is_err()
}

/// A finite number on the command line.
pub fn number(text: &str) -> std::result::Result<f64, String> {
    let value: Option<f64> = text.parse().ok();
    value.filter(|x| x.is_finite()).ok_or_else(|| "a finite number such as 0.5".to_owned())
}

/// Words that must be text; the parser's own complaint would not name the flag.
pub fn text() -> impl TypedValueParser<Value = String> {
    let text = |word: OsString| word.into_string().map_err(|_| "UTF-8 text");
    OsStringValueParser::new().try_map(text)
}

/// A path that will stand in a file, and so must be text.
pub fn text_path() -> impl TypedValueParser<Value = PathBuf> {
    StringValueParser::new().map(PathBuf::from)
}

/// Two numbers on the command line, with a comma between them.
pub fn range(text: &str) -> std::result::Result<[f64; 2], String> {
    let numbers: Option<Vec<f64>> = text.split(',').map(|word| word.trim().parse().ok()).collect();
    match numbers.as_deref() {
        Some(&[low, high]) => Ok([low, high]),
        _ => Err("two numbers such as 0.2,0.44".to_owned()),
    }
}

fn as_number(value: &Value) -> Option<f64> {
    match value {
        Value::Float(x) => Some(*x),
        Value::Integer(x) => Some(*x as f64),
        _ => None,
    }
}

fn numbers(values: &[Value]) -> Option<Vec<f64>> {
    values.iter().map(as_number).collect()
}

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
            Value::Array(values) => numbers(values)
                .map(Field::Sites)
                .ok_or_else(|| "a list of numbers, one for each site".to_owned()),
            one => as_number(one)
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
    let text = leaps::file::read_text(path)?;
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
        let point = |value: &Value| match numbers(value.as_array()?)?[..] {
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
