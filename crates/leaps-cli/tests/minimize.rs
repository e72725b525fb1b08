//! `leaps minimize`, and problems on graphs for other verbs.

mod common;

use std::path::Path;

use common::{fails, json, number, refused, run, run_line, stdout};

/// A graph of 8 vertices whose largest cut and largest independent set are found by hand below.
const GRAPH: &str =
    "8 11\n1 2 3\n2 3 -1\n3 4 2\n4 1 1\n1 3 1\n5 6\n6 7 -2\n7 8 4\n8 5\n1 5 2\n3 7 1\n";

fn graph(folder: &Path) -> String {
    let path = folder.join("graph.txt");
    std::fs::write(&path, GRAPH).unwrap();
    path.to_str().unwrap().to_owned()
}

/// Edges of the graph.
fn edges() -> Vec<(usize, usize, f64)> {
    let lines = GRAPH.lines().skip(1).map(|line| {
        let words: Vec<f64> = line.split(' ').map(|word| word.parse().unwrap()).collect();
        (words[0] as usize - 1, words[1] as usize - 1, words.get(2).copied().unwrap_or(1.0))
    });
    lines.collect()
}

fn value(state: usize, vertex: usize) -> usize {
    state >> vertex & 1
}

fn best_cut() -> f64 {
    let cut = |state: usize| -> f64 {
        edges().iter().filter(|e| value(state, e.0) != value(state, e.1)).map(|e| e.2).sum()
    };
    (0..256).map(cut).fold(0.0, f64::max)
}

fn best_set() -> u32 {
    let free =
        |state: &usize| edges().iter().all(|e| value(*state, e.0) == 0 || value(*state, e.1) == 0);
    (0..256usize).filter(free).map(usize::count_ones).max().unwrap()
}

#[test]
fn cuts_and_sets_of_a_graph_are_the_best_of_all() {
    let folder = tempfile::tempdir().unwrap();
    let path = graph(folder.path());
    for method in ["auto", "annealing", "tempering", "houdayer"] {
        let more = ["--method", method, "--json", "--restarts", "2", "--walkers", "8"];
        let find = |kind: &str| {
            json(&run(&[&["minimize", kind, &path, "--sweeps", "50"], &more[..]].concat()))
        };
        let cut = find("maxcut");
        assert_eq!(number(&cut["cut"]), best_cut(), "{method}");
        assert_eq!(number(&cut["lowest"]["energy"]), -best_cut(), "{method}");
        assert_eq!(cut["proven"], true);
        let set = find("independent-set");
        assert_eq!(set["set_size"], best_set(), "{method}");
        let state = set["lowest"]["state"].as_str().unwrap().as_bytes();
        assert!(edges().iter().all(|e| state[e.0] == b'0' || state[e.1] == b'0'));
        assert_eq!(state.iter().filter(|digit| **digit == b'1').count(), best_set() as usize);
    }
}

#[test]
fn graphs_are_targets_of_every_verb() {
    let folder = tempfile::tempdir().unwrap();
    let path = graph(folder.path());
    for kind in ["maxcut", "independent-set"] {
        let exact = json(&run(&["exact", kind, &path, "--beta", "0.7", "--json"]));
        let ais = ["ais", kind, &path, "--beta", "0.7", "--walkers", "4000", "--json"];
        let ais = json(&run(&ais));
        common::near_exact(kind, &ais["log_z"]);
        assert_eq!(number(&ais["log_z"]["exact"]), number(&exact["log_z"]));
        let smc = ["smc", kind, &path, "--beta", "0.7", "--walkers", "4000", "--json"];
        common::near_exact(kind, &json(&run(&smc))["log_z"]);
    }
    let init = stdout(&run(&["init", "maxcut", &path]));
    std::fs::write(folder.path().join("run.toml"), init).unwrap();
    let config = folder.path().join("run.toml");
    let found = run(&["minimize", "--config", config.to_str().unwrap(), "--json"]);
    assert_eq!(number(&json(&found)["cut"]), best_cut());
}

#[test]
fn results_are_printed_and_written() {
    let folder = tempfile::tempdir().unwrap();
    let (out, csv) = (folder.path().join("best.npz"), folder.path().join("best.csv"));
    let line = "minimize spin-glass --size 8 --field 0.1 --method annealing --walkers 20 --sweeps 100 --restarts 3";
    let mut words: Vec<&str> = line.split(' ').collect();
    words.extend(["--out", out.to_str().unwrap(), "--csv", csv.to_str().unwrap()]);
    let text = stdout(&run(&words));
    for word in ["lowest_energy", "found", "of 3 restarts", "of 60 walkers", "state", "seconds"] {
        assert!(text.contains(word), "no {word} in\n{text}");
    }
    let table = std::fs::read_to_string(&csv).unwrap();
    assert_eq!(table.matches(",restart_energy,").count(), 3, "{table}");
    let first = std::fs::read(&out).unwrap();
    assert_eq!(&first[..2], b"PK");
    stdout(&run(&words));
    assert_eq!(std::fs::read(&out).unwrap(), first, "the same seed gives the same file");
    let result = run(&[&words[..], &["--json"]].concat());
    let file = folder.path().join("result.json");
    std::fs::write(&file, &result.stdout).unwrap();
    let table = stdout(&run(&["table", file.to_str().unwrap(), "--quantity", "lowest_energy"]));
    assert!(table.contains("annealing"), "{table}");
}

