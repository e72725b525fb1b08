//! The program, run as a user would.
#![allow(dead_code)] // every test file uses its own part

pub mod shown;

use std::io::{BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::{Child, ChildStderr, Command, Output, Stdio};

/// Where the program is: as `LEAPS_PROGRAM` says, for tests that run on another machine than they were built on, or where cargo put it.
pub fn program() -> PathBuf {
    std::env::var_os("LEAPS_PROGRAM").unwrap_or_else(|| env!("CARGO_BIN_EXE_leaps").into()).into()
}

/// The program with some arguments, away from any terminal.
pub fn leaps(arguments: &[&str]) -> Command {
    let mut command = Command::new(program());
    command.args(arguments).env_remove("RAYON_NUM_THREADS").stdin(Stdio::null());
    command
}

/// What the system says of a file that is not there; Windows says it in the user's language.
pub const NOT_FOUND: &str = if cfg!(windows) { "(os error " } else { "No such file" };

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

/// A number in JSON.
pub fn number(value: &serde_json::Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("not a number: {value}"))
}

/// An estimate within five standard errors of its exact value.
pub fn near_exact(name: &str, estimate: &serde_json::Value) {
    let z = (number(&estimate["mean"]) - number(&estimate["exact"])) / number(&estimate["error"]);
    assert!(z.abs() < 5.0, "{name}: {estimate} is {z} sigmas off");
}

/// Refused with an exit code, and one line on standard error that contains every word.
pub fn fails(arguments: &[&str], code: i32, words: &[&str]) {
    let output = run(arguments);
    let errors = String::from_utf8(output.stderr).expect("UTF-8");
    assert_eq!(output.status.code(), Some(code), "leaps {arguments:?}: {errors}");
    assert!(errors.starts_with("leaps: error: "), "leaps {arguments:?}: {errors}");
    assert_eq!(errors.lines().count(), 1, "leaps {arguments:?}: {errors}");
    for word in words {
        assert!(errors.contains(word), "leaps {arguments:?}: no '{word}' in {errors}");
    }
}

/// Flags of a tiny network on a tiny lattice, trained for a moment.
pub const TINY: &str = "ising --size 3 --field 0.1 --network mlp --hidden-units 6 --batch 64 --pool 512 \
     --warmup 10 --lr 0.01 --validate-every 20 --validate-walkers 64 --validate-intervals 10";

/// Train the tiny network in `directory` with some more flags.
pub fn train(directory: &std::path::Path, more: &str) -> Output {
    let line = format!("train {TINY} {more} --set sample.walkers=200 --set sample.intervals=20");
    let mut arguments: Vec<&str> = line.split_whitespace().collect();
    let directory = directory.to_str().expect("UTF-8");
    arguments.extend(["--out", directory]);
    run(&arguments)
}

/// Every file below a directory with its bytes.
pub fn files(
    directory: &std::path::Path,
) -> std::collections::BTreeMap<std::path::PathBuf, Vec<u8>> {
    let mut all = std::collections::BTreeMap::new();
    for entry in std::fs::read_dir(directory).expect("a directory") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            all.extend(files(&path));
        } else {
            all.insert(path.clone(), std::fs::read(&path).expect("a file"));
        }
    }
    all
}

/// Run under limits that a shell sets, such as `ulimit -v 1000000`.
#[cfg(unix)]
pub fn run_under(limits: &str, arguments: &[&str]) -> Output {
    let script = format!("{limits} && exec \"$0\" \"$@\"");
    let mut command = Command::new("sh");
    command.args(["-c", &script]).arg(program()).args(arguments);
    command.env_remove("RAYON_NUM_THREADS").stdin(Stdio::null());
    command.output().expect("a shell")
}

/// Run what might wait for ever, and end it if it does.
pub fn run_or_kill(arguments: &[&str]) -> Output {
    let mut command = leaps(arguments);
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    end_or_kill(command.spawn().expect("the program starts"))
}

/// Wait for the end of what might go on for ever, and end it if it does: a minute is no measure of speed, only a guard against a test that hangs.
pub fn end_or_kill(mut child: Child) -> Output {
    let begun = std::time::Instant::now();
    while child.try_wait().expect("a child").is_none() {
        if begun.elapsed() > std::time::Duration::from_secs(60) {
            child.kill().expect("a child");
            panic!("it hangs");
        }
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    child.wait_with_output().expect("the program has ended")
}

/// Start the program and wait for its first message, which is said when the work begins: the process, what it says from
/// then on, and that message.
pub fn begin(command: &mut Command) -> (Child, BufReader<ChildStderr>, String) {
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("the program starts");
    let mut errors = BufReader::new(child.stderr.take().expect("piped"));
    let mut title = String::new();
    errors.read_line(&mut title).expect("UTF-8");
    (child, errors, title)
}

/// Send a signal such as `-INT`.
#[cfg(unix)]
pub fn send(signal: &str, child: &Child) {
    let id = child.id().to_string();
    assert!(Command::new("kill").args([signal, &id]).status().expect("a shell's kill").success());
}

/// Exit code and messages of a run.
pub fn code(output: &Output) -> (Option<i32>, String) {
    (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
}
