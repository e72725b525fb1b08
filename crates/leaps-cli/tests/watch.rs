//! `leaps watch`: pictures of runs as text, and the whole program on a pseudo-terminal.

mod common;

use std::fs;
use std::path::Path;

use common::{fails, json, run, stdout, train};

fn once(directory: &Path) -> String {
    stdout(&run(&["watch", directory.to_str().unwrap(), "--once"]))
}

/// A character of the lattice in the picture of a 3x3 state, whose sites are drawn larger.
fn is_drawn(picture: &str) -> bool {
    picture.contains('█')
}

#[test]
fn a_picture_shows_what_status_says() {
    let scratch = tempfile::tempdir().unwrap();
    let directory = scratch.path().join("a");
    stdout(&train(&directory, "--steps 60"));
    let picture = once(&directory);
    let status = json(&run(&["status", directory.to_str().unwrap(), "--json"]));
    let run = &status["runs"][0];
    let ess = format!("ESS {:.4}", run["ess"].as_f64().unwrap());
    for words in ["Ising 3x3", "finished", "step 60/60", "100 %", "log Z", "exact", &ess] {
        assert!(picture.contains(words), "no {words:?} in\n{picture}");
    }
    for words in ["loss (logarithmic)", "effective sample size", "validation at step 60"] {
        assert!(picture.contains(words), "no {words:?} in\n{picture}");
    }
    // The exact value is that of 'leaps exact'.
    let exact = json(&common::run_line("exact ising --size 3 --field 0.1 --json"));
    let exact = format!("exact {:.4}", exact["log_z"].as_f64().unwrap());
    assert!(picture.contains(&exact), "no {exact:?} in\n{picture}");
    // The state is the one that is stored: all alike fill the picture, or leave it empty.
    let file = directory.join("snapshot.json");
    for (x, drawn) in [("111111111", true), ("000000000", false)] {
        fs::write(&file, format!(r#"{{"step":60,"shape":[3,3],"q":2,"x":"{x}"}}"#)).unwrap();
        assert_eq!(is_drawn(&once(&directory)), drawn, "{x}");
    }
    // A damaged one costs nothing but itself.
    fs::write(&file, r#"{"step":60,"shape":[3,3],"q":2,"x":"11"}"#).unwrap();
    let picture = once(&directory);
    assert!(picture.contains("warning: ") && picture.contains("snapshot.json"), "{picture}");
    assert!(picture.contains(&ess), "{picture}");
    // Runs of before have none: the last frame of their results is shown.
    fs::remove_file(&file).unwrap();
    assert!(once(&directory).contains("results.json"), "{}", once(&directory));
}

#[test]
fn runs_that_have_not_finished_are_shown_as_they_are() {
    let scratch = tempfile::tempdir().unwrap();
    let directory = scratch.path().join("a");
    stdout(&train(&directory, "--steps 40"));
    // As a process leaves it that is killed before its first validation.
    fs::remove_file(directory.join("results.json")).unwrap();
    fs::remove_file(directory.join("snapshot.json")).unwrap();
    let cut = |name: &str, keep: usize| {
        let text = fs::read_to_string(directory.join(name)).unwrap();
        let kept: String = text.lines().take(keep).map(|line| format!("{line}\n")).collect();
        fs::write(directory.join(name), kept).unwrap();
    };
    cut("metrics.jsonl", 10);
    cut("events.jsonl", 2);
    let picture = once(&directory);
    for words in ["killed", "step 10/40", "25 %", "none stored yet", "nothing yet"] {
        assert!(picture.contains(words), "no {words:?} in\n{picture}");
    }
    cut("metrics.jsonl", 0);
    assert!(once(&directory).contains("step 0/40"), "{}", once(&directory));
}

/// While somebody holds the lock of a run it is at work: ten of forty steps in twenty seconds leave a minute.
#[test]
fn a_run_at_work_says_how_long_it_will_take() {
    let scratch = tempfile::tempdir().unwrap();
    let directory = scratch.path().join("a");
    stdout(&train(&directory, "--steps 40"));
    let line = |step: usize| {
        let seconds = 2 * step;
        format!(
            "{{\"step\":{step},\"loss\":1.0,\"norm\":1.0,\"lr\":0.001,\"seconds\":{seconds}}}\n"
        )
    };
    fs::write(directory.join("metrics.jsonl"), (1..=10).map(line).collect::<String>()).unwrap();
    let events = fs::read_to_string(directory.join("events.jsonl")).unwrap();
    let begun: String = events.lines().take(1).map(|line| format!("{line}\n")).collect();
    fs::write(directory.join("events.jsonl"), begun).unwrap();
    let status = |json: &str| run(&["status", directory.to_str().unwrap(), json]);
    {
        let lock = fs::File::options().write(true).open(directory.join(".lock")).unwrap();
        lock.try_lock().expect("nobody trains");
        let picture = once(&directory);
        assert!(picture.contains("step 10/40, 0.500 steps/s, 60 s left"), "{picture}");
        let table = stdout(&status("--quiet"));
        let [head, row] = [0, 1].map(|k| table.lines().nth(k).unwrap());
        assert!(head.contains("steps/s  left    state"), "{table}");
        assert!(row.ends_with("0.500  60 s  running"), "{table}");
        let runs = json(&status("--json"));
        assert_eq!(runs["runs"][0]["left"].as_f64(), Some(60.0));
    }
    // Nobody waits for one that was killed.
    assert!(!once(&directory).contains(" left"), "{}", once(&directory));
}

#[test]
fn small_lattices_that_come_first_are_shown() {
    let scratch = tempfile::tempdir().unwrap();
    let directory = scratch.path().join("a");
    let line = "train ising --size 21 --beta 0.3 --steps 2 --batch 4 --pool 8 --channels 4 --depth 1 --validate-every 2 \
         --validate-walkers 4 --validate-intervals 2 --set sample.walkers=4 --set sample.intervals=2 --out";
    let words: Vec<&str> = line.split_whitespace().chain(directory.to_str()).collect();
    stdout(&run(&words));
    let picture = once(&directory);
    assert!(picture.contains("lattices: 14x14 finished, ESS "), "{picture}");
    assert!(picture.contains("> 21x21 finished") || picture.contains("> 21 finished"), "{picture}");
    // While the first part is at work, that is what is shown.
    for name in ["events.jsonl", "metrics.jsonl", "snapshot.json", "meta.json", "results.json"] {
        fs::remove_file(directory.join(name)).unwrap();
    }
    let picture = once(&directory);
    assert!(picture.contains("Ising 14x14") && picture.contains("to come"), "{picture}");
}

#[test]
fn what_is_no_run_is_refused() {
    let scratch = tempfile::tempdir().unwrap();
    let empty = scratch.path().to_str().unwrap();
    fails(&["watch", empty, "--once"], 2, &["DIR = ", "directory of a training run"]);
    fails(&["watch", "/nowhere/run", "--once"], 4, &["/nowhere/run", common::NOT_FOUND]);
    let directory = scratch.path().join("a");
    stdout(&train(&directory, "--steps 2"));
    let run = directory.to_str().unwrap();
    fails(&["watch", run], 2, &["must be a terminal", "--once"]);
    fails(&["watch", run, "--once", "--json"], 2, &["--json", "leaps status"]);
}

#[cfg(unix)]
mod on_a_terminal {
    use super::*;
    use std::fs::File;
    use std::io::{Read, Write};
    use std::os::fd::{FromRawFd, OwnedFd};
    use std::process::Child;

    /// The program on a pseudo-terminal.
    struct Terminal {
        ours: File,
        child: Child,
        seen: Vec<u8>,
    }

    fn size(rows: u16, columns: u16) -> libc::winsize {
        libc::winsize { ws_row: rows, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 }
    }

    impl Terminal {
        fn start(arguments: &[&str]) -> Self {
            let (mut ours, mut theirs) = (0, 0);
            let mut window = size(30, 100);
            // SAFETY: two numbers are written, the name and the settings are left out, the size is read.
            let made = unsafe {
                let (name, settings) = (std::ptr::null_mut(), std::ptr::null_mut());
                libc::openpty(&raw mut ours, &raw mut theirs, name, settings, &raw mut window)
            };
            assert_eq!(made, 0, "no pseudo-terminal");
            // SAFETY: both were just opened, and nobody else has them.
            let (ours, theirs) = unsafe { (File::from_raw_fd(ours), OwnedFd::from_raw_fd(theirs)) };
            let end = || theirs.try_clone().unwrap();
            let mut command = common::leaps(arguments);
            command.stdin(end()).stdout(end()).stderr(end()).env("TERM", "xterm-256color");
            let child = command.spawn().unwrap();
            Terminal { ours, child, seen: Vec::new() }
        }

        /// Read until some text comes, at the latest until the program ends.
        fn until(&mut self, words: &str) -> String {
            let mut part = [0; 4096];
            while !String::from_utf8_lossy(&self.seen).contains(words) {
                // A terminal without a program is at its end, or an error.
                match self.ours.read(&mut part) {
                    Ok(0) | Err(_) => {
                        panic!("no {words:?} in {}", String::from_utf8_lossy(&self.seen))
                    }
                    Ok(n) => self.seen.extend(&part[..n]),
                }
            }
            String::from_utf8_lossy(&std::mem::take(&mut self.seen)).into_owned()
        }

        fn signal(&self, signal: i32) {
            // SAFETY: two numbers are passed by value; the child has not been waited for.
            assert_eq!(unsafe { libc::kill(self.child.id() as i32, signal) }, 0);
        }

        /// Wait for the end, which puts the terminal back.
        fn end(mut self) -> Option<i32> {
            self.until("\u{1b}[?1049l");
            let mut rest = Vec::new();
            let _ = self.ours.read_to_end(&mut rest);
            self.child.wait().unwrap().code()
        }
    }

    #[test]
    fn keys_signals_and_sizes() {
        let scratch = tempfile::tempdir().unwrap();
        let directory = scratch.path().join("a");
        stdout(&train(&directory, "--steps 20"));
        let start = || {
            let mut terminal = Terminal::start(&["watch", directory.to_str().unwrap()]);
            let begun = terminal.until("q leaves");
            assert!(begun.contains("\u{1b}[?1049h"), "the other screen: {begun:?}");
            terminal
        };
        let mut terminal = start();
        terminal.ours.write_all(b"l").unwrap();
        let mut window = size(20, 60);
        // SAFETY: the size is read, and the terminal is open.
        let set = unsafe {
            use std::os::fd::AsRawFd;
            libc::ioctl(terminal.ours.as_raw_fd(), libc::TIOCSWINSZ, &raw mut window)
        };
        assert_eq!(set, 0);
        terminal.signal(libc::SIGWINCH);
        // All is drawn anew, in the new size.
        terminal.until("q leaves");
        terminal.ours.write_all(b"q").unwrap();
        assert_eq!(terminal.end(), Some(0));
        let mut terminal = start();
        terminal.ours.write_all(b"\x03").unwrap();
        assert_eq!(terminal.end(), Some(130));
        for (signal, code) in [(libc::SIGINT, 130), (libc::SIGTERM, 75)] {
            let terminal = start();
            terminal.signal(signal);
            assert_eq!(terminal.end(), Some(code), "signal {signal}");
        }
    }
}
