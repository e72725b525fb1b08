//! What is cheap of `scripts/release`: notes, checksums, and what it refuses.

use std::path::Path;
use std::process::{Command, Output};

use crate::root;

fn release(words: &[&str]) -> Output {
    Command::new("bash").arg(root().join("scripts/release")).args(words).output().expect("bash")
}

#[test]
fn a_release_has_the_notes_of_its_version_and_their_checksum() {
    let scratch = tempfile::tempdir().unwrap();
    let out = scratch.path().join("release");
    let output = release(&["--dry-run", "--out", out.to_str().unwrap()]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let version = env!("CARGO_PKG_VERSION");
    let notes = format!("leaps-{version}-notes.md");
    let written = std::fs::read_to_string(out.join(&notes)).unwrap();
    let changes = std::fs::read_to_string(root().join("CHANGELOG.md")).unwrap();
    let section = changes.split("\n## ").find(|section| section.starts_with(version)).unwrap();
    let section = section.split_once('\n').unwrap().1;
    assert_eq!(written.trim(), section.trim());
    assert!(written.lines().count() > 10 && !written.contains("\n## "), "{written}");
    // What is written is what the sums are of, and nothing else lies there.
    let check = |folder: &Path| {
        let mut command = Command::new("sha256sum");
        command.args(["--check", "--strict", "SHA256SUMS"]).current_dir(folder).output().unwrap()
    };
    let checked = check(&out);
    assert_eq!(String::from_utf8_lossy(&checked.stdout), format!("{notes}: OK\n"));
    assert_eq!(std::fs::read_dir(&out).unwrap().count(), 2);
    std::fs::write(out.join(&notes), "other").unwrap();
    assert!(!check(&out).status.success());
}

#[test]
fn what_a_release_does_not_know_is_refused() {
    let output = release(&["--all"]);
    let talk = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{talk}");
    assert!(talk.contains("unknown argument --all") && talk.contains("Usage:"), "{talk}");
    let output = release(&["--help"]);
    assert!(String::from_utf8_lossy(&output.stdout).contains("--dry-run"));
}

/// No line of a script is misspelt, those of parts that no test runs too.
#[test]
fn shells_can_read_all_scripts() {
    let scripts =
        ["scripts/release", "scripts/book/build", ".ci/run"].map(|name| root().join(name));
    for script in scripts {
        let read = Command::new("bash").arg("-n").arg(&script).output().unwrap();
        let talk = String::from_utf8_lossy(&read.stderr);
        assert!(read.status.success() && talk.is_empty(), "{}: {talk}", script.display());
    }
}
