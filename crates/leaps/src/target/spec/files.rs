//! The files that a target is made of: where they are looked for, and their copies in runs and models.
//!
//! A relative name on the command line starts from the working directory, one in a configuration from the folder of the
//! configuration. Runs and models have copies in [`FOLDER`], which their own descriptions name: they can be moved anywhere.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde_json::{Map, Value};

use super::{Field, TargetSpec};
use crate::file::{self, TEXT};
use crate::{Error, Result};

/// Keys of a target that may name a file, and keys of the files' checksums in descriptions.
const KEYS: [(&str, &str); 2] = [("path", "path_checksum"), ("field", "field_checksum")];
/// Where runs and models keep copies.
const FOLDER: &str = "target";

/// A target as runs and models describe it, and the files that the description names.
#[derive(Clone, Debug, PartialEq)]
pub struct Described {
    /// The target by its keys.
    pub target: Value,
    /// Contents by name, from the directory of the run or model on.
    pub files: BTreeMap<String, Vec<u8>>,
}

impl Described {
    /// The checksums of the files, by key, if there are any.
    pub fn checksums(&self) -> Option<Value> {
        let sums = KEYS
            .iter()
            .filter_map(|(key, sum)| Some(((*key).to_owned(), self.target.get(sum)?.clone())));
        let sums: Map<String, Value> = sums.collect();
        (!sums.is_empty()).then(|| sums.into())
    }
}

impl TargetSpec {
    /// The files it names, by key.
    fn files(&self) -> impl Iterator<Item = (&'static str, &Path)> {
        let field = match &self.field {
            Some(Field::File(path)) => Some(path.as_path()),
            _ => None,
        };
        let all = KEYS.map(|(key, _)| key).into_iter().zip([self.path.as_deref(), field]);
        all.filter_map(|(key, path)| Some((key, path?)))
    }

    /// The checksums of its files, by their keys in descriptions.
    pub fn checksums(&self) -> Result<Vec<(&'static str, String)>> {
        let sums = self.files().filter_map(|(key, path)| Some((checksum_key(key)?, path)));
        sums.map(|(sum, path)| Ok((sum, file::checksum_of(path)?))).collect()
    }

    /// The same target with its files, given by key, in other places.
    pub fn placed(&self, place: impl Fn(&str, &Path) -> PathBuf) -> Self {
        let mut spec = self.clone();
        for (key, path) in self.files() {
            let path = place(key, path);
            match key {
                "path" => spec.path = Some(path),
                _ => spec.field = Some(Field::File(path)),
            }
        }
        spec
    }

    /// The same target made of the copies that a run or a model in `directory` keeps.
    pub fn kept_in(&self, directory: &Path) -> Self {
        self.placed(|_, path| directory.join(copy_of(path)))
    }

    /// The target for runs and models. Files are told apart by their checksums, so that nobody goes on with another one.
    pub fn described(&self) -> Result<Described> {
        let mut target = self.kept_in(Path::new("")).without_gaps();
        let mut files = BTreeMap::new();
        for (key, path) in self.files() {
            let bytes = file::read(path, TEXT)?;
            if let (Some(entries), Some(sum)) = (target.as_object_mut(), checksum_key(key)) {
                entries.insert(sum.to_owned(), file::checksum(&bytes).into());
            }
            files.insert(copy_of(path), bytes);
        }
        Ok(Described { target, files })
    }
}

/// The name of a file's copy.
fn copy_of(path: &Path) -> String {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    format!("{FOLDER}/{name}")
}

fn checksum_key(key: &str) -> Option<&'static str> {
    KEYS.iter().find(|(known, _)| *known == key).map(|(_, sum)| *sum)
}

/// The target that a result describes, whose files may have gone since; `None` for energies that are not ours.
pub fn printed(target: &Map<String, Value>) -> Option<TargetSpec> {
    let mut own = target.clone();
    own.retain(|key, _| key != "sites" && KEYS.iter().all(|(_, sum)| sum != key));
    serde_json::from_value(Value::Object(own)).ok()
}

/// The keys of a target as a result in `folder` describes it, without checksums; its files are named from the working directory on, and may
/// have gone with the result. If one is not there or not what it was, the second says so.
pub fn unprinted(mut target: Value, folder: &Path) -> (Value, Option<String>) {
    let mut lack = None;
    let Some(entries) = target.as_object_mut() else { return (target, lack) };
    for (key, sum) in KEYS {
        let wanted = entries.remove(sum);
        let Some(name) = entries.get(key).and_then(Value::as_str).map(PathBuf::from) else {
            continue;
        };
        if key != "path" && wanted.is_none() {
            continue; // a number in words
        }
        let beside = [folder.join(&name), folder.join(name.file_name().unwrap_or_default())];
        let places: Vec<PathBuf> =
            std::iter::once(name.clone()).chain(beside).filter(|place| place.is_file()).collect();
        let same = |place: &PathBuf| {
            let sum = |wanted: &Value| file::checksum_of(place).is_ok_and(|own| own == *wanted);
            wanted.as_ref().is_none_or(sum)
        };
        let name = name.display();
        match places.iter().find(|place| same(place)) {
            Some(place) => drop(entries.insert(key.to_owned(), place.to_string_lossy().into())),
            None if places.is_empty() => {
                lack = Some(format!("{name} is found neither from here nor beside the result"));
            }
            None => lack = Some(format!("{name} has changed since the result was made")),
        }
    }
    (target, lack)
}

/// The keys of a target that a model in `directory` describes, without checksums. Files that the model has no copies of must be what they were.
pub fn undescribed(
    mut target: Value,
    directory: &Path,
    copies: &BTreeMap<String, Vec<u8>>,
) -> Result<Value> {
    let Some(entries) = target.as_object_mut() else { return Ok(target) };
    for (key, sum) in KEYS {
        let Some(wanted) = entries.remove(sum) else { continue };
        let Some(name) = entries.get(key).and_then(Value::as_str) else { continue };
        let path = directory.join(name);
        if !copies.contains_key(name) && file::checksum_of(&path)? != wanted {
            return Err(Error::Corrupt {
                path,
                what: format!("target.{key}"),
                reason: format!(
                    "the file has changed since the model in {} was trained on it; train again, or put the old file back",
                    directory.display()
                ),
            });
        }
    }
    Ok(target)
}
