//! Directories of runs that are damaged or gone.

mod common;

use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

use common::{code, files, json, leaps, run, stdout, train};

/// Copy a directory with everything in it.
fn copy(from: &Path, to: &Path) {
    for (file, bytes) in files(from) {
        let own = to.join(file.strip_prefix(from).unwrap());
        std::fs::create_dir_all(own.parent().unwrap()).unwrap();
        std::fs::write(own, bytes).unwrap();
    }
}

#[test]
fn a_damaged_run_does_not_hide_the_others() {
    let scratch = tempfile::tempdir().unwrap();
    let folder = scratch.path().join("runs");
    stdout(&train(&folder.join("a"), "--steps 3"));
    for name in ["b", "c", "d"] {
        copy(&folder.join("a"), &folder.join(name));
    }
    let all = folder.to_str().unwrap();
    // A line that is no JSON, and one that is no text: they are named, and the others count.
    for (name, damage) in [("b", &b"{\"event\": \n"[..]), ("c", b"\xff\xfe\n")] {
        let file = folder.join(name).join("events.jsonl");
        let lines = std::fs::read(&file).unwrap();
        std::fs::write(&file, [damage, &lines].concat()).unwrap();
    }
    let output = run(&["status", all, "--json"]);
    let runs = json(&output)["runs"].as_array().unwrap().clone();
    assert_eq!(runs.len(), 4);
    assert!(runs.iter().all(|run| run["state"] == "finished" && run["step"] == 3), "{runs:?}");
    for name in ["b/events.jsonl: line 1", "c/events.jsonl: line 1"] {
        assert!(code(&output).1.contains(name), "no {name} in {}", code(&output).1);
    }
    // One that cannot be read at all.
    let file = folder.join("d/events.jsonl");
    std::fs::remove_file(&file).unwrap();
    std::fs::create_dir(&file).unwrap();
    let output = run(&["status", all, "--json"]);
    let (exit, errors) = code(&output);
    let shown: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(shown["runs"].as_array().map(Vec::len), Some(3), "{shown}");
    assert!(exit == Some(4) && errors.contains("error: ") && errors.contains("d/events.jsonl"));
}

#[cfg(unix)]
#[test]
fn runs_that_are_gone_are_named() {
    let scratch = tempfile::tempdir().unwrap();
    let folder = scratch.path().join("runs");
    stdout(&train(&folder.join("a"), "--steps 1"));
    std::os::unix::fs::symlink(scratch.path().join("gone"), folder.join("b")).unwrap();
    let output = run(&["status", folder.to_str().unwrap()]);
    let (exit, errors) = code(&output);
    assert!(exit == Some(4) && errors.contains("runs/b: No such file"), "{errors}");
    let table = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(table.contains("runs/a"), "{table}");
}

/// Whoever looks at a run that goes away says so, and makes nothing of the part that was read before.
#[cfg(target_os = "linux")]
#[test]
fn a_run_that_vanishes_while_it_is_read_is_an_error() {
    let scratch = tempfile::tempdir().unwrap();
    let run = scratch.path().join("run");
    stdout(&train(&run, "--steps 5"));
    // Long enough that there is time to move the directory while this is read.
    let metrics = run.join("metrics.jsonl");
    let lines = std::fs::read_to_string(&metrics).unwrap();
    std::fs::write(&metrics, lines.repeat(100_000)).unwrap();
    let page = scratch.path().join("page.html");
    let page = page.to_str().unwrap();
    for verb in [&["status"][..], &["report", "--out", page]] {
        let child = leaps(&[verb, &[run.to_str().unwrap()]].concat())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let open = || {
            let all = std::fs::read_dir(format!("/proc/{}/fd", child.id())).into_iter().flatten();
            all.flatten().any(|file| std::fs::read_link(file.path()).is_ok_and(|to| to == metrics))
        };
        let begun = Instant::now();
        while !open() {
            assert!(begun.elapsed() < Duration::from_secs(60), "the metrics are never read");
        }
        let aside = scratch.path().join("aside");
        std::fs::rename(&run, &aside).unwrap();
        let output = child.wait_with_output().unwrap();
        std::fs::rename(&aside, &run).unwrap();
        let (exit, errors) = code(&output);
        assert_eq!(exit, Some(4), "{verb:?}: {errors}");
        assert!(errors.contains("run: No such file") && output.stdout.is_empty(), "{errors}");
    }
    assert!(!Path::new(page).exists());
}
