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

/// Ctrl-C and SIGTERM keep the points of finished fields: they are those of the whole.
#[cfg(unix)]
#[test]
fn signals_keep_the_points_that_there_are() {
    let line = "free-energy ising --size 4 --beta 0.3 --field 0:0.2:20000 --method ais --walkers 500 \
         --intervals 100 --device cpu --json --csv points.csv";
    for (signal, code) in [("-INT", 130), ("-TERM", 75)] {
        let scratch = tempfile::tempdir().unwrap();
        let words: Vec<&str> = line.split_whitespace().collect();
        let (mut child, mut errors, _) = common::begin(leaps(&words).current_dir(scratch.path()));
        // Thousands of points are more than a pipe holds.
        let mut printed = child.stdout.take().unwrap();
        let reader = std::thread::spawn(move || std::io::read_to_string(&mut printed).unwrap());
        std::thread::sleep(std::time::Duration::from_millis(1500));
        common::send(signal, &child);
        let mut talk = String::new();
        std::io::Read::read_to_string(&mut errors, &mut talk).unwrap();
        let output = common::end_or_kill(child);
        assert_eq!(output.status.code(), Some(code), "{talk}");
        let part: serde_json::Value = serde_json::from_str(&reader.join().unwrap()).unwrap();
        let points = part["points"].as_array().unwrap();
        assert!(part["interrupted"] == true && part["asked"] == 20_000, "{talk}");
        assert!((1..20_000).contains(&points.len()));
        let last = format!("leaps: interrupted with {} of 20000 points; ", points.len());
        assert!(talk.lines().last().unwrap().starts_with(&last), "{talk}");
        let table = std::fs::read_to_string(scratch.path().join("points.csv")).unwrap();
        assert_eq!(table.lines().count(), 1 + points.len());
        let first = line.replace("0:0.2:20000", "0");
        let whole = json(&run_in(scratch.path(), &first));
        assert_eq!(part["points"][0]["log_z"], whole["points"][0]["log_z"]);
        assert!(whole.get("interrupted").is_none() && whole.get("asked").is_none());
    }
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

    // The ground state of a field is met at these temperatures; its energy is that of the state beside it.
    assert!(messages.contains("lowest_energy_per_site -2.2"), "{messages}");
    for (point, lowest) in points.iter().zip([-2.0, -2.0, -2.0, -2.2, -2.2, -2.2]) {
        let own = number(&point["lowest"]["energy_per_site"]);
        assert!((own - lowest).abs() < 1e-12, "{point}");
    }
    assert_eq!(points[5]["lowest"]["state"], "0".repeat(16));
    assert_eq!(found["lowest"], points[5]["lowest"]);

    let table = cells(&std::fs::read_to_string(scratch.path().join("grid.csv")).unwrap());
    assert_eq!(table[0][..6], ["beta", "field", "ess", "log_z", "log_z_error", "log_z_exact"]);
    assert_eq!(table.len(), 7);
    for (row, point) in table[1..].iter().zip(points) {
        assert_eq!(row.len(), table[0].len());
        assert_eq!(row[row.len() - 1], point["lowest"]["state"].as_str().unwrap());
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

/// What stands in place of a field has its own name and sign, in tables, files, figures and pages.
#[test]
fn strengths_have_their_names_everywhere() {
    let scratch = tempfile::tempdir().unwrap();
    let read = |name: &str| std::fs::read_to_string(scratch.path().join(name)).unwrap();
    for (target, range, key, symbol) in [
        ("lattice-gas --size 2x3", "--mu -1:0.5", "chemical_potential", "mu"),
        ("blume-capel --size 2x3", "--crystal-field -1:0.5", "crystal_field", "D"),
        ("ising --size 2x3", "--field -1:0.5", "field", "h"),
    ] {
        let own = key.replace('_', " ");
        let line = format!(
            "free-energy {target} --beta 0.4:0.8:2 --method ais --walkers 100 --device cpu -q {range}"
        );
        let files = "--csv grid.csv --figure curves.svg --json";
        let printed = stdout(&run_in(scratch.path(), &format!("{line}:2 {files}")));
        std::fs::write(scratch.path().join("grid.json"), &printed).unwrap();
        let csv = read("grid.csv");
        assert!(csv.starts_with(&format!("beta,{key},ess,")), "{csv}");
        assert!(csv.contains("\n0.4,-1,"), "{csv}");
        let svg = read("curves.svg");
        assert!(svg.contains(&format!(">{symbol} = -1<")), "no {symbol} = -1");
        stdout(&run_in(scratch.path(), &format!("{line}:7 --figure maps.svg")));
        assert!(read("maps.svg").contains(&format!(">{own} {symbol}<")), "no {own} {symbol}");
        stdout(&run_in(scratch.path(), "report grid.json"));
        let page = read("grid.html");
        assert!(page.contains(&format!("<th>beta</th><th>{symbol}</th>")), "{target}");
        assert!(page.contains(&format!(">{symbol} = -1<")), "{target}");
        let table = run_in(scratch.path(), "table grid.json --quantity log_z --csv table.csv");
        let table = stdout(&table);
        let head: Vec<&str> = table.lines().next().unwrap().split_whitespace().collect();
        assert_eq!(head[..3], ["target", "beta", key], "{table}");
        let rows = read("table.csv");
        let mut columns = vec!["source", "target", "beta", "field"];
        columns.extend((key != "field").then_some(key));
        assert!(rows.starts_with(&(columns.join(",") + ",seed,")), "{rows}");
        let wanted = if key == "field" { ",0.4,-1," } else { ",0.4,,-1," };
        assert!(rows.contains(wanted), "{rows}");
    }
    // Beside each other they are told apart.
    let gas = "exact lattice-gas --size 2x3 --beta 0.4 --mu -1:0.5:2 --json";
    std::fs::write(scratch.path().join("gas.json"), stdout(&run_in(scratch.path(), gas))).unwrap();
    let both = "table gas.json grid.json --quantity log_z";
    let both = stdout(&run_in(scratch.path(), both));
    assert!(both.contains("  mu -1  ") && both.contains("  h -1  "), "{both}");
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
        ("train ising --beta 0.2:0.4:3 --out x", &["--beta", "--beta-range A,B"]),
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

#[test]
fn a_network_for_a_range_goes_to_every_point() {
    let scratch = tempfile::tempdir().unwrap();
    let ranges = "--beta 0.3 --beta-range 0.15,0.45 --field-range 0,0.6 --members 20 --steps 200";
    stdout(&train(&scratch.path().join("run"), ranges));
    let grid = "--beta 0.2:0.4:3 --field 0.1:0.5:2 --walkers 800 --intervals 20 --device cpu";
    let found = json(&run_in(
        scratch.path(),
        &format!("free-energy --model run {grid} --json --csv grid.csv"),
    ));
    assert_eq!(found["method"], "network");
    let points = found["points"].as_array().unwrap();
    let places: Vec<(f64, f64)> =
        points.iter().map(|p| (number(&p["beta"]), number(&p["field"]))).collect();
    let betas = [0.2, 0.3, 0.4];
    assert_eq!(places, [0.1, 0.5].map(|h| betas.map(|beta| (beta, h))).concat());
    for point in points {
        for name in ["log_z", "free_energy_per_site", "entropy_per_site"] {
            near_exact(name, &point[name]);
        }
        near_exact("energy", &point["observables"]["energy_per_site"]);
        near_exact("|m|", &point["observables"]["abs_magnetization"]);
        assert!(number(&point["ess"]) > 0.5, "{point}");
    }
    // Walkers went to each point on their own, and not past all temperatures of a field at once: no two took the same time.
    let seconds = |point: &serde_json::Value| {
        1.0 / (number(&point["log_z_merit"]) * number(&point["log_z"]["error"]).powi(2))
    };
    let mut all: Vec<f64> = points.iter().map(seconds).collect();
    all.sort_by(f64::total_cmp);
    assert!(all.windows(2).all(|pair| pair[1] > pair[0] * (1.0 + 1e-9)), "{all:?}");
    assert_eq!(
        std::fs::read_to_string(scratch.path().join("grid.csv")).unwrap().lines().count(),
        7
    );

    // Sampling goes member by member too.
    let sampled = json(&run_in(scratch.path(), &format!("sample --model run {grid} --json")));
    let members = sampled["samplers"].as_array().unwrap();
    assert_eq!(members.len(), 6);
    for (member, (beta, field)) in members.iter().zip(&places) {
        assert_eq!(member["name"], format!("beta {beta}, field {field}"));
        assert_eq!((number(&member["beta"]), number(&member["field"])), (*beta, *field));
        near_exact("log_z", &member["log_z"]);
        near_exact("magnetization", &member["observables"]["magnetization"]);
        assert!(member["at_beta"].is_null(), "{member}");
    }
    for line in ["free-energy --model run --beta 0.1:0.4:2", "sample --model run --field 0:0.7:2"] {
        let (status, errors) = common::code(&run_in(scratch.path(), line));
        assert_eq!(status, Some(2), "{line}: {errors}");
        assert!(errors.contains("from 0"), "{errors}");
    }
}
