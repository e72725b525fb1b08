//! Kill training processes, and let their disk run full: this test binary starts itself again as the victim.

use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use leaps::store::{Checkpoints, Stop};

use super::*;

const DIRECTORY: &str = "LEAPS_TEST_RUN_DIRECTORY";

/// Long enough to be killed several times.
fn long(small: &SmallProblem) -> Setup {
    let mut setup = small.setup(Reference::Buffer);
    setup.train.steps = 160;
    setup.train.checkpoint_every = 4;
    setup
}

/// Not a test: what the victims do.
#[test]
#[ignore = "started by the tests below"]
fn victim() {
    let Some(directory) = std::env::var_os(DIRECTORY) else { return };
    let small = small();
    match TrainingRun::new(directory, long(&small)).run(&NoProgress) {
        Ok(outcome) => println!("stopped: {:?}", outcome.stop),
        Err(error) => println!("error: {error}"),
    }
}

const ARGUMENTS: [&str; 5] =
    ["--ignored", "--exact", "kill::victim", "--nocapture", "--test-threads=1"];

#[test]
fn a_killed_run_goes_on_as_if_nothing_had_happened() {
    let (small, scratch) = (small(), tempfile::tempdir().unwrap());
    let (whole, killed) = (scratch.path().join("whole"), scratch.path().join("killed"));
    let setup = long(&small);
    let expected = train(&setup, &whole);
    let mut steps = Vec::new();
    // Moments of no particular order; on a slow machine some come before the first step.
    for wait in [110, 43, 187, 71, 29, 153, 97] {
        let mut victim = Command::new(std::env::current_exe().unwrap())
            .args(ARGUMENTS)
            .env(DIRECTORY, &killed)
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        // Count from the first sign of life: starting a process takes as long as it takes.
        let begun = Instant::now();
        let events =
            |directory: &Path| fs::metadata(directory.join("events.jsonl")).map_or(0, |m| m.len());
        let before = events(&killed);
        while events(&killed) == before && begun.elapsed() < Duration::from_secs(60) {
            sleep(Duration::from_millis(1));
        }
        sleep(Duration::from_millis(wait));
        victim.kill().unwrap();
        victim.wait().unwrap();
        let newest = Checkpoints::of(&killed).load(false).unwrap();
        steps.push(newest.map(|(checkpoint, _)| checkpoint.manifest.step));
    }
    println!("killed with checkpoints at {steps:?}");
    assert!(steps.is_sorted(), "{steps:?}");
    let outcome = train(&setup, &killed);
    assert_eq!(outcome.stop, Stop::Finished);
    assert_same(&killed, &outcome, (&whole, &expected), &format!("{steps:?}"));
}

#[cfg(unix)]
#[test]
fn a_full_disk_is_an_error_that_leaves_the_last_checkpoint() {
    let (small, scratch) = (small(), tempfile::tempdir().unwrap());
    let (whole, full) = (scratch.path().join("whole"), scratch.path().join("full"));
    let setup = long(&small);
    TrainingRun::new(&full, setup.clone()).run(&StopAfter::steps(6)).unwrap();
    // No file may grow beyond 4 KiB: a write fails as on a full disk, since the signal is ignored.
    let output = Command::new("sh")
        .args(["-c", r#"trap '' XFSZ; ulimit -f 8; exec "$0" "$@""#])
        .arg(std::env::current_exe().unwrap())
        .args(ARGUMENTS)
        .env(DIRECTORY, &full)
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(text.contains("model.safetensors: File too large"), "{output:?}");
    let (good, _) = Checkpoints::of(&full).load(false).unwrap().unwrap();
    assert_eq!(good.manifest.step, 6);
    let names = fs::read_dir(full.join("checkpoints")).unwrap();
    assert!(names.map(|e| e.unwrap().file_name()).all(|n| !n.to_string_lossy().starts_with('.')));
    let (outcome, expected) = (train(&setup, &full), train(&setup, &whole));
    assert_same(&full, &outcome, (&whole, &expected), "full disk");
}
