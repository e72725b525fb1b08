//! Results of many runs in one table, and single results as files of the same form.

mod common;

use std::path::Path;

use common::{code, json, leaps, number, refused, stdout, train};
use serde_json::Value;

fn run_in(folder: &Path, line: &str) -> std::process::Output {
    let words: Vec<&str> = line.split_whitespace().collect();
    leaps(&words).current_dir(folder).output().unwrap()
}

/// Print a result into a file.
fn print(folder: &Path, name: &str, line: &str) -> Value {
    let text = stdout(&run_in(folder, &format!("{line} --json -q")));
    std::fs::write(folder.join(name), &text).unwrap();
    serde_json::from_str(&text).unwrap()
}

/// The records of a CSV file, quotes taken off.
fn records(text: &str) -> Vec<Vec<String>> {
    let mut all = vec![vec![String::new()]];
    let (mut quoted, mut chars) = (false, text.chars().peekable());
    while let Some(c) = chars.next() {
        let record = all.last_mut().unwrap();
        match c {
            '"' if quoted && chars.peek() == Some(&'"') => {
                record.last_mut().unwrap().push('"');
                chars.next();
            }
            '"' => quoted = !quoted,
            ',' if !quoted => record.push(String::new()),
            '\n' if !quoted => all.push(vec![String::new()]),
            c => record.last_mut().unwrap().push(c),
        }
    }
    all.pop();
    all
}

const HEAD: [&str; 11] = [
    "source", "target", "beta", "field", "seed", "sampler", "quantity", "value", "error", "exact",
    "sigmas",
];

/// The rows of a file by the names of its columns.
fn rows(folder: &Path, name: &str) -> Vec<std::collections::HashMap<&'static str, String>> {
    let mut all = records(&std::fs::read_to_string(folder.join(name)).unwrap());
    assert_eq!(all.remove(0), HEAD);
    assert!(all.iter().all(|row| row.len() == HEAD.len()), "{all:?}");
    all.into_iter().map(|row| HEAD.into_iter().zip(row).collect()).collect()
}

const ISING: &str = "ising --size 4 --beta 0.4 --field 0.1 --device cpu";

