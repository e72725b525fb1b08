//! Models by directory or name, with their target and path.

pub mod card;
pub mod shipped;

use std::path::{Path, PathBuf};

use anyhow::Result;
use leaps::store::Model;
use leaps::{Error, file};

use crate::config::Layers;
use crate::error::usage;
use leaps::target::undescribed;
use shipped::{SHIPPED, Shipped};

/// A model and where it was found.
pub struct Found {
    pub model: Model,
    /// The name or directory as the user gave it.
    pub name: String,
    /// Where its files are; the program's own models have none.
    pub directory: Option<PathBuf>,
}

/// A folder with models of the user's, by name.
const OWN: &str = "LEAPS_MODELS";

/// The model in a model directory or a run directory, or one by its name; `key` is what asked for it.
pub fn find(key: &str, name: &Path) -> Result<Found> {
    lookup(name)?.ok_or_else(|| {
        let known = match names() {
            names if names.is_empty() => "there are none".to_owned(),
            names => names.join(", "),
        };
        usage(format!(
            "{key} = {}: must be a model directory, a run directory, or the name of a model, shipped or in {OWN}: {known}",
            name.display()
        ))
    })
}

/// The model of this name, if there is one: in this directory, in the folder `LEAPS_MODELS`, or shipped with the program.
pub fn lookup(name: &Path) -> Result<Option<Found>> {
    let shown = name.display().to_string();
    let bare = name.components().count() == 1;
    let mut places = vec![name.to_owned()];
    places.extend(own().filter(|_| bare).map(|all| all.join(name)));
    if let Some(directory) = places.into_iter().find(|place| place.is_dir()) {
        let model = Model::load(&directory)?;
        return Ok(Some(Found { model, name: shown, directory: Some(directory) }));
    }
    let Some(shipped) = Shipped::find(&shown) else { return Ok(None) };
    Ok(Some(Found { model: shipped.model()?, name: shown, directory: None }))
}

fn own() -> Option<PathBuf> {
    std::env::var_os(OWN).filter(|all| !all.is_empty()).map(PathBuf::from)
}

/// Names of models in `LEAPS_MODELS`, with their folders.
pub fn owned() -> Vec<(String, PathBuf)> {
    let entries = own().and_then(|all| std::fs::read_dir(all).ok());
    let entries = entries.into_iter().flatten().flatten();
    let mut found: Vec<_> = entries
        .map(|entry| (entry.file_name().to_string_lossy().into_owned(), entry.path()))
        // Hidden ones are in the making, or what is left of that.
        .filter(|(name, _)| !name.starts_with('.'))
        .filter(|(_, path)| path.join("model.json").exists() || path.join("latest").exists())
        .collect();
    found.sort();
    found
}

/// The names of all models that have one.
fn names() -> Vec<String> {
    let mut all: Vec<String> = owned().into_iter().map(|(name, _)| name).collect();
    all.extend(SHIPPED.iter().map(|shipped| shipped.name.to_owned()));
    all.sort();
    all.dedup();
    all
}

impl Found {
    /// What the model was trained on, in a few words.
    pub fn description(&self) -> Option<String> {
        let layers = self.layers().ok()?;
        let problem = layers.resolve().ok()?.problem().ok()?;
        Some(problem.description)
    }

    /// The configuration the model stands for: that of its run, where it has one, with the target and the
    /// path of the model itself.
    pub fn layers(&self) -> Result<Layers> {
        let mut layers = Layers::default();
        let config = self.directory.as_ref().map(|directory| directory.join("config.toml"));
        if let Some(config) = config
            && let Some(text) = file::if_any(file::read_text(&config))?
        {
            layers.parse_file(&text, &config)?;
        }
        let folder = self.model.file().parent().unwrap_or(Path::new(""));
        let target = undescribed(self.model.target.clone(), folder, &self.model.files)?;
        for (section, value) in [("target", &target), ("path", &self.model.path)] {
            layers.describe(section, value, &self.name, folder).map_err(|error| {
                Error::Corrupt {
                    path: folder.join("model.json"),
                    what: section.to_owned(),
                    reason: error.to_string(),
                }
            })?;
        }
        Ok(layers)
    }
}
