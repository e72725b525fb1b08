//! Entries of a zip archive, as NumPy and PyTorch write them: stored as they are, or deflated.

use std::borrow::Cow;
use std::collections::BTreeMap;

/// Bytes that a compressed entry may always unfold to, and how many times its own length beyond them.
const ALWAYS: usize = 1 << 22;
const TIMES: usize = 256;

/// An archive and the list of what is in it.
pub(crate) struct Zip<'a> {
    bytes: &'a [u8],
    entries: BTreeMap<String, Entry>,
}

/// What the list says of an entry.
#[derive(Clone, Copy)]
pub(crate) struct Entry {
    method: u16,
    flags: u16,
    crc: u32,
    stored: usize,
    size: usize,
    header: usize,
}

impl Entry {
    /// Whether its bytes stand in the archive as they are.
    pub(crate) fn is_stored(&self) -> bool {
        self.method == 0 && self.flags & 1 == 0
    }
}

/// What is wrong with an archive, and where.
#[derive(Debug)]
pub(crate) struct Fault {
    /// The entry, or the archive.
    pub(crate) what: String,
    /// What is wrong with it.
    pub(crate) reason: String,
}

fn fault<T>(what: impl Into<String>, reason: impl Into<String>) -> Result<T, Fault> {
    Err(Fault { what: what.into(), reason: reason.into() })
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
) -> Result<Record<'a>, Fault> {
    match bytes.get(start..).and_then(|rest| rest.get(..length)) {
        Some(found) if found.starts_with(signature) => Ok(Record(found)),
        Some(_) => fault("the archive", format!("no record of a zip archive at byte {start}")),
        None => fault("the archive", "it ends too early; was it copied completely?"),
    }
}

impl<'a> Zip<'a> {
    /// Read the list of entries at the end.
    pub(crate) fn new(bytes: &'a [u8]) -> Result<Self, Fault> {
        // The last record has 22 bytes and a comment of up to 65,535.
        let last = bytes.len().saturating_sub(22);
        let first = last.saturating_sub(65_535);
        let end = (first..=last).rev().find(|&at| bytes[at..].starts_with(b"PK\x05\x06"));
        let Some(end) = end else {
            return fault("the archive", "a zip archive's end is missing");
        };
        let record_end = record(bytes, end, 22, b"PK\x05\x06")?;
        let (count, mut at) = (record_end.u16(10), record_end.u32(16) as usize);
        let mut entries = BTreeMap::new();
        for _ in 0..count {
            let head = record(bytes, at, 46, b"PK\x01\x02")?;
            let (stored, size) = (head.u32(20) as usize, head.u32(24) as usize);
            let lengths = [head.u16(28), head.u16(30), head.u16(32)].map(usize::from);
            let name = bytes.get(at + 46..).and_then(|rest| rest.get(..lengths[0]));
            let Some(name) = name.and_then(|name| std::str::from_utf8(name).ok()) else {
                return fault("the archive", "an entry's name is damaged");
            };
            let (method, flags) = (head.u16(10), head.u16(8));
            if method == 0 && stored != size {
                return fault(name, "its two lengths differ");
            }
            let (crc, header) = (head.u32(16), head.u32(42) as usize);
            let entry = Entry { method, flags, crc, stored, size, header };
            if entries.insert(name.to_owned(), entry).is_some() {
                return fault(name, "two entries have this name");
            }
            at += 46 + lengths.iter().sum::<usize>();
        }
        Ok(Zip { bytes, entries })
    }

