//! One network for ranges of beta and field: trained once, sampled anywhere within.

mod common;

use common::{TINY, fails, json, near_exact, number, run, run_line, stdout, train};

/// All states have the field's sign in common, so that a field of the wrong sign would show.
const RANGES: &str = "--beta 0.3 --beta-range 0.15,0.45 --field-range 0,0.6 --members 20";

#[test]
fn a_family_is_trained_once_and_sampled_anywhere_within() {
    let scratch = tempfile::tempdir().unwrap();
    let directory = scratch.path().join("a");
    stdout(&train(&directory, &format!("{RANGES} --steps 400 --device auto")));
    let run_name = directory.to_str().unwrap();
    // Its own target first, then members that were not trained on.
    for member in ["", "--beta 0.41 --field 0.5", "--set target.beta=0.2", "--field 0"] {
        let line =
            format!("sample --model {run_name} {member} --walkers 2000 --intervals 30 --json");
        let result = json(&run_line(&line));
        assert!(number(&result["ess"]) > 0.8, "{member}: {}", result["ess"]);
        near_exact("log_z", &result["log_z"]);
        near_exact("magnetization", &result["observables"]["magnetization"]);
    }
    let sampled = run_line(&format!("sample --model {run_name} --beta 0.2 --walkers 50"));
    let talk = String::from_utf8_lossy(&sampled.stderr).into_owned();
    assert!(talk.contains("for beta from 0.15 to 0.45, field from 0 to 0.6"), "{talk}");
    for (member, words) in [
        ("--beta 0.46", &["--beta = 0.46", "from 0.15 to 0.45"][..]),
        ("--set target.field=-0.1", &["--set target.field = -0.1", "from 0 to 0.6"]),
        ("--field 0,0,0,0,0,0,0,0,0", &["--field", "one number"]),
    ] {
        let line = format!("sample --model {run_name} {member}");
        fails(&line.split_whitespace().collect::<Vec<_>>(), 2, words);
    }
    let status = json(&run(&["status", run_name, "--json"]));
    assert_eq!(status["runs"][0]["family"]["beta"], serde_json::json!([0.15, 0.45]));
    assert!(stdout(&run(&["status", run_name])).contains("field from 0 to 0.6"));
    let checked = stdout(&run(&["check", directory.join("config.toml").to_str().unwrap()]));
    assert!(checked.contains("field from 0 to 0.6; 20 targets"), "{checked}");
    let page = scratch.path().join("a.html");
    stdout(&run(&["report", run_name, "--out", page.to_str().unwrap()]));
    let page = std::fs::read_to_string(page).unwrap();
    assert!(page.contains("one network for beta from 0.15 to 0.45"));
    // A plain run does not start from it, nor does it from a plain run.
    let out = scratch.path().join("b");
    let plain = format!("train {TINY} --steps 3 --from {run_name} --out {}", out.display());
    let words: Vec<&str> = plain.split_whitespace().collect();
    fails(&words, 2, &["--from = for beta from 0.15", "same kinds of ranges"]);
}

#[test]
fn bad_ranges_are_refused() {
    let scratch = tempfile::tempdir().unwrap();
    let out = scratch.path().join("a");
    let refused = |line: &str, words: &[&str]| {
        let line = format!("train {line} --out {}", out.display());
        fails(&line.split_whitespace().collect::<Vec<_>>(), 2, words);
        assert!(!out.join("checkpoints").exists(), "{line}");
    };
    let tiny = |more: &str| format!("{TINY} {more}");
    refused(&tiny("--beta-range 0.5,0.2"), &["--beta-range = [0.5, 0.2]", "smaller one first"]);
    refused(&tiny("--field-range nan,0.2"), &["--field-range = [NaN, 0.2]", "finite"]);
    refused(&tiny("--set train.beta_range=[0.1,inf]"), &["beta_range = [0.1, inf]", "finite"]);
    refused(&tiny("--beta-range 0.2"), &["--beta-range", "two numbers such as 0.2,0.44"]);
    refused(&tiny("--set train.beta_range=[1,2,3]"), &["--set train.beta_range = [1, 2, 3]"]);
    refused(&tiny("--beta-range 0.1,0.2"), &["target.beta = 0.4407", "from 0.1 to 0.2"]);
    refused(&tiny("--field-range 0.2,0.3"), &["--field = 0.1", "from 0.2 to 0.3"]);
    refused(&tiny("--members 9"), &["--members = 9", "train.beta_range or train.field_range"]);
    refused(&tiny("--beta-range 0.2,0.5 --members 1"), &["--members = 1", "from 2"]);
    refused(
        &tiny("--beta-range 0.2,0.5 --reference buffer"),
        &["--reference = buffer", "pool for a range"],
    );
    refused("rbm --beta 1 --field-range -1,1", &["--field-range = [-1, 1]", "left out for rbm"]);
    refused(
        "ising --size 5 --beta-range 0.2,0.5 --network lec --kernels 3,5",
        &["the network lec", "network.kind = hollow"],
    );
    refused(
        "ising --size 2 --field 0.1,0,0,0 --field-range -1,1 --network mlp",
        &["--field", "one number"],
    );
}
