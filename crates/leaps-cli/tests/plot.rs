//! Figures as files: every figure of every kind of source, in every format, and what is refused.

mod common;

use std::path::Path;

use common::{fails, run, run_line, stdout};
use serde_json::Value;

/// Run in a folder and return what was printed.
fn within(folder: &Path, line: &str) -> String {
    let words: Vec<&str> = line.split_whitespace().collect();
    stdout(&common::leaps(&words).current_dir(folder).output().unwrap())
}

fn result(folder: &Path, line: &str, name: &str) {
    std::fs::write(folder.join(name), stdout(&run_line(&format!("{line} --json -q")))).unwrap();
}

/// The names that `--list` prints.
fn names(folder: &Path, source: &str) -> Vec<String> {
    let text = within(folder, &format!("plot {source} --list"));
    text.lines().map(|line| line.split_whitespace().next().unwrap().to_owned()).collect()
}

const AIS: &str = "ais ising --size 4 --field 0.1 --walkers 200 --intervals 32";

#[test]
fn every_figure_is_written_in_every_format() {
    let scratch = tempfile::tempdir().unwrap();
    let here = scratch.path();
    result(here, AIS, "ais.json");
    let listed = names(here, "ais.json");
    for name in ["free-energy", "entropy", "heat-capacity", "abs-magnetization", "modes", "walker"]
    {
        assert!(listed.iter().any(|other| other == name), "{name}: {listed:?}");
    }
    let json: Value = serde_json::from_str(&within(here, "plot ais.json --list --json")).unwrap();
    assert_eq!(json.as_array().unwrap().len(), listed.len());
    for (format, magic) in [("svg", &b"<svg xmlns="[..]), ("png", b"\x89PNG"), ("pdf", b"%PDF-")] {
        within(here, &format!("plot ais.json --out all/{format} --format {format}"));
        for name in &listed {
            let file = here.join(format!("all/{format}/{name}.{format}"));
            let bytes = std::fs::read(&file).unwrap_or_else(|error| panic!("{name}: {error}"));
            assert!(bytes.starts_with(magic) && bytes.len() > 1000, "{name}.{format}");
        }
        within(here, &format!("plot ais.json modes --out one.{format}"));
        let [one, of_all] = [format!("one.{format}"), format!("all/{format}/modes.{format}")]
            .map(|name| std::fs::read(here.join(name)).unwrap());
        assert_eq!(one, of_all, "the same figure alone and among all");
    }
    within(here, "plot ais.json entropy");
    within(here, "plot ais.json entropy --format pdf");
    assert!(here.join("entropy.svg").exists() && here.join("entropy.pdf").exists());
}

/// The dots of a figure are the numbers of the results.
#[test]
fn figures_show_the_numbers_of_the_results() {
    let scratch = tempfile::tempdir().unwrap();
    let here = scratch.path();
    result(here, &format!("{AIS} --at-beta 0.1,0.2"), "ais.json");
    let results: Value =
        serde_json::from_slice(&std::fs::read(here.join("ais.json")).unwrap()).unwrap();
    for (figure, key) in
        [("abs-magnetization", "abs_magnetization"), ("heat-capacity", "heat_capacity_per_site")]
    {
        within(here, &format!("plot ais.json {figure} --out f.svg"));
        let svg = std::fs::read_to_string(here.join("f.svg")).unwrap();
        let points = results["path"].as_array().unwrap().iter().map(|p| (&p["lambda"][0], &p[key]));
        let stops = results["at_beta"].as_array().unwrap().iter();
        let stops = stops.map(|stop| (&stop["beta"], &stop["observables"][key]));
        for (beta, value) in points.chain(stops) {
            let title = format!("<title>{beta}: {}</title>", value["mean"]);
            assert!(svg.contains(&title), "{figure}: no {title}");
        }
        assert!(svg.contains(">exact<"), "{figure}: the exact curve is named");
    }
}