#[test]
fn every_kind_of_result_is_gathered() {
    let scratch = tempfile::tempdir().unwrap();
    let folder = scratch.path();
    let exact = print(folder, "exact.json", "exact ising --size 4 --beta 0.4 --field 0.1");
    let ais = print(
        folder,
        "ais.json",
        &format!("ais {ISING} --walkers 300 --intervals 30 --at-beta 0.2,0.4"),
    );
    let smc =
        print(folder, "smc.json", &format!("smc {ISING} --walkers 300 --intervals 30 --seed 7"));
    let chains = "--chains 4 --steps 300 --burn-in 50";
    let range = print(folder, "range.json", "exact ising --size 4 --beta 0.2:0.4:3");
    print(folder, "mcmc.json", &format!("mcmc {} {chains}", ISING.replace("0.4", "0.3,0.4")));
    let tempered = print(
        folder,
        "pt.json",
        &format!("mcmc {ISING} {chains} --kernel parallel-tempering --temperatures 4"),
    );
    print(folder, "grid.json", &format!("free-energy {ISING} {chains}"));
    std::fs::write(
        folder.join("all.toml"),
        "target = { kind = 'potts', size = 3, beta = 1.005 }\nsample = { walkers = 100, intervals = 10, steps = 100 }\n\
         [[compare]]\nsampler = 'ais'\nname = 'quick, \"rough\"'\n[[compare]]\nsampler = 'mcmc'\n",
    )
    .unwrap();
    print(folder, "compare.json", "compare all.toml --device cpu");
    stdout(&train(&folder.join("run"), "--steps 5"));

    let output = run_in(folder, "table . --csv all.csv --quantity all");
    let text = stdout(&output);
    assert!(String::from_utf8_lossy(&output.stderr).contains("wrote all.csv"));
    assert!(text.starts_with("target"), "{text}");
    let all = rows(folder, "all.csv");
    let find = |source: &str, sampler: &str, beta: f64, quantity: &str| {
        let mut found = all.iter().filter(|row| {
            row["source"].ends_with(source)
                && row["sampler"] == sampler
                && row["beta"].parse::<f64>().unwrap() == beta
                && row["quantity"] == quantity
        });
        let first = found.next().unwrap_or_else(|| panic!("no {source} {sampler} {quantity}"));
        assert!(found.next().is_none(), "{source} {sampler} {beta} {quantity} twice");
        first
    };
    let value = |row: &std::collections::HashMap<&str, String>, key: &str| -> f64 {
        row[key].parse().unwrap_or_else(|_| panic!("{key} of {row:?}"))
    };

    let row = find("exact.json", exact["method"].as_str().unwrap(), 0.4, "log_z");
    assert_eq!(value(row, "value"), number(&exact["log_z"]));
    assert_eq!((row["seed"].as_str(), row["error"].as_str()), ("", ""));
    assert_eq!(row["target"], "Ising 4x4 periodic");
    assert_eq!(row["field"], "0.1");

    let row = find("ais.json", "ais with heat-bath", 0.4, "log_z");
    for (column, key) in [("value", "mean"), ("error", "error"), ("exact", "exact")] {
        assert_eq!(value(row, column), number(&ais["log_z"][key]), "{column}");
    }
    let z = (value(row, "value") - value(row, "exact")) / value(row, "error");
    assert!((value(row, "sigmas") - z).abs() < 1e-12);
    let row = find("ais.json", "ais with heat-bath", 0.2, "energy_per_site");
    let own = &ais["at_beta"][0]["observables"]["energy_per_site"];
    assert_eq!(value(row, "value"), number(&own["mean"]));
    let row = find("smc.json", "smc with heat-bath", 0.4, "free_energy_per_site");
    assert_eq!(value(row, "value"), number(&smc["free_energy_per_site"]["mean"]));
    assert_eq!(row["seed"], "7");

    for beta in ["beta 0.3", "beta 0.4"] {
        let at = beta[5..].parse().unwrap();
        find("mcmc.json", beta, at, "energy_per_site");
    }
    let rung = &tempered["tempering"]["rungs"][1];
    let row = find("pt.json", "parallel-tempering, MBAR", number(&rung["beta"]), "log_z");
    assert_eq!(value(row, "value"), number(&rung["log_z"]["mean"]));
    find("pt.json", "parallel-tempering", 0.4, "log_z_by_integration");
    find("pt.json", "parallel-tempering", 0.4, "log_z_merit");
    assert_eq!(find("grid.json", "tempering", 0.4, "log_z")["field"], "0.1");
    let first = &range["points"][0];
    let row = find("range.json", first["method"].as_str().unwrap(), 0.2, "entropy_per_site");
    assert_eq!(value(row, "value"), number(&first["entropy_per_site"]));
    let potts = find("compare.json", "quick, \"rough\"", 1.005, "log_z");
    assert_eq!(potts["target"], "Potts q=3 3x3 periodic");
    assert!(all.iter().any(|row| row["source"].ends_with("results.json")), "the run is there");
}

#[test]
fn quantities_are_chosen_and_the_field_is_a_column_where_it_differs() {
    let scratch = tempfile::tempdir().unwrap();
    let folder = scratch.path();
    print(folder, "a.json", "exact ising --size 3 --beta 0.4");
    print(folder, "b.json", "exact ising --size 3 --beta 0.3");
    let text = stdout(&run_in(folder, "table a.json b.json"));
    let lines: Vec<Vec<&str>> = text.lines().map(|l| l.split_whitespace().collect()).collect();
    let head =
        ["target", "beta", "seed", "sampler", "quantity", "value", "exact", "sigmas", "source"];
    assert_eq!(lines[0], head);
    assert_eq!(lines.len(), 5, "log_z and energy of two results\n{text}");
    print(folder, "c.json", "exact ising --size 3 --beta 0.3 --field 0.2");
    let text = stdout(&run_in(folder, "table . --quantity abs_magnetization"));
    assert!(text.lines().next().unwrap().contains("field"), "{text}");
    let found = json(&run_in(folder, "table . --quantity binder --json"));
    let rows = found["rows"].as_array().unwrap();
    assert_eq!(rows.len(), 3);
    assert_eq!(rows[2]["quantity"], "binder");
    assert_eq!(rows[2]["field"], 0.2);
    assert_eq!(found["command"][1], "table");
    let output = run_in(folder, "table . --quantity volume");
    let (status, errors) = code(&output);
    assert_eq!(status, Some(2), "{errors}");
    assert!(errors.contains("--quantity = volume") && errors.contains("binder"), "{errors}");
}

