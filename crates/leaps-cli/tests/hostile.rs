//! Odd files and odd names: one line that names the trouble, never a panic, never a wait without end.
#![cfg(unix)]

mod common;

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use common::{code, files, leaps, run_or_kill, run_under, stdout, train};
use serde_json::Value;

/// A tiny network, trained once for all tests.
fn model() -> &'static Path {
    static RUN: OnceLock<(tempfile::TempDir, PathBuf)> = OnceLock::new();
    let (_, name) = RUN.get_or_init(|| {
        let scratch = tempfile::tempdir().unwrap();
        let directory = scratch.path().join("run");
        stdout(&train(&directory, "--steps 20"));
        (scratch, directory)
    });
    name
}

/// A copy of the tiny network's run.
fn copy(to: &Path) {
    for (file, bytes) in files(model()) {
        let own = to.join(file.strip_prefix(model()).unwrap());
        std::fs::create_dir_all(own.parent().unwrap()).unwrap();
        std::fs::write(own, bytes).unwrap();
    }
}

fn pipe(path: &Path) {
    let _ = std::fs::remove_file(path);
    assert!(Command::new("mkfifo").arg(path).status().unwrap().success());
}

#[test]
fn devices_in_place_of_files_are_refused() {
    let scratch = tempfile::tempdir().unwrap();
    let out = scratch.path().join("out");
    let out = out.to_str().unwrap();
    let named = model().to_str().unwrap();
    for line in [
        "ais --config /dev/zero",
        "check /dev/zero",
        "compare /dev/zero",
        "report /dev/zero",
        "train /dev/zero --out OUT",
        "ais ising --size 3 --field /dev/zero",
        "exact file /dev/zero",
        "import /dev/zero --out OUT",
        "rates --model MODEL --input /dev/zero --output OUT.safetensors",
        "reproduce OUT.toml --out OUT",
    ] {
        let line = line.replace("OUT", out).replace("MODEL", named);
        if line.contains(".toml") {
            std::os::unix::fs::symlink("/dev/zero", format!("{out}.toml")).unwrap();
        }
        let words: Vec<&str> = line.split(' ').collect();
        // Reading to the end would take all memory.
        let (exit, errors) = code(&run_under("ulimit -v 4000000", &words));
        assert_eq!(exit, Some(4), "{line}: {errors}");
        assert_eq!(errors.lines().count(), 1, "{line}: {errors}");
        assert!(errors.contains("must be an ordinary file"), "{line}: {errors}");
    }
    // Standard input may be a pipe, but not an endless one.
    let endless = std::fs::File::open("/dev/zero").unwrap();
    let output = leaps(&["check", "-"]).stdin(endless).output().unwrap();
    assert!(code(&output).1.contains("more than 256 MiB"), "{}", code(&output).1);
}

