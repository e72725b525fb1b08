//! Configurations from `init` through `check` and back, for every target.

mod common;

use common::{run, run_line, run_with_input, stdout};

const TARGETS: [&str; 9] = [
    "ising",
    "ising --size 5x7 --field -0.1 --boundary free --coupling -0.5 --beta 0.3",
    "ising --size 4 --dimensions 3",
    "potts",
    "potts --q 4 --size 6 --field 0.25",
    "spin-glass --couplings gaussian --disorder-seed 4",
    "spin-glass --geometry complete --size 20",
    "rbm --visible 5 --hidden 3 --weight-scale 0.2",
    "rbm --set network.kind=hollow-graph --set network.orders=1",
];

#[test]
fn init_and_check_agree_for_every_target() {
    for target in TARGETS {
        let printed = stdout(&run_line(&format!("init {target} --seed 5")));
        assert!(printed.contains("seed = 5") && printed.contains("walkers = 1000"), "{printed}");
        let again = stdout(&run_with_input(&["init", "--config", "-"], &printed));
        assert_eq!(again, printed, "{target}");
        let explained = stdout(&run_with_input(&["check", "-"], &printed));
        for word in ["hamiltonian", "E = ", "sites", "colours", "memory", "time"] {
            assert!(explained.contains(word), "{target}: no {word} in\n{explained}");
        }
    }
}

#[test]
fn a_file_target_takes_part() {
    let directory = tempfile::tempdir().unwrap();
    let edges = directory.path().join("ring.txt");
    std::fs::write(&edges, "0 1 1.0\n1 2 -0.5\n2 0 2\nfield 1 0.25\n").unwrap();
    let edges = edges.to_str().unwrap();
    let printed = stdout(&run(&["init", "file", edges, "--beta", "0.5"]));
    assert!(printed.contains("kind = \"file\"") && printed.contains("beta = 0.5"), "{printed}");
    let explained = stdout(&run_with_input(&["check", "-"], &printed));
    assert!(explained.contains("bonds, field"), "{explained}");
    let graph = ["--set", "network.kind=hollow-graph", "--set", "network.channels=8"];
    let printed = stdout(&run(&[&["init", "file", edges], &graph[..]].concat()));
    for line in ["kind = \"hollow-graph\"", "channels = 8", "orders = 2", "# head ="] {
        assert!(printed.contains(line), "no {line} in\n{printed}");
    }
    let explained = stdout(&run_with_input(&["check", "-"], &printed));
    assert!(explained.contains("hollow-graph, channels 8, orders 2, barker"), "{explained}");
}

/// Formats are called by their names where a file cannot be read.
#[test]
fn files_that_cannot_be_read_are_called_by_their_format() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("graph.txt");
    let name = file.to_str().unwrap();
    for (text, words) in [
        ("3 2\n1 2 1\n2 4 -1\n", &["graph.txt:3:3", "rudy (G-set)", "vertex 4"][..]),
        ("0 0 -1.0\n0 1 1.0\n", &["graph.txt:1:1", "COO", "coo-binary"]),
        ("# vartype=SPIN\n0 1\n", &["graph.txt:2:1", "COO", "'i j bias'"]),
        ("p qubo 0 1000000000000 0 0\n", &["graph.txt:1:10", "QUBO (qbsolv)", "1000000000000"]),
        ("0 1 2\n0 1 1 0.5\n", &["graph.txt:2:5", "site 1 for the second time"]),
        (
            "%%MatrixMarket matrix coordinate real symmetric\n2 2 1\n2 1 1\n",
            &["graph.txt:1:1", "Matrix Market"],
        ),
    ] {
        std::fs::write(&file, text).unwrap();
        common::fails(&["exact", "file", name], 2, words);
    }
    // A list of edges without couplings is no rudy file.
    std::fs::write(&file, "0 1\n1 2\n").unwrap();
    common::fails(&["exact", "file", name], 2, &["graph.txt:1:1", "expected 'i j J'"]);
    // Comments are free.
    std::fs::write(&file, "# the vartype is spin\n0 1 1.0\n").unwrap();
    stdout(&run(&["exact", "file", name]));
}

#[test]
fn fields_may_come_from_a_file() {
    let directory = tempfile::tempdir().unwrap();
    let fields = directory.path().join("fields.txt");
    std::fs::write(&fields, "# one per site\n0.1 0.2,\n-0.3, 0.4\n").unwrap();
    let name = fields.to_str().unwrap();
    stdout(&run(&["init", "ising", "--size", "2", "--field", name]));
    std::fs::write(&fields, "0.1 0.2\n -0.3 x\n").unwrap();
    let output = run(&["init", "ising", "--size", "2", "--field", name]);
    let errors = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "{errors}");
    assert!(errors.contains("fields.txt:2:7: 'x' is not a finite number"), "{errors}");
}

