//! Checkpoints: all that a run needs to go on as if it had never stopped.
//!
//! | in the run directory | what |
//! |---|---|
//! | `checkpoints/step-00001234/` | a [model directory](super::Model), `state.safetensors` (Adam's moments by tensor, reference states, factor of the learning rate) and `manifest.json` |
//! | `latest` | the newest checkpoint and the checksum of its manifest, in one line |
//!
//! A checkpoint is written under a hidden name, flushed to the disk, renamed, and only then named by `latest`; older ones are
//! removed after that. So after a crash or a power cut at any moment `latest` names a whole checkpoint. The manifest holds
//! the BLAKE3 checksums of the other files and of itself: a file that was truncated or altered is an error that names it.

use std::collections::BTreeMap;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::atomic::{self, AtomicDirectory, failed};
use super::model::check_name;
use super::sealed;
use super::setup::{Identity, Setup};
use super::tensors::Tensors;
use super::{Model, Summary};
use crate::file::{self, TEXT};
use crate::observe::Estimate;
use crate::train::{StepMetrics, Trainer};
use crate::{Error, Result};

/// The version of the files that this version of the library writes and reads.
const SCHEMA: u32 = 2;
const FOLDER: &str = "checkpoints";
const LATEST: &str = "latest";
const MANIFEST: &str = "manifest.json";
const STATE: &str = "state.safetensors";

/// How good the averaged network was at a step.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Validation {
    /// Steps made before.
    pub step: u64,
    /// Effective sample size as a fraction.
    pub ess: f64,
    /// log Z by exact weights.
    pub log_z: Estimate,
}

/// Where a run stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Standing {
    /// The last gradient step; none before the first.
    pub last: Option<StepMetrics>,
    /// The last validation.
    pub validation: Option<Validation>,
    /// Whether the validation of this step is still to be made.
    pub due: bool,
}

/// What `manifest.json` says.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Manifest {
    schema: u32,
    /// Version of the library that wrote it.
    pub version: String,
    /// Gradient steps made.
    pub step: u64,
    /// What is trained, and how.
    pub run: Identity,
    /// Where the run stood.
    pub standing: Standing,
    /// BLAKE3 of the other files.
    pub checksums: BTreeMap<String, String>,
}

impl Manifest {
    /// Read the manifest of the checkpoint in `directory`, and nothing else.
    pub fn load(directory: impl AsRef<Path>) -> Result<Self> {
        sealed::open(&directory.as_ref().join(MANIFEST), SCHEMA)
    }

    /// The same, if there is one: plain models have none.
    pub(crate) fn load_if_any(directory: &Path) -> Result<Option<Self>> {
        directory.join(MANIFEST).exists().then(|| Self::load(directory)).transpose()
    }

    /// Refuse a checkpoint with a file that is not what this manifest says.
    pub(crate) fn check_files(&self, directory: &Path) -> Result<()> {
        for (name, checksum) in &self.checksums {
            check_name(name, &directory.join(MANIFEST))?;
            sealed::read_checked(&directory.join(name), checksum)?;
        }
        Ok(())
    }

    /// An error that blames this manifest.
    pub(crate) fn contradicts(&self, directory: &Path, what: &str, reason: &str) -> Error {
        let (path, reason) = (directory.join(MANIFEST), reason.into());
        Error::Corrupt { path, what: what.into(), reason }
    }
}

/// A checkpoint that has been read and checked.
#[derive(Clone, Debug)]
pub struct Checkpoint {
    /// Where it is.
    pub directory: PathBuf,
    /// What it says about itself.
    pub manifest: Manifest,
    /// The network.
    pub model: Model,
    state: Tensors<'static>,
}

impl Checkpoint {
    /// Read the checkpoint in `directory` and check every byte of it.
    pub fn load(directory: impl AsRef<Path>) -> Result<Self> {
        let directory = directory.as_ref().to_path_buf();
        let manifest = Manifest::load(&directory)?;
        let Some(state) = manifest.checksums.get(STATE) else {
            let (what, reason) = ("checksums".into(), format!("none of {STATE}"));
            return Err(Error::Corrupt { path: directory.join(MANIFEST), what, reason });
        };
        let state = Tensors::read(&directory.join(STATE), state)?;
        let model = Model::read(&directory)?;
        if state.number::<u64>("step")? != manifest.step {
            return Err(state.corrupt("tensor step", format!("is not {}", manifest.step)));
        }
        Ok(Checkpoint { directory, manifest, model, state })
    }

