//! What the program is built of, and what its tests can use.

use std::env;
use std::process::Command;

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rustc-env=LEAPS_BUILD={}", build());
    test_resources();
}

/// Tests that need a browser are ignored where none is named, and say so. One that is named but missing makes them fail.
fn test_resources() {
    println!("cargo:rerun-if-env-changed=LEAPS_CHROMIUM");
    println!("cargo:rustc-check-cfg=cfg(has_chromium)");
    if env::var_os("LEAPS_CHROMIUM").is_some() {
        println!("cargo:rustc-cfg=has_chromium");
    }
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
