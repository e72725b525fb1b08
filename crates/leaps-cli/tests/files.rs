//! Instances in the formats of others: the same numbers through every one of them.

mod common;

use common::{fails, json, run, stdout};

fn log_z(arguments: &[&str]) -> f64 {
    let found = json(&run(&[&["exact", "file"], arguments, &["--beta", "0.6", "--json"]].concat()));
    found["log_z"].as_f64().unwrap()
}

#[test]
fn converting_keeps_log_z_and_the_optimum() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let first = path("a.txt");
    std::fs::write(&first, "0 1 1.5\n1 2 -0.5\n2 3 0.25\n3 0 1\nfield 2 0.75\nconstant -2\n")
        .unwrap();
    let wanted = log_z(&[&first]);
    // All states, by hand.
    let mut sum = 0.0;
    for code in 0..16u32 {
        let s: Vec<f64> = (0..4).map(|i| 2.0 * f64::from(code >> i & 1) - 1.0).collect();
        let pairs = -1.5 * s[0] * s[1] + 0.5 * s[1] * s[2] - 0.25 * s[2] * s[3] - s[3] * s[0];
        sum += (-0.6 * (pairs + 0.75 * s[2] - 2.0)).exp();
    }
    assert!((wanted - f64::ln(sum)).abs() < 1e-10, "{wanted}");
    let mut from = first;
    for (to, format) in [
        ("b.npz", "npz"),
        ("c.coo", "coo"),
        ("d.json", "bqm"),
        ("e.qubo", "qubo"),
        ("f.data", "mqlib-qubo"),
        ("g.data", "coo-binary"),
        ("h.data", "npz-qubo"),
        ("i.edges", "edges"),
    ] {
        let to = path(to);
        // An archive does not say whether it is a QUBO.
        let known = if from.ends_with("h.data") { &["--from", "npz-qubo"][..] } else { &[] };
        let line = [&["convert", &from, &to, "--to", format], known].concat();
        assert!(run(&line).status.success(), "{line:?}");
        let known = if format == "npz-qubo" { &["--format", "npz-qubo"][..] } else { &[] };
        let found = log_z(&[&[to.as_str()], known].concat());
        assert!((found - wanted).abs() < 1e-10, "{format}: {found} for {wanted}");
        from = to;
    }
    let found = json(&run(&["minimize", "file", &path("e.qubo"), "--json"]));
    let lowest = found["lowest"]["energy"].as_f64().unwrap();
    assert!((lowest + 5.5).abs() < 1e-12, "{lowest}");
    fails(&["convert", &from, &path("x.rud")], 2, &["fields", "maximum cut"]);
    fails(&["convert", &from, &path("x.unknown")], 2, &["--to", "mqlib-qubo"]);
}

#[test]
fn a_lattice_in_a_file_has_what_lattices_have() {
    let folder = tempfile::tempdir().unwrap();
    let graph = folder.path().join("torus.txt");
    let mut lines = String::from("64 128\n");
    for site in 0..64 {
        let (row, column) = (site / 8, site % 8);
        let (right, down) = (row * 8 + (column + 1) % 8, (row + 1) % 8 * 8 + column);
        lines += &format!("{} {} -2\n{} {} -2\n", site + 1, right + 1, site + 1, down + 1);
    }
    std::fs::write(&graph, lines).unwrap();
    let name = graph.to_str().unwrap();
    let found = json(&run(&["exact", "file", name, "--beta", "0.4407", "--json"]));
    assert_eq!(found["method"], "kaufman");
    // A cut of weight -2 w: 128 above the energy of spins.
    let log_z = found["log_z"].as_f64().unwrap();
    assert!((log_z - (60.1430415360 - 0.4407 * 128.0)).abs() < 1e-8, "{log_z}");
    let config = folder.path().join("run.toml");
    std::fs::write(&config, "target.kind = 'file'\ntarget.path = 'torus.txt'\n").unwrap();
    let explained = stdout(&run(&["check", config.to_str().unwrap()]));
    for words in
        ["rudy (G-set) (recognised)", "square 8x8 periodic", "J = 1 on every bond", "hollow, "]
    {
        assert!(explained.contains(words), "no {words} in\n{explained}");
    }
}
