//! Mistakes in files of experiments: each is named, before anything is trained.

use std::path::Path;

use super::SMALL;
use super::common::{fails, json, run_line, stdout};

#[test]
fn wrong_settings_are_refused_before_anything_is_trained() {
    let scratch = tempfile::tempdir().unwrap();
    let file = scratch.path().join("x.toml");
    let out = scratch.path().join("page");
    let change = |from: &str, to: &str| {
        assert!(SMALL.contains(from), "{from}");
        SMALL.replacen(from, to, 1)
    };
    let over = |list: &str| change("over.intervals = [5, 20]", &format!("over.{list}"));
    let figure = |name: &str| change("name = \"law\"", &format!("name = '{name}'"));
    let wrong: [(String, &[&str]); 17] = [
        (over("intervals = [5, 0]"), &["x.toml: run 'events': sample.intervals = 0"]),
        (over("intervals = [5, -1]"), &["x.toml: run 'events': sample.intervals = -1"]),
        (over("interval = [5]"), &["run 'events': sample.interval", "did you mean"]),
        (over("sampler = ['ais']"), &["run 'events'", "unknown key"]),
        (over("intervals = []"), &["run 'events': over.intervals"]),
        (over("intervals = [5, 5]"), &["run 'events, intervals 5'", "another file"]),
        (change("\"ais\"", "\"ais\"\nwalkers = 0"), &["run 'AIS': sample.walkers = 0"]),
        (change("\"ais\"", "\"aiss\""), &["run 'AIS': sampler = 'aiss'"]),
        (change("name = \"AIS\"", "name = \"Gibbs\""), &["run 'Gibbs': name"]),
        (change("name = \"AIS\"", "name = \"gibbs!\""), &["run 'gibbs!'", "run 'Gibbs'"]),
        (change("name = \"Gibbs\"", "name = \"../\""), &["run '../': name"]),
        (change("lr = 0.01", "lr = -1.0"), &["train.lr"]),
        (figure(""), &["figure ''"]),
        (figure("a/b"), &["figure 'a/b'"]),
        (figure("a\\b"), &["figure 'a\\b'"]),
        (figure(".."), &["figure '..'"]),
        (figure("sweep"), &["figure 'sweep'", "differ"]),
    ];
    for (text, words) in wrong {
        // Runs are renamed in [quick] too, which would add others.
        let text = text.split("[[quick.runs]]").next().unwrap();
        // In the figure with a list of runs, one that was renamed is not found: its list is emptied.
        let text = text.replace("runs = [\"events\", \"AIS\"]", "");
        std::fs::write(&file, text).unwrap();
        let (file, out) = (file.to_str().unwrap(), out.to_str().unwrap());
        fails(&["reproduce", file, "--quick", "--out", out], 2, words);
        assert!(!Path::new(out).exists(), "nothing is begun: {words:?}");
    }
}

#[test]
fn experiments_are_listed_and_mistakes_are_named() {
    let list = stdout(&run_line("reproduce --list"));
    for name in [
        "ablation",
        "ising-critical",
        "ais-ising",
        "ais-potts",
        "discs-ising",
        "discs-potts",
        "bias",
        "temperatures",
        "records",
        "records-16",
        "methods",
        "free-energy",
        "free-energy-cpu",
        "glass",
        "glasses",
        "frustrated",
        "three-dimensions",
        "potts",
    ] {
        assert!(list.lines().any(|line| line.starts_with(name)), "{name} in\n{list}");
    }
    let all = json(&run_line("reproduce --list --json"));
    assert_eq!(all["experiments"].as_array().unwrap().len(), 18);
    fails(&["reproduce"], 2, &["no NAME", "--list"]);
    // A page of nothing is none, and no folder is made for it.
    let scratch = tempfile::tempdir().unwrap();
    let out = scratch.path().join("page");
    let page = ["reproduce", "bias", "--page", "-q", "--out", out.to_str().unwrap()];
    fails(&page, 2, &["bias.toml", "nothing of it was run"]);
    assert!(!out.exists());
    fails(&["reproduce", "biass"], 2, &["NAME = biass", "bias", ".toml"]);
    fails(&["reproduce", "bias", "--seed", "3"], 2, &["--seed", "left out"]);
    fails(&["reproduce", "/nowhere/x.toml"], 4, &["/nowhere/x.toml"]);
    let scratch = tempfile::tempdir().unwrap();
    let file = scratch.path().join("x.toml");
    let name = file.to_str().unwrap();
    let change = |from: &str, to: &str| SMALL.replacen(from, to, 1);
    let wrong: [(String, &[&str]); 14] = [
        (change("title =", "titel ="), &["x.toml", "titel"]),
        (change("title =", "seed = 'one'\ntitle ="), &["x.toml: seed: ", "string \"one\""]),
        (change("columns = [", "columns = [3, "), &["x.toml: columns: ", "3"]),
        (change("keep = true", "keep = 3"), &["x.toml: run 'events': keep: ", "boolean"]),
        (change("train = {", "trains = {"), &["x.toml: network 'perceptron': ", "trains"]),
        (change("log_x = true", "log_x = 'no'"), &["x.toml: figure 'sweep': log_x: ", "boolean"]),
        (change("[sample]", "[sample]\nwalks = 3"), &["x.toml", "sample.walks"]),
        (
            change("[[runs]]", "[[networks]]\nname = \"perceptron\"\n[[runs]]"),
            &["x.toml: network 'perceptron': name", "differ"],
        ),
        (change("network = \"perceptron\"", ""), &["events", "[[networks]]"]),
        (change("\"ess\", ", "\"es\", "), &["columns", "'es'", "measures are"]),
        (change("x = \"steps\"", "x = \"step\""), &["sweep", "'step'"]),
        (change("runs = [\"events\"", "runs = [\"event\""), &["sweep", "'event'"]),
        (change("[quick]", "[quicker]"), &["x.toml"]),
        (change("about = \"A test.\"", "about = "), &["x.toml:4:"]),
    ];
    for (text, words) in wrong {
        std::fs::write(&file, text).unwrap();
        fails(&["reproduce", name, "--quick"], 2, words);
    }
    assert!(!Path::new("results").exists(), "nothing is left behind");
}
