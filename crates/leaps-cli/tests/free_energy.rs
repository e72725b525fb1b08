//! Free energies over temperatures and fields: table, JSON, CSV, figures, pages, and what is refused.

mod common;

use std::path::Path;

use common::{json, leaps, near_exact, number, refused, run_line, stdout, train};

const GRID: &str = "free-energy ising --size 4 --beta 0.2:0.4:3 --field 0:0.2:2 --steps 400 \
     --burn-in 100 --chains 8 --device cpu";

/// Run in a folder.
fn run_in(folder: &Path, line: &str) -> std::process::Output {
    let words: Vec<&str> = line.split_whitespace().collect();
    leaps(&words).current_dir(folder).output().unwrap()
}

/// The cells of a table of numbers.
fn cells(text: &str) -> Vec<Vec<String>> {
    text.lines().map(|line| line.split(',').map(str::to_owned).collect()).collect()
}

#[test]
fn a_grid_has_a_table_and_a_file_of_all_digits() {
    let scratch = tempfile::tempdir().unwrap();
    let output = run_in(scratch.path(), &format!("{GRID} --csv grid.csv"));
    let (text, messages) = (stdout(&output), String::from_utf8_lossy(&output.stderr).into_owned());
    let head: Vec<&str> = text.lines().next().unwrap().split_whitespace().collect();
    assert_eq!(head[..6], ["beta", "field", "ess", "log_z", "exact", "sigmas"], "{text}");
    assert_eq!(text.lines().count(), 7, "{text}");
    assert!(messages.contains("wrote grid.csv"), "{messages}");
    assert!(messages.contains("log_z_merit"), "{messages}");

    let found = json(&run_in(scratch.path(), &format!("{GRID} --json")));
    assert_eq!(found["method"], "tempering");
    let points = found["points"].as_array().unwrap();
    let places: Vec<(f64, f64)> =
        points.iter().map(|p| (number(&p["beta"]), number(&p["field"]))).collect();
    let betas = [0.2, 0.30000000000000004, 0.4];
    let wanted: Vec<(f64, f64)> =
        [0.0, 0.2].iter().flat_map(|h| betas.map(|beta| (beta, *h))).collect();
    for ((beta, field), (own_beta, own_field)) in places.iter().zip(&wanted) {
        assert!((beta - own_beta).abs() < 1e-12 && field == own_field, "{places:?}");
    }
    for point in points {
        for name in ["log_z", "free_energy_per_site", "entropy_per_site"] {
            near_exact(name, &point[name]);
        }
        near_exact("energy", &point["observables"]["energy_per_site"]);
    }

    let table = cells(&std::fs::read_to_string(scratch.path().join("grid.csv")).unwrap());
    assert_eq!(table[0][..6], ["beta", "field", "ess", "log_z", "log_z_error", "log_z_exact"]);
    assert_eq!(table.len(), 7);
    for (row, point) in table[1..].iter().zip(points) {
        assert_eq!(row.len(), table[0].len());
        // The same seed gives the same digits, and the file has all of them.
        for (column, key) in [(3, "mean"), (4, "error"), (5, "exact")] {
            assert_eq!(row[column].parse::<f64>().unwrap(), number(&point["log_z"][key]));
        }
    }
}

#[test]
fn figures_are_svg_or_png() {
    let scratch = tempfile::tempdir().unwrap();
    let line = "free-energy ising --size 3 --beta 0.2:0.4:3 --method smc --walkers 300 \
         --intervals 30 --device cpu -q";
    for name in ["curves.svg", "curves.png"] {
        stdout(&run_in(scratch.path(), &format!("{line} --figure {name}")));
    }
    // Many fields are an axis of maps.
    let many = line.replace("--beta", "--field 0:0.5:6 --beta");
    stdout(&run_in(scratch.path(), &format!("{many} --figure maps.svg")));
    for name in ["curves.svg", "maps.svg"] {
        let svg = std::fs::read_to_string(scratch.path().join(name)).unwrap();
        assert!(svg.starts_with("<svg xmlns=") || svg.starts_with("<?xml"), "{name}");
        assert!(svg.contains("Free energy per site") && svg.contains("Susceptibility"), "{name}");
        assert!(!svg.contains("NaN"), "{name}");
    }
    let png = std::fs::read(scratch.path().join("curves.png")).unwrap();
    assert_eq!(png[..8], *b"\x89PNG\r\n\x1a\n");
}

