//! Run directories: new ones, and those that hold the same run already.
//!
//! | file | what |
//! |---|---|
//! | `config.toml` | the configuration, as the caller has it |
//! | `meta.json` | when, by which command and on what the run was started |
//! | `metrics.jsonl` | one line per gradient step: step, loss, norm of the gradient, lr, seconds; at validations also ess and log_z |
//! | `events.jsonl` | what happened: started, resumed, validated, checkpointed, rolled back, failed, stopped |
//! | `snapshot.json` | a state of the lattice at the last validation, see [`Snapshot`](super::Snapshot) |
//! | `checkpoints/`, `latest` | see [`Checkpoints`] |
//! | `target/` | copies of the files that the target is made of, such as a list of edges, if it is |
//! | `start/` | the run on a smaller lattice that this one starts from, if there is one: a run directory itself |
//! | `tb/` | the metrics for TensorBoard, if asked for ([`TrainSpec::tensorboard`](crate::train::TrainSpec::tensorboard)) |
//! | `dump-step-*.safetensors` | the batch on which a loss was not finite |

use std::collections::BTreeMap;
use std::fs::{self, File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use super::atomic::{self, failed};
use super::checkpoint::{Checkpoint, Checkpoints};
use super::meta::{self, Meta};
use super::model::write_below;
use super::setup::Setup;
use crate::file::{self, DATA, TEXT};
use crate::{Error, Result};

/// Names that a run directory may hold before its first checkpoint.
const OURS: [&str; 12] = [
    "config.toml",
    meta::FILE,
    "metrics.jsonl",
    "events.jsonl",
    "snapshot.json",
    "checkpoints",
    "latest",
    "figures",
    "target",
    super::tensorboard::FOLDER,
    START,
    LOCK,
];
const LOCK: &str = ".lock";
/// How long a lock may outlive its owner: a process that is just being started holds a copy of all open files of the one that starts it, until it
/// becomes the other program.
const PATIENCE: Duration = Duration::from_millis(500);
/// The part of a run directory that holds the run it starts from.
pub const START: &str = "start";

/// Refuse a directory with things in it that are not of a run.
pub fn check_directory(path: &Path) -> Result<()> {
    let ours = |name: &str| {
        OURS.contains(&name) || name.ends_with(".part") || name.starts_with("dump-step-")
    };
    let mut strange = None;
    for entry in fs::read_dir(path).map_err(|source| failed(path, source))? {
        let name = entry.map_err(|source| failed(path, source))?.file_name();
        let name = name.to_string_lossy();
        if name == meta::FILE {
            return Ok(()); // a run of ours, with whatever its owner put beside it
        }
        if !ours(&name) {
            strange = Some(name.into_owned());
        }
    }
    strange.map_or(Ok(()), |name| {
        Err(Error::invalid(
            "out",
            path.display(),
            "an empty directory or a run",
            format!("it holds {name}; give a new name"),
        ))
    })
}

/// A run directory that this process alone writes to.
#[derive(Debug)]
pub(crate) struct RunDirectory {
    pub(crate) path: PathBuf,
    /// Locked while it is open; the operating system unlocks it however the process ends.
    lock: File,
}

impl RunDirectory {
    /// Make `path` or take it over; refuses a directory with other things in it, or one in which a process trains.
    pub(crate) fn open(path: &Path) -> Result<Self> {
        fs::create_dir_all(path).map_err(|source| failed(path, source))?;
        check_directory(path)?;
        let options = File::options().create(true).truncate(false).write(true).clone();
        let lock = file::open_with(&path.join(LOCK), &options)?;
        let deadline = Instant::now() + PATIENCE;
        loop {
            match lock.try_lock() {
                Err(TryLockError::WouldBlock) if Instant::now() < deadline => {
                    std::thread::sleep(Duration::from_millis(5));
                }
                Err(TryLockError::WouldBlock) => {
                    let text = "another process trains in this directory";
                    return Err(failed(path, io::Error::new(io::ErrorKind::ResourceBusy, text)));
                }
                // File systems without locks are trusted.
                _ => return Ok(RunDirectory { path: path.into(), lock }),
            }
        }
    }

    /// The newest checkpoint, if it is one of this run, and what was wrong with newer ones that were passed over.
    pub(crate) fn checkpoint(
        &self,
        checkpoints: &Checkpoints,
        setup: &Setup,
        fallback: bool,
    ) -> Result<Option<(Checkpoint, Vec<Error>)>> {
        atomic::remove_leftovers(&self.path)?;
        checkpoints.tidy()?;
        let loaded = checkpoints.load(fallback)?;
        if let Some((checkpoint, damaged)) = &loaded {
            setup.identity().check(&checkpoint.manifest.run, &self.path)?;
            let (steps, made) = (setup.train.steps, checkpoint.manifest.step);
            if steps < made {
                let condition = format!("at least {made}, the steps that this run has made");
                let advice = "train into another directory for a shorter run";
                return Err(Error::invalid("train.steps", steps, condition, advice));
            }
            if !damaged.is_empty() {
                checkpoints.choose(&checkpoint.directory)?;
            }
        }
        Ok(loaded)
    }

    /// Refuse to go on where the directory was moved or removed since it was opened: what is written there would be half a run, or nobody's.
    pub(crate) fn check(&self) -> Result<()> {
        let gone = |text: &str| failed(&self.path, io::Error::new(io::ErrorKind::NotFound, text));
        match fs::metadata(self.path.join(LOCK)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                Err(gone("was moved or removed while a network was trained in it"))
            }
            Ok(there) if self.lock.metadata().is_ok_and(|own| !same(&own, &there)) => {
                Err(gone("was replaced by another while a network was trained in it"))
            }
            _ => Ok(()),
        }
    }

    /// Keep copies of files, by their names from the directory on.
    pub(crate) fn keep(&self, files: &BTreeMap<String, Vec<u8>>) -> Result<()> {
        for (name, bytes) in files {
            if file::read(&self.path.join(name), DATA).ok().as_ref() != Some(bytes) {
                write_below(&self.path, name, bytes)?;
            }
        }
        Ok(())
    }

    /// Write `config.toml`, and `meta.json` if the run starts; `placement` is what computes the network, in words.
    pub(crate) fn describe(
        &self,
        config: &str,
        command: &[String],
        placement: &str,
        starts: bool,
    ) -> Result<()> {
        let text = self.path.join("config.toml");
        if file::read(&text, TEXT).ok().as_deref() != Some(config.as_bytes()) {
            atomic::write(text, config.as_bytes())?;
        }
        if !starts {
            return Ok(());
        }
        Meta::of(command, placement).write(&self.path)
    }
}

/// Whether two descriptions are of the same file, where the system tells.
fn same(a: &fs::Metadata, b: &fs::Metadata) -> bool {
    #[cfg(unix)]
    {
        use std::os::unix::fs::MetadataExt;
        (a.dev(), a.ino()) == (b.dev(), b.ino())
    }
    #[cfg(not(unix))]
    {
        a.is_file() == b.is_file()
    }
}

/// Seconds since 1970.
pub(crate) fn now() -> f64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    (since.as_secs_f64() * 1e3).round() / 1e3
}