#[test]
fn what_cannot_be_read_is_named_and_left_out() {
    let scratch = tempfile::tempdir().unwrap();
    let folder = scratch.path();
    print(folder, "good.json", "exact ising --size 3");
    std::fs::write(folder.join("foreign.json"), "{\"a\": 1}").unwrap();
    std::fs::write(folder.join("torn.json"), "{\"schema\": 2, \"versi").unwrap();
    let output = run_in(folder, "table . missing.json");
    let (errors, text) = (String::from_utf8_lossy(&output.stderr).into_owned(), stdout(&output));
    assert_eq!(text.lines().count(), 3, "{text}");
    for name in ["foreign.json", "torn.json", "missing.json"] {
        let warned = |line: &str| line.contains("warning: left out") && line.contains(name);
        assert!(errors.lines().any(warned), "{name} in {errors}");
    }
    for (line, wanted, word) in [
        ("table foreign.json", 2, "no result"),
        ("table torn.json", 2, "torn.json:1:"),
        ("table missing.json", 4, common::NOT_FOUND),
    ] {
        let (status, errors) = code(&run_in(folder, line));
        assert_eq!(status, Some(wanted), "{line}: {errors}");
        assert!(errors.contains(word), "{line}: {errors}");
    }
    std::fs::create_dir(folder.join("empty")).unwrap();
    let (status, errors) = code(&run_in(folder, "table empty"));
    assert_eq!(status, Some(2), "{errors}");
    assert!(errors.contains("a folder with results or runs"), "{errors}");
    refused("table", &["DIR|FILE"]);
}

#[test]
fn walkers_of_both_ways_are_rows_and_stand_in_comparisons() {
    let scratch = tempfile::tempdir().unwrap();
    let folder = scratch.path();
    let line = "ais ising --size 3 --beta 0.5 --field 0.2 --walkers 200 --intervals 10 --two-sided";
    let ais = print(folder, "ais.json", &format!("{line} --device cpu --csv ais.csv"));
    let both = &ais["two_sided"];
    assert_ne!(both["log_z"], ais["log_z"]);
    stdout(&run_in(folder, "table ais.json --quantity all --csv all.csv"));
    let names = ["log_z_merit_two_sided", "overlap", "seconds_two_sided"];
    let keys = ["log_z_merit", "overlap", "seconds"];
    for file in ["ais.csv", "all.csv"] {
        let all = rows(folder, file);
        let find = |quantity: &str| all.iter().find(|row| row["quantity"] == quantity).unwrap();
        let row = find("log_z_two_sided");
        for (column, key) in [("value", "mean"), ("error", "error"), ("exact", "exact")] {
            assert_eq!(row[column].parse::<f64>().unwrap(), number(&both["log_z"][key]), "{file}");
        }
        for (quantity, key) in names.iter().zip(keys) {
            let value: f64 = find(quantity)["value"].parse().unwrap();
            assert_eq!(value, number(&both[key]), "{quantity}");
        }
    }

    std::fs::write(
        folder.join("both.toml"),
        "target = { kind = 'ising', size = 3, beta = 0.5, field = 0.2 }\n\
         sample = { walkers = 200, intervals = 10 }\n\
         [[compare]]\nsampler = 'ais'\ntwo_sided = true\nname = 'both'\n",
    )
    .unwrap();
    let compared = print(folder, "both.json", "compare both.toml --device cpu --csv both.csv");
    let log_z = &compared["samplers"][0]["two_sided"]["log_z"];
    let all = rows(folder, "both.csv");
    let row = all.iter().find(|row| row["quantity"] == "log_z_two_sided").unwrap();
    assert_eq!(row["sampler"], "both");
    assert_eq!(row["value"].parse::<f64>().unwrap(), number(&log_z["mean"]));
    // Seconds differ from run to run, log Z does not.
    let text = stdout(&run_in(folder, "compare both.toml --device cpu -q"));
    let cells: Vec<&str> = text.lines().nth(1).unwrap().split_whitespace().collect();
    assert_eq!(cells[2], with_error(log_z), "{text}");
}

/// An estimate as tables show it.
fn with_error(estimate: &Value) -> String {
    leaps_report::text::with_error(number(&estimate["mean"]), number(&estimate["error"]))
}

