//! Files of JSON lines, appended and read; those that a resumed run writes again are cut off.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::atomic::failed;
use crate::file::{self, DATA};
use crate::{Error, Result};

/// A file of JSON lines that only grows.
#[derive(Debug)]
pub(crate) struct Lines {
    path: PathBuf,
    file: File,
}

impl Lines {
    /// Open `path`, made if need be. A last line without an end is what a killed process left, and goes.
    pub(crate) fn open(path: impl Into<PathBuf>) -> Result<Self> {
        let path = path.into();
        let options = OpenOptions::new().read(true).append(true).create(true).clone();
        let file = file::open_with(&path, &options)?;
        let lines = Lines { path, file };
        let bytes = file::read(&lines.path, DATA)?;
        let whole = bytes.iter().rposition(|&b| b == b'\n').map_or(0, |at| at + 1);
        if whole < bytes.len() {
            lines.truncate(whole)?;
        }
        Ok(lines)
    }

    /// Append an object. One system call: a reader never sees half a line of a process that lives.
    pub(crate) fn append(&mut self, object: &impl Serialize) -> Result<()> {
        // Structures of ours have text keys and no failing serialisers.
        let mut text = serde_json::to_string(object).unwrap_or_else(|_| unreachable!());
        text.push('\n');
        self.file.write_all(text.as_bytes()).map_err(|source| failed(&self.path, source))
    }

    /// Make what was appended durable.
    pub(crate) fn sync(&mut self) -> Result<()> {
        self.file.sync_data().map_err(|source| failed(&self.path, source))
    }

    /// Keep the lines up to the last one whose `step` is at most `step`, damaged ones between them included; returns the last one
    /// that can be read whole.
    pub(crate) fn keep<T: DeserializeOwned>(&mut self, step: u64) -> Result<Option<T>> {
        #[derive(Deserialize)]
        struct Place {
            step: u64,
        }
        let bytes = file::read(&self.path, DATA)?;
        let (mut end, mut last) = (0, None);
        for (from, to) in spans(&bytes) {
            let line = &bytes[from..to];
            match serde_json::from_slice::<Place>(line) {
                Ok(place) if place.step <= step => {
                    (end, last) = (to, serde_json::from_slice(line).ok().or(last));
                }
                Ok(_) => break,
                // Damaged, or the unsynced end of a killed run: the lines after it tell.
                Err(_) => {}
            }
        }
        if end < bytes.len() {
            self.truncate(end)?;
        }
        Ok(last)
    }

    /// Through a handle of its own: Windows cuts no file that is open for appending only.
    fn truncate(&self, length: usize) -> Result<()> {
        let open = OpenOptions::new().write(true).open(&self.path);
        open.and_then(|file| file.set_len(length as u64))
            .map_err(|source| failed(&self.path, source))
    }
}

/// The objects of a file of JSON lines, and what is wrong with the lines that hold none, which are left out. So is a last line
/// without an end, which is still being written.
pub(crate) fn read<T: DeserializeOwned>(path: &Path) -> Result<(Vec<T>, Option<Error>)> {
    let bytes = file::read(path, DATA)?;
    let whole = spans(&bytes).filter(|(_, to)| bytes[to - 1] == b'\n');
    let (mut objects, mut damaged) = (Vec::new(), Vec::new());
    for (line, (from, to)) in whole.enumerate() {
        match serde_json::from_slice(&bytes[from..to]) {
            Ok(object) => objects.push(object),
            Err(error) => damaged.push((line + 1, error.to_string())),
        }
    }
    let error = damaged.first().map(|(line, reason)| Error::Corrupt {
        path: path.into(),
        what: format!("line {line}"),
        reason: match damaged.len() {
            1 => format!("{reason}; it is left out"),
            n => format!("{reason}; it and {} more damaged lines are left out", n - 1),
        },
    });
    Ok((objects, error))
}

/// The places of the lines, their ends included.
fn spans(bytes: &[u8]) -> impl Iterator<Item = (usize, usize)> {
    let mut from = 0;
    bytes.split_inclusive(|&b| b == b'\n').map(move |line| {
        let span = (from, from + line.len());
        from = span.1;
        span
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};
    use std::fs;

    #[test]
    fn lines_are_kept_up_to_a_step_and_a_torn_end_goes() {
        let scratch = tempfile::tempdir().unwrap();
        let path = scratch.path().join("metrics.jsonl");
        let mut lines = Lines::open(&path).unwrap();
        for step in 1..=5 {
            lines.append(&json!({ "step": step, "loss": 0.5 })).unwrap();
        }
        lines.sync().unwrap();
        let five = fs::read(&path).unwrap();
        for torn in ["{\"step\": 6", "\0\0\0\n\0", "{\"step\": 6}\n{\"st"] {
            fs::write(&path, [&five, torn.as_bytes()].concat()).unwrap();
            let mut lines = Lines::open(&path).unwrap();
            assert_eq!(lines.keep::<Value>(5).unwrap().unwrap()["step"], 5);
            assert_eq!(fs::read(&path).unwrap(), five, "{torn:?}");
            assert_eq!(lines.keep::<Value>(3).unwrap().unwrap()["step"], 3);
            for step in 4..=5 {
                lines.append(&json!({ "step": step, "loss": 0.5 })).unwrap();
            }
            assert_eq!(fs::read(&path).unwrap(), five);
        }
        assert_eq!(Lines::open(&path).unwrap().keep::<Value>(0).unwrap(), None);
        assert!(fs::read(&path).unwrap().is_empty());
    }

    #[test]
    fn damage_in_the_middle_costs_no_other_line() {
        let scratch = tempfile::tempdir().unwrap();
        let path = scratch.path().join("metrics.jsonl");
        let text = "{\"step\":1}\n{\"st p:2}\n\0\n{\"step\":3}\n";
        fs::write(&path, text).unwrap();
        let (read, error) = super::read::<Value>(&path).unwrap();
        assert_eq!(read, [json!({ "step": 1 }), json!({ "step": 3 })]);
        let error = error.unwrap().to_string();
        assert!(error.contains("line 2") && error.contains("1 more damaged"), "{error}");
        let kept = |step| Lines::open(&path).unwrap().keep::<Value>(step).unwrap().unwrap();
        assert_eq!(kept(3)["step"], 3);
        assert_eq!(fs::read_to_string(&path).unwrap(), text);
        assert_eq!(kept(2)["step"], 1);
        assert_eq!(fs::read_to_string(&path).unwrap(), "{\"step\":1}\n");
        assert!(super::read::<Value>(&path).unwrap().1.is_none());
    }
}