#[test]
fn a_page_has_the_figure_the_table_and_the_origin() {
    let scratch = tempfile::tempdir().unwrap();
    let printed = stdout(&run_in(scratch.path(), &format!("{GRID} --json")));
    std::fs::write(scratch.path().join("grid.json"), &printed).unwrap();
    let output = run_in(scratch.path(), "report grid.json");
    stdout(&output);
    assert!(!String::from_utf8_lossy(&output.stderr).contains("No reference"));
    let page = std::fs::read_to_string(scratch.path().join("grid.html")).unwrap();
    for word in [
        "Over temperatures and fields",
        "Free energies",
        "free energies by tempering at 6 points",
        "Heat capacity per site",
        "data-key=\"points.5.log_z.mean\"",
        "data-key=\"points.0.log_z.exact\"",
        "leaps free-energy ising --size 4 --beta 0.2:0.4:3",
        "lowest energy per site",
        "<td>method</td><td>tempering</td>",
    ] {
        assert!(page.contains(word), "no {word} in the page");
    }
    assert!(!page.contains("NaN"));
}

#[test]
fn pages_of_ladders_have_their_rungs() {
    let scratch = tempfile::tempdir().unwrap();
    let line = "mcmc ising --size 4 --beta 0.4 --kernel parallel-tempering --temperatures 5 \
         --steps 400 --burn-in 100 --at-beta 0.25 --json";
    std::fs::write(scratch.path().join("pt.json"), stdout(&run_in(scratch.path(), line))).unwrap();
    stdout(&run_in(scratch.path(), "report pt.json"));
    let page = std::fs::read_to_string(scratch.path().join("pt.html")).unwrap();
    for word in [
        "Temperatures of the ladder",
        "data-key=\"tempering.rungs.4.log_z.mean\"",
        "data-key=\"tempering.swap_rates.3\"",
        "data-key=\"tempering.overlaps.1\"",
        "data-key=\"tempering.at_beta.0.log_z.mean\"",
        "by thermodynamic integration",
        "data-key=\"log_z_merit\"",
        "data-key=\"free_energy_per_site.mean\"",
        "data-key=\"free_energy_per_site.exact\"",
        "data-key=\"entropy_per_site.mean\"",
        "data-key=\"lowest.energy_per_site\"",
    ] {
        assert!(page.contains(word), "no {word} in the page");
    }
}

#[test]
fn what_cannot_be_meant_is_refused() {
    for (line, words) in [
        ("free-energy ising --beta 0:0.4:3", &["--beta", "other than 0"][..]),
        ("free-energy ising --temperature 0:2:3", &["--temperature", "other than 0"]),
        ("free-energy ising --method magic", &["--method = magic", "tempering"]),
        ("free-energy ising --method network", &["network", "model"]),
        ("train ising --beta 0.2:0.4:3 --out x", &["--beta", "leaps free-energy"]),
        ("smc ising --field 0:0.2:3", &["--field", "leaps free-energy"]),
        ("free-energy ising --figure x.gif", &["--figure = x.gif", ".svg, .png or .pdf"]),
        ("free-energy ising --csv x.txt", &["--csv = x.txt", ".csv"]),
        ("free-energy rbm --field 0:1:2", &["field", "rbm"]),
    ] {
        refused(line, words);
    }
}

#[test]
fn a_network_of_one_field_is_refused_for_others() {
    let scratch = tempfile::tempdir().unwrap();
    let run = scratch.path().join("run");
    stdout(&train(&run, "--steps 5"));
    let line = format!("free-energy --model {} --field 0:0.2:2", run.display());
    refused(&line, &["--field", "trained in one field"]);
    // Its own field is no range, and temperatures on its way are known to it.
    let line = format!(
        "free-energy --model {} --beta 0.2:0.4:2 --walkers 200 --intervals 20 --device cpu --json -q",
        run.display()
    );
    let found = json(&run_line(&line));
    assert_eq!(found["method"], "network");
    assert_eq!(found["points"].as_array().unwrap().len(), 2);
}
