//! Run the program as a user would.
#![allow(dead_code)] // every test file uses its own part

use std::io::Write;
use std::process::{Command, Output, Stdio};

/// The program with some arguments, away from any terminal.
pub fn leaps(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_leaps"));
    command.args(arguments).env_remove("RAYON_NUM_THREADS").stdin(Stdio::null());
    command
}

/// Run to the end.
pub fn run(arguments: &[&str]) -> Output {
    leaps(arguments).output().expect("the program starts")
}

/// Run with a line split at blanks.
pub fn run_line(line: &str) -> Output {
    run(&line.split_whitespace().collect::<Vec<_>>())
}

/// Run with `text` on standard input.
pub fn run_with_input(arguments: &[&str], text: &str) -> Output {
    let mut child = leaps(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program starts");
    child.stdin.take().expect("piped").write_all(text.as_bytes()).expect("input is read");
    child.wait_with_output().expect("the program ends")
}

/// Standard output of a run that must succeed.
pub fn stdout(output: &Output) -> String {
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "exit {:?}: {errors}", output.status.code());
    String::from_utf8(output.stdout.clone()).expect("UTF-8")
}

/// The JSON object that a run prints.
pub fn json(output: &Output) -> serde_json::Value {
    let text = stdout(output);
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error} in\n{text}"))
}

/// Refused with exit 2 and one line that contains every word.
pub fn refused(line: &str, words: &[&str]) {
    let output = run_line(line);
    let errors = String::from_utf8(output.stderr).expect("UTF-8");
    assert_eq!(output.status.code(), Some(2), "leaps {line}: {errors}");
    assert_eq!(errors.lines().count(), 1, "leaps {line}: {errors}");
    assert!(output.stdout.is_empty(), "leaps {line} printed data");
    assert!(errors.starts_with("leaps: error: "), "leaps {line}: {errors}");
    for word in words {
        assert!(errors.contains(word), "leaps {line}: no '{word}' in {errors}");
    }
}
