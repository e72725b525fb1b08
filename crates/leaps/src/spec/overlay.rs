//! Settings from tables, laid over defaults or over other settings.

use std::path::Path;

use serde::Serialize;
use serde::de::DeserializeOwned;
use toml::{Table, Value};

use super::keys::{SECTIONS, is_known, keys, keys_of, unknown};
use super::{RunSpec, to_value};
use crate::file::position;
use crate::train::{BATCH_OVER_INSTANCES, TrainSpec};
use crate::{Error, Result};

impl RunSpec {
    /// The settings of a table with the sections of a `run.toml`; what it leaves out has its default.
    ///
    /// ```
    /// use leaps::spec::RunSpec;
    ///
    /// let table = toml::from_str("target = { kind = 'ising', size = 8 }\nsample.walkers = 500")?;
    /// let spec = RunSpec::from_table(&table)?.resolve()?;
    /// assert_eq!(spec.walkers.walkers, 500);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// Keys that do not exist and values of another type, by their dotted keys.
    pub fn from_table(table: &Table) -> Result<Self> {
        Self::default().with(table)
    }

    /// The settings in the text of a `run.toml`, whose own files are named from the folder of `file` on.
    ///
    /// # Errors
    /// Text that is not TOML, by its place; else those of [`from_table`](Self::from_table), with the name of the file.
    pub fn parse(text: &str, file: &Path) -> Result<Self> {
        let table: Table = toml::from_str(text).map_err(|error| {
            let (line, column) = position(text.as_bytes(), error.span().map_or(0, |s| s.start));
            let reason = error.message().to_owned();
            Error::Parse { path: file.into(), line, column, reason }
        })?;
        let spec = Self::from_table(&table).map_err(|error| error.within(&file.display()))?;
        let folder = file.parent().unwrap_or(Path::new(""));
        let target = spec.target.placed(|_, path| folder.join(path));
        Ok(RunSpec { target, ..spec })
    }

    /// These settings with those of a table over them.
    ///
    /// # Errors
    /// Those of [`from_table`](Self::from_table).
    pub fn with(&self, table: &Table) -> Result<Self> {
        let mut spec = self.clone();
        for (key, value) in table {
            match value {
                Value::Table(values) if SECTIONS.contains(&key.as_str()) => {
                    spec.lay(key, values)?;
                }
                _ if SECTIONS.contains(&key.as_str()) => {
                    let advice = format!("write [{key}]");
                    return Err(Error::invalid(key, value, "a section", advice));
                }
                value if key == "seed" => spec.seed = single(key, value)?,
                _ => return Err(unknown(key)),
            }
        }
        Ok(spec)
    }

    /// These settings with those of an entry over them, which names `seed`, and keys of `[path]` and `[sample]` without their section.
    ///
    /// # Errors
    /// Those of [`from_table`](Self::from_table).
    pub fn with_entry(&self, entry: &Table) -> Result<Self> {
        let mut table = Table::new();
        for (key, value) in entry {
            if key == "seed" {
                table.insert(key.clone(), value.clone());
                continue;
            }
            let section = if keys_of("path").contains(&key.as_str()) { "path" } else { "sample" };
            let values = table.entry(section).or_insert_with(|| Value::Table(Table::new()));
            if let Value::Table(values) = values {
                values.insert(key.clone(), value.clone());
            }
        }
        self.with(&table)
    }

    /// Lay the values of a section over those that are there.
    fn lay(&mut self, section: &str, values: &Table) -> Result<()> {
        let full = |key: &String| format!("{section}.{key}");
        if let Some(key) = values.keys().map(full).find(|key| !is_known(key)) {
            return Err(unknown(&key));
        }
        match section {
            "target" => lay(&mut self.target, section, values),
            "path" => lay(&mut self.path, section, values),
            "network" => lay(&mut self.network, section, values),
            "train" => {
                lay(&mut self.train, section, values)?;
                let over_instances =
                    values.contains_key("instances") && self.train.instances().is_some();
                if over_instances
                    && self.train.batch == TrainSpec::default().batch
                    && !values.contains_key("batch")
                {
                    self.train.batch = BATCH_OVER_INSTANCES;
                }
                lay(&mut self.start, section, values)
            }
            _ => {
                lay(&mut self.scheme, section, values)?;
                lay(&mut self.walkers, section, values)?;
                lay(&mut self.resample, section, values)?;
                lay(&mut self.kernel, section, values)?;
                lay(&mut self.updates, section, values)?;
                lay(&mut self.chains, section, values)?;
                lay(&mut self.measure, section, values)
            }
        }
    }
}

/// Lay those values of a section that belong to a group over the group's own.
fn lay<T: Serialize + DeserializeOwned>(
    group: &mut T,
    section: &str,
    values: &Table,
) -> Result<()> {
    let own: Vec<(&String, &Value)> =
        values.iter().filter(|(key, _)| keys::<T>().contains(&key.as_str())).collect();
    if own.is_empty() {
        return Ok(());
    }
    let mut all = to_value(group).as_table().cloned().unwrap_or_default();
    for (key, value) in own {
        let value = mended::<T>(section, key, value)?;
        match (all.get_mut(key), value) {
            (Some(Value::Table(old)), Value::Table(new)) => old.extend(new),
            (_, value) => drop(all.insert(key.clone(), value)),
        }
    }
    let whole = |error: toml::de::Error| {
        let advice = format!("these keys of [{section}] do not go together");
        Error::invalid(section, "(a section)", error.message(), advice)
    };
    *group = T::deserialize(all).map_err(whole)?;
    Ok(())
}

