//! Files and directories of which nobody ever sees half.
//!
//! The contract, for [`AtomicFile`] and [`AtomicDirectory`], on a file system that keeps POSIX's promises or on NTFS:
//!
//! - **Readers** see under the final name what was there before, or all of the new contents; never a part.
//! - **A killed process** leaves the same, and perhaps a hidden `.NAME.PID.N.part` beside it, which nothing reads. The next one
//!   that writes NAME removes it once it is a minute old and nobody holds its lock. A process that is told to end can call
//!   [`remove_unfinished`] first.
//! - **After a power cut** the same holds: contents reach the disk (fsync) before the name changes. Once `finish` has
//!   returned, the new contents stay (fsync of the parent directory).
//! - **A failure** (full disk, no permission) is an error that names the final path; what was there before is intact
//!   and the temporary file is removed.
//! - Permissions are those the umask gives to any new file; a link is followed and stays a link.
//!
//! On Windows, two promises are weaker. A file that a program keeps open without letting others rename it cannot be replaced: that is an
//! error after two seconds, and what was there stays. And what flushing a directory does is not documented there; should it do nothing, a power cut may bring
//! back what was there before `finish`, whole, since NTFS keeps a journal of names.
//!
//! Two writers of one name do not mix: the one that finishes last wins.

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::{Error, Result};

/// A file in the making; see the [module](self) for what is promised.
///
/// The temporary file is opened at once, so that a path that cannot be written fails before any work. Without
/// [`finish`](AtomicFile::finish) it is removed when dropped.
#[derive(Debug)]
pub(crate) struct AtomicFile {
    path: PathBuf,
    temporary: PathBuf,
    file: BufWriter<File>,
    finished: bool,
}

impl AtomicFile {
    pub(crate) fn create(path: impl AsRef<Path>) -> Result<Self> {
        let given = path.as_ref();
        let path = match fs::metadata(given) {
            // Write through links.
            Ok(old) if old.is_file() => fs::canonicalize(given).map_err(|e| failed(given, e))?,
            Ok(_) => {
                let kind = io::ErrorKind::InvalidInput;
                let source = io::Error::new(kind, "exists and is not an ordinary file");
                return Err(failed(given, source));
            }
            Err(_) => given.to_path_buf(),
        };
        let (temporary, file) =
            stage(&path, |p| OpenOptions::new().write(true).create_new(true).open(p))?;
        unfinished().push(temporary.clone());
        // Whoever finds the file knows by the lock that we live; file systems without locks keep it.
        let _ = file.try_lock();
        remove_stale(&path);
        let file = BufWriter::with_capacity(1 << 16, file);
        Ok(AtomicFile { path, temporary, file, finished: false })
    }

    /// The final path.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Flush the contents to the disk and give them their name.
    pub(crate) fn finish(mut self) -> Result<()> {
        let done = self.file.flush().and_then(|()| {
            let file = self.file.get_ref();
            file.sync_all()?;
            if cfg!(windows) {
                // Locks keep readers away there, who must not meet one under the final name.
                let _ = file.unlock();
            }
            rename(&self.temporary, &self.path)
        });
        done.map_err(|source| failed(&self.path, source))?;
        self.finished = true;
        sync_parent(&self.path);
        Ok(())
    }
}

impl Write for AtomicFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

impl Seek for AtomicFile {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        self.file.seek(to)
    }
}

impl Drop for AtomicFile {
    fn drop(&mut self) {
        if !self.finished {
            let _ = fs::remove_file(&self.temporary);
        }
        forget(&self.temporary);
    }
}

/// Write a whole file: readers see what was there before or all of it, also after a crash or a power cut, and a
/// failure leaves what was there.
pub fn write(path: impl AsRef<Path>, bytes: &[u8]) -> Result<()> {
    let mut file = AtomicFile::create(path)?;
    file.write_all(bytes).map_err(|source| failed(file.path(), source))?;
    file.finish()
}

