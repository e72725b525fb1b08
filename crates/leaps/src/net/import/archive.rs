//! Entries of a zip archive that were stored as they are.

use std::collections::BTreeMap;

use super::{Damage, damage};

/// A zip archive as PyTorch writes it: one folder, nothing compressed.
pub(super) struct Archive<'a> {
    bytes: &'a [u8],
    /// Name of the folder, with its slash.
    folder: String,
    entries: BTreeMap<String, Entry>,
}

#[derive(Clone, Copy)]
struct Entry {
    method: u16,
    flags: u16,
    crc: u32,
    size: usize,
    header: usize,
}

/// Numbers at fixed places of a record.
struct Record<'a>(&'a [u8]);

impl Record<'_> {
    fn u16(&self, at: usize) -> u16 {
        u16::from_le_bytes([self.0[at], self.0[at + 1]])
    }

    fn u32(&self, at: usize) -> u32 {
        u32::from_le_bytes([self.0[at], self.0[at + 1], self.0[at + 2], self.0[at + 3]])
    }
}

/// `length` bytes of `bytes` from `start` on, if they exist and begin with `signature`.
fn record<'a>(
    bytes: &'a [u8],
    start: usize,
    length: usize,
    signature: &[u8; 4],
) -> Result<Record<'a>, Damage> {
    match bytes.get(start..).and_then(|rest| rest.get(..length)) {
        Some(found) if found.starts_with(signature) => Ok(Record(found)),
        Some(_) => damage("the archive", format!("no record of a zip archive at byte {start}")),
        None => damage("the archive", "it ends too early; was it copied completely?"),
    }
}

impl<'a> Archive<'a> {
    /// Read the list of entries at the end.
    pub(super) fn new(bytes: &'a [u8]) -> Result<Self, Damage> {
        // The last record has 22 bytes and a comment of up to 65,535.
        let last = bytes.len().saturating_sub(22);
        let first = last.saturating_sub(65_535);
        let end = (first..=last).rev().find(|&at| bytes[at..].starts_with(b"PK\x05\x06"));
        let Some(end) = end else {
            return damage("the archive", "not a checkpoint: a zip archive's end is missing");
        };
        let record_end = record(bytes, end, 22, b"PK\x05\x06")?;
        let (count, mut at) = (record_end.u16(10), record_end.u32(16) as usize);
        let mut entries = BTreeMap::new();
        for _ in 0..count {
            let head = record(bytes, at, 46, b"PK\x01\x02")?;
            let (stored, size) = (head.u32(20), head.u32(24));
            let lengths = [head.u16(28), head.u16(30), head.u16(32)].map(usize::from);
            let name = bytes.get(at + 46..).and_then(|rest| rest.get(..lengths[0]));
            let Some(name) = name.and_then(|name| std::str::from_utf8(name).ok()) else {
                return damage("the archive", "an entry's name is damaged");
            };
            let (method, flags) = (head.u16(10), head.u16(8));
            if method == 0 && stored != size {
                return damage(name, "its two lengths differ");
            }
            let header = head.u32(42) as usize;
            let entry = Entry { method, flags, crc: head.u32(16), size: size as usize, header };
            if entries.insert(name.to_owned(), entry).is_some() {
                return damage(name, "two entries have this name");
            }
            at += 46 + lengths.iter().sum::<usize>();
        }
        let folder = entries.keys().find_map(|name| name.strip_suffix("data.pkl"));
        let Some(folder) = folder.map(str::to_owned) else {
            return damage("data.pkl", "the entry is missing; is this a PyTorch checkpoint?");
        };
        let archive = Archive { bytes, folder, entries };
        if archive.entries.contains_key(&format!("{}byteorder", archive.folder))
            && archive.entry("byteorder")? != b"little"
        {
            return damage("byteorder", "only little-endian checkpoints are read");
        }
        Ok(archive)
    }

    /// The contents of an entry of the folder.
    pub(super) fn entry(&self, name: &str) -> Result<&'a [u8], Damage> {
        let Some(entry) = self.entries.get(&format!("{}{name}", self.folder)) else {
            return damage(name, "the entry is missing");
        };
        if entry.method != 0 || entry.flags & 1 != 0 {
            let reason = "it is compressed or encrypted; PyTorch stores entries as they are: unpack \
                          the archive and pack it again with `zip -0`";
            return damage(name, reason);
        }
        let head = record(self.bytes, entry.header, 30, b"PK\x03\x04")?;
        let start = entry.header + 30 + usize::from(head.u16(26)) + usize::from(head.u16(28));
        let found = self.bytes.get(start..).and_then(|rest| rest.get(..entry.size));
        let Some(contents) = found else {
            return damage(name, "it reaches beyond the end of the archive");
        };
        if crc32fast::hash(contents) != entry.crc {
            return damage(name, "its checksum is wrong: the file was damaged on its way");
        }
        Ok(contents)
    }
}
