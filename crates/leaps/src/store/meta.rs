//! The beginning of a training run: when, by which command and on what it was started (`meta.json`).

use std::path::Path;

use serde::{Deserialize, Serialize};

use super::atomic;
use super::directory::now;
use crate::device::{SimdLevel, cpu_name};
use crate::file::read_text;
use crate::{Error, Result};

/// The file in a run directory.
pub(super) const FILE: &str = "meta.json";

/// What `meta.json` says. Whatever is missing is empty. Keys are in alphabetical order.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct Meta {
    /// The words of the command that started the run.
    pub command: Vec<String>,
    /// What computes the network, in words.
    pub device: String,
    /// The machine.
    pub machine: Machine,
    /// The version of this file.
    pub schema: u32,
    /// Seconds since 1970.
    pub started: f64,
    /// The version of the library.
    pub version: String,
}

/// A machine and how many threads of it are used.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct Machine {
    /// The architecture of the CPU.
    pub architecture: String,
    /// The model of the CPU.
    pub cpu: String,
    /// The operating system.
    pub os: String,
    /// The instructions for several numbers at once.
    pub simd: String,
    /// Threads of the pool.
    pub threads: usize,
}

impl Machine {
    /// This one.
    pub fn own() -> Self {
        Machine {
            architecture: std::env::consts::ARCH.to_owned(),
            cpu: cpu_name(),
            os: std::env::consts::OS.to_owned(),
            simd: format!("{:?}", SimdLevel::detect()).to_lowercase(),
            threads: rayon::current_num_threads(),
        }
    }
}

impl Meta {
    /// Of a run that starts now; `device` is what computes the network, in words.
    pub(super) fn of(command: &[String], device: &str) -> Self {
        Meta {
            command: command.to_vec(),
            device: device.to_owned(),
            machine: Machine::own(),
            schema: 2,
            started: now(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
        }
    }

    /// Read the file of a run directory.
    pub fn read(run: impl AsRef<Path>) -> Result<Self> {
        let path = run.as_ref().join(FILE);
        serde_json::from_str(&read_text(&path)?).map_err(|error| {
            let (line, column) = (error.line().max(1), error.column().max(1));
            Error::Parse { path, line, column, reason: error.to_string() }
        })
    }

    pub(super) fn write(&self, run: &Path) -> Result<()> {
        let text = serde_json::to_string_pretty(self).unwrap_or_default() + "\n";
        atomic::write(run.join(FILE), text.as_bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_and_keys_are_in_order() {
        let folder = tempfile::tempdir().unwrap();
        let meta = Meta::of(&["leaps".to_owned(), "train".to_owned()], "the CPU");
        meta.write(folder.path()).unwrap();
        assert_eq!(Meta::read(folder.path()).unwrap(), meta);
        let text = std::fs::read_to_string(folder.path().join(FILE)).unwrap();
        let sorted: serde_json::Value = serde_json::from_str(&text).unwrap();
        assert_eq!(serde_json::to_string_pretty(&sorted).unwrap() + "\n", text);
        std::fs::write(folder.path().join(FILE), "{\"device\": \"x\"}").unwrap();
        assert_eq!(Meta::read(folder.path()).unwrap().machine, Machine::default());
        std::fs::write(folder.path().join(FILE), "{").unwrap();
        assert!(matches!(Meta::read(folder.path()), Err(Error::Parse { .. })));
    }
}
