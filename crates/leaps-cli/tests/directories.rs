//! Directories of runs and models that are damaged, half written, or gone.

mod common;

use std::path::{Path, PathBuf};
use std::process::Stdio;
#[cfg(unix)]
use std::time::Instant;
use std::time::{Duration, SystemTime};

#[cfg(unix)]
use common::{TINY, end_or_kill};
use common::{code, fails, files, json, leaps, run, stdout, train};

/// Copy a directory with everything in it.
fn copy(from: &Path, to: &Path) {
    for (file, bytes) in files(from) {
        let own = to.join(file.strip_prefix(from).unwrap());
        std::fs::create_dir_all(own.parent().unwrap()).unwrap();
        std::fs::write(own, bytes).unwrap();
    }
}

/// The newest checkpoint of a run.
fn checkpoint(run: &Path) -> PathBuf {
    let latest = std::fs::read_to_string(run.join("latest")).unwrap();
    run.join(latest.split(' ').next().unwrap())
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

/// Whoever has results has finished, and who has lost a file is named.
#[test]
fn lost_events_do_not_make_a_finished_run_a_killed_one() {
    let scratch = tempfile::tempdir().unwrap();
    let folder = scratch.path().join("runs");
    stdout(&train(&folder.join("a"), "--steps 3"));
    for name in ["b", "c"] {
        copy(&folder.join("a"), &folder.join(name));
    }
    std::fs::write(folder.join("b/events.jsonl"), "").unwrap();
    std::fs::remove_file(folder.join("c/events.jsonl")).unwrap();
    let output = run(&["status", folder.to_str().unwrap(), "--json"]);
    let runs = json(&output)["runs"].as_array().unwrap().clone();
    assert_eq!(runs.len(), 3, "{runs:?}");
    for run in runs {
        assert!(run["state"] == "finished" && run["step"] == 3 && run["steps"] == 3, "{run}");
    }
    let errors = code(&output).1;
    assert!(errors.contains("b/events.jsonl: is empty"), "{errors}");
    assert!(errors.contains("c: has no events.jsonl"), "{errors}");
}

/// If the last line is lost, the one before it does not say how the run ended.
#[test]
fn damaged_ends_of_events_do_not_make_a_run_a_killed_one() {
    let scratch = tempfile::tempdir().unwrap();
    let folder = scratch.path().join("runs");
    stdout(&train(&folder.join("a"), "--steps 3"));
    let lines = std::fs::read_to_string(folder.join("a/events.jsonl")).unwrap();
    let whole = lines.trim_end().rfind('\n').unwrap() + 1;
    let (before, last) = lines.split_at(whole);
    assert!(before.contains("checkpointed") && last.contains("stopped"), "{lines}");
    for (name, end, results, state) in [
        ("b", "\0\0\0\n", true, "finished"),
        ("c", "\0\0\0\n", false, "unknown (events.jsonl is damaged)"),
        ("d", "", false, "killed"),
    ] {
        copy(&folder.join("a"), &folder.join(name));
        std::fs::write(folder.join(name).join("events.jsonl"), format!("{before}{end}")).unwrap();
        if !results {
            std::fs::remove_file(folder.join(name).join("results.json")).unwrap();
        }
        let output = run(&["status", folder.join(name).to_str().unwrap(), "--json"]);
        assert_eq!(json(&output)["runs"][0]["state"], state, "{name}");
        assert_eq!(code(&output).1.contains("events.jsonl: line "), name != "d", "{name}");
    }
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
        let words = [verb, &[run.to_str().unwrap()]].concat();
        // On a busy machine the moment may be missed.
        let child = (0..50).find_map(|_| looking_at(&words, &metrics));
        let aside = scratch.path().join("aside");
        std::fs::rename(&run, &aside).unwrap();
        let output = child.expect("the metrics are read").wait_with_output().unwrap();
        std::fs::rename(&aside, &run).unwrap();
        let (exit, errors) = code(&output);
        assert_eq!(exit, Some(4), "{verb:?}: {errors}");
        assert!(errors.contains("run: No such file") && output.stdout.is_empty(), "{errors}");
        let _ = std::fs::remove_file(page);
    }
}

/// A process that has a file open, if it was caught at it.
#[cfg(target_os = "linux")]
fn looking_at(words: &[&str], file: &Path) -> Option<std::process::Child> {
    let mut command = leaps(words);
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let folder = format!("/proc/{}/fd", child.id());
    while child.try_wait().unwrap().is_none() {
        let mut open = std::fs::read_dir(&folder).into_iter().flatten().flatten();
        if open.any(|entry| std::fs::read_link(entry.path()).is_ok_and(|to| to == file)) {
            return Some(child);
        }
    }
    None
}

#[cfg(unix)]
#[test]
fn training_in_a_directory_that_vanishes_is_an_error() {
    for again in [false, true] {
        let scratch = tempfile::tempdir().unwrap();
        let run = scratch.path().join("run");
        let line = format!("train {TINY} --steps 10000000 --checkpoint-every 200 --out");
        let child = leaps(&line.split_whitespace().collect::<Vec<_>>())
            .arg(&run)
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let begun = Instant::now();
        while !run.join("latest").exists() {
            // Only a guard against a test that hangs.
            assert!(begun.elapsed() < Duration::from_secs(60), "it hangs: there is no checkpoint");
            std::thread::sleep(Duration::from_millis(5));
        }
        std::fs::rename(&run, scratch.path().join("aside")).unwrap();
        if again {
            std::fs::create_dir(&run).unwrap();
        }
        let (exit, errors) = code(&end_or_kill(child));
        assert_eq!(exit, Some(4), "{errors}");
        // The second is what happens in the middle of a checkpoint.
        let words = ["run: was moved or removed while", "No such file"];
        assert!(words.iter().any(|word| errors.contains(word)), "{errors}");
        assert!(again || !run.exists(), "half a run was made");
    }
}