#[test]
fn pipes_in_place_of_files_are_refused() {
    let latest = std::fs::read_to_string(model().join("latest")).unwrap();
    let checkpoint = latest.split(' ').next().unwrap().to_owned();
    let sample = &["sample", "--model", "RUN", "--walkers", "10", "--intervals", "2"][..];
    for (file, commands) in [
        ("latest", &[sample, &["train", "RUN"]][..]),
        ("CHECKPOINT/manifest.json", &[sample, &["train", "RUN"]]),
        ("CHECKPOINT/model.json", &[sample, &["train", "RUN"]]),
        ("CHECKPOINT/model.safetensors", &[sample]),
        ("CHECKPOINT/state.safetensors", &[&["train", "RUN"]]),
        ("config.toml", &[&["check", "RUN"], &["train", "RUN"], sample, &["report", "RUN"]]),
        ("events.jsonl", &[&["status", "RUN"], &["train", "RUN"]]),
        ("metrics.jsonl", &[&["status", "RUN"], &["train", "RUN"], &["report", "RUN"]]),
        ("results.json", &[&["report", "RUN"], &["report", "RUN/results.json"]]),
        ("meta.json", &[&["report", "RUN"]]),
        (".lock", &[&["train", "RUN"], &["status", "RUN"]]),
    ] {
        let scratch = tempfile::tempdir().unwrap();
        let run = scratch.path().join("run");
        copy(&run);
        let file = file.replace("CHECKPOINT", &checkpoint);
        pipe(&run.join(&file));
        for command in commands {
            let run = run.to_str().unwrap();
            let words: Vec<String> = command.iter().map(|word| word.replace("RUN", run)).collect();
            let words: Vec<&str> = words.iter().map(String::as_str).collect();
            let (exit, errors) = code(&run_or_kill(&words));
            assert_eq!(exit, Some(4), "{file}, {words:?}: {errors}");
            for word in [&file, "must be an ordinary file"] {
                assert!(errors.contains(word), "{file}, {words:?}: no '{word}' in {errors}");
            }
        }
    }
    let scratch = tempfile::tempdir().unwrap();
    let out = scratch.path().join("x.npz");
    pipe(&out);
    let words = ["ais", "ising", "--size", "3", "--out", out.to_str().unwrap()];
    let (exit, errors) = code(&run_or_kill(&words));
    assert!(exit == Some(4) && errors.contains("ordinary file"), "{errors}");
}

/// Put the checksum of a sealed file right, as whoever wrote other numbers into it would.
fn seal(path: &Path, text: &str) {
    let head = text.split("  \"checksum\": \"").next().unwrap();
    std::fs::write(path, head).unwrap();
    let sum = leaps::file::checksum_of(path).unwrap();
    std::fs::write(path, format!("{head}  \"checksum\": \"{sum}\"\n}}\n")).unwrap();
}

/// The places of all whole numbers in a text of JSON.
fn numbers(text: &str) -> Vec<std::ops::Range<usize>> {
    let (mut places, mut from) = (Vec::new(), 0);
    for line in text.split_inclusive('\n') {
        let value = line.trim_end().trim_end_matches(',').rsplit(": ").next().unwrap().trim_start();
        if !value.is_empty() && value.bytes().all(|byte| byte.is_ascii_digit()) {
            let at = from + (value.as_ptr() as usize - line.as_ptr() as usize);
            places.push(at..at + value.len());
        }
        from += line.len();
    }
    places
}

/// A model directory whose files have sound checksums may still ask for anything.
#[test]
fn sizes_in_files_have_the_limits_of_flags() {
    let graph = "hollow-graph --channels 4 --orders 1 --head 4";
    for network in [
        "mlp --hidden-units 4",
        graph,
        "hollow --channels 4 --depth 1 --head 4 --rows 2",
        "lec --channels 4 --kernels 3,3 --time-units 4",
        "lea --heads 1 --width 4 --embedding 4",
    ] {
        let scratch = tempfile::tempdir().unwrap();
        let (run, model) = (scratch.path().join("run"), scratch.path().join("model"));
        let line = format!(
            "train potts --size 3 --network {network} --steps 1 --batch 16 --pool 16 --validate-every 0 --quiet \
             --set sample.walkers=16 --set sample.intervals=2 --out {}",
            run.display()
        );
        stdout(&common::run_line(&line));
        let checkpoint = run.join("checkpoints/step-00000001");
        std::fs::create_dir(&model).unwrap();
        for name in ["model.json", "model.safetensors"] {
            std::fs::copy(checkpoint.join(name), model.join(name)).unwrap();
        }
        let sound = std::fs::read_to_string(model.join("model.json")).unwrap();
        let words = ["sample", "--model", model.to_str().unwrap(), "--walkers", "4", "--quiet"];
        let places = numbers(&sound);
        assert!(places.len() > 10, "{sound}");
        for place in places {
            for size in [1u64 << 62, 1 << 40, 0, u64::MAX] {
                let mut text = sound.clone();
                text.replace_range(place.clone(), &size.to_string());
                seal(&model.join("model.json"), &text);
                // Beyond that the machine would be at its end, too.
                let (exit, errors) = code(&run_under("ulimit -v 4000000", &words));
                let line = sound[..place.start].lines().last().unwrap_or_default();
                let named = format!("{network}: {line} {size}: {exit:?} {errors}");
                assert!(matches!(exit, Some(0 | 2 | 4)), "{named}");
                assert!(exit == Some(0) || errors.lines().count() == 1, "{named}");
            }
        }
    }
}