    /// The names of all entries.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.entries.keys().map(String::as_str)
    }

    /// What the list says of an entry.
    pub(crate) fn entry(&self, name: &str) -> Option<Entry> {
        self.entries.get(name).copied()
    }

    /// The contents of an entry that is stored as it is.
    pub(crate) fn stored(&self, name: &str) -> Result<&'a [u8], Fault> {
        let Some(entry) = self.entry(name) else { return fault(name, "the entry is missing") };
        let contents = self.raw(name, entry)?;
        check(name, contents, entry)?;
        Ok(contents)
    }

    /// The contents of an entry, unfolded if it is deflated.
    pub(crate) fn contents(&self, name: &str) -> Result<Cow<'a, [u8]>, Fault> {
        let Some(entry) = self.entry(name) else { return fault(name, "the entry is missing") };
        if entry.flags & 1 != 0 {
            return fault(name, "it is encrypted");
        }
        match entry.method {
            0 => self.stored(name).map(Cow::Borrowed),
            8 => {
                let most = ALWAYS + TIMES * entry.stored;
                if entry.size > most {
                    return fault(name, "it claims to unfold to far more bytes than it has");
                }
                let raw = self.raw(name, entry)?;
                let found = miniz_oxide::inflate::decompress_to_vec_with_limit(raw, entry.size);
                let Ok(contents) = found else {
                    return fault(name, "it is no deflated data of the promised length");
                };
                check(name, &contents, entry)?;
                Ok(Cow::Owned(contents))
            }
            other => fault(name, format!("compression {other} is neither stored nor deflated")),
        }
    }

    /// The bytes of an entry as they stand in the archive.
    fn raw(&self, name: &str, entry: Entry) -> Result<&'a [u8], Fault> {
        let head = record(self.bytes, entry.header, 30, b"PK\x03\x04")?;
        let start = entry.header + 30 + usize::from(head.u16(26)) + usize::from(head.u16(28));
        let found = self.bytes.get(start..).and_then(|rest| rest.get(..entry.stored));
        found.map_or_else(|| fault(name, "it reaches beyond the end of the archive"), Ok)
    }
}

fn check(name: &str, contents: &[u8], entry: Entry) -> Result<(), Fault> {
    if contents.len() != entry.size || crc32fast::hash(contents) != entry.crc {
        return fault(name, "its checksum is wrong: the file was damaged on its way");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An archive of one entry, with these lengths and this checksum in its list.
    fn archive(method: u16, data: &[u8], size: usize, crc: u32) -> Vec<u8> {
        let stored = data.len() as u32;
        let mut head = [&20u16.to_le_bytes()[..], &[0; 2], &method.to_le_bytes(), &[0; 4]].concat();
        for number in [crc, stored, size as u32] {
            head.extend(number.to_le_bytes());
        }
        head.extend([1, 0, 0, 0]);
        let mut out = [&b"PK\x03\x04"[..], &head, b"a", data].concat();
        let at = out.len() as u32;
        out.extend([&b"PK\x01\x02\x14\0"[..], &head, &[0; 14], b"a"].concat());
        let length = out.len() as u32 - at;
        out.extend(b"PK\x05\x06\0\0\0\0\x01\0\x01\0");
        out.extend([length.to_le_bytes(), at.to_le_bytes()].concat());
        out.extend([0; 2]);
        out
    }

    #[test]
    fn entries_are_stored_or_deflated() {
        let text = b"spins and spins and spins and spins";
        let crc = crc32fast::hash(text);
        let packed = miniz_oxide::deflate::compress_to_vec(text, 6);
        assert!(packed.len() < text.len());
        for (method, data) in [(0, &text[..]), (8, &packed)] {
            let bytes = archive(method, data, text.len(), crc);
            assert_eq!(*Zip::new(&bytes).unwrap().contents("a").unwrap(), text[..]);
        }
        for (bytes, words) in [
            (archive(8, &packed, text.len(), crc ^ 1), "checksum"),
            (archive(8, &packed, text.len() - 1, crc), "promised length"),
            (archive(8, &packed, text.len() + 1, crc), "checksum"),
            (archive(8, &packed, 1 << 31, crc), "far more bytes"),
            (archive(9, &packed, text.len(), crc), "neither"),
        ] {
            let fault = Zip::new(&bytes).unwrap().contents("a").unwrap_err();
            assert!(fault.reason.contains(words), "{}", fault.reason);
        }
        assert!(Zip::new(&archive(0, text, 3, crc)).is_err());
    }
}
