//! Find models by directory or name, and take their target and path from them.

use std::path::{Path, PathBuf};

use anyhow::Result;
use leaps::Error;
use leaps::run::Model;
use serde_json::Value;

use crate::config::{Config, Layers};
use crate::error::usage;

/// A model and where it was found.
pub struct Found {
    pub model: Model,
    /// The directory as the user named it.
    pub name: String,
    pub directory: PathBuf,
}

/// The directory that holds the models that we ship, by name.
const SHIPPED: &str = "models";

/// The model in a model directory or a run directory, or a shipped one by its name; `key` is what asked for it.
pub fn find(key: &str, name: &Path) -> Result<Found> {
    let shown = name.display().to_string();
    let directory = locate(name).ok_or_else(|| {
        usage(format!(
            "{key} = {shown}: must be a model directory, a run directory or the name of a model; \
             no such directory, and none in {SHIPPED}/ or LEAPS_MODELS"
        ))
    })?;
    Ok(Found { model: Model::load(&directory)?, name: shown, directory })
}

/// The directory of a model, if there is one of this name.
pub fn locate(name: &Path) -> Option<PathBuf> {
    places(name).into_iter().find(|place| place.is_dir())
}

/// Where a model may be: the path itself, and for a bare name where models are shipped.
fn places(name: &Path) -> Vec<PathBuf> {
    let mut places = vec![name.to_owned()];
    if name.components().count() == 1 {
        places.extend(std::env::var_os("LEAPS_MODELS").map(|all| Path::new(&all).join(name)));
        places.push(Path::new(SHIPPED).join(name));
        let program = std::env::current_exe().ok();
        let share = program.as_deref().and_then(Path::parent).and_then(Path::parent);
        places.extend(share.map(|prefix| prefix.join("share/leaps").join(SHIPPED).join(name)));
    }
    places
}

impl Found {
    /// What the model was trained on, in a few words.
    pub fn description(&self) -> Option<String> {
        let layers = self.layers().ok()?;
        let problem = Config::resolve(&layers).ok()?.problem(&layers).ok()?;
        Some(problem.description)
    }

    /// The configuration the model stands for: that of its run, where it has one, with the target and the
    /// path of the model itself.
    pub fn layers(&self) -> Result<Layers> {
        let mut layers = Layers::default();
        let config = self.directory.join("config.toml");
        if config.is_file() {
            layers.read_file(&config)?;
        }
        let file = self.model.file().with_file_name("model.json");
        let target = unpin_files(self.model.target.clone(), &file)?;
        for (section, value) in [("target", &target), ("path", &self.model.path)] {
            layers.describe(section, value, &self.name).map_err(|error| Error::Corrupt {
                path: file.clone(),
                what: section.to_owned(),
                reason: error.to_string(),
            })?;
        }
        Ok(layers)
    }
}

/// Keys of a target that name files, and keys of the files' checksums in descriptions.
const FILES: [(&str, &str); 2] = [("path", "path_checksum"), ("field", "field_checksum")];

/// Describe the files of a target by full names and checksums, so that nobody trains or samples on another file.
pub fn pin_files(mut target: Value) -> Result<Value> {
    let Some(entries) = target.as_object_mut() else { return Ok(target) };
    for (key, sum) in FILES {
        let Some(name) = entries.get(key).and_then(Value::as_str) else { continue };
        let io = |source| Error::Io { path: name.into(), source };
        let full = std::fs::canonicalize(name).map_err(io)?;
        let checksum = leaps::run::file_checksum(&full)?;
        let shown = full.to_str().unwrap_or(name).to_owned();
        entries.insert(key.to_owned(), shown.into());
        entries.insert(sum.to_owned(), checksum.into());
    }
    Ok(target)
}

/// Undo [`pin_files`], refusing files that are not what they were.
fn unpin_files(mut target: Value, model: &Path) -> Result<Value> {
    let Some(entries) = target.as_object_mut() else { return Ok(target) };
    for (key, sum) in FILES {
        let Some(wanted) = entries.remove(sum) else { continue };
        let Some(name) = entries.get(key).and_then(Value::as_str) else { continue };
        if leaps::run::file_checksum(name.as_ref())? != wanted {
            return Err(Error::Corrupt {
                path: name.into(),
                what: format!("target.{key}"),
                reason: format!(
                    "is not the file that {} was trained on; train again, or put the old file back",
                    model.display()
                ),
            }
            .into());
        }
    }
    Ok(target)
}