#[test]
fn directories_may_have_names_that_are_no_text() {
    let scratch = tempfile::tempdir().unwrap();
    let out = scratch.path().join(OsStr::from_bytes(b"run \xff"));
    let line = format!("train {} --steps 3 --quiet --json", common::TINY);
    let go = |more: &[&str]| {
        leaps(&line.split(' ').filter(|word| !word.is_empty()).collect::<Vec<_>>())
            .args(more)
            .arg("--out")
            .arg(&out)
            .output()
            .unwrap()
    };
    stdout(&go(&[]));
    stdout(&go(&[]));
    stdout(&go(&["--fresh"]));
    assert!(scratch.path().join(OsStr::from_bytes(b"run \xff-2")).is_dir());
    for verb in [&["sample", "--walkers", "10", "--model"][..], &["status"], &["check"]] {
        stdout(&leaps(verb).arg(&out).output().unwrap());
    }
    let page = scratch.path().join("page.html");
    stdout(&leaps(&["report", "--out", page.to_str().unwrap()]).arg(&out).output().unwrap());
    // What has to be text says so.
    let output = leaps(&["train", "ising", "--out", "x", "--from"]).arg(&out).output().unwrap();
    let (exit, errors) = code(&output);
    assert!(exit == Some(2) && errors.contains("must be UTF-8"), "{errors}");
    let output = leaps(&["demo", "--out"]).arg(&out).output().unwrap();
    let (exit, errors) = code(&output);
    assert!(exit == Some(2) && errors.contains("must be UTF-8"), "{errors}");
}

#[test]
fn experiments_may_be_kept_in_such_directories() {
    let scratch = tempfile::tempdir().unwrap();
    let out = scratch.path().join(OsStr::from_bytes(b"page \xff"));
    let file = scratch.path().join("four.toml");
    let text = "title = 'Four spins'\npaper = ''\nabout = ''\ncolumns = ['ess']\n\
        target = { kind = 'ising', size = 2, field = 0.1 }\nsample = { walkers = 50, intervals = 4 }\n\
        [[networks]]\nname = 'small'\nnetwork = { kind = 'mlp', hidden = 3 }\n\
        train = { steps = 2, batch = 16, pool = 32, validate_every = 0 }\n\
        [[runs]]\nname = 'events'\nsampler = 'sample'\nnetwork = 'small'\nkeep = true\n";
    std::fs::write(&file, text).unwrap();
    let mut command = leaps(&["reproduce", file.to_str().unwrap(), "--device", "cpu", "--out"]);
    stdout(&command.arg(&out).output().unwrap());
    assert!(out.join("four.md").is_file() && out.join("four-events.npz").is_file());
}

/// What is sealed here is what the program seals.
#[test]
fn sealed_files_of_the_tests_are_those_of_the_program() {
    let scratch = tempfile::tempdir().unwrap();
    let latest = std::fs::read_to_string(model().join("latest")).unwrap();
    let checkpoint = model().join(latest.split(' ').next().unwrap());
    let text = std::fs::read_to_string(checkpoint.join("model.json")).unwrap();
    let path = scratch.path().join("model.json");
    seal(&path, &text);
    assert_eq!(std::fs::read_to_string(&path).unwrap(), text);
    assert!(serde_json::from_str::<Value>(&text).is_ok() && !numbers(&text).is_empty());
}
