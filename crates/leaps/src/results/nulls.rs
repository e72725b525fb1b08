//! Numbers that are not finite, which are `null` in JSON.

use serde::{Deserialize, Deserializer};

fn numbers<'de, D: Deserializer<'de>>(d: D, absent: f64) -> Result<Vec<f64>, D::Error> {
    let all: Vec<Option<f64>> = Vec::deserialize(d)?;
    Ok(all.into_iter().map(|number| number.unwrap_or(absent)).collect())
}

/// A list whose `null` is not a number.
pub(super) fn nulls_are_nan<'de, D: Deserializer<'de>>(d: D) -> Result<Vec<f64>, D::Error> {
    numbers(d, f64::NAN)
}

/// A list whose `null` is infinite: errors that nobody knows.
pub(super) fn nulls_are_infinite<'de, D: Deserializer<'de>>(d: D) -> Result<Vec<f64>, D::Error> {
    numbers(d, f64::INFINITY)
}

/// A number that `null` is not.
pub(super) fn null_is_nan<'de, D: Deserializer<'de>>(d: D) -> Result<f64, D::Error> {
    Ok(Option::deserialize(d)?.unwrap_or(f64::NAN))
}

/// The error that nobody knows.
pub(super) fn infinite() -> f64 {
    f64::INFINITY
}

/// A number whose `null` is infinite.
pub(super) fn null_is_infinite<'de, D: Deserializer<'de>>(d: D) -> Result<f64, D::Error> {
    Ok(Option::deserialize(d)?.unwrap_or(f64::INFINITY))
}
