//! Models and settings by name: those of the user's folder `LEAPS_MODELS`, and what the library brings along.

use std::path::{Path, PathBuf};

use super::{Card, Model};
use crate::parse::nearest;
use crate::{Error, Result};

/// A model that the library brings along: its files.
#[derive(Debug)]
pub struct Shipped {
    /// Its name.
    pub name: &'static str,
    card: &'static str,
    description: &'static [u8],
    tensors: &'static [u8],
}

/// The models of the library, by name; none without the feature `models`.
pub const SHIPPED: &[Shipped] = include!(concat!(env!("OUT_DIR"), "/models.rs"));

/// The settings and experiments of the library, by name: the texts of their TOML files.
pub const SETTINGS: &[(&str, &str)] = include!(concat!(env!("OUT_DIR"), "/settings.rs"));

/// The variable that names a folder with models of the user's.
pub const OWN_MODELS: &str = "LEAPS_MODELS";

impl Shipped {
    /// The model of this name, if the library has it.
    pub fn find(name: &str) -> Option<&'static Shipped> {
        SHIPPED.iter().find(|shipped| shipped.name == name)
    }

    /// The network.
    pub fn model(&self) -> Result<Model> {
        Model::from_bytes(&Path::new("models").join(self.name), self.description, self.tensors)
    }

    /// What is known about it.
    pub fn card(&self) -> Result<Card> {
        Card::parse(self.card, &Path::new("models").join(self.name))
    }
}

/// The settings of this name, if the library has them.
pub fn shipped_settings(name: &str) -> Option<&'static str> {
    SETTINGS.iter().find(|(own, _)| *own == name).map(|(_, text)| *text)
}

/// A model, and where its files are; shipped ones have none.
#[derive(Clone, Debug)]
pub struct Found {
    /// The model.
    pub model: Model,
    /// Its folder.
    pub directory: Option<PathBuf>,
}

impl Found {
    /// The model of this name, if there is one: a model or run directory, one in the folder `LEAPS_MODELS`, or one
    /// of the library's.
    pub fn look_up(name: &Path) -> Result<Option<Self>> {
        let bare = name.components().count() == 1;
        let mut places = vec![name.to_owned()];
        places.extend(own_folder().filter(|_| bare).map(|all| all.join(name)));
        if let Some(directory) = places.into_iter().find(|place| place.is_dir()) {
            let model = Model::load(&directory)?;
            return Ok(Some(Found { model, directory: Some(directory) }));
        }
        let Some(shipped) = name.to_str().and_then(Shipped::find) else { return Ok(None) };
        Ok(Some(Found { model: shipped.model()?, directory: None }))
    }
}

impl Model {
    /// The model in a model directory or a run directory, or one by its name, in the folder `LEAPS_MODELS` or of the
    /// library's own.
    ///
    /// ```
    /// # #[cfg(feature = "models")] {
    /// let model = leaps::store::Model::open("ising-8-critical")?;
    /// assert_eq!(model.problem()?.target.sites(), 64);
    /// # }
    /// # Ok::<(), leaps::Error>(())
    /// ```
    ///
    /// # Errors
    /// A name that nobody has; the message lists those there are.
    pub fn open(name: impl AsRef<Path>) -> Result<Self> {
        let name = name.as_ref();
        let found = Found::look_up(name)?.ok_or_else(|| unknown_model("model", name))?;
        Ok(found.model)
    }
}

/// The error for a name of a model that nobody has; `key` is what asked for it.
pub fn unknown_model(key: &str, name: &Path) -> Error {
    let names = model_names();
    let known = if names.is_empty() { "there are none".to_owned() } else { names.join(", ") };
    let advice = match nearest(&name.to_string_lossy(), names.iter().map(String::as_str)) {
        Some(name) => format!("did you mean {name}?"),
        None => "use one of these names, or a directory".to_owned(),
    };
    let condition = format!(
        "a model directory, a run directory, or the name of a model, shipped or in {OWN_MODELS}: {known}"
    );
    Error::invalid(key, name.display(), condition, advice)
}

fn own_folder() -> Option<PathBuf> {
    std::env::var_os(OWN_MODELS).filter(|all| !all.is_empty()).map(PathBuf::from)
}

/// Names of models in `LEAPS_MODELS`, with their folders.
pub fn own_models() -> Vec<(String, PathBuf)> {
    let entries = own_folder().and_then(|all| std::fs::read_dir(all).ok());
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
pub fn model_names() -> Vec<String> {
    let mut all: Vec<String> = own_models().into_iter().map(|(name, _)| name).collect();
    all.extend(SHIPPED.iter().map(|shipped| shipped.name.to_owned()));
    all.sort();
    all.dedup();
    all
}