#[test]
fn single_results_are_files_of_the_same_form() {
    let scratch = tempfile::tempdir().unwrap();
    let folder = scratch.path();
    std::fs::write(
        folder.join("small.toml"),
        "target = { kind = 'ising', size = 3 }\nsample = { walkers = 100, intervals = 10, steps = 100 }\n",
    )
    .unwrap();
    for (name, line) in [
        ("exact.csv", "exact ising --size 3 --beta 0.4"),
        ("range.csv", "exact ising --size 3 --beta 0.2:0.4:3 --field 0:0.1:2"),
        ("ais.csv", "ais ising --size 3 --walkers 100 --intervals 10 --device cpu"),
        ("smc.csv", "smc ising --size 3 --walkers 100 --intervals 10 --device cpu"),
        ("mcmc.csv", "mcmc ising --size 3 --chains 4 --steps 100"),
        ("mcmcs.csv", "mcmc ising --size 3 --beta 0.2:0.4:2 --chains 4 --steps 100"),
        ("two.csv", "ais ising --size 3 --walkers 100 --intervals 10 --device cpu --two-sided"),
        ("sample.csv", "sample --model ising-8-critical --walkers 4 --intervals 4 --device cpu"),
        ("compare.csv", "compare small.toml --device cpu"),
    ] {
        let output = run_in(folder, &format!("{line} --csv {name}"));
        stdout(&output);
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(errors.contains(&format!("wrote {name}")), "{errors}");
        let rows = rows(folder, name);
        assert!(rows.iter().any(|row| row["quantity"] == "energy_per_site"), "{name}");
        assert!(rows.iter().all(|row| row["source"].is_empty()), "{name}");
    }
    let betas: std::collections::BTreeSet<String> =
        rows(folder, "range.csv").iter().map(|row| row["beta"].clone()).collect();
    assert_eq!(betas.len(), 3);
    // A table may be written again; what is something else stays.
    stdout(&run_in(folder, "exact ising --size 3 --csv exact.csv"));
    std::fs::write(folder.join("edges.csv"), "0 1 1\n").unwrap();
    let (status, errors) = code(&run_in(folder, "exact file edges.csv --csv edges.csv"));
    assert_eq!(status, Some(2), "{errors}");
    assert!(errors.contains("must be a new name or a table of leaps"), "{errors}");
    assert_eq!(std::fs::read_to_string(folder.join("edges.csv")).unwrap(), "0 1 1\n");
    refused("exact ising --csv table.txt", &["--csv = table.txt", ".csv"]);
    refused("exact ising --csv /nowhere/table.csv", &["--csv", "folder that there is"]);
}

#[test]
fn tables_that_are_no_results_are_files_too() {
    let scratch = tempfile::tempdir().unwrap();
    let folder = scratch.path();
    let csv = folder.join("train.csv");
    stdout(&train(&folder.join("run"), &format!("--steps 5 --csv {}", csv.display())));
    assert!(rows(folder, "train.csv").iter().any(|row| row["quantity"] == "log_z"));
    for (name, line, head, word) in [
        ("models.csv", "models", "model,place,target,network", "ising-8-critical"),
        ("status.csv", "status run", "run,step,steps,loss,ess,log_z", "5"),
        ("check.csv", "check run", "key,value", "Ising 3x3 periodic, beta 0.4407, h 0.1"),
        ("list.csv", "reproduce --list", "experiment,title,paper", "Methods side by side"),
    ] {
        let shown = stdout(&run_in(folder, line));
        // Whoever asks for a file is shown the same as without, and may write it again.
        for _ in 0..2 {
            let output = run_in(folder, &format!("{line} --csv {name}"));
            assert_eq!(stdout(&output).lines().count(), shown.lines().count(), "{line}");
            let errors = String::from_utf8_lossy(&output.stderr);
            assert!(errors.contains(&format!("wrote {name}")), "{errors}");
        }
        let text = std::fs::read_to_string(folder.join(name)).unwrap();
        assert!(text.starts_with(head), "{text}");
        let all = records(&text);
        assert!(all.len() > 1 && all.iter().all(|line| line.len() == all[0].len()), "{all:?}");
        assert!(all.iter().flatten().any(|cell| cell.contains(word)), "{word} in {text}");
        std::fs::write(folder.join("other.csv"), "0 1 1\n").unwrap();
        let (status, errors) = code(&run_in(folder, &format!("{line} --csv other.csv")));
        assert_eq!(status, Some(2), "{errors}");
    }
}

