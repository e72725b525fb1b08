//! Experiments on several instances of a disorder: one network for all of them, averages on the page, exact samples beside.

use super::common::{json, near_exact, number, run};

const GLASSES: &str = r#"
title = "Small glasses"
paper = "nothing of the kind."
about = "A test."
columns = ["ess", "log_z", "energy_per_site", "log_z_merit"]
[target]
kind = "spin-glass"
size = 3
boundary = "free"
beta = 0.8
[instances]
first = 40
count = 3
[sample]
walkers = 1000
intervals = 20
[[networks]]
name = "bonds"
train = { instances = 16, batch = 16, steps = 20, warmup = 5, validate_every = 10, validate_walkers = 32, validate_intervals = 5 }
network = { kind = "glass", channels = 4 }
[[runs]]
name = "exact samples"
sampler = "exact"
[[runs]]
name = "network"
sampler = "sample"
network = "bonds"
[[runs]]
name = "AIS"
sampler = "ais"
[[figures]]
name = "ess"
title = "Effective sample size"
kind = "rows"
x = "ess"
"#;

#[test]
fn instances_share_a_network_and_are_averaged() {
    let scratch = tempfile::tempdir().unwrap();
    let file = scratch.path().join("glasses.toml");
    std::fs::write(&file, GLASSES).unwrap();
    let out = scratch.path().join("page");
    let words = ["reproduce", file.to_str().unwrap(), "--out", out.to_str().unwrap(), "--json"];
    let numbers = json(&run(&words));
    assert_eq!(numbers["networks"].as_array().unwrap().len(), 1);
    assert_eq!(std::fs::read_dir(out.join("networks")).unwrap().count(), 1, "trained once");
    let all = numbers["runs"].as_array().unwrap();
    assert_eq!(all.len(), 9);
    let mut energies = Vec::new();
    for part in all {
        let result = &part["result"];
        near_exact("energy", &result["observables"]["energy_per_site"]);
        if part["run"] == "exact samples" {
            assert_eq!((number(&result["ess"]), number(&result["log_z"]["error"])), (1.0, 0.0));
            assert_eq!(result["scheme"], "exact");
            assert!(result["log_z_merit"].is_null(), "exact values are worth nothing a second");
            energies.push(number(&result["observables"]["energy_per_site"]["exact"]));
        } else {
            near_exact("log Z", &result["log_z"]);
        }
    }
    energies.dedup();
    assert_eq!(energies.len(), 3, "instances differ: {energies:?}");
    let page = std::fs::read_to_string(out.join("glasses.md")).unwrap();
    let ess = |run: &str| -> Vec<f64> {
        let own = all.iter().filter(|part| part["run"] == run);
        own.map(|part| number(&part["result"]["ess"])).collect()
    };
    let ais = ess("AIS");
    let mean = ais.iter().sum::<f64>() / 3.0;
    let squares: f64 = ais.iter().map(|one| (one - mean).powi(2)).sum();
    let row = page.lines().find(|line| line.starts_with("| AIS |")).expect("a row of averages");
    let cells: Vec<&str> = row.split('|').map(str::trim).collect();
    assert_eq!(cells[2], "3", "{row}");
    let shown = cells[3].split_once('(').expect("with an error");
    let digits = shown.0.split_once('.').expect("with a point").1.len() as i32;
    assert!((shown.0.parse::<f64>().unwrap() - mean).abs() <= 0.5001 * 0.1_f64.powi(digits));
    let error: f64 = shown.1.trim_end_matches(')').parse().unwrap();
    let wanted = (squares / 6.0).sqrt();
    assert!((error * 0.1_f64.powi(digits) / wanted - 1.0).abs() < 0.3, "{row}: {wanted}");
    for words in ["and 2 more instances", "| instance 41, network |", "Averages over instances"] {
        assert!(page.contains(words), "no '{words}' in\n{page}");
    }
}
