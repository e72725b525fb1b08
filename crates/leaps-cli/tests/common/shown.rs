//! Whether the words that a page has for a number are those of the results.

use serde_json::Value;

/// A number of results by its path, such as `log_z.mean`.
pub fn lookup<'a>(value: &'a Value, path: &str) -> &'a Value {
    path.split('.').fold(value, |value, key| match key.parse::<usize>() {
        Ok(place) => &value[place],
        Err(_) => &value[key],
    })
}

/// What is wrong with a number on a page: where it says that it is from, the value that it carries, and the words that people see.
pub fn wrong(results: &Value, key: &str, carried: &str, words: &str) -> Option<String> {
    let own = lookup(results, key).as_f64();
    if own.is_none() || own != carried.parse().ok() {
        return Some(format!("{key}: carries {carried} for {own:?}"));
    }
    let error = match key.strip_suffix(".mean") {
        Some(estimate) => lookup(results, &format!("{estimate}.error")),
        None => lookup(results, &format!("{key}_error")),
    };
    match agree(words, own?, error.as_f64()) {
        Some(true) => None,
        verdict => Some(format!("{key}: shown as {words} for {own:?} ({error}, {verdict:?})")),
    }
}

/// Whether words such as 209.829(4), 1.2e-9(3e-10) or 1.23e6 are a value rounded to the digits they have, and its error likewise.
fn agree(words: &str, value: f64, error: Option<f64>) -> Option<bool> {
    let (mean, rest) = words.split_once('(').unwrap_or((words, ""));
    let (shown, unit) = digits(mean)?;
    if rest.is_empty() {
        return Some(near(shown, value, unit));
    }
    match (rest.strip_suffix(')')?, error) {
        ("?", None) => Some(near(shown, value, 1e-6)),
        ("0", Some(error)) => Some(near(shown, value, 1e-10) && error < 1e-300),
        (own, Some(error)) if own.contains('e') => {
            let (own, last) = digits(own)?;
            Some(near(shown, value, unit) && near(own, error, last))
        }
        (own, Some(error)) => {
            // One digit, or two that begin with 1, in the last places of the value.
            let places = own.len() as i32 - if own.starts_with('1') { 2 } else { 1 };
            let last = unit * 10f64.powi(places.max(0));
            let own = own.parse::<f64>().ok()? * unit;
            Some(near(shown, value, last) && near(own, error, last))
        }
        _ => Some(false),
    }
}

/// A number as it is written, and what one in its last digit is.
fn digits(words: &str) -> Option<(f64, f64)> {
    let (mantissa, power) = words.split_once('e').unwrap_or((words, "0"));
    let places = mantissa.split_once('.').map_or(0, |(_, places)| places.len() as i32);
    Some((words.parse().ok()?, 10f64.powi(power.parse::<i32>().ok()? - places)))
}

/// Half of the last digit, and what binary numbers cannot hold.
fn near(shown: f64, value: f64, unit: f64) -> bool {
    (shown - value).abs() <= 0.5 * unit * (1.0 + 1e-6) + 1e-14 * value.abs()
}

/// A digit that is wrong is found, in the value and in its error.
pub fn wrong_words_are_found() {
    let results = serde_json::json!({
        "log_z": {"mean": 209.8291, "error": 0.0041}, "ess": 0.9678, "ess_error": 0.0012,
        "rate": 1_234_567.0, "seconds": 1234.5, "tiny": {"mean": 1.234e-9, "error": 3.1e-10},
        "large": {"mean": 12_344.0, "error": 31.0}, "wide": {"mean": 12_344.0, "error": 131.0}, "lone": {"mean": 2.5},
        "list": [{"mean": -0.25, "error": 0.0}],
    });
    for (key, right, wrongs) in [
        (
            "log_z.mean",
            "209.829(4)",
            &["209.828(4)", "209.829(5)", "209.829(?)", "0.9678(12)", "-"][..],
        ),
        ("log_z.error", "0.0041", &["0.0042", ""]),
        ("ess", "0.9678(12)", &["0.9678(13)", "0.9768(12)", "0.9678(0)"]),
        ("rate", "1.23e6", &["1.24e6", "1.23e5"]),
        ("seconds", "1234", &["1236", "123"]),
        ("tiny.mean", "1.2e-9(3e-10)", &["1.3e-9(3e-10)", "1.2e-9(4e-10)"]),
        ("large.mean", "12340(30)", &["12350(30)", "12340(40)"]),
        ("wide.mean", "12340(130)", &["12350(130)", "12340(150)"]),
        ("lone.mean", "2.5(?)", &["2.6(?)", "2.5(1)"]),
        ("list.0.mean", "-0.25(0)", &["0.25(0)"]),
    ] {
        let carried = lookup(&results, key).to_string();
        assert_eq!(wrong(&results, key, &carried, right), None);
        for words in wrongs {
            let found = wrong(&results, key, &carried, words).unwrap_or_else(|| panic!("{words}"));
            assert!(found.starts_with(key) && found.contains(words), "{found}");
        }
        assert!(wrong(&results, key, "1.25", right).is_some_and(|words| words.contains("carries")));
    }
}
