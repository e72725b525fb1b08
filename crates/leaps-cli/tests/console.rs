//! Console events of Windows, which stand for the signals of other systems.
#![cfg(windows)]

mod common;

use std::io::{BufRead, BufReader};
use std::os::windows::process::CommandExt;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use common::{TINY, json, leaps, run};

#[link(name = "kernel32")]
unsafe extern "system" {
    fn AllocConsole() -> i32;
    fn GenerateConsoleCtrlEvent(event: u32, group: u32) -> i32;
}
const CTRL_BREAK: u32 = 1;
/// Ctrl-C cannot be sent to one group of processes alone, Ctrl-Break can.
const CREATE_NEW_PROCESS_GROUP: u32 = 0x200;

fn start(arguments: &[&str], directory: &std::path::Path) -> Child {
    // Services and batch jobs have none; where there is one, this does nothing.
    // SAFETY: it takes no argument and touches no memory of ours.
    unsafe { AllocConsole() };
    leaps(arguments)
        .creation_flags(CREATE_NEW_PROCESS_GROUP)
        .current_dir(directory)
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
}

fn press_break(child: &Child) {
    // SAFETY: two numbers are passed by value.
    let sent = unsafe { GenerateConsoleCtrlEvent(CTRL_BREAK, child.id()) };
    assert_ne!(sent, 0, "no console");
}

#[test]
fn ctrl_break_leaves_a_valid_checkpoint() {
    let scratch = tempfile::tempdir().unwrap();
    let line = format!("train {TINY} --steps 10000000 --out a");
    let child = start(&line.split_whitespace().collect::<Vec<_>>(), scratch.path());
    let directory = scratch.path().join("a");
    let begun = Instant::now();
    while !directory.join("latest").exists() && begun.elapsed() < Duration::from_secs(60) {
        std::thread::sleep(Duration::from_millis(20));
    }
    press_break(&child);
    let output = child.wait_with_output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(75), "{errors}");
    assert!(errors.contains("stopped by Ctrl-Break"), "{errors}");
    let small = ["--walkers", "50", "--intervals", "5", "--json"];
    json(&run(&[&["sample", "--model", directory.to_str().unwrap()], &small[..]].concat()));
}

#[test]
fn a_program_that_ctrl_break_ends_leaves_no_files() {
    let scratch = tempfile::tempdir().unwrap();
    let line = "ais ising --size 64 --intervals 1000000 --out x.npz";
    let mut child = start(&line.split_whitespace().collect::<Vec<_>>(), scratch.path());
    // The title is said when the work begins.
    let mut errors = BufReader::new(child.stderr.take().unwrap());
    errors.read_line(&mut String::new()).unwrap();
    assert_eq!(std::fs::read_dir(scratch.path()).unwrap().count(), 1, "no temporary file");
    press_break(&child);
    // STATUS_CONTROL_C_EXIT.
    assert_eq!(child.wait().unwrap().code(), Some(0xC000_013A_u32 as i32));
    assert_eq!(std::fs::read_dir(scratch.path()).unwrap().count(), 0, "files left behind");
}