#[test]
fn a_network_finds_the_lowest_energy() {
    let line = "minimize --model ising-8-critical --walkers 50 --sweeps 200 --restarts 1 --json";
    let found = json(&run_line(line));
    assert_eq!((&found["method"], &found["proven"]), (&"network".into(), &true.into()));
    assert_eq!(number(&found["lowest"]["energy"]), -128.0);
}

#[test]
fn limits_and_energies_end_the_search_well() {
    let line = "minimize spin-glass --size 30 --time-limit 0.3s --json";
    let found = json(&run_line(line));
    assert_eq!(found["ended_by"], "time-limit");
    assert!(number(&found["lowest"]["energy"]) < -900.0, "a local minimum at least");
    let line = "minimize spin-glass --size 30 --target-energy -1000 --json";
    let found = json(&run_line(line));
    assert_eq!(found["ended_by"], "target-energy");
    assert!(number(&found["lowest"]["energy"]) <= -1000.0);
}

#[cfg(unix)]
#[test]
fn signals_keep_what_was_found() {
    use std::io::{BufRead, BufReader};
    use std::process::Stdio;
    for (signal, code) in [("INT", 130), ("TERM", 75)] {
        let words = ["minimize", "spin-glass", "--size", "30", "--restarts", "100000000", "--json"];
        let mut command = common::leaps(&words);
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
        let begun = |line: std::io::Result<String>| line.unwrap().contains("restart 1:");
        assert!(lines.any(begun), "it finds something");
        // Somebody must read what it says until the end.
        let reader = std::thread::spawn(move || lines.map_while(Result::ok).last());
        let pid = child.id().to_string();
        let kill = std::process::Command::new("kill").args(["-s", signal, &pid]).status();
        assert!(kill.unwrap().success());
        let output = common::end_or_kill(child);
        assert_eq!(output.status.code(), Some(code), "{signal}");
        assert!(reader.join().unwrap().unwrap().contains("interrupted"));
        let found: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(found["ended_by"], "interrupted");
        assert!(number(&found["lowest"]["energy"]) < -900.0);
    }
}

#[test]
fn mistakes_are_named() {
    refused("minimize spin-glass --walkers 0", &["--walkers = 0", "from 1 to"]);
    refused("minimize spin-glass --restarts 0", &["--restarts = 0", "at least 1"]);
    refused("minimize spin-glass --time-limit soon", &["--time-limit = soon", "30m"]);
    refused("minimize spin-glass --beta -1", &["--beta = -1", "above 0"]);
    refused("minimize spin-glass --method network", &["--method = network", "model"]);
    refused("minimize spin-glass --method magic", &["--method = magic", "tempering"]);
    refused("minimize spin-glass --size 60 --method exact", &["exact", "too many"]);
    refused("minimize spin-glass --device cuda", &["--device = cuda", "leave it out"]);
    refused("minimize maxcut", &["target.path", "rudy", "after the word maxcut"]);
    refused("minimize ising --beta 0.1:0.2:3", &["--beta", "one value"]);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("graph.txt");
    std::fs::write(&path, "3 2\n1 2 1\n1 4 1\n").unwrap();
    let path = path.to_str().unwrap();
    fails(&["minimize", "maxcut", path], 2, &["graph.txt:3:3", "vertex 4 is not from 1 to 3"]);
    fails(&["exact", "file", path], 2, &["graph.txt:3:3", "rudy (G-set)", "vertex 4"]);
}

/// The page of a search has what was found, and whether that is proven.
#[test]
fn pages_show_what_was_found() {
    let folder = tempfile::tempdir().unwrap();
    let file = graph(folder.path());
    let output = run(&["minimize", "maxcut", &file, "--json"]);
    let found = json(&output);
    let result = folder.path().join("found.json");
    std::fs::write(&result, &output.stdout).unwrap();
    let page = folder.path().join("found.html");
    let words = ["report", result.to_str().unwrap(), "--out", page.to_str().unwrap()];
    assert!(run(&words).status.success());
    let page = std::fs::read_to_string(page).unwrap();
    assert!(page.contains("lowest energy, proven") && page.contains("weight of the cut"));
    let cut = format!("data-key=\"cut\" data-value=\"{:?}\"", number(&found["cut"]));
    assert!(page.contains(&cut), "{page}");
}
