//! Times of a result, apart from what repeats byte for byte.

use serde_json::{Map, Value};

/// Whether a key of a result is a time, or a number per time.
fn is_timing(key: &str) -> bool {
    key.starts_with("seconds") || key == "log_z_merit" || key.ends_with("_per_second")
}

/// Take the times out of a result, wherever they are in it; what is left repeats.
pub fn take(result: &mut Value) -> Value {
    let mut taken = Map::new();
    if let Value::Object(entries) = result {
        let keys: Vec<String> = entries.keys().cloned().collect();
        for key in keys {
            let found = match is_timing(&key) {
                true => entries.remove(&key),
                false => entries.get_mut(&key).map(take).filter(|inner| !inner.is_null()),
            };
            taken.extend(found.map(|value| (key, value)));
        }
    }
    if taken.is_empty() { Value::Null } else { Value::Object(taken) }
}

/// Put the times back that were taken out of a result.
pub fn put(result: &mut Value, times: &Value) {
    let (Value::Object(entries), Value::Object(times)) = (result, times) else { return };
    for (key, value) in times {
        match entries.get_mut(key) {
            Some(inner) if !is_timing(key) => put(inner, value),
            _ => drop(entries.insert(key.clone(), value.clone())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn times_come_out_of_results_and_go_back() {
        let whole = json!({"ess": 0.5, "seconds": 2.0, "effective_samples_per_second": 9.0,
            "log_z_merit": 4.0, "discs": {"ess_per_step": 0.1, "ess_per_second": 3.0}, "path": [{"seconds": 1}]});
        let mut result = whole.clone();
        let times = take(&mut result);
        assert_eq!(
            result,
            json!({"ess": 0.5, "discs": {"ess_per_step": 0.1}, "path": [{"seconds": 1}]})
        );
        assert_eq!(
            times,
            json!({"seconds": 2.0, "effective_samples_per_second": 9.0, "log_z_merit": 4.0,
                "discs": {"ess_per_second": 3.0}})
        );
        put(&mut result, &times);
        assert_eq!(result, whole);
        assert_eq!(take(&mut json!(3)), Value::Null);
    }
}
