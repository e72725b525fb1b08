//! Values as people write them: counts and seeds with an exponent, ranges, lists.

use std::convert::Infallible;
use std::fmt;
use std::path::PathBuf;

use serde::de::{self, Deserializer, SeqAccess, Visitor};
use toml::Value;

/// What to say of a whole number beyond those of TOML, which end at 2^63.
pub const TOO_LARGE: &str = "at most 9223372036854775807";

/// A whole number on the command line, such as a random seed; `1e6` counts as one. TOML integers end at 2^63.
pub fn seed(text: &str) -> Result<u64, String> {
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
pub fn count(text: &str) -> Result<usize, String> {
    usize::try_from(seed(text)?).map_err(|_| format!("at most {}", usize::MAX))
}

/// Whether a text is a whole number that TOML cannot hold.
pub fn is_too_large(text: &str) -> bool {
    let digits = text.strip_prefix('+').unwrap_or(text).replace('_', "");
    !digits.is_empty()
        && digits.bytes().all(|b| b.is_ascii_digit())
        && digits.parse::<i64>().is_err()
}

/// The name that was probably meant by a word that is none of them.
///
/// ```
/// use leaps::parse::nearest;
/// assert_eq!(nearest("pots", ["ising", "potts"]), Some("potts"));
/// assert_eq!(nearest("heisenberg", ["ising", "potts"]), None);
/// ```
pub fn nearest<'a>(word: &str, names: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let near = |name: &'a str| (strsim::levenshtein(name, word), name);
    let (distance, name) = names.into_iter().map(near).min()?;
    (distance <= 1 + word.len() / 4).then_some(name)
}

/// A finite number on the command line.
pub fn number(text: &str) -> Result<f64, String> {
    let value: Option<f64> = text.parse().ok();
    value.filter(|x| x.is_finite()).ok_or_else(|| "a finite number such as 0.5".to_owned())
}

/// Two numbers on the command line, with a comma between them.
pub fn range(text: &str) -> Result<[f64; 2], String> {
    let numbers: Option<Vec<f64>> = text.split(',').map(|word| word.trim().parse().ok()).collect();
    match numbers.as_deref() {
        Some(&[low, high]) => Ok([low, high]),
        _ => Err("two numbers such as 0.2,0.44".to_owned()),
    }
}

/// Numbers on the command line, with commas between them; `a:b:n` is n numbers from a to b at equal distances.
pub fn numbers(text: &str) -> Result<Vec<f64>, String> {
    let mut all = Vec::new();
    for word in text.split(',').filter(|_| !text.is_empty()) {
        let parts: Vec<&str> = word.split(':').map(str::trim).collect();
        match parts[..] {
            [one] => all.push(number(one)?),
            [low, high, points] => {
                let (low, high) = (number(low)?, number(high)?);
                let points = count(points).ok().filter(|n| (2..=MOST_NUMBERS).contains(n));
                let points =
                    points.ok_or_else(|| format!("2 to {MOST_NUMBERS} points in a:b:n"))?;
                let step = 1.0 / (points - 1) as f64;
                // Both ends exactly, and no more digits than were asked for.
                all.extend((0..points).map(|k| match points - 1 - k {
                    0 => high,
                    _ => rounded(low + (high - low) * (k as f64 * step), low, high),
                }));
            }
            _ => {
                return Err("numbers such as 0.2,0.3, or n numbers from a to b as a:b:n".to_owned());
            }
        }
    }
    Ok(all)
}

/// Numbers of a file: a list, or the text that [`numbers`] reads, such as "0.1:0.4:4".
pub(crate) fn list_or_range<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<f64>, D::Error> {
    from.deserialize_any(ListOrRange)
}

/// Reads either.
struct ListOrRange;

impl<'de> Visitor<'de> for ListOrRange {
    type Value = Vec<f64>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of numbers in square brackets, or a range such as \"0.1:0.4:4\"")
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<Self::Value, E> {
        numbers(text).map_err(|_| E::invalid_value(de::Unexpected::Str(text), &self))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Self::Value, A::Error> {
        let mut all = Vec::new();
        while let Some(item) = items.next_element()? {
            all.push(item);
        }
        Ok(all)
    }
}

/// Most numbers of a range.
const MOST_NUMBERS: usize = 100_000;

/// The number of 12 digits nearest to a point between two others, which is what people mean by it.
fn rounded(value: f64, low: f64, high: f64) -> f64 {
    let scale = low.abs().max(high.abs());
    if value.abs() < 1e-12 * scale {
        return 0.0;
    }
    format!("{value:.11e}").parse().unwrap_or(value)
}

/// A path that will stand in a file, and so must be text.
pub fn text_path(text: &str) -> Result<PathBuf, Infallible> {
    Ok(text.into())
}

/// A number of TOML.
pub(crate) fn of_value(value: &Value) -> Option<f64> {
    match value {
        Value::Float(x) => Some(*x),
        Value::Integer(x) => Some(*x as f64),
        _ => None,
    }
}

/// A list of numbers of TOML.
pub(crate) fn list(values: &[Value]) -> Option<Vec<f64>> {
    values.iter().map(of_value).collect()
}

/// Refuse a count outside its range.
pub(crate) fn at_least(
    key: &str,
    value: usize,
    least: usize,
    most: usize,
    advice: &str,
) -> crate::Result<()> {
    if (least..=most).contains(&value) {
        return Ok(());
    }
    Err(crate::Error::invalid(key, value, format!("from {least} to {most}"), advice))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_have_both_ends_and_few_digits() {
        assert_eq!(numbers("0.2:0.5:4").unwrap(), [0.2, 0.3, 0.4, 0.5]);
        assert_eq!(numbers("0.1,0.3:0.9:3,2").unwrap(), [0.1, 0.3, 0.6, 0.9, 2.0]);
        assert_eq!(numbers("-0.3:0.3:7").unwrap(), [-0.3, -0.2, -0.1, 0.0, 0.1, 0.2, 0.3]);
        assert_eq!(numbers("").unwrap(), Vec::<f64>::new());
        for bad in ["a", "1:2", "1:2:1", "1:2:3:4", "1:nan:3", "1,,2", "1:2:1e9", ":"] {
            assert!(numbers(bad).is_err(), "{bad}");
        }
    }
}