/// A directory in the making; see the [module](self) for what is promised.
#[derive(Debug)]
pub(crate) struct AtomicDirectory {
    path: PathBuf,
    temporary: PathBuf,
    /// Open and locked while we live, where the system has locks of directories.
    _lock: Option<File>,
    finished: bool,
}

impl AtomicDirectory {
    pub(crate) fn create(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref().to_path_buf();
        let (temporary, ()) = stage(&path, |p| fs::create_dir(p))?;
        unfinished().push(temporary.clone());
        let lock = File::open(&temporary).ok().filter(|lock| lock.try_lock().is_ok());
        remove_stale(&path);
        Ok(AtomicDirectory { path, temporary, _lock: lock, finished: false })
    }

    /// Write a file of the directory, or of a folder in it.
    pub(crate) fn write(&self, name: &str, bytes: &[u8]) -> Result<()> {
        let write = || {
            let path = self.temporary.join(name);
            if let Some(folder) = path.parent() {
                fs::create_dir_all(folder)?;
            }
            let mut file = File::create_new(&path)?;
            file.write_all(bytes)?;
            file.sync_all()?;
            sync_parent(&path);
            Ok(())
        };
        write().map_err(|source| failed(&self.path.join(name), source))
    }

    /// Give the directory its name. A directory that has it is moved away and removed: the one moment in which
    /// the name does not exist, so use a name that nothing reads yet.
    pub(crate) fn finish(mut self) -> Result<()> {
        sync(&self.temporary);
        if self.path.is_dir() {
            remove_directory(&self.path)?;
        }
        let done = rename(&self.temporary, &self.path);
        done.map_err(|source| failed(&self.path, source))?;
        self.finished = true;
        sync_parent(&self.path);
        Ok(())
    }
}

impl Drop for AtomicDirectory {
    fn drop(&mut self) {
        if !self.finished {
            let _ = fs::remove_dir_all(&self.temporary);
        }
        forget(&self.temporary);
    }
}

/// The temporary files and directories of this process.
static UNFINISHED: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

fn unfinished() -> MutexGuard<'static, Vec<PathBuf>> {
    UNFINISHED.lock().unwrap_or_else(PoisonError::into_inner)
}

fn forget(temporary: &Path) {
    unfinished().retain(|path| path != temporary);
}

/// Remove the temporary files of everything that this process is writing: for a program that is about to end without
/// waiting for its threads. What they write afterwards fails.
pub fn remove_unfinished() {
    for path in unfinished().drain(..) {
        let _ = if path.is_dir() { fs::remove_dir_all(path) } else { fs::remove_file(path) };
    }
}

/// Remove a directory so that its name never stands for a part of it.
pub(crate) fn remove_directory(path: &Path) -> Result<()> {
    let (aside, ()) = stage(path, |aside| rename(path, aside))?;
    fs::remove_dir_all(aside).map_err(|source| failed(path, source))
}

/// Remove what killed processes left of earlier attempts to write `path`: files and directories that have not changed for a while and
/// that nobody has locked. What cannot be removed does no harm.
fn remove_stale(path: &Path) {
    let parent = path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let prefix = format!(".{name}.");
    for entry in fs::read_dir(parent).into_iter().flatten().flatten() {
        let found = entry.file_name().to_string_lossy().into_owned();
        let rest = found.strip_prefix(&prefix).and_then(|rest| rest.strip_suffix(PART));
        let ours = rest.and_then(|rest| rest.split_once('.')).is_some_and(|(id, attempt)| {
            id.parse::<u32>().is_ok() && attempt.parse::<u32>().is_ok()
        });
        if !ours {
            continue;
        }
        let path = entry.path();
        let stale = || {
            let about = fs::symlink_metadata(&path).ok().filter(|about| !about.is_symlink())?;
            let old = about.modified().ok()?.elapsed().ok()? > STALE;
            let free = |file: File| file.try_lock().is_ok();
            let left = match about.is_dir() {
                // Some systems do not open directories, and have no locks of them.
                true => File::open(&path).map_or(true, free),
                false => {
                    about.is_file() && OpenOptions::new().write(true).open(&path).is_ok_and(free)
                }
            };
            (old && left).then_some(about.is_dir())
        };
        let _ = match stale() {
            Some(true) => fs::remove_dir_all(&path),
            Some(false) => fs::remove_file(&path),
            None => Ok(()),
        };
    }
}

