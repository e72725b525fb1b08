//! Models by directory or name, with their target and path.

mod page;

use std::path::{Path, PathBuf};

use anyhow::Result;
use leaps::store::{self, Model, unknown_model};
use leaps::target::undescribed;
use leaps::{Error, file};

use crate::config::Layers;

pub use page::page;

/// A model and where it was found.
pub struct Found {
    pub model: Model,
    /// The name or directory as the user gave it.
    pub name: String,
    /// Where its files are; shipped models have none.
    pub directory: Option<PathBuf>,
}

/// The model in a model directory or a run directory, or one by its name; `key` is what asked for it.
pub fn find(key: &str, name: &Path) -> Result<Found> {
    Ok(look_up(name)?.ok_or_else(|| unknown_model(key, name))?)
}

/// The model of this name, if there is one.
pub fn look_up(name: &Path) -> Result<Option<Found>> {
    let found = store::Found::look_up(name)?;
    Ok(found.map(|store::Found { model, directory }| Found {
        model,
        name: name.display().to_string(),
        directory,
    }))
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
        if self.model.target["kind"] == "custom" {
            // The error names the energy.
            self.model.problem()?;
        }
        let mut target = undescribed(self.model.target.clone(), folder, &self.model.files)?;
        target.as_object_mut().into_iter().for_each(|own| own.retain(|_, v| !v.is_null()));
        let corrupt = |section: &str, error: anyhow::Error| Error::Corrupt {
            path: folder.join("model.json"),
            what: section.to_owned(),
            reason: error.to_string(),
        };
        layers
            .describe("target", &target, &self.name, folder)
            .map_err(|error| corrupt("target", error))?;
        layers
            .describe("path", &self.model.path, &self.name, folder)
            .map_err(|error| corrupt("path", error))?;
        Ok(layers)
    }
}
