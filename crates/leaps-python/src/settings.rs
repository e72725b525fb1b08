//! Settings from dictionaries of keyword arguments.

use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyFloat, PyInt, PyString};
use toml::{Table, Value};

/// A dictionary as a table; `None` leaves a key out.
pub fn table(settings: &Bound<'_, PyDict>) -> PyResult<Table> {
    let mut table = Table::new();
    for (key, value) in settings {
        if !value.is_none() {
            let key: String = key.extract()?;
            let value = self::value(&key, &value)?;
            table.insert(key, value);
        }
    }
    Ok(table)
}

/// A value: numbers, words, paths, lists, tuples and arrays of them, and dictionaries.
fn value(key: &str, given: &Bound<'_, PyAny>) -> PyResult<Value> {
    if let Ok(truth) = given.cast::<PyBool>() {
        return Ok(Value::Boolean(truth.is_true()));
    }
    if let Ok(number) = given.cast::<PyInt>() {
        return Ok(Value::Integer(number.extract()?));
    }
    if let Ok(number) = given.cast::<PyFloat>() {
        return Ok(Value::Float(number.extract()?));
    }
    if let Ok(word) = given.cast::<PyString>() {
        return Ok(Value::String(word.extract()?));
    }
    if let Ok(entries) = given.cast::<PyDict>() {
        return table(entries).map(Value::Table);
    }
    if given.hasattr("__fspath__")? {
        return Ok(Value::String(given.call_method0("__fspath__")?.extract()?));
    }
    // NumPy's numbers and arrays know their Python values.
    if given.hasattr("tolist")? {
        let plain = given.call_method0("tolist")?;
        if !plain.hasattr("tolist")? {
            return value(key, &plain);
        }
    }
    if let Ok(items) = given.try_iter() {
        let items: PyResult<Vec<Value>> = items.map(|item| value(key, &item?)).collect();
        return items.map(Value::Array);
    }
    let kind = given.get_type().name()?;
    Err(PyTypeError::new_err(format!(
        "{key}: must be a number, a word, a path, or a list of them, not {kind}"
    )))
}