#[test]
fn experiments_are_rows_of_all_their_runs() {
    let scratch = tempfile::tempdir().unwrap();
    let folder = scratch.path();
    std::fs::write(
        folder.join("two.toml"),
        "title = 't'\npaper = 'p'\nabout = 'a'\ncolumns = ['ess']\nsample = { walkers = 50, steps = 50 }\n\
         runs = [{ name = 'anneal', sampler = 'ais', over.intervals = [3, 5] }, { name = 'chain', sampler = 'mcmc' }]\n\
         figures = [{ name = 'rows', title = 'Rows', kind = 'rows', x = 'ess' }]\n\
         [[targets]]\nname = 'small'\ntarget = { kind = 'ising', size = 2, field = 0.1 }\n\
         [[targets]]\nname = 'large'\ntarget = { kind = 'ising', size = 3 }\n",
    )
    .unwrap();
    stdout(&run_in(folder, "reproduce two.toml --device cpu --csv two.csv"));
    let all = rows(folder, "two.csv");
    let energies = || all.iter().filter(|row| row["quantity"] == "energy_per_site");
    let names: Vec<(&str, &str, &str)> = energies()
        .map(|row| (row["sampler"].as_str(), row["target"].as_str(), row["field"].as_str()))
        .collect();
    let (small, large) = ("Ising 2x2 periodic", "Ising 3x3 periodic");
    assert_eq!(
        names,
        [
            ("small, anneal, intervals 3", small, "0.1"),
            ("small, anneal, intervals 5", small, "0.1"),
            ("small, chain", small, "0.1"),
            ("large, anneal, intervals 3", large, "0"),
            ("large, anneal, intervals 5", large, "0"),
            ("large, chain", large, "0"),
        ]
    );
    assert!(energies().all(|row| row["source"] == "two" && !row["exact"].is_empty()));
    // The page of what is there already has the same numbers.
    stdout(&run_in(folder, "reproduce two.toml --page --csv again.csv"));
    assert_eq!(rows(folder, "again.csv"), all);
}

#[test]
fn ranges_of_fields_are_gone_through_one_after_the_other() {
    let scratch = tempfile::tempdir().unwrap();
    let folder = scratch.path();
    let target = "ising --size 3 --beta 0.2:0.4:2 --field 0.1:0.3:2 --device cpu";
    for (name, verb) in [
        ("ais.csv", "ais --walkers 500 --intervals 20"),
        ("smc.csv", "smc --walkers 500 --intervals 20"),
        ("mcmc.csv", "mcmc --chains 16 --steps 400"),
        (
            "tempering.csv",
            "mcmc --kernel parallel-tempering --chains 16 --steps 400 --temperatures 3",
        ),
    ] {
        let (verb, flags) = verb.split_once(' ').unwrap();
        let shown = stdout(&run_in(folder, &format!("{verb} {target} {flags} --csv {name}")));
        assert!(shown.contains("field 0.1") && shown.contains("field 0.3"), "{shown}");
        let all = rows(folder, name);
        for place in [("0.2", "0.1"), ("0.4", "0.1"), ("0.2", "0.3"), ("0.4", "0.3")] {
            let own = |row: &&std::collections::HashMap<_, String>| {
                (row["beta"].as_str(), row["field"].as_str()) == place
                    && row["quantity"] == "energy_per_site"
            };
            let found: Vec<_> = all.iter().filter(own).collect();
            assert!(!found.is_empty(), "{name}: {place:?}");
            for row in found {
                // Fields of the wrong place would be many errors away.
                let z: f64 = row["sigmas"].parse().unwrap_or_else(|_| panic!("{row:?}"));
                assert!(z.abs() < 5.0, "{row:?}");
            }
        }
    }
    for (flag, more) in [("--out", "--out x.npz"), ("--require-ess", "--require-ess 0.1")] {
        refused(&format!("ais {target} {more}"), &[flag, "left out beside a range"]);
    }
    for (line, words) in [
        ("init ising --beta 0.1:0.4:3", ["--beta", "train.beta_range = [A, B]"]),
        ("train ising --field 0:1:2 --out x", ["--field", "--field-range A,B"]),
        ("minimize ising --beta 1:2:2", ["--beta", "the lowest energy has no temperature"]),
        ("mcmc rbm --field 0:1:2", ["field", "left out for rbm"]),
    ] {
        refused(line, &words);
    }
}