    /// Training as it was, for the run it belongs to.
    pub fn resume(&self, setup: &Setup) -> Result<Trainer> {
        // checkpoints/step-... within the run directory
        let run = self.directory.ancestors().nth(2).unwrap_or(&self.directory);
        setup.identity().check(&self.manifest.run, run)?;
        setup.resume(&self.model, &self.state)
    }
}

/// The checkpoints of a run directory.
#[derive(Clone, Debug)]
pub struct Checkpoints {
    run: PathBuf,
    /// How many to keep, at least 1.
    pub keep: usize,
}

/// Step and directory.
type Entry = (u64, PathBuf);

impl Checkpoints {
    /// Those in `run`, of which the last 3 are kept.
    pub fn of(run: impl Into<PathBuf>) -> Self {
        Checkpoints { run: run.into(), keep: 3 }
    }

    /// All of them with their steps, oldest first.
    pub fn list(&self) -> Result<Vec<Entry>> {
        let folder = self.run.join(FOLDER);
        let entries = match fs::read_dir(&folder) {
            Ok(entries) => entries,
            // A run may have none yet; a directory that has gone is another matter.
            Err(error) if error.kind() == ErrorKind::NotFound => {
                let there = fs::metadata(&self.run);
                return there.map(|_| Vec::new()).map_err(|source| failed(&self.run, source));
            }
            Err(source) => return Err(failed(&folder, source)),
        };
        let mut found = Vec::new();
        for entry in entries {
            let path = entry.map_err(|source| failed(&folder, source))?.path();
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            let Some(rest) = name.strip_prefix("step-") else { continue };
            let (digits, whole) = match rest.strip_suffix(DUE) {
                Some(digits) => (digits, false),
                None => (rest, true),
            };
            if let Ok(step) = digits.parse() {
                found.push((step, whole, path));
            }
        }
        found.sort();
        Ok(found.into_iter().map(|(step, _, path)| (step, path)).collect())
    }

    /// The newest, if there is any: the one that `latest` names, or the last of the list where that file is missing.
    pub fn latest(&self) -> Result<Option<PathBuf>> {
        let latest = self.run.join(LATEST);
        let Some(bytes) = file::if_any(file::read(&latest, TEXT))? else {
            return Ok(self.list()?.pop().map(|(_, path)| path));
        };
        let text = String::from_utf8_lossy(&bytes);
        let corrupt = |what: &str, reason: &str| {
            let (what, reason) = (what.into(), reason.into());
            Err(Error::Corrupt { path: latest.clone(), what, reason })
        };
        let parts = text.strip_suffix('\n').and_then(|line| line.split_once(' '));
        let Some((name, checksum)) = parts else {
            return corrupt("line", "is not a checkpoint and a checksum");
        };
        let directory = self.run.join(name);
        if !self.list()?.iter().any(|(_, path)| *path == directory) {
            return corrupt("checkpoint", &format!("there is no {name:?}"));
        }
        let manifest = directory.join(MANIFEST);
        if file::checksum_of(&manifest)? != checksum {
            // Blame the manifest if it does not fit itself.
            Manifest::load(&directory)?;
            return corrupt("checksum", &format!("is not that of {}", manifest.display()));
        }
        Ok(Some(directory))
    }

    /// What makes the run in this directory itself, by the newest checkpoint whose manifest can be read.
    pub fn identity(&self) -> Option<Identity> {
        let list = self.list().ok()?;
        list.iter().rev().find_map(|(_, path)| Some(Manifest::load(path).ok()?.run))
    }