#[test]
fn every_file_of_a_checkpoint_is_checked_before_it_is_used() {
    let scratch = tempfile::tempdir().unwrap();
    let run = scratch.path().join("run");
    stdout(&train(&run, "--steps 2"));
    let (name, into) = (run.to_str().unwrap(), scratch.path().join("models"));
    let state = checkpoint(&run).join("state.safetensors");
    let sound = std::fs::read(&state).unwrap();
    let mut damaged = sound.clone();
    *damaged.last_mut().unwrap() ^= 1;
    let sample = ["sample", "--model", name, "--walkers", "10", "--intervals", "2"];
    let add = ["models", "--add", name, "--name", "a", "--into", into.to_str().unwrap()];
    let add = [&add[..], &["--walkers", "10"]].concat();
    for spoil in [Some(damaged), None] {
        match &spoil {
            Some(bytes) => std::fs::write(&state, bytes).unwrap(),
            None => std::fs::remove_file(&state).unwrap(),
        }
        fails(&sample, 4, &["state.safetensors"]);
        fails(&add, 4, &["state.safetensors"]);
    }
    assert!(!into.join("a").exists());
    std::fs::write(&state, sound).unwrap();
    stdout(&self::run(&sample));
    stdout(&self::run(&add));
}

/// Whenever the process is killed, the new model is there with all its files or not at all.
#[test]
fn models_are_added_whole() {
    let scratch = tempfile::tempdir().unwrap();
    let (run, into) = (scratch.path().join("run"), scratch.path().join("models"));
    stdout(&train(&run, "--steps 2"));
    for attempt in 0..5 {
        let name = format!("model-{attempt}");
        let words = ["models", "--add", run.to_str().unwrap(), "--into", into.to_str().unwrap()];
        let words = [&words[..], &["--walkers", "10", "--name", &name]].concat();
        let mut child = leaps(&words).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        while !into.join(&name).exists() && child.try_wait().unwrap().is_none() {}
        let _ = child.kill();
        child.wait().unwrap();
        for file in ["model.json", "model.safetensors", "card.toml", "README.md"] {
            assert!(into.join(&name).join(file).is_file(), "{name} has no {file}");
        }
    }
}

#[test]
fn what_killed_processes_left_is_removed() {
    let scratch = tempfile::tempdir().unwrap();
    let (run, into) = (scratch.path().join("run"), scratch.path().join("models"));
    stdout(&train(&run, "--steps 2"));
    let left = |name: &str, seconds: u64| {
        let part = into.join(name);
        std::fs::create_dir_all(part.join("target")).unwrap();
        std::fs::copy(checkpoint(&run).join("model.json"), part.join("model.json")).unwrap();
        let then = SystemTime::now() - Duration::from_secs(seconds);
        std::fs::File::open(&part).unwrap().set_modified(then).unwrap();
        part
    };
    let old = left(".mine.4194305.0.part", 3600);
    let (young, other) = (left(".mine.4194305.1.part", 0), left(".yours.4194305.0.part", 3600));
    let busy = left(".mine.4194305.2.part", 3600);
    let lock = std::fs::File::open(&busy).unwrap();
    lock.lock().unwrap();
    let add = ["models", "--add", run.to_str().unwrap(), "--name", "mine", "--walkers", "10"];
    stdout(&self::run(&[&add[..], &["--into", into.to_str().unwrap()]].concat()));
    assert!(!old.exists(), "nobody needs this any more");
    assert!(young.exists() && other.exists() && busy.exists(), "these may be somebody's");
    // They are no models.
    let listed = leaps(&["models", "--json"]).env("LEAPS_MODELS", &into).output().unwrap();
    let names = json(&listed)["models"].as_array().unwrap().clone();
    assert!(names.iter().any(|model| model["name"] == "mine"));
    assert!(names.iter().all(|model| !model["name"].as_str().unwrap().contains("part")));
}

#[cfg(unix)]
#[test]
fn what_cannot_be_looked_at_is_not_taken_for_missing() {
    let scratch = tempfile::tempdir().unwrap();
    let run = scratch.path().join("run");
    stdout(&train(&run, "--steps 2"));
    // A link to itself: nobody knows what was meant.
    for name in ["latest", "config.toml", "metrics.jsonl", "events.jsonl"] {
        let (file, aside) = (run.join(name), scratch.path().join("aside"));
        std::fs::rename(&file, &aside).unwrap();
        std::os::unix::fs::symlink(&file, &file).unwrap();
        let verb = if name == "latest" { "train" } else { "report" };
        let (exit, errors) = match name {
            "events.jsonl" => code(&self::run(&["status", run.to_str().unwrap()])),
            _ => code(&self::run(&[verb, run.to_str().unwrap()])),
        };
        assert!(exit == Some(4) && errors.contains(name), "{name}: {exit:?} {errors}");
        std::fs::rename(&aside, &file).unwrap();
    }
}
