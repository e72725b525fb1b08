//! Ordinary files, read whole and within bounds: the one way in which everything here reads what is on a disk.
//!
//! A device may never end and a pipe may never begin, so that neither is opened in place of a file.

pub(crate) mod npy;
pub(crate) mod zip;

use std::fs::{File, Metadata, OpenOptions};
use std::io::{self, ErrorKind, Read};
use std::path::Path;

use crate::device::{Bytes, free_memory};
use crate::{Error, Result};

/// Most bytes of a text: a configuration, a list of edges or numbers, JSON.
pub const TEXT: u64 = 1 << 28;
/// Most bytes of arrays, and of logs that grow.
pub const DATA: u64 = 1 << 36;
/// Bytes that there always are.
const SMALL: u64 = 1 << 20;

/// Open an ordinary file, to read it.
///
/// # Errors
/// [`Error::Io`] for anything else, without waiting for it.
pub fn open(path: &Path) -> Result<File> {
    open_with(path, OpenOptions::new().read(true))
}

/// The same with other options; the file may be new.
pub(crate) fn open_with(path: &Path, options: &OpenOptions) -> Result<File> {
    let open = || {
        match std::fs::metadata(path) {
            // What is missing may be made, or says so itself.
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            about => ordinary(&about?)?,
        }
        let file = options.open(path)?;
        // Another may have taken its place.
        ordinary(&file.metadata()?)?;
        Ok(file)
    };
    open().map_err(|source| Error::Io { path: path.into(), source })
}

fn ordinary(about: &Metadata) -> io::Result<()> {
    let reason = match about.is_file() {
        true => return Ok(()),
        false if about.is_dir() => "is a directory, and must be a file",
        false => "is a device or a pipe, and must be an ordinary file",
    };
    Err(io::Error::new(ErrorKind::InvalidInput, reason))
}

/// The BLAKE3 checksum of some bytes, in hexadecimal digits.
pub fn checksum(bytes: &[u8]) -> String {
    blake3::hash(bytes).to_string()
}

/// The checksum of a file.
///
/// # Errors
/// A file that cannot be read.
pub fn checksum_of(path: &Path) -> Result<String> {
    Ok(checksum(&read(path, DATA)?))
}

/// The bytes of an ordinary file of at most `most` bytes, [`TEXT`] or [`DATA`], that fit into memory.
///
/// # Errors
/// [`Error::Io`] for a file that is larger, that cannot be read, or that is none.
pub fn read(path: &Path, most: u64) -> Result<Vec<u8>> {
    let file = open(path)?;
    let fail = |source| Error::Io { path: path.into(), source };
    let size = file.metadata().map_err(fail)?.len();
    // Small files are not worth the question.
    if (SMALL..=most).contains(&size)
        && let Some(free) = free_memory().filter(|free| size > *free)
    {
        let (size, free) = (Bytes(size as f64), Bytes(free as f64));
        let reason = format!("has {size}, and only {free} of memory are free");
        return Err(fail(io::Error::new(ErrorKind::OutOfMemory, reason)));
    }
    let mut bytes = Vec::new();
    if size <= most {
        let room = bytes.try_reserve_exact(size as usize);
        room.map_err(|error| fail(io::Error::new(ErrorKind::OutOfMemory, error)))?;
    }
    drain(file, path, most, bytes)
}

/// What is left of a stream that may never end, such as standard input; `path` is for errors.
///
/// # Errors
/// [`Error::Io`] beyond `most` bytes.
pub fn read_stream(stream: impl Read, path: &Path, most: u64) -> Result<Vec<u8>> {
    drain(stream, path, most, Vec::new())
}

fn drain(stream: impl Read, path: &Path, most: u64, mut bytes: Vec<u8>) -> Result<Vec<u8>> {
    let fail = |source| Error::Io { path: path.into(), source };
    // A file may grow while it is read, and files of the system do not tell their size.
    stream.take(most + 1).read_to_end(&mut bytes).map_err(fail)?;
    if bytes.len() as u64 > most {
        let reason = format!("has more than {} MiB, which nothing of its kind needs", most >> 20);
        return Err(fail(io::Error::new(ErrorKind::FileTooLarge, reason)));
    }
    Ok(bytes)
}

/// The text in an ordinary file.
///
/// # Errors
/// As [`read`] has them, and [`Error::Parse`] where the bytes are not UTF-8.
pub fn read_text(path: &Path) -> Result<String> {
    text(read(path, TEXT)?, path)
}

/// What was read, or nothing where there is no such file: for files that need not be there.
///
/// # Errors
/// Every other reason why a file cannot be read.
pub fn if_any<T>(read: Result<T>) -> Result<Option<T>> {
    match read {
        Err(Error::Io { source, .. }) if source.kind() == ErrorKind::NotFound => Ok(None),
        read => read.map(Some),
    }
}

/// The text in some bytes; `path` is for errors.
///
/// # Errors
/// [`Error::Parse`] names line and column of the first byte that is not UTF-8.
pub fn text(bytes: Vec<u8>, path: &Path) -> Result<String> {
    String::from_utf8(bytes).map_err(|error| {
        let (line, column) = position(error.as_bytes(), error.utf8_error().valid_up_to());
        let reason = "not UTF-8 text; is this the right file?".to_owned();
        Error::Parse { path: path.into(), line, column, reason }
    })
}

/// Line and column, from 1, of a byte.
pub fn position(bytes: &[u8], at: usize) -> (usize, usize) {
    let before = &bytes[..at.min(bytes.len())];
    let line = before.iter().filter(|&&byte| byte == b'\n').count() + 1;
    (line, before.iter().rev().take_while(|&&byte| byte != b'\n').count() + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_bounded_whatever_is_said_of_them() {
        let scratch = tempfile::tempdir().unwrap();
        let path = scratch.path().join("a");
        std::fs::write(&path, [b'a'; 100]).unwrap();
        assert_eq!(read(&path, 100).unwrap().len(), 100);
        let error = read(&path, 99).unwrap_err().to_string();
        assert!(error.contains("more than"), "{error}");
        assert!(read_stream(io::repeat(0), &path, 1 << 20).is_err());
        // A hole of a terabyte.
        File::options().write(true).open(&path).unwrap().set_len(1 << 40).unwrap();
        let error = read(&path, u64::MAX - 1).unwrap_err().to_string();
        assert!(error.contains("memory"), "{error}");
        assert!(matches!(read(scratch.path(), 100), Err(Error::Io { .. })));
    }

    #[cfg(unix)]
    #[test]
    fn devices_and_pipes_are_not_read() {
        let scratch = tempfile::tempdir().unwrap();
        let pipe = scratch.path().join("pipe");
        assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        for path in [Path::new("/dev/zero"), Path::new("/dev/null"), &pipe] {
            let error = open(path).unwrap_err().to_string();
            assert!(error.contains("ordinary file"), "{error}");
        }
    }

    #[test]
    fn what_is_no_text_is_named_by_line_and_column() {
        let error = text(b"ab\nc\xff".to_vec(), Path::new("x")).unwrap_err().to_string();
        assert!(error.starts_with("x:2:2: not UTF-8"), "{error}");
    }
}
