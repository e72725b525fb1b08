//! Numbers of results by their paths.

use serde_json::Value;

/// A number of a result, if it is there and finite.
pub fn number(results: &Value, path: &str) -> Option<f64> {
    path.split('.').try_fold(results, |value, key| value.get(key))?.as_f64()
}
