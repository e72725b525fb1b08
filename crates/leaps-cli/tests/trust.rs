//! Refusals and warnings where a number would otherwise be believed.

mod common;

use common::{fails, json, refused, run, run_line, stdout, train};

/// Flags of a moment's training on a graph.
const MOMENT: &str = "--steps 2 --batch 16 --pool 32 --validate-every 0 --quiet \
     --set sample.walkers=16 --set sample.intervals=2";

#[test]
fn a_model_is_tied_to_the_file_it_was_trained_on() {
    let scratch = tempfile::tempdir().unwrap();
    let (graph, model) = (scratch.path().join("graph.txt"), scratch.path().join("run"));
    let (graph, model) = (graph.to_str().unwrap(), model.to_str().unwrap());
    std::fs::write(graph, "0 1 1.0\n1 2 -0.5\n2 0 0.3\n").unwrap();
    let out = common::leaps(
        &format!("train file graph.txt {MOMENT} --out {model}")
            .split_whitespace()
            .collect::<Vec<_>>(),
    )
    .current_dir(scratch.path())
    .output()
    .unwrap();
    stdout(&out);
    // Whatever becomes of the file, the model has its own.
    let sample = ["sample", "--model", model, "--walkers", "16", "--intervals", "2", "--json"];
    let before = json(&run(&sample));
    std::fs::write(graph, "0 1 1.0\n1 2 -0.5\n2 0 3.0\n").unwrap();
    assert_eq!(json(&run(&sample))["log_z"], before["log_z"]);
    let again = format!("train file {graph} {MOMENT} --out {model}");
    let again: Vec<&str> = again.split_whitespace().collect();
    fails(&again, 2, &["PATH = graph.txt", "the file has changed"]);
}

#[test]
fn steps_of_fixed_length_are_said_to_be_biased() {
    let scratch = tempfile::tempdir().unwrap();
    let model = scratch.path().join("run");
    stdout(&train(&model, "--steps 3 --quiet"));
    let model = model.to_str().unwrap();
    for (scheme, warned) in [("euler", true), ("trapezoid", true), ("events", false)] {
        let line = format!(
            "sample --model {model} --scheme {scheme} --walkers 500 --intervals 5 --json --quiet"
        );
        let warnings = json(&run_line(&line))["warnings"].to_string();
        assert_eq!(warnings.contains("fixed-steps"), warned, "{scheme}: {warnings}");
    }
    let given = json(&run_line(&format!(
        "sample --model {model} --times 0,0.2,0.7,1 --walkers 500 --json --quiet"
    )));
    assert_eq!(given["intervals"], 3);
    common::near_exact("log_z", &given["log_z"]);
    for (times, words) in
        [("0,0.7,0.2,1", "rising"), ("0,0.5", "rising"), ("0,1 --intervals 4", "--times")]
    {
        refused(&format!("sample --model {model} --times {times}"), &[words]);
    }
    let sample = |flags: &str| format!("sample --model {model} --walkers 500 --quiet {flags}");
    let held = json(&run_line(&sample("--intervals 3 --substeps 5 --trace-points 1 --json")));
    assert_eq!((&held["intervals"], &held["substeps"]), (&3.into(), &5.into()));
    common::near_exact("log_z", &held["log_z"]);
    for (flags, words) in [
        ("--substeps 0", "1"),
        ("--substeps 2 --scheme euler", "events"),
        ("--substeps 2 --sweeps 1", "sweeps"),
        ("--substeps 2 --ess-threshold 0.5", "resampling"),
    ] {
        refused(&sample(flags), &[words]);
    }
    // A folder of runs is as good as its runs.
    let status = |place: &str| json(&run(&["status", place, "--json"]))["runs"][0]["step"].clone();
    assert_eq!(status(model), status(scratch.path().to_str().unwrap()));
    // Naming a model is asking for its sampler.
    let spec = scratch.path().join("compare.toml");
    let text = format!(
        "[target]\nkind = \"ising\"\nsize = 3\nfield = 0.1\n[[compare]]\nmodel = {model:?}\nwalkers = 20\nintervals = 2\n"
    );
    std::fs::write(&spec, text).unwrap();
    let compared = json(&run(&["compare", spec.to_str().unwrap(), "--json", "--quiet"]));
    assert_eq!(compared["samplers"][0]["scheme"], "events");
    refused(
        &format!("sample --model {model} --set network.hidden=3"),
        &["network.hidden", "belongs to training"],
    );
    let page = scratch.path().join("run/config.toml");
    fails(&["report", model, "--out", page.to_str().unwrap()], 2, &["must end in .html"]);
}

/// A network that learnt a strong field leads walkers into one of two modes where there is none.
#[test]
fn a_mode_that_nobody_reaches_is_warned_about() {
    let scratch = tempfile::tempdir().unwrap();
    let model = scratch.path().join("run");
    let model = model.to_str().unwrap();
    let line = "train ising --size 4 --beta 0.8 --field 2 --network hollow --steps 200 --batch 64 --pool 512 \
                --validate-every 0 --device cpu --quiet --set sample.walkers=16 --set sample.intervals=2 --out";
    stdout(&run(&[&line.split_whitespace().collect::<Vec<_>>()[..], &[model]].concat()));
    let sample = format!("sample --model {model} --walkers 2000 --intervals 30 --device cpu");
    let wrong = json(&run_line(&format!("{sample} --set target.field=0 --json")));
    let warnings = wrong["warnings"].to_string();
    assert!(warnings.contains("unequal-modes"), "{wrong}");
    let up = &wrong["mode_masses"][1];
    assert!(common::number(&up["mean"]) < 0.1 && up["exact"] == 0.5, "{up}");
    // With the field, the same masses are no reason to doubt.
    let right = json(&run_line(&format!("{sample} --json")));
    assert!(common::number(&right["mode_masses"][1]["mean"]) < 0.1, "{}", right["mode_masses"]);
    assert!(!right["warnings"].to_string().contains("unequal-modes"), "{}", right["warnings"]);
    let shown = run_line(&format!("{sample} --set target.field=0"));
    let table = stdout(&shown);
    assert!(table.contains("mass of m < 0") && table.contains("mass of m > 0"), "{table}");
    assert!(String::from_utf8_lossy(&shown.stderr).contains("warning: the target is symmetric"));
}

#[test]
fn sizes_beyond_reason_are_refused_in_one_line() {
    for (flags, words) in [
        ("--batch 100 --pool 16", "train.pool"),
        ("--pool 1000000000000", "--pool"),
        ("--network hollow --channels 1000000", "--channels"),
        ("--network hollow --head 100000000000", "--head"),
        ("--network lea --embedding 100000000000", "--embedding"),
        ("--network hollow-graph --orders 1000000", "--orders"),
        ("--network lea --heads 0", "--heads"),
    ] {
        refused(&format!("train ising --size 3 --steps 1 --out none {flags}"), &[words]);
    }
}

#[test]
fn sites_that_differ_get_a_network_that_can_tell() {
    for (target, network) in
        [("spin-glass --size 4", "mlp"), ("ising --size 4", "hollow"), ("rbm", "mlp")]
    {
        let text = stdout(&run_line(&format!("init {target}")));
        let line = format!("kind = \"{network}\"");
        assert!(text.contains(&line), "{target}: no {line} in\n{text}");
    }
}
