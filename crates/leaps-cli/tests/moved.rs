//! Runs and models of targets in files have all they need with them: they can be moved, and used from anywhere.

mod common;

use std::path::Path;

use common::{code, json, leaps, near_exact, number, stdout};

const RING: &str = "0 1 0.8\n1 2 -0.5\n2 0 0.3\nfield 1 0.25\nfield 2 -0.4\n";

/// Flags of a moment's training.
const MOMENT: &str = "--network mlp --hidden-units 4 --batch 32 --pool 64 --warmup 1 --decay none --validate-every 0 \
     --set sample.walkers=400 --set sample.intervals=10";

/// Run a line in a folder.
fn run_in(folder: &Path, line: &str) -> std::process::Output {
    let words: Vec<&str> = line.split_whitespace().collect();
    leaps(&words).current_dir(folder).output().expect("the program starts")
}

/// Everything that can be done with a run on a target whose files are gone, from another folder.
fn used_from_elsewhere(target: &str, file: &str, contents: &str) {
    let scratch = tempfile::tempdir().unwrap();
    let [first, second] = ["first", "second"].map(|name| scratch.path().join(name));
    std::fs::create_dir_all(first.join("data")).unwrap();
    std::fs::create_dir(&second).unwrap();
    let source = first.join("data").join(file);
    std::fs::write(&source, contents).unwrap();
    let begin = format!("train {target} {MOMENT} --steps 3 --out runs/a");
    stdout(&run_in(&first, &begin));
    // Once more by the same words, and by the directory.
    stdout(&run_in(&first, &begin));
    stdout(&run_in(&first, "train runs/a"));
    std::fs::rename(first.join("runs/a"), second.join("b")).unwrap();
    std::fs::remove_dir_all(&first).unwrap();
    let done = json(&run_in(&second, "train b --steps 6 --json"));
    near_exact("log_z", &done["log_z"]);
    stdout(&run_in(&second, "train --out b --steps 7"));
    let sample = "--walkers 2000 --intervals 10 --json";
    let sampled = json(&run_in(&second, &format!("sample --model b {sample}")));
    near_exact("log_z", &sampled["log_z"]);
    assert!(number(&sampled["log_z"]["error"]) < 0.2, "{}", sampled["log_z"]);
    assert!(stdout(&run_in(&second, "check b")).contains("hamiltonian"));
    assert!(stdout(&run_in(&second, "status b")).contains("7/7"));
    stdout(&run_in(&second, "report b"));
    let page = std::fs::read_to_string(second.join("b/report.html")).unwrap();
    let first = first.to_str().unwrap();
    assert!(!page.contains(first), "the page names a folder that is gone");
    // The configuration of the run, as a file like any other.
    let annealed = run_in(&second, "ais --config b/config.toml --walkers 500 --json");
    assert_eq!(json(&annealed)["log_z"]["exact"], sampled["log_z"]["exact"]);
    // A checkpoint alone, and a model of the run.
    std::fs::rename(second.join("b/checkpoints/step-00000007"), second.join("alone")).unwrap();
    near_exact(
        "alone",
        &json(&run_in(&second, &format!("sample --model alone {sample}")))["log_z"],
    );
    let added =
        json(&run_in(&second, "models --add alone --name mine --into all --walkers 50 --json"));
    assert!(!added["target"].as_str().unwrap().contains('/'), "{}", added["target"]);
    std::fs::rename(second.join("all"), scratch.path().join("models")).unwrap();
    std::fs::remove_dir_all(&second).unwrap();
    let line = format!("sample --model mine {sample}");
    let output = leaps(&line.split_whitespace().collect::<Vec<_>>())
        .env("LEAPS_MODELS", scratch.path().join("models"))
        .output()
        .unwrap();
    assert_eq!(json(&output)["log_z"]["exact"], sampled["log_z"]["exact"]);
}

#[test]
fn a_run_on_edges_can_be_moved() {
    used_from_elsewhere("file data/ring.txt", "ring.txt", RING);
}

#[test]
fn a_run_with_fields_of_a_file_can_be_moved() {
    let fields = "0.3 -0.2 0.1 0.5 -0.6 0.2 0.1 -0.1 0.4\n";
    used_from_elsewhere("ising --size 3 --beta 0.3 --field data/h.txt", "h.txt", fields);
}

