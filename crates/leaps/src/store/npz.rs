//! Arrays as a `.npz` file that NumPy reads without pickle: a zip archive of stored `.npy` members.

use std::io::{self, Seek, SeekFrom, Write};
use std::path::Path;

use crc32fast::Hasher;

use super::atomic::AtomicFile;
use crate::{Error, Result};

/// Sizes and offsets from here on need the zip64 extension.
const ZIP64: u64 = u32::MAX as u64;
/// 1 January 1980, so that equal arrays make equal files.
const DATE: u16 = 0x21;

/// One member of the archive.
struct Member {
    name: String,
    crc: u32,
    size: u64,
    offset: u64,
}

/// A `.npz` file in the making.
///
/// The arrays go to a temporary file in the directory of the final one, which
/// [`finish`](NpzWriter::finish) flushes to the disk and renames: a reader sees the whole file or the one
/// that was there before, also after a power cut. Without `finish` nothing but the temporary file is touched, and
/// that is removed when the writer is dropped.
pub struct NpzWriter {
    file: AtomicFile,
    members: Vec<Member>,
    offset: u64,
    /// [`ZIP64`], less in tests.
    zip64: u64,
}

impl NpzWriter {
    /// Open the temporary file at once, so that a path that cannot be written fails before any work.
    pub fn create(path: impl AsRef<Path>) -> Result<Self> {
        let file = AtomicFile::create(path)?;
        Ok(NpzWriter { file, members: Vec::new(), offset: 0, zip64: ZIP64 })
    }

    /// Write what samplers promise: `x` uint8 `[walkers, sites...]`, `log_weight` and `energy` float64
    /// `[walkers]`, `meta` as JSON text. `shape` is that of one state.
    pub fn samples(
        &mut self,
        shape: &[usize],
        x: &[u8],
        log_weight: &[f64],
        energy: &[f64],
        meta: &serde_json::Value,
    ) -> Result<()> {
        let full: Vec<usize> = [&[log_weight.len()], shape].concat();
        self.bytes("x", &full, x)?;
        self.floats("log_weight", &[log_weight.len()], log_weight)?;
        self.floats("energy", &[log_weight.len()], energy)?;
        self.text("meta", &meta.to_string())
    }

    /// Add a uint8 array, last axis fastest.
    pub fn bytes(&mut self, name: &str, shape: &[usize], data: &[u8]) -> Result<()> {
        self.array(name, "|u1", shape, data.len(), 1, |out| out.write_all(data))
    }

    /// Add a float64 array, last axis fastest.
    pub fn floats(&mut self, name: &str, shape: &[usize], data: &[f64]) -> Result<()> {
        self.array(name, "<f8", shape, data.len(), 8, |out| {
            let mut buffer = Vec::with_capacity(1 << 15);
            data.chunks(1 << 12).try_for_each(|chunk| {
                buffer.clear();
                buffer.extend(chunk.iter().flat_map(|value| value.to_le_bytes()));
                out.write_all(&buffer)
            })
        })
    }

    /// Add an int64 array, last axis fastest.
    pub fn integers(&mut self, name: &str, shape: &[usize], data: &[i64]) -> Result<()> {
        self.array(name, "<i8", shape, data.len(), 8, |out| {
            data.chunks(1 << 12).try_for_each(|chunk| {
                let bytes: Vec<u8> = chunk.iter().flat_map(|value| value.to_le_bytes()).collect();
                out.write_all(&bytes)
            })
        })
    }

    /// Add a text as an array without axes: `str(z["meta"])` in Python.
    pub fn text(&mut self, name: &str, text: &str) -> Result<()> {
        // Four bytes a character; numpy has no texts of length 0.
        let mut data: Vec<u8> = text.chars().flat_map(|c| u32::from(c).to_le_bytes()).collect();
        data.resize(data.len().max(4), 0);
        let kind = format!("<U{}", data.len() / 4);
        self.array(name, &kind, &[], 1, data.len(), |out| out.write_all(&data))
    }

    /// Finish the archive, flush it to the disk and give it its name.
    pub fn finish(mut self) -> Result<()> {
        self.directory().map_err(|source| self.error(source))?;
        self.file.finish()
    }

    fn error(&self, source: io::Error) -> Error {
        Error::Io { path: self.file.path().into(), source }
    }

