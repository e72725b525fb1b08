//! Fields of the files of a run: what docs/runs.md names is what runs write, no more and no less.

mod common;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use common::{code, stdout, train};
use leaps::observe::Estimate;
use leaps::store::{Event, Stop, Validation};
use serde_json::Value;

type Names = BTreeSet<String>;

/// The rows of the table below a heading of docs/runs.md: names in their first column, and in their second.
fn documented(heading: &str) -> Vec<(Names, Names)> {
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/runs.md");
    let page = fs::read_to_string(page).unwrap();
    let section = page.split_once(&format!("\n### {heading}\n")).expect("a section").1;
    let section = section.split("\n##").next().unwrap();
    let names = |cell: &str| cell.split('`').skip(1).step_by(2).map(str::to_owned).collect();
    let rows = section.lines().filter(|line| line.starts_with("| `"));
    let rows: Vec<(Names, Names)> = rows
        .map(|row| {
            let cells: Vec<&str> = row.split('|').collect();
            (names(cells[1]), names(cells[2]))
        })
        .collect();
    assert!(rows.len() > 5, "{heading}");
    rows
}

fn lines(run: &Path, file: &str) -> Vec<Value> {
    let text = fs::read_to_string(run.join(file)).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn keys(value: &Value) -> Names {
    value.as_object().unwrap().keys().cloned().collect()
}

/// Every kind of event; one that is added must be added here.
fn all_events() -> Vec<Event> {
    let path = || "checkpoints/step-00000001".into();
    let log_z = Estimate { mean: 1.0, error: 0.1, exact: None };
    let error = || "the loss".to_owned();
    vec![
        Event::Started { step: 0, steps: 1 },
        Event::Resumed {
            step: 1,
            steps: 2,
            checkpoint: path(),
            passed_over: Vec::new(),
            command: Vec::new(),
            machine: leaps::store::Machine::default(),
        },
        Event::Validated(Validation { step: 1, ess: 0.5, log_z }),
        Event::Checkpointed { step: 1, checkpoint: path() },
        Event::RolledBack { step: 1, to: 0, rate_factor: 0.5, error: error(), dump: path() },
        Event::Failed { step: 1, error: error(), dump: path() },
        Event::Stopped { step: 1, reason: Stop::Finished },
    ]
}

#[test]
fn fields_of_metrics_and_events_are_documented() {
    let scratch = tempfile::tempdir().unwrap();
    let run = scratch.path().join("a");
    stdout(&train(&run, "--steps 40 --decay none"));
    let stopped = train(&run, "--steps 10000000 --decay none --time-limit 1s");
    assert_eq!(code(&stopped).0, Some(75), "{}", code(&stopped).1);
    let written: Names = lines(&run, "metrics.jsonl").iter().flat_map(keys).collect();
    let named: Names = documented("metrics.jsonl").into_iter().flat_map(|row| row.0).collect();
    assert_eq!(written, named);
    let table: BTreeMap<String, Names> = documented("events.jsonl")
        .into_iter()
        .map(|(event, fields)| (event.into_iter().next().unwrap(), fields))
        .collect();
    let fields = |event: &Value| {
        let mut own = keys(event);
        own.remove("event");
        own.remove("time");
        (event["event"].as_str().unwrap().to_owned(), own)
    };
    // All kinds, as the library writes them.
    let all: BTreeMap<String, Names> =
        all_events().iter().map(|event| fields(&serde_json::to_value(event).unwrap())).collect();
    assert_eq!(all, table);
    // And those of a run as they stand in its file.
    let mut met = Names::new();
    for event in lines(&run, "events.jsonl") {
        assert!(event["time"].as_f64().is_some(), "{event}");
        let (name, own) = fields(&event);
        assert_eq!(Some(&own), table.get(&name), "{event}");
        met.insert(name);
    }
    let usual = ["checkpointed", "resumed", "started", "stopped", "validated"];
    assert_eq!(met, usual.map(str::to_owned).into());
    let state = fs::read_to_string(run.join("snapshot.json")).unwrap();
    let state: Value = serde_json::from_str(&state).unwrap();
    assert_eq!(keys(&state), ["step", "shape", "q", "x"].map(str::to_owned).into());
}