    /// Read the newest checkpoint, if there is any. With `fallback` a damaged one is passed over for the one before it; the
    /// second of the pair says what was wrong with those passed over.
    pub fn load(&self, fallback: bool) -> Result<Option<(Checkpoint, Vec<Error>)>> {
        let first = self.latest().and_then(|latest| latest.map(Checkpoint::load).transpose());
        let mut damaged = match first {
            Ok(loaded) => return Ok(loaded.map(|checkpoint| (checkpoint, Vec::new()))),
            Err(error) if !fallback => return Err(error),
            Err(error) => vec![error],
        };
        for (_, directory) in self.list()?.into_iter().rev() {
            match Checkpoint::load(directory) {
                Ok(checkpoint) => return Ok(Some((checkpoint, damaged))),
                Err(error) => damaged.push(error),
            }
        }
        Err(damaged.swap_remove(0))
    }

    /// Let `latest` name the checkpoint in `directory`.
    pub(crate) fn choose(&self, directory: &Path) -> Result<()> {
        let checksum = file::checksum_of(&directory.join(MANIFEST))?;
        let name = directory.file_name().unwrap_or_default().to_string_lossy();
        let line = format!("{FOLDER}/{name} {checksum}\n");
        atomic::write(self.run.join(LATEST), line.as_bytes())
    }

    /// Write a checkpoint, let `latest` name it, and remove old ones.
    pub fn write(&self, setup: &Setup, trainer: &Trainer, standing: &Standing) -> Result<PathBuf> {
        let step = trainer.steps();
        let training = Summary {
            steps: step,
            seed: Some(setup.seed),
            loss: standing.last.map(|last| last.loss),
            ess: standing.validation.map(|validation| validation.ess),
            log_z: standing.validation.map(|validation| validation.log_z),
            settings: Some(setup.train.clone()),
            source: None,
            from: setup.from.clone(),
        };
        let mut files = setup.model(trainer, training)?.contents()?;
        files.push((STATE.into(), setup.state(trainer)?.encode()?));
        let checksums = files.iter().map(|(name, b)| (name.clone(), file::checksum(b)));
        let manifest = Manifest {
            schema: SCHEMA,
            version: env!("CARGO_PKG_VERSION").into(),
            step,
            run: setup.identity(),
            standing: *standing,
            checksums: checksums.collect(),
        };
        files.push((MANIFEST.into(), sealed::seal(&manifest).into_bytes()));
        let folder = self.run.join(FOLDER);
        // Not the run's directory, should that have gone.
        if let Err(source) = fs::create_dir(&folder)
            && source.kind() != ErrorKind::AlreadyExists
        {
            return Err(failed(&folder, source));
        }
        // Two names, so that finishing an interrupted validation never replaces what `latest` names.
        let name = format!("step-{step:08}{}", if standing.due { DUE } else { "" });
        let directory = AtomicDirectory::create(folder.join(&name))?;
        files.iter().try_for_each(|(name, bytes)| directory.write(name, bytes))?;
        directory.finish()?;
        self.choose(&folder.join(&name))?;
        self.prune(step, setup.train.checkpoint_every)?;
        Ok(folder.join(name))
    }

    /// The newest checkpoint at a multiple of `every` steps, up to `step`: the one to roll back to, whatever stops there were.
    pub(crate) fn regular(&self, step: u64, every: u64) -> Result<Option<PathBuf>> {
        let regular = |(at, path): &Entry| {
            let validated = !path.as_os_str().to_string_lossy().ends_with(DUE);
            *at <= step && at.is_multiple_of(every) && validated
        };
        Ok(self.list()?.into_iter().rfind(regular).map(|(_, path)| path))
    }

    /// Remove all up to `step` but the last ones and the one to roll back to. Later ones are left over from before a crash or a
    /// fall-back, and will be replaced.
    fn prune(&self, step: u64, every: u64) -> Result<()> {
        let regular = self.regular(step, every)?;
        let mut list = self.list()?;
        list.retain(|(at, _)| *at <= step);
        let old = list.len().saturating_sub(self.keep.max(1));
        for (_, path) in list.drain(..old).filter(|(_, path)| Some(path) != regular.as_ref()) {
            atomic::remove_directory(&path)?;
        }
        Ok(())
    }

    /// Remove what killed processes left half written.
    pub(crate) fn tidy(&self) -> Result<()> {
        let folder = self.run.join(FOLDER);
        if folder.exists() { atomic::remove_leftovers(&folder) } else { Ok(()) }
    }
}

const DUE: &str = "-unvalidated";
