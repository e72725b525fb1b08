//! Build script: the commit and features that `--version` shows, and which tests can run.

use std::path::PathBuf;
use std::process::Command;
use std::{env, fs};

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rustc-env=LEAPS_BUILD={}", build());
    test_resources();
}

/// Tests that need a browser, the site, Python or the authors' numbers are ignored where none are named, and say so. What is named but missing makes them fail.
/// Those that need a user with few rights are ignored for the superuser without `setpriv`.
fn test_resources() {
    for (variable, found) in [
        ("LEAPS_BOOK", "has_book"),
        ("LEAPS_CHROMIUM", "has_chromium"),
        ("LEAPS_FIXTURES", "has_fixtures"),
        ("LEAPS_PYTHON", "has_python"),
    ] {
        println!("cargo:rerun-if-env-changed={variable}");
        println!("cargo:rustc-check-cfg=cfg({found})");
        if env::var_os(variable).is_some() {
            println!("cargo:rustc-cfg={found}");
        }
    }
    println!("cargo:rustc-check-cfg=cfg(has_plain_user)");
    let path = env::var_os("PATH").unwrap_or_default();
    if !may_write_anywhere() || env::split_paths(&path).any(|at| at.join("setpriv").is_file()) {
        println!("cargo:rustc-cfg=has_plain_user");
    }
}

/// Whether read-only folders bind this user, as they do not bind the superuser.
fn may_write_anywhere() -> bool {
    let folder = PathBuf::from(env::var_os("OUT_DIR").expect("cargo says")).join("read-only");
    fs::create_dir_all(&folder).expect("cargo's own folder can be written");
    let mut rights = fs::metadata(&folder).expect("it was made").permissions();
    rights.set_readonly(true);
    fs::set_permissions(&folder, rights).expect("it is ours");
    fs::write(folder.join("probe"), b"").is_ok()
}

/// The commit, where the source is a clone, and the features.
fn build() -> String {
    let git = |words: &[&str]| {
        let output =
            Command::new("git").args(words).output().ok().filter(|o| o.status.success())?;
        Some(String::from_utf8_lossy(&output.stdout).trim().to_owned())
    };
    for file in ["HEAD", "logs/HEAD"] {
        if let Some(path) = git(&["rev-parse", "--git-path", file]) {
            println!("cargo:rerun-if-changed={path}");
        }
    }
    let commit = git(&["rev-parse", "--short=8", "HEAD"]);
    let commit = commit.map_or("no commit known".to_owned(), |commit| format!("commit {commit}"));
    let features: Vec<&str> = [("CARGO_FEATURE_CUDA", "cuda")]
        .iter()
        .filter(|f| env::var_os(f.0).is_some())
        .map(|f| f.1)
        .collect();
    let features = if features.is_empty() { "none".to_owned() } else { features.join(", ") };
    format!("{commit}; features: {features}")
}