    fn array(
        &mut self,
        name: &str,
        kind: &str,
        shape: &[usize],
        items: usize,
        item_size: usize,
        write: impl FnOnce(&mut Checked<'_>) -> io::Result<()>,
    ) -> Result<()> {
        let expected = shape.iter().try_fold(1usize, |n, &side| n.checked_mul(side));
        if expected != Some(items) {
            return Err(Error::invalid(
                name,
                format!("{items} values"),
                format!("as many as the shape {shape:?} holds"),
                "give every walker a full row",
            ));
        }
        let header = npy_header(kind, shape);
        let size = header.len() as u64 + items as u64 * item_size as u64;
        let name = format!("{name}.npy");
        let member = Member { name, crc: 0, size, offset: self.offset };
        self.member(member, &header, write).map_err(|source| self.error(source))
    }

    fn member(
        &mut self,
        mut member: Member,
        header: &[u8],
        write: impl FnOnce(&mut Checked<'_>) -> io::Result<()>,
    ) -> io::Result<()> {
        let local = self.local_header(&member);
        self.file.seek(SeekFrom::Start(self.offset))?;
        self.file.write_all(&local)?;
        let mut out = Checked { file: &mut self.file, crc: Hasher::new() };
        out.write_all(header)?;
        write(&mut out)?;
        member.crc = out.crc.finalize();
        self.offset += local.len() as u64 + member.size;
        // The checksum stands before the data.
        self.file.seek(SeekFrom::Start(member.offset))?;
        let local = self.local_header(&member);
        self.file.write_all(&local)?;
        self.members.push(member);
        Ok(())
    }

    fn local_header(&self, member: &Member) -> Vec<u8> {
        let large = member.size >= self.zip64;
        let extra = if large { zip64_extra(&[member.size, member.size]) } else { Vec::new() };
        let mut out = b"PK\x03\x04".to_vec();
        out.extend(common(member, large, large, extra.len()));
        out.extend(member.name.as_bytes());
        out.extend(extra);
        out
    }

    /// Write the central directory and its end.
    fn directory(&mut self) -> io::Result<()> {
        let mut out = Vec::new();
        let mut wide = self.offset >= self.zip64;
        for member in &self.members {
            let (large, far) = (member.size >= self.zip64, member.offset >= self.zip64);
            wide |= large || far;
            let mut numbers = if large { vec![member.size; 2] } else { Vec::new() };
            numbers.extend(far.then_some(member.offset));
            let extra = if numbers.is_empty() { Vec::new() } else { zip64_extra(&numbers) };
            out.extend(b"PK\x01\x02");
            out.extend((3 << 8 | 45u16).to_le_bytes()); // made on Unix by version 4.5
            out.extend(common(member, large, large || far, extra.len()));
            out.extend([0; 6]); // no comment, first disk, no internal attributes
            out.extend((0o100_644u32 << 16).to_le_bytes()); // permissions when unpacked
            out.extend(narrow(member.offset, far));
            out.extend(member.name.as_bytes());
            out.extend(extra);
        }
        let (count, size) = (self.members.len() as u64, out.len() as u64);
        let end = self.offset + size;
        if wide {
            out.extend(b"PK\x06\x06");
            out.extend(44u64.to_le_bytes()); // bytes that follow
            out.extend((3 << 8 | 45u16).to_le_bytes());
            out.extend(45u16.to_le_bytes());
            out.extend([0; 8]); // first disk, twice
            [count, count, size, self.offset].iter().for_each(|n| out.extend(n.to_le_bytes()));
            out.extend(b"PK\x06\x07\0\0\0\0");
            out.extend(end.to_le_bytes());
            out.extend(1u32.to_le_bytes()); // disks
        }
        out.extend(b"PK\x05\x06\0\0\0\0");
        let count = count.min(u64::from(u16::MAX)) as u16;
        out.extend(count.to_le_bytes());
        out.extend(count.to_le_bytes());
        out.extend(narrow(size, wide));
        out.extend(narrow(self.offset, wide));
        out.extend([0; 2]); // no comment
        self.file.seek(SeekFrom::Start(self.offset))?;
        self.file.write_all(&out)
    }
}

/// What the local header and the directory have in common: version to the length of the extra field.
fn common(member: &Member, large: bool, wide: bool, extra: usize) -> Vec<u8> {
    let mut out = Vec::new();
    out.extend((if wide { 45u16 } else { 20 }).to_le_bytes());
    out.extend([0; 6]); // no flags, stored, midnight
    out.extend(DATE.to_le_bytes());
    out.extend(member.crc.to_le_bytes());
    out.extend(narrow(member.size, large));
    out.extend(narrow(member.size, large));
    out.extend((member.name.len() as u16).to_le_bytes());
    out.extend((extra as u16).to_le_bytes());
    out
}

/// A number in four bytes, or the sign that it is in the zip64 record.
fn narrow(value: u64, wide: bool) -> [u8; 4] {
    if wide { [0xFF; 4] } else { (value as u32).to_le_bytes() }
}

fn zip64_extra(numbers: &[u64]) -> Vec<u8> {
    let mut out = 1u16.to_le_bytes().to_vec();
    out.extend((8 * numbers.len() as u16).to_le_bytes());
    numbers.iter().for_each(|n| out.extend(n.to_le_bytes()));
    out
}

/// The header of a `.npy` file, version 1.0, padded to a multiple of 64 bytes.
fn npy_header(kind: &str, shape: &[usize]) -> Vec<u8> {
    let sides: String = shape.iter().map(|side| format!("{side}, ")).collect();
    let sides = if shape.len() == 1 { sides.trim_end() } else { sides.trim_end_matches(", ") };
    let mut text = format!("{{'descr': '{kind}', 'fortran_order': False, 'shape': ({sides}), }}");
    let length = (10 + text.len() + 1).next_multiple_of(64);
    text.extend(std::iter::repeat_n(' ', length - 11 - text.len()));
    text.push('\n');
    let mut out = b"\x93NUMPY\x01\x00".to_vec();
    out.extend((text.len() as u16).to_le_bytes());
    out.extend(text.as_bytes());
    out
}

/// A file and the checksum of what goes into it.
struct Checked<'a> {
    file: &'a mut AtomicFile,
    crc: Hasher,
}

impl Checked<'_> {
    fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.crc.update(bytes);
        self.file.write_all(bytes)
    }
}

#[cfg(test)]
mod tests;