#[test]
fn syntax_errors_name_file_line_and_column() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("run.toml");
    for (text, place) in [
        ("[target]\nkind = ising\n", "run.toml:2:8: "),
        ("[target\n", "run.toml:1:"),
        (
            "[sample]\nwalkers = 99999999999999999999\n",
            "run.toml:2:11: the number 99999999999999999999 must be at most 9223372036854775807",
        ),
        ("[target]\nkind = 'ising'\nkind = 'potts'\n", "run.toml:3:1: "),
        (
            "[target]\nkind = 'ising'\nsise = 3\n",
            "run.toml:3: target.sise: unknown key; did you mean target.size?",
        ),
    ] {
        std::fs::write(&path, text).unwrap();
        let output = run(&["check", path.to_str().unwrap()]);
        let errors = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{errors}");
        assert_eq!(errors.lines().count(), 1, "{errors}");
        assert!(errors.contains(place), "no {place} in {errors}");
    }
}

#[test]
fn a_temperature_is_an_inverse_beta() {
    let printed = stdout(&run_line("init ising --size 4 --temperature 2.5"));
    assert!(printed.contains("beta = 0.4 ") && !printed.contains("temperature ="), "{printed}");
    let exact = |flags: &str| {
        let mut result = common::json(&run_line(&format!("exact ising --size 4 {flags} --json")));
        for key in ["command", "seconds"] {
            result[key] = serde_json::Value::Null;
        }
        result
    };
    assert_eq!(exact("--temperature 2.5"), exact("--beta 0.4"));
    // Over a file, which a flag overrides, and to a network; runs record beta, and where it is from.
    let changed = run_with_input(&["init", "--config", "-", "--temperature", "4"], &printed);
    assert!(stdout(&changed).contains("beta = 0.25 "));
    let scratch = tempfile::tempdir().unwrap();
    let out = scratch.path().join("run");
    stdout(&common::train(&out, "--steps 2 --temperature 4 --quiet"));
    let config = std::fs::read_to_string(out.join("config.toml")).unwrap();
    let line = config.lines().find(|line| line.starts_with("beta = ")).unwrap();
    assert!(line.contains("beta = 0.25 ") && line.contains("(from --temperature 4)"), "{line}");
    let sample = ["sample", "--model", out.to_str().unwrap(), "--walkers", "20", "--json"];
    let result = common::json(&run(&[&sample[..], &["--temperature", "5"]].concat()));
    assert_eq!(result["target"]["beta"], 0.2);
    // What is wrong is said of what was written.
    common::fails(
        &["train", out.to_str().unwrap(), "--temperature", "5", "--quiet"],
        2,
        &["beta of --temperature 5 = 0.2", "as in the run"],
    );
}

#[test]
fn seeds_are_read_as_counts_are() {
    let line = "init spin-glass --size 3 --seed 1e6 --disorder-seed 2e3";
    let printed = stdout(&run_line(line));
    for line in ["\nseed = 1000000 ", "disorder_seed = 2000 "] {
        assert!(printed.contains(line), "no {line} in\n{printed}");
    }
    common::refused("init ising --seed 1.5", &["--seed = 1.5", "whole number", "1e6"]);
    common::refused("init ising --seed 1e16", &["--seed = 1e16", "1e15"]);
}

#[test]
fn flags_override_the_file() {
    let printed = stdout(&run_line("init ising --size 4 --beta 0.2"));
    let arguments =
        ["init", "--config", "-", "--beta", "0.3", "--seed", "8", "--set", "sample.walkers=50"];
    let changed = stdout(&run_with_input(&arguments, &printed));
    for line in ["seed = 8", "size = 4", "beta = 0.3", "walkers = 50"] {
        assert!(changed.contains(line), "no {line} in\n{changed}");
    }
}

#[test]
fn entries_of_a_comparison_are_checked() {
    let ising = "target.kind = 'ising'\ntarget.size = 4\n";
    for (entry, words) in [
        ("sampler = 'magic'", &["compare entry 2", "magic", "mcmc"][..]),
        ("sampler = 'ais'\nwalkers = 1", &["compare entry 2", "walkers = 1", "from 2"]),
        ("sampler = 'ais'\nwalkrs = 5", &["compare entry 2", "walkrs", "walkers"]),
        ("sampler = 'sample'", &["compare entry 2", "model"]),
        ("sampler = 'sample'\nmodel = 'nowhere'", &["nowhere", "model directory"]),
    ] {
        let text = format!("{ising}[[compare]]\nsampler = 'smc'\n[[compare]]\n{entry}\n");
        let output = run_with_input(&["check", "-"], &text);
        let errors = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{entry}: {errors}");
        for word in words {
            assert!(errors.contains(word), "{entry}: no '{word}' in {errors}");
        }
    }
    let text = format!(
        "{ising}[[compare]]\nsampler = 'smc'\n[[compare]]\nsampler = 'ais'\nname = 'mine'\n"
    );
    let explained = stdout(&run_with_input(&["check", "-"], &text));
    assert!(explained.contains("smc 100; mine"), "{explained}");
}
