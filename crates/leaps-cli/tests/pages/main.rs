//! README and docs/: every command runs, every link leads somewhere, every page is in the book; the script of releases.

#[cfg(unix)]
mod commands;
#[path = "../common/mod.rs"]
mod common;
mod links;
#[cfg_attr(not(unix), allow(dead_code))] // commands are for a shell of Unix
mod markdown;
#[cfg(target_os = "linux")]
mod release;

use std::path::{Path, PathBuf};

/// The root of the repository.
fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

#[test]
fn the_citation_is_that_of_this_version() {
    let citation = std::fs::read_to_string(root().join("CITATION.cff")).unwrap();
    let version = concat!("\nversion: ", env!("CARGO_PKG_VERSION"), "\n");
    assert!(citation.contains(version), "CITATION.cff: the version is {version:?}");
    let changes = std::fs::read_to_string(root().join("CHANGELOG.md")).unwrap();
    let section = concat!("\n## ", env!("CARGO_PKG_VERSION"));
    assert!(changes.contains(section), "CHANGELOG.md has no section {section:?}");
}