#[test]
fn names_in_a_configuration_start_from_its_folder() {
    let scratch = tempfile::tempdir().unwrap();
    let folder = scratch.path().join("folder");
    std::fs::create_dir(&folder).unwrap();
    std::fs::write(folder.join("ring.txt"), RING).unwrap();
    stdout(&run_in(&folder, "exact file ring.txt"));
    let printed = stdout(&run_in(&folder, "init file ring.txt"));
    std::fs::write(folder.join("run.toml"), &printed).unwrap();
    let here = json(&run_in(&folder, "exact --config run.toml --json"));
    let there = json(&run_in(scratch.path(), "exact --config folder/run.toml --json"));
    assert_eq!(here["log_z"], there["log_z"]);
    // What flags and --set say starts from where they are said, and so does what init prints.
    stdout(&run_in(
        scratch.path(),
        "exact --config folder/run.toml --set target.path=folder/ring.txt",
    ));
    let again = stdout(&run_in(scratch.path(), "init --config folder/run.toml"));
    assert!(again.contains("path = \"folder/ring.txt\""), "{again}");
    let missing =
        run_in(scratch.path(), "exact --config folder/run.toml --set target.path=ring.txt");
    assert!(code(&missing).1.contains("ring.txt: No such file"), "{}", code(&missing).1);
}

#[test]
fn a_file_that_has_changed_is_named_in_words() {
    let scratch = tempfile::tempdir().unwrap();
    let at = scratch.path();
    std::fs::write(at.join("ring.txt"), RING).unwrap();
    let begin = format!("train file ring.txt {MOMENT} --steps 3 --out a");
    stdout(&run_in(at, &begin));
    // The run goes on with its own copy.
    std::fs::write(at.join("ring.txt"), RING.replace("0.8", "0.9")).unwrap();
    stdout(&run_in(at, "train a"));
    let (exit, errors) = code(&run_in(at, &begin));
    assert_eq!(exit, Some(2), "{errors}");
    for word in ["PATH = ring.txt", "the file has changed since", "--fresh"] {
        assert!(errors.contains(word), "no '{word}' in {errors}");
    }
    assert!(!errors.contains("checksum"), "{errors}");
    std::fs::write(at.join("a/target/ring.txt"), RING.replace("0.8", "0.7")).unwrap();
    let (exit, errors) = code(&run_in(at, "train a"));
    assert!(exit == Some(2) && errors.contains("the file has changed since"), "{errors}");
    // Samples are of what the network was trained on, or are none.
    let copies: Vec<_> = std::fs::read_dir(at.join("a/checkpoints"))
        .unwrap()
        .map(|entry| entry.unwrap().path().join("target/ring.txt"))
        .collect();
    assert!(copies.iter().all(|copy| std::fs::read_to_string(copy).unwrap() == RING));
    copies.iter().for_each(|copy| std::fs::write(copy, RING.replace("0.8", "0.7")).unwrap());
    let (exit, errors) = code(&run_in(at, "sample --model a"));
    assert!(exit == Some(4) && errors.contains("target/ring.txt: checksum"), "{errors}");
}

/// A kept result is not one of another file of the same name.
#[test]
fn experiments_notice_that_a_file_has_changed() {
    let scratch = tempfile::tempdir().unwrap();
    let at = scratch.path();
    std::fs::create_dir(at.join("own")).unwrap();
    std::fs::write(at.join("own/ring.txt"), RING).unwrap();
    let text = "title = 'Ring'\npaper = ''\nabout = ''\ncolumns = ['log_z']\n\
        target = { kind = 'file', path = 'ring.txt' }\nsample = { walkers = 50, intervals = 4 }\n\
        [[runs]]\nname = 'one'\nsampler = 'ais'\n";
    std::fs::write(at.join("own/ring.toml"), text).unwrap();
    let line = "reproduce own/ring.toml --out page --device cpu --json";
    let exact = |output: &std::process::Output| {
        json(output)["runs"][0]["result"]["log_z"]["exact"].as_f64().unwrap()
    };
    let first = run_in(at, line);
    let again = run_in(at, line);
    assert!(code(&again).1.contains("done before"), "{}", code(&again).1);
    assert_eq!(exact(&first), exact(&again));
    std::fs::write(at.join("own/ring.txt"), RING.replace("0.8", "1.8")).unwrap();
    assert!((exact(&run_in(at, line)) - exact(&first)).abs() > 0.1);
}
