//! Every command of the README runs, in the shell it is written for.
#![cfg(unix)]

use std::process::Command;

/// The lines of the README's `sh` and `console` blocks that call leaps, with `cargo run ... --` as leaps.
fn commands() -> Vec<String> {
    let readme = include_str!("../../../README.md");
    let mut inside = false;
    let mut found = Vec::new();
    for line in readme.lines() {
        if let Some(language) = line.strip_prefix("```") {
            inside = !inside && ["sh", "console"].contains(&language);
        } else if inside {
            let line = line.strip_prefix("$ ").unwrap_or(line);
            let line = line.replace("cargo run --release -- ", "leaps ");
            found.extend(
                line.starts_with("leaps ").then_some(line).filter(|l| !l.contains("leaps: ")),
            );
        }
    }
    found
}

#[test]
fn every_command_runs() {
    let commands = commands();
    assert!(commands.len() >= 9, "{commands:?}");
    let directory = tempfile::tempdir().unwrap();
    let program = std::path::Path::new(env!("CARGO_BIN_EXE_leaps"));
    let path = std::env::join_paths([program.parent().unwrap()]).unwrap();
    for command in commands {
        let output = Command::new("/bin/sh")
            .args(["-c", &command])
            .env("PATH", &path)
            .current_dir(directory.path())
            .output()
            .unwrap();
        let talk = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{command}: {talk}");
        if command.starts_with("leaps exact") {
            // What the README shows is what is printed.
            let shown = String::from_utf8_lossy(&output.stdout);
            assert!(include_str!("../../../README.md").contains(shown.trim_end()), "{shown}");
        }
    }
    assert!(directory.path().join("samples.npz").exists());
}