/// Estimates along the path agree with exact ones: |m| and S are measured with the weights of the walkers there.
#[test]
fn points_of_the_path_are_right() {
    let line = "ais ising --size 4 --field 0.3 --walkers 4000 --intervals 40 --json -q";
    let results: Value = serde_json::from_str(&stdout(&run_line(line))).unwrap();
    let points = results["path"].as_array().unwrap();
    assert_eq!(points.len(), 10);
    for point in points {
        let beta = point["lambda"][0].as_f64().unwrap();
        let exact = format!("exact ising --size 4 --field 0.3 --beta {beta} --json");
        let exact: Value = serde_json::from_str(&stdout(&run_line(&exact))).unwrap();
        for key in ["abs_magnetization", "entropy_per_site", "heat_capacity_per_site"] {
            let number = |part: &str| point[key][part].as_f64().unwrap();
            let z = (number("mean") - exact[key].as_f64().unwrap()) / number("error");
            assert!(z.abs() < 5.0, "{key} at beta {beta}: {z} sigmas off");
        }
    }
}

#[test]
fn other_sources_have_figures() {
    let scratch = tempfile::tempdir().unwrap();
    let here = scratch.path();
    result(
        here,
        "free-energy ising --size 4 --beta 0.1:0.5:5 --method ais --walkers 100",
        "f.json",
    );
    assert_eq!(names(here, "f.json").last().map(String::as_str), Some("all"));
    let tempering = "mcmc ising --size 4 --kernel parallel-tempering --temperatures 4 --steps 100";
    result(here, tempering, "m.json");
    let listed = names(here, "m.json");
    assert!(listed.contains(&"swaps".to_owned()) && listed.contains(&"entropy".to_owned()));
    // Raw numbers of experiments, of this version and of older ones.
    let old = serde_json::json!({"experiment": "e", "figures": [{"name": "c", "title": "C", "x": "beta", "y": "C/N",
        "series": [{"name": "events", "points": [[0.1, 1.0, 0.1], [0.2, 2.0, null]]}]}]});
    std::fs::write(here.join("e.json"), old.to_string()).unwrap();
    assert_eq!(names(here, "e.json"), ["c"]);
    within(here, "plot e.json c --out c.pdf");
    assert!(std::fs::read(here.join("c.pdf")).unwrap().starts_with(b"%PDF-"));
}

#[test]
fn what_cannot_be_drawn_is_refused() {
    let scratch = tempfile::tempdir().unwrap();
    let here = scratch.path();
    result(here, AIS, "ais.json");
    let file = here.join("ais.json").to_str().unwrap().to_owned();
    let out = |name: &str| here.join(name).to_str().unwrap().to_owned();
    for (words, hints) in [
        (
            &["entropi", "--out", "a.svg"][..],
            &["FIGURE = entropi", "such as entropy", "--list"][..],
        ),
        (&[], &["FIGURE", "--list", "--out DIR"]),
        (&["entropy", "--out", "a.gif"], &["--out = a.gif", ".svg, .png or .pdf"]),
        (&["entropy", "--out", "a.svg", "--format", "pdf"], &["--format = pdf", "a.svg"]),
        (&["--out", "a.svg"], &["--out = a.svg", "one FIGURE"]),
        (&["--format", "gif", "--out", "all"], &["--format = gif", "svg, png or pdf"]),
        (&["entropy", "--list"], &["--list", "FIGURE"]),
    ] {
        fails(&[&["plot", &file], words].concat(), 2, hints);
    }
    fails(&["plot", &out("none.json"), "--list"], 4, &["none.json", common::NOT_FOUND]);
    std::fs::write(here.join("odd.json"), "{\"a\": 1}").unwrap();
    fails(&["plot", &out("odd.json"), "--list"], 2, &["odd.json", "has no target"]);
    assert!(!run(&["plot", &file, "entropy", "--out", &out("no/a.svg")]).status.success());
}