/// Files that have not changed for so long are nobody's, if nobody has locked them.
const STALE: Duration = Duration::from_secs(60);

/// Remove what killed processes left in a directory that only we write to.
pub(crate) fn remove_leftovers(directory: &Path) -> Result<()> {
    let entries = fs::read_dir(directory).map_err(|source| failed(directory, source))?;
    for entry in entries {
        let path = entry.map_err(|source| failed(directory, source))?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if name.starts_with('.') && name.ends_with(PART) {
            let gone =
                if path.is_dir() { fs::remove_dir_all(&path) } else { fs::remove_file(&path) };
            gone.map_err(|source| failed(&path, source))?;
        }
    }
    Ok(())
}

/// An [`Error::Io`].
pub(crate) fn failed(path: &Path, source: io::Error) -> Error {
    Error::Io { path: path.into(), source }
}

const PART: &str = ".part";

/// Make something under a hidden name beside `path` that nobody uses.
fn stage<T>(path: &Path, make: impl Fn(&Path) -> io::Result<T>) -> Result<(PathBuf, T)> {
    let Some(name) = path.file_name().map(|name| name.to_string_lossy().into_owned()) else {
        let source = io::Error::new(io::ErrorKind::InvalidInput, "names no file");
        return Err(failed(path, source));
    };
    let mut attempt = 0;
    loop {
        let hidden = format!(".{name}.{}.{attempt}{PART}", std::process::id());
        let temporary = path.with_file_name(hidden);
        match make(&temporary) {
            Ok(made) => return Ok((temporary, made)),
            // A directory of that name is refused as "not empty" by rename, "exists" by the others.
            Err(_) if attempt < 100 && temporary.symlink_metadata().is_ok() => attempt += 1,
            Err(source) => return Err(failed(path, source)),
        }
    }
}

/// How long to wait for other programs to close what is to be renamed.
const PATIENCE: Duration = Duration::from_secs(2);

/// Rename a file or a directory. Windows refuses while a reader or a virus scanner has it open, which is over soon.
fn rename(from: &Path, to: &Path) -> io::Result<()> {
    /// ERROR_ACCESS_DENIED and ERROR_SHARING_VIOLATION.
    const IN_USE: [Option<i32>; 2] = [Some(5), Some(32)];
    let deadline = Instant::now() + PATIENCE;
    loop {
        match fs::rename(from, to) {
            Err(error)
                if cfg!(windows)
                    && IN_USE.contains(&error.raw_os_error())
                    && Instant::now() < deadline =>
            {
                std::thread::sleep(Duration::from_millis(5));
            }
            done => return done,
        }
    }
}

/// Make the names in the directory of `path` durable.
fn sync_parent(path: &Path) {
    let parent = path.parent().filter(|p| !p.as_os_str().is_empty());
    sync(parent.unwrap_or(Path::new(".")));
}

/// Make the names in a directory durable. Some file systems cannot say whether they are, which is no failure.
fn sync(directory: &Path) {
    let _ = flush_names(directory);
}

#[cfg(not(windows))]
fn flush_names(directory: &Path) -> io::Result<()> {
    File::open(directory)?.sync_all()
}

/// Windows opens directories with this flag only, and flushes what is open for writing only.
#[cfg(windows)]
fn flush_names(directory: &Path) -> io::Result<()> {
    use std::os::windows::fs::OpenOptionsExt;
    const FILE_FLAG_BACKUP_SEMANTICS: u32 = 0x0200_0000;
    OpenOptions::new()
        .write(true)
        .custom_flags(FILE_FLAG_BACKUP_SEMANTICS)
        .open(directory)?
        .sync_all()
}

#[cfg(test)]
mod tests;
