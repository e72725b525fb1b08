//! A cache of compiled kernels, under the user's cache directory.

use std::path::PathBuf;

/// Where kernels are kept: `LEAPS_CACHE`, else `XDG_CACHE_HOME/leaps`, else `~/.cache/leaps`, `%LOCALAPPDATA%\leaps` on Windows.
fn directory() -> Option<PathBuf> {
    let named = |variable: &str| std::env::var_os(variable).filter(|v| !v.is_empty());
    if let Some(own) = named("LEAPS_CACHE") {
        return Some(PathBuf::from(own));
    }
    let user = named("XDG_CACHE_HOME").map(PathBuf::from);
    let user = user.or_else(|| match cfg!(windows) {
        true => named("LOCALAPPDATA").map(PathBuf::from),
        false => named("HOME").map(|home| PathBuf::from(home).join(".cache")),
    });
    user.map(|user| user.join("leaps"))
}

fn file(source: &str, options: &[String]) -> Option<PathBuf> {
    let mut hasher = blake3::Hasher::new();
    for part in [source, &options.join(" ")] {
        hasher.update(&(part.len() as u64).to_le_bytes());
        hasher.update(part.as_bytes());
    }
    Some(directory()?.join(format!("{}.cubin", hasher.finalize().to_hex())))
}

/// What was kept for this source and these options. A file starts with the checksum of the rest.
pub(super) fn find(source: &str, options: &[String]) -> Option<Vec<u8>> {
    let bytes = std::fs::read(file(source, options)?).ok()?;
    let (sum, image) = bytes.split_at_checked(blake3::OUT_LEN)?;
    (blake3::hash(image).as_bytes() == sum).then(|| image.to_vec())
}

/// Keep machine code; that a cache cannot be written is no error.
pub(super) fn keep(source: &str, options: &[String], image: &[u8]) {
    let Some(path) = file(source, options) else { return };
    let mut bytes = blake3::hash(image).as_bytes().to_vec();
    bytes.extend_from_slice(image);
    let part = path.with_extension(format!("part{}", std::process::id()));
    let written = path
        .parent()
        .map_or(Ok(()), std::fs::create_dir_all)
        .and_then(|()| std::fs::write(&part, bytes))
        .and_then(|()| std::fs::rename(&part, &path));
    if written.is_err() {
        std::fs::remove_file(&part).ok();
    }
}
