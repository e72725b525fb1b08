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
fn single_results_are_files_of_the_same_form() {
    let scratch = tempfile::tempdir().unwrap();
    let folder = scratch.path();
    for (name, line) in [
        ("exact.csv", "exact ising --size 3 --beta 0.4"),
        ("range.csv", "exact ising --size 3 --beta 0.2:0.4:3 --field 0:0.1:2"),
        ("ais.csv", "ais ising --size 3 --walkers 100 --intervals 10 --device cpu"),
        ("smc.csv", "smc ising --size 3 --walkers 100 --intervals 10 --device cpu"),
        ("mcmc.csv", "mcmc ising --size 3 --chains 4 --steps 100"),
        ("mcmcs.csv", "mcmc ising --size 3 --beta 0.2:0.4:2 --chains 4 --steps 100"),
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
