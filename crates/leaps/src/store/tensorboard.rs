//! TensorBoard event files of a run: scalars by gradient step, in `tb/` of its directory.
//!
//! A file is a row of records (TFRecord): the length as u64, its checksum, the bytes, their checksum, all little-endian; checksums are CRC-32C, rotated and
//! shifted so that data which holds checksums of its own is no special case. A record is a protobuf message `Event`: wall time (field 1, double), step
//! (2, varint) and one of file version (3), summary (5) or session log (7). A summary repeats values (1) of a tag (1) and a number (2, float).
//!
//! Each time that a run begins, goes on or goes back, the file is written anew under the next number from the lines of `metrics.jsonl`, which end
//! where the run goes on, and the old one is removed: no step is there twice, whatever killed the run, and a run that was begun without `tb/` gets all of its steps.

use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};

use crc::{CRC_32_ISCSI, Crc};

use super::atomic::failed;
use super::directory::now;
use super::events::Metrics;
use crate::Result;

/// CRC-32C (Castagnoli).
const CRC_32C: Crc<u32> = Crc::<u32>::new(&CRC_32_ISCSI);

/// The folder in a run directory.
pub(crate) const FOLDER: &str = "tb";
const PREFIX: &str = "events.out.tfevents.";

/// An event file that grows with a run.
#[derive(Debug)]
pub(crate) struct Tensorboard {
    path: PathBuf,
    file: File,
    /// When the run would have begun, had it never been stopped; in seconds since 1970.
    origin: f64,
}

impl Tensorboard {
    /// Begin a file of the run in `run` with the lines it has so far.
    pub(crate) fn begin(run: &Path, lines: &[Metrics]) -> Result<Self> {
        let folder = run.join(FOLDER);
        fs::create_dir_all(&folder).map_err(|source| failed(&folder, source))?;
        let old = numbered(&folder)?;
        let number = old.iter().map(|(number, _)| number + 1).max().unwrap_or(1);
        let path = folder.join(format!("{PREFIX}{number:010}"));
        let options = OpenOptions::new().append(true).create_new(true).clone();
        let file = options.open(&path).map_err(|source| failed(&path, source))?;
        let origin = now() - lines.last().map_or(0.0, |last| last.seconds);
        let mut board = Tensorboard { path, file, origin };
        let mut bytes = record(&event(origin, 0, |out| text(out, 3, b"brain.Event:2")));
        // A session that starts: whoever reads on has what came before removed.
        bytes.extend(record(&event(origin, 0, |out| message(out, 7, |log| varint(log, 1, 1)))));
        for line in lines {
            bytes.extend(board.scalars(line));
        }
        board.append(&bytes)?;
        for (_, path) in old {
            fs::remove_file(&path).map_err(|source| failed(&path, source))?;
        }
        Ok(board)
    }

    /// Add what a line of metrics says.
    pub(crate) fn add(&mut self, line: &Metrics) -> Result<()> {
        let bytes = self.scalars(line);
        self.append(&bytes)
    }

    /// One system call: a reader never sees half a record of a process that lives.
    fn append(&mut self, bytes: &[u8]) -> Result<()> {
        self.file.write_all(bytes).map_err(|source| failed(&self.path, source))
    }

    fn scalars(&self, line: &Metrics) -> Vec<u8> {
        let step = line.step_metrics;
        let found = [
            ("loss", Some(step.loss)),
            ("norm", Some(step.norm)),
            ("lr", Some(step.rate)),
            ("ess", line.ess),
            ("log_z", line.log_z.map(|log_z| log_z.mean)),
            ("log_z_error", line.log_z.map(|log_z| log_z.error)),
        ];
        let summary = |out: &mut Vec<u8>| {
            for (tag, value) in found.iter().filter_map(|(tag, value)| Some((tag, (*value)?))) {
                message(out, 1, |entry| {
                    text(entry, 1, tag.as_bytes());
                    entry.push(2 << 3 | 5);
                    entry.extend((value as f32).to_le_bytes());
                });
            }
        };
        let time = self.origin + line.seconds;
        record(&event(time, step.step, |out| message(out, 5, summary)))
    }
}

/// The event files of a folder with their numbers.
fn numbered(folder: &Path) -> Result<Vec<(u64, PathBuf)>> {
    let fail = |source| failed(folder, source);
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).map_err(fail)? {
        let path = entry.map_err(fail)?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let number = name.strip_prefix(PREFIX).and_then(|number| number.parse().ok());
        found.extend(number.map(|number| (number, path)));
    }
    Ok(found)
}

/// A message `Event`.
fn event(time: f64, step: u64, what: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
    let mut out = vec![1 << 3 | 1];
    out.extend(time.to_le_bytes());
    varint(&mut out, 2, step);
    what(&mut out);
    out
}

fn digits(out: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

fn varint(out: &mut Vec<u8>, field: u8, number: u64) {
    out.push(field << 3);
    digits(out, number);
}

fn text(out: &mut Vec<u8>, field: u8, bytes: &[u8]) {
    out.push(field << 3 | 2);
    digits(out, bytes.len() as u64);
    out.extend(bytes);
}

fn message(out: &mut Vec<u8>, field: u8, fill: impl FnOnce(&mut Vec<u8>)) {
    let mut inner = Vec::new();
    fill(&mut inner);
    text(out, field, &inner);
}

fn record(bytes: &[u8]) -> Vec<u8> {
    let length = (bytes.len() as u64).to_le_bytes();
    let check = |bytes: &[u8]| masked(CRC_32C.checksum(bytes)).to_le_bytes();
    [&length[..], &check(&length), bytes, &check(bytes)].concat()
}

fn masked(crc: u32) -> u32 {
    crc.rotate_right(15).wrapping_add(0xa282_ead8)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn checksums_are_those_of_the_standard() {
        // RFC 3720, appendix B.4.
        assert_eq!(CRC_32C.checksum(b"123456789"), 0xe306_9283);
        assert_eq!(CRC_32C.checksum(&[0; 32]), 0x8a91_36aa);
        assert_eq!(CRC_32C.checksum(&[0xff; 32]), 0x62a8_ab43);
    }
}
