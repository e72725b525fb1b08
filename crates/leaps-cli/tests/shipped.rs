//! Models that have a name: shipped with the program, or made of a run.

mod common;

use std::path::Path;

use common::{fails, json, leaps, near_exact, number, stdout, train};
use serde_json::Value;

/// The smallest model that is shipped.
const SMALL: &str = "ising-8-critical";

/// Run somewhere where nothing is.
fn away(directory: &Path, arguments: &[&str]) -> std::process::Output {
    leaps(arguments).current_dir(directory).env_remove("LEAPS_MODELS").output().unwrap()
}

#[test]
fn shipped_models_are_found_by_name_from_anywhere_and_are_what_their_cards_say() {
    let scratch = tempfile::tempdir().unwrap();
    let list = json(&away(scratch.path(), &["models", "--json"]));
    let listed = |list: &Value| -> Value {
        let models = list["models"].as_array().unwrap();
        models.iter().find(|model| model["name"] == SMALL).unwrap().clone()
    };
    let model = listed(&list);
    assert_eq!(model["place"], "shipped");
    let card = &model["card"];
    let table = stdout(&away(scratch.path(), &["models"]));
    assert!(table.contains(SMALL) && table.contains("Ising 8x8"), "{table}");

    let line = ["sample", "--model", SMALL, "--walkers", "1000", "--seed", "77", "--json", "-q"];
    let fresh = json(&away(scratch.path(), &line));
    near_exact("log_z", &fresh["log_z"]);
    assert_eq!(fresh["intervals"], card["sampling"]["intervals"]);
    // With these errors a card of another network, 5 % worse, would be seen.
    let ess = serde_json::json!({ "mean": fresh["ess"], "error": fresh["ess_error"] });
    for (name, now) in [
        ("ess", &ess),
        ("log_z", &fresh["log_z"]),
        ("energy_per_site", &fresh["observables"]["energy_per_site"]),
    ] {
        let stated = &card["sampling"][name];
        let error = number(&stated["error"]).hypot(number(&now["error"]));
        let z = (number(&stated["mean"]) - number(&now["mean"])) / error;
        assert!(z.abs() < 5.0, "{name}: {stated} on the card, {now} now, {z} sigmas");
    }
}

#[test]
fn every_verb_that_takes_a_model_takes_a_name() {
    let scratch = tempfile::tempdir().unwrap();
    let path = scratch.path();
    stdout(&away(path, &["report", SMALL, "-q"]));
    let page = std::fs::read_to_string(path.join(format!("{SMALL}.html"))).unwrap();
    assert!(page.contains(SMALL) && page.contains("log"), "no page about the model");
    let spec = "[target]\nkind = 'ising'\nsize = 8\nbeta = 0.4407\n[[compare]]\nmodel = 'ising-8-critical'\nwalkers = 50\n";
    std::fs::write(path.join("compare.toml"), spec).unwrap();
    assert!(stdout(&away(path, &["compare", "compare.toml"])).contains("events 100"));
    let line = "train ising --size 8 --from ising-8-critical --out run --steps 2 --batch 16 --pool 64 -q \
         --set sample.walkers=20 --set sample.intervals=5";
    stdout(&away(path, &line.split_whitespace().collect::<Vec<_>>()));
    let manifest = std::fs::read_to_string(path.join("run/latest")).unwrap();
    let manifest = path.join("run").join(manifest.split(' ').next().unwrap()).join("manifest.json");
    assert!(std::fs::read_to_string(manifest).unwrap().contains(SMALL));
    let output = away(path, &["rates", "--model", SMALL, "--input", "none", "--output", "x"]);
    assert!(String::from_utf8_lossy(&output.stderr).contains("none"), "{output:?}");
}

#[test]
fn unknown_names_are_answered_with_the_known_ones() {
    for line in [
        &["sample", "--model", "ising-9-critical"][..],
        &["rates", "--model", "ising-9-critical", "--input", "x", "--output", "y"],
        &["train", "ising", "--from", "ising-9-critical", "--out", "run"],
        &["models", "--add", "ising-9-critical", "--name", "x"],
    ] {
        fails(line, 2, &["= ising-9-critical", "LEAPS_MODELS", SMALL]);
    }
}

#[test]
fn a_run_becomes_a_model_with_a_card() {
    let scratch = tempfile::tempdir().unwrap();
    let (run, own) = (scratch.path().join("run"), scratch.path().join("own"));
    stdout(&train(&run, "--steps 60"));
    let (run, into) = (run.to_str().unwrap(), own.to_str().unwrap());
    let line = ["models", "--add", run, "--name", "tiny", "--into", into, "--walkers", "400"];
    let card = json(&away(scratch.path(), &[&line[..], &["--json", "-q"]].concat()));
    assert_eq!(card["sampling"]["walkers"], 400);
    assert_eq!(card["training"]["steps"], 60);
    assert!(card["training"]["machine"].as_str().unwrap().contains("threads of"), "{card}");
    assert!(!card["training"]["command"].as_str().unwrap().contains('/'), "{card}");
    near_exact("log_z", &card["sampling"]["log_z"]);
    assert!(number(&card["speed"]["seconds"]) > 0.0);
    let bytes = std::fs::read(own.join("tiny/model.safetensors")).unwrap();
    let file = safetensors::SafeTensors::deserialize(&bytes).unwrap();
    assert!(file.names().iter().all(|name| !name.starts_with("raw.")), "{:?}", file.names());
    let all: Vec<_> = common::files(&own).into_keys().collect();
    assert_eq!(all.len(), 4, "{all:?}");
    let page = std::fs::read_to_string(own.join("tiny/README.md")).unwrap();
    assert!(page.starts_with("# tiny\n") && page.contains("60 steps, seed 1"), "{page}");

    // It is found in LEAPS_MODELS, before what is shipped and after what is here.
    let sampled = |name: &str| {
        let line = ["sample", "--model", name, "--walkers", "20", "--intervals", "2", "--json"];
        json(&leaps(&line).current_dir(scratch.path()).env("LEAPS_MODELS", &own).output().unwrap())
    };
    assert_eq!(sampled("tiny")["target"]["size"], 3);
    assert_eq!(sampled(SMALL)["target"]["size"], 8);
    std::fs::rename(own.join("tiny"), own.join(SMALL)).unwrap();
    assert_eq!(sampled(SMALL)["target"]["size"], 3);
    let list = leaps(&["models", "--json"]).env("LEAPS_MODELS", &own).output().unwrap();
    let list = json(&list);
    let models = list["models"].as_array().unwrap();
    let places: Vec<_> =
        models.iter().filter(|m| m["name"] == SMALL).map(|m| &m["place"]).collect();
    assert_eq!(places, [&Value::from(own.join(SMALL).to_str().unwrap())]);
    std::fs::create_dir(scratch.path().join(SMALL)).unwrap();
    let here = away(scratch.path(), &["sample", "--model", SMALL]);
    assert_eq!(here.status.code(), Some(4), "an empty directory of that name comes first");

    fails(&[&line[..4], &[SMALL, "--into", into]].concat(), 2, &["must be new", "remove it"]);
    fails(&[&line[..4], &["../x", "--into", into]].concat(), 2, &["--name = ../x"]);
    fails(&line[..3], 2, &["--name"]);
    let half = scratch.path().join("half");
    let stopped = train(&half, "--steps 100000 --time-limit 1s");
    assert_eq!(stopped.status.code(), Some(75));
    let half = half.to_str().unwrap();
    fails(&["models", "--add", half, "--name", "x", "--into", into], 2, &["must be finished"]);
}
