//! Models of pair tables and clusters on the command line: every verb works on them or refuses in words.

mod common;

use common::{json, leaps, near_exact, number, refused, run_line, stdout};

const TABLES: &str = "[target]\nkind = 'lattice-model'\nsize = [2, 4]\nspins = [-1, 0, 1]\nfield = 0.1\nbeta = 0.8\n\
    [[target.interactions]]\noffsets = [[0, 0], [0, 1]]\ntable = [[0, 1, 2], [-1, 0, 0.5], [1, 0, -2]]\n\
    [[target.interactions]]\noffsets = [[0, 0], [0, 1], [1, 0]]\nstrength = -0.3\nterm = 'three'\n";

#[test]
fn walkers_and_chains_are_near_the_exact_values() {
    for target in [
        "blume-capel --size 3 --crystal-field 0.5 --field 0.1 --beta 0.8",
        "clock --q 5 --size 2x3 --boundary free --field -0.2 --beta 0.9",
        "baxter-wu --size 3 --field 0.1 --beta 0.4",
        "lattice-gas --size 3x4 --chemical-potential -1.5 --coupling 0.8 --beta 1.1",
        "ashkin-teller --size 2x3 --four-spin 0.4 --field 0.1 --beta 0.4",
    ] {
        let exact = number(&json(&run_line(&format!("exact {target} --json -q")))["log_z"]);
        for verb in ["ais", "smc"] {
            let result = json(&run_line(&format!("{verb} {target} --walkers 1000 --json -q")));
            near_exact("log_z", &result["log_z"]);
            assert!((number(&result["log_z"]["exact"]) - exact).abs() < 1e-9, "{target}");
            near_exact("energy", &result["observables"]["energy_per_site"]);
            near_exact("m", &result["observables"]["magnetization"]);
        }
        let line = format!("mcmc {target} --chains 8 --steps 1000 --json -q");
        near_exact("energy", &json(&run_line(&line))["observables"]["energy_per_site"]);
        let lowest = json(&run_line(&format!("minimize {target} --restarts 1 --json -q")));
        assert_eq!(lowest["proven"], true, "{target}: {lowest}");
    }
}

#[test]
fn tables_come_from_files_and_are_printed_as_they_were_understood() {
    let scratch = tempfile::tempdir().unwrap();
    let file = scratch.path().join("tables.toml");
    std::fs::write(&file, TABLES).unwrap();
    let name = file.to_str().unwrap();
    let printed = stdout(&leaps(&["check", name]).output().unwrap());
    for words in [
        "E = sum_i [[0.0, 1.0, 2.0], [-1.0, 0.0, 0.5], [1.0, 0.0, -2.0]][x_i, x_(i+(0,1))]",
        "+ 0.3 sum_i s_i s_(i+(0,1)) s_(i+(1,0)) + 0.1 sum_i s_i",
        "bonds, three, field",
    ] {
        assert!(printed.contains(words), "{printed}");
    }
    let result = json(&leaps(&["smc", "--config", name, "--json", "-q"]).output().unwrap());
    near_exact("log_z", &result["log_z"]);
    // A trained model keeps its tables, and is sampled by its directory alone.
    let run = scratch.path().join("run");
    let run = run.to_str().unwrap();
    let line = ["train", name, "--out", run, "--steps", "20", "--network", "mlp", "-q"];
    stdout(&leaps(&line).output().unwrap());
    let line = ["sample", "--model", run, "--walkers", "200", "--json", "-q"];
    let sampled = json(&leaps(&line).output().unwrap());
    assert_eq!(sampled["target"]["interactions"], result["target"]["interactions"]);
    stdout(&leaps(&["report", run]).output().unwrap());
}

#[test]
fn what_does_not_apply_is_refused_in_words() {
    refused("exact lattice-model --size 3", &["target.interactions", "a list of interactions"]);
    refused("exact lattice-model --interactions [{strength=1,colour=2}]", &["--interactions"]);
    let one = "[{offsets=[[0,0],[0,1]],table=[1,2]}]";
    refused(&format!("exact lattice-model --size 3 --interactions {one}"), &["4 energies"]);
    let far = "[{offsets=[[0,0],[0,3]],strength=1}]";
    refused(&format!("exact lattice-model --size 3 --interactions {far}"), &["different sites"]);
    refused("exact lattice-model --q 3 --interactions [{strength=1}]", &["target.spins"]);
    refused("ais baxter-wu --dimensions 3", &["--dimensions = 3", "2 for baxter-wu"]);
    refused("ais ising --crystal-field 1", &["--crystal-field", "blume-capel"]);
    refused("ais lattice-gas --field 1", &["--field", "left out for lattice-gas"]);
    refused("mcmc baxter-wu --size 6 --kernel wolff", &["wolff", "clusters of 3 sites"]);
    refused("mcmc clock --q 6 --kernel houdayer", &["houdayer"]);
    refused("exact clock --q 6 --size 9", &["enumeration"]);
    refused("ais baxter-wu --size 6 --device cuda", &["Potts pairs", "use the device cpu"]);
}

#[test]
fn grids_go_over_what_stands_in_the_place_of_fields() {
    for (target, flag, of) in [
        ("lattice-gas --size 3", "mu", "chemical_potential"),
        (
            "blume-capel --lattice triangular --size 2 --coupling -1",
            "crystal-field",
            "crystal_field",
        ),
    ] {
        let all =
            json(&run_line(&format!("exact {target} --beta 0.5,1 --{flag} -1:1:3 --json -q")));
        let points = all["points"].as_array().unwrap();
        assert_eq!((all["of"].as_str(), points.len()), (Some(of), 6), "{all}");
        for point in points {
            let (beta, value) = (number(&point["beta"]), number(&point["field"]));
            let one = format!("exact {target} --beta {beta} --{flag} {value} --json -q");
            let one = json(&run_line(&one));
            assert!((number(&one["log_z"]) - number(&point["log_z"])).abs() < 1e-12);
        }
        let line =
            format!("free-energy {target} --beta 0.5,1 --{flag} 0.5:1:2 --steps 400 --json -q");
        let found = json(&run_line(&line));
        assert_eq!(found["of"], of);
        found["points"].as_array().unwrap().iter().for_each(|p| near_exact("log_z", &p["log_z"]));
        let table = stdout(&run_line(&format!("exact {target} --{flag} -1:1:3")));
        assert!(table.contains(of), "{table}");
        let ais = format!("ais {target} --{flag} 0.5:1:2 --walkers 500 --json -q");
        let each = json(&run_line(&ais));
        for (sampler, value) in each["samplers"].as_array().unwrap().iter().zip(["0.5", "1"]) {
            assert_eq!(sampler["name"], format!("{} {value}", of.replace('_', " ")));
            near_exact("log_z", &sampler["log_z"]);
        }
        assert_eq!(each["samplers"].as_array().unwrap().len(), 2);
        let minimum = format!("minimize {target} --{flag} 0:1:2");
        refused(&minimum, &[&format!("--{}", of.replace('_', "-")), "one value"]);
    }
}