/// A value of a group as its type wants it. Every field has a default, so that a wrong one fails alone as well.
fn mended<T: DeserializeOwned>(section: &str, key: &str, value: &Value) -> Result<Value> {
    let alone = |value: &Value| T::deserialize(Table::from_iter([(key.to_owned(), value.clone())]));
    let Err(error) = alone(value) else { return Ok(value.clone()) };
    match whole(value).filter(|whole| alone(whole).is_ok()) {
        Some(whole) => Ok(whole),
        None => Err(wrong_type(format!("{section}.{key}"), value, error.message())),
    }
}

/// A value outside every section.
fn single<T: DeserializeOwned>(key: &str, value: &Value) -> Result<T> {
    T::deserialize(value.clone()).or_else(|error| {
        let mended = whole(value).and_then(|whole| T::deserialize(whole).ok());
        mended.ok_or_else(|| wrong_type(key.to_owned(), value, error.message()))
    })
}

/// 1e3 is a float in TOML and a whole number to everyone else, also in lists.
fn whole(value: &Value) -> Option<Value> {
    match value {
        Value::Float(x) if x.fract() == 0.0 && x.abs() <= 1e15 => Some(Value::Integer(*x as i64)),
        Value::Integer(_) => Some(value.clone()),
        Value::Array(items) => items.iter().map(whole).collect::<Option<_>>().map(Value::Array),
        _ => None,
    }
}

/// The refusal of a value, from serde's complaint about it.
fn wrong_type(mut key: String, value: &Value, message: &str) -> Error {
    let mut shown = value.to_string();
    if let Value::Table(table) = value {
        // path.terms: the culprit is one level further down.
        let named = |value: &Value| message.contains(value.as_str().unwrap_or("\0"));
        if let Some((term, value)) = table.iter().find(|(_, value)| named(value)) {
            (key, shown) = (format!("{key}.{term}"), value.to_string());
        }
    }
    Error::invalid(key, shown, condition(message), "without it there is a default")
}

/// What a value must be, from serde's complaint about it.
fn condition(message: &str) -> String {
    let Some((_, expected)) = message.split_once("expected ") else {
        return message.trim().to_owned();
    };
    match expected.trim() {
        "usize" | "u64" => "a whole number from 0".to_owned(),
        "f64" => "a number".to_owned(),
        "a string" => "a word in quotes".to_owned(),
        "a sequence" => "a list in square brackets".to_owned(),
        other => other.replace('`', ""),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(text: &str) -> Table {
        toml::from_str(text).unwrap()
    }

    #[test]
    fn tables_lie_over_settings() {
        let base = RunSpec::from_table(&table(
            "seed = 3\ntarget = { kind = 'ising', size = 4 }\nsample = { walkers = 1e2, intervals = 7 }\npath.terms.a = 'linear'",
        ))
        .unwrap();
        assert_eq!((base.seed, base.walkers.walkers, base.walkers.intervals), (3, 100, 7));
        let over = base.with(&table("sample.walkers = 5\npath.terms.b = 'linear'")).unwrap();
        assert_eq!((over.seed, over.walkers.walkers, over.walkers.intervals), (3, 5, 7));
        assert_eq!((over.target, over.path.terms.len()), (base.target.clone(), 2));
        let entry = base.with_entry(&table("seed = 9\nwalkers = 6\nratio = 2.5")).unwrap();
        assert_eq!((entry.seed, entry.walkers.walkers, entry.path.ratio), (9, 6, 2.5));
        assert_eq!(RunSpec::from_table(&base.table()).unwrap(), base);
    }

    #[test]
    fn ranges_of_temperatures_are_lists_too() {
        let betas = |text: &str| RunSpec::from_table(&table(text)).unwrap().walkers.at_beta;
        assert_eq!(betas("sample.at_beta = '0.1:0.4:4'"), [0.1, 0.2, 0.3, 0.4]);
        assert_eq!(betas("sample.at_beta = '0.1, 0.3'"), betas("sample.at_beta = [0.1, 0.3]"));
        assert_eq!(betas("sample.at_beta = [1, 2]"), [1.0, 2.0]);
    }

    #[test]
    fn errors_name_dotted_keys() {
        for (text, words) in [
            ("sample.walkers = 'x'", "sample.walkers = \"x\": must be a whole number from 0"),
            ("sample.walkers = -3", "sample.walkers = -3: must be a whole number from 0"),
            ("path.terms.a = 'zigzag'", "path.terms.a = \"zigzag\""),
            ("sample.at_beta = '1:2'", "must be a list of numbers in square brackets, or a range"),
            ("sample.at_beta = 3", "must be a list of numbers in square brackets, or a range"),
            ("seed = -1", "seed = -1"),
            ("target = 3", "target = 3: must be a section"),
            ("sample.walkrs = 5", "sample.walkrs: unknown key; did you mean sample.walkers?"),
        ] {
            let error = RunSpec::from_table(&table(text)).unwrap_err().to_string();
            assert!(error.contains(words), "{text}: {error}");
        }
    }
}
