//! Every format against energies written down by hand, against enumeration, and back.

use std::path::Path;

use proptest::prelude::*;

use super::*;
use crate::device::NoProgress;
use crate::exact::{self, Method};
use crate::target::{Boundary, potential};

fn read(text: &str) -> Result<(Instance, Format)> {
    read_as(text, None)
}

fn read_as(text: &str, format: Option<Format>) -> Result<(Instance, Format)> {
    Instance::parse(text.as_bytes().to_vec(), Path::new("model.txt"), format)
}

fn states(sites: usize, q: u8) -> impl Iterator<Item = Vec<u8>> {
    let count = (q as u64).pow(sites as u32);
    (0..count).map(move |mut code| {
        let digit = |_| {
            let value = (code % u64::from(q)) as u8;
            code /= u64::from(q);
            value
        };
        (0..sites).map(digit).collect()
    })
}

/// log Z at inverse temperature 0.7 and the lowest energy, by a sum over all states.
fn brute(sites: usize, energy: impl Fn(&[u8]) -> f64) -> (f64, f64) {
    let all: Vec<f64> = states(sites, 2).map(|x| energy(&x)).collect();
    let lowest = all.iter().copied().fold(f64::INFINITY, f64::min);
    let sum: f64 = all.iter().map(|e| (-0.7 * (e - lowest)).exp()).sum();
    (sum.ln() - 0.7 * lowest, lowest)
}

/// A text, its format, and the energy that it means.
type Case = (&'static str, Format, fn(&[f64]) -> f64);

/// Spins of values.
fn spins(x: &[u8]) -> Vec<f64> {
    x.iter().map(|&value| 2.0 * f64::from(value) - 1.0).collect()
}

fn bits(x: &[u8]) -> Vec<f64> {
    x.iter().map(|&value| f64::from(value)).collect()
}

#[test]
fn every_text_means_what_its_format_says() {
    let of_spins: [Case; 5] = [
        (
            "# two, three\n0 1 1.5\n2 0 1 -0.75\n1 2 0 0.25\nfield 1 0.5\nconstant 3\n",
            Format::Edges,
            |s| -1.5 * s[0] * s[1] + 0.5 * s[0] * s[1] * s[2] + 0.5 * s[1] + 3.0,
        ),
        (
            "# ours\n0 1 1.5\n1 2 -0.5 # weak\n0 1 0.25\nfield 2 0.75\nconstant -2\n",
            Format::Edges,
            |s| -1.75 * s[0] * s[1] + 0.5 * s[1] * s[2] + 0.75 * s[2] - 2.0,
        ),
        // The cut of weight 3 - 2: its energy is minus what it cuts.
        ("3 2\n1 2 3\n2 3 -2\n", Format::Rudy, |s| {
            -1.5 * (1.0 - s[0] * s[1]) + (1.0 - s[1] * s[2])
        }),
        ("# made by hand, vartype=SPIN\n0 0 -1.0\n0 1 1.0\n1 2 -4.5\n", Format::Coo, |s| {
            -s[0] + s[0] * s[1] - 4.5 * s[1] * s[2]
        }),
        (
            r#"{"type": "BinaryQuadraticModel", "version": {"bqm_schema": "3.0.0"}, "use_bytes": false,
                "num_variables": 3, "num_interactions": 2, "variable_labels": ["a", ["b", 1], 7],
                "variable_type": "SPIN", "offset": 0.5, "linear_biases": [1, 0.0, -2.5],
                "quadratic_biases": [3.0, -1.25], "quadratic_head": [0, 2], "quadratic_tail": [1, 1]}"#,
            Format::Bqm,
            |s| 0.5 + s[0] - 2.5 * s[2] + 3.0 * s[0] * s[1] - 1.25 * s[1] * s[2],
        ),
    ];
    let of_bits: [Case; 4] = [
        ("# vartype: BINARY\n2 2 -1.5\n5 2 1.0\n5 9 -4.5\n", Format::Coo, |x| {
            -1.5 * x[0] + x[0] * x[1] - 4.5 * x[1] * x[2]
        }),
        (
            "c a comment\np qubo 0 3 2 2\n0 0 3.5\n2 2 -4\nc more\n0 1 -2\n1 2 5.25\n",
            Format::Qubo,
            |x| 3.5 * x[0] - 4.0 * x[2] - 2.0 * x[0] * x[1] + 5.25 * x[1] * x[2],
        ),
        // The example of MQLib's own guide: the best is 6, at (1, 0, 1).
        ("3 5\n1 1 5\n2 2 3\n3 3 1\n1 2 -6\n2 3 -1\n", Format::MqlibQubo, |x| {
            -(5.0 * x[0] + 3.0 * x[1] + x[2] - 12.0 * x[0] * x[1] - 2.0 * x[1] * x[2])
        }),
        (
            r#"{"type": "BinaryQuadraticModel", "version": {"bqm_schema": "3.0.0"}, "use_bytes": false,
                "num_variables": 3, "num_interactions": 1, "variable_labels": [0, 1, 2],
                "variable_type": "BINARY", "offset": -1, "linear_biases": [1.5, 0.0, -2],
                "quadratic_biases": [3.0], "quadratic_head": [2], "quadratic_tail": [0]}"#,
            Format::Bqm,
            |x| -1.0 + 1.5 * x[0] - 2.0 * x[2] + 3.0 * x[0] * x[2],
        ),
    ];
    let all = of_spins.map(|case| (case, Variables::Spins));
    for ((text, format, energy), variables) in
        all.into_iter().chain(of_bits.map(|case| (case, Variables::Bits)))
    {
        let (instance, found) = read(text).unwrap();
        assert_eq!((found, instance.variables, instance.sites), (format, variables, 3), "{text}");
        let of = |x: &[u8]| energy(&if variables == Variables::Spins { spins(x) } else { bits(x) });
        check(&instance, of, text);
    }
    let (mqlib, _) = read("3 5\n1 1 5\n2 2 3\n3 3 1\n1 2 -6\n2 3 -1\n").unwrap();
    assert_eq!(mqlib.energy(&[1, 0, 1]), -6.0);
    // The same lines are a cut if they are said to be one, and have no diagonal.
    let (cut, _) = read("3 2\n1 2 3\n2 3 -2\n").unwrap();
    assert_eq!(brute(3, |x| cut.energy(x)).1, -3.0);
    let qubo = read_as("3 2\n1 2 3\n2 3 -2\n", Some(Format::MqlibQubo)).unwrap().0;
    check(
        &qubo,
        |x| {
            let x = bits(x);
            -6.0 * x[0] * x[1] + 4.0 * x[1] * x[2]
        },
        "as a QUBO",
    );
}

/// The energies of an instance and of its model, log Z and the lowest energy are those of a formula.
fn check(instance: &Instance, energy: impl Fn(&[u8]) -> f64, what: &str) {
    let model = &*instance.target().unwrap();
    for x in states(instance.sites, 2) {
        let wanted = energy(&x);
        assert!((instance.energy(&x) - wanted).abs() < 1e-12, "{what}: {x:?}");
        let found = potential(model, &vec![1.0; model.terms()], &x);
        assert!((found - wanted).abs() < 1e-12, "{what}: {x:?}: {found} for {wanted}");
    }
    let (log_z, lowest) = brute(instance.sites, energy);
    let lambda = vec![0.7; model.terms()];
    for method in [Method::Enumeration, Method::TransferMatrix] {
        let solved = exact::solve(model, &lambda, Some(method), &NoProgress).unwrap();
        assert!((solved.log_z - log_z).abs() < 1e-10, "{what}: {method}");
    }
    let ground = exact::ground_state(model, exact::MAX_EFFORT, &NoProgress).unwrap();
    assert!((ground.energy - lowest).abs() < 1e-12, "{what}");
}

#[test]
fn potts_values_and_lattice_lines() {
    let text =
        "interaction potts\nq 3\nlattice 2x2 free\n0 1 1\n2 3 -0.5\nfield 1 0.3\nconstant 1\n";
    let (potts, _) = read(text).unwrap();
    let model = potts.model().unwrap();
    assert_eq!((model.q(), model.lattice().unwrap().shape()), (3, &[2, 2][..]));
    for x in states(4, 3) {
        let equal = |i: usize, j: usize| f64::from(x[i] == x[j]);
        let wanted = 1.0 - equal(0, 1) + 0.5 * equal(2, 3) + 0.3 * f64::from(x[1] == 0);
        assert!((potts.energy(&x) - wanted).abs() < 1e-12);
        assert!((potential(&model, &[1.0, 1.0], &x) - wanted).abs() < 1e-12);
    }
    assert_eq!(read(&potts.to_text(Format::Edges).unwrap()).unwrap().0.merged(), potts.merged());
    let error = potts.to_text(Format::Coo).unwrap_err().to_string();
    assert!(error.contains("3 values"), "{error}");
}

/// Values of clusters agree, or not; formats of pairs refuse them in words.
#[test]
fn clusters_of_values_and_formats_without_them() {
    let text =
        "interaction potts\nq 3\nlattice 2x3 free\n0 1 1\n3 1 5 -0.5\n0 1 2 3 0.75\nfield 1 0.3\n";
    let (potts, _) = read(text).unwrap();
    let model = potts.target().unwrap();
    assert_eq!(model.term_names(), ["bonds", "field"]);
    assert_eq!((model.q(), model.lattice().unwrap().shape()), (3, &[2, 3][..]));
    for x in states(6, 3) {
        let equal = |all: &[usize]| f64::from(all.iter().all(|&i| x[i] == x[all[0]]));
        let wanted = -equal(&[0, 1]) + 0.5 * equal(&[3, 1, 5]) - 0.75 * equal(&[0, 1, 2, 3])
            + 0.3 * f64::from(x[1] == 0);
        assert!((potts.energy(&x) - wanted).abs() < 1e-12);
        assert!((potential(&*model, &[1.0, 1.0], &x) - wanted).abs() < 1e-12);
    }
    let back = read(&potts.to_text(Format::Edges).unwrap()).unwrap().0;
    assert_eq!(back.merged_clusters(), potts.merged_clusters());
    let words = "2 terms of 3 to 4, E = sum w [x = x'] + sum w [x = x' = x''...] + sum h [x = 0]";
    assert!(potts.describe().contains(words), "{}", potts.describe());
    let (spins, _) = read("0 1 2 -1\n0 1 2\n").unwrap();
    for format in Format::ALL.into_iter().filter(|format| *format != Format::Edges) {
        let error = crate::store::write_instance(&spins, Path::new("never"), format).unwrap_err();
        let error = error.to_string();
        assert!(error.contains("a term of 3 variables; only edges"), "{format}: {error}");
    }
    assert!(spins.bits().is_err() && spins.model().is_err() && spins.spins().is_ok());
}

#[test]
fn errors_name_format_line_and_column() {
    let qubo = "p qubo 0 3 1 1\n";
    for (text, place, words) in [
        ("0 1 x", (1, 5), "edge list"),
        ("0 1 1\n  0 -3 1", (2, 5), "whole number"),
        ("0 0 1", (1, 1), "coo-binary"),
        ("0 1 nan", (1, 5), "not finite"),
        ("0 1 2 x", (1, 1), "expected 'i j J'"),
        ("0 1 0 3.5", (1, 5), "site 0 for the second time"),
        ("0 1 2 nan", (1, 7), "not finite"),
        ("0 1 3 3.5", (1, 1), "site 2 is named by no line"),
        ("0 1 1\n0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 1", (2, 1), "at most 20"),
        ("sites 2\n0 1 2 1", (1, 1), "name site 2"),
        ("0 1\n", (1, 1), "expected 'i j J'"),
        ("interaction clock", (1, 13), "'ising' or 'potts'"),
        ("99999999999 0 1", (1, 1), "not from 0"),
        ("", (1, 1), "no edge"),
        ("1 2 1.0\n2 3 1.0", (1, 1), "from 0"),
        ("sites 2\n0 1 1\n  sites 3", (3, 3), "second time"),
        ("q 3\n0 1 1", (1, 1), "use potts"),
        ("interaction potts\nq 300\n0 1 1", (1, 1), "255"),
        ("sites 1000000000000\n0 1 1", (1, 1), "more than a file"),
        ("sites 16777216\n0 1 1", (1, 1), "more than a file"),
        ("lattice 4096x4096 free\n0 1 1", (1, 1), "more than a file"),
        ("lattice 2x2 open\n0 1 1", (1, 13), "neither"),
        ("lattice 2x2 free\nsites 5\n0 1 1", (1, 1), "the lattice has 4"),
        ("3 1\n1 4 2", (2, 3), "rudy (G-set)"),
        ("1000000000000 1\n1 4 2", (1, 1), "rudy (G-set)"),
        ("3 2\n1 1 2\n1 4 2", (3, 3), "QUBO (MQLib)"),
        ("1000000000000 1\n1 1 2", (1, 1), "more than a file"),
        ("3 2\n1 1 2", (1, 1), "promises 2"),
        ("# vartype=SPIN\n0 1 1\n0 1", (3, 1), "COO (dimod)"),
        ("# vartype=REAL\n0 1 1", (1, 1), "neither SPIN nor BINARY"),
        ("# vartype=SPIN\n# vartype=BINARY\n0 1 1", (2, 1), "said before"),
        ("# vartype=SPIN\n", (1, 1), "no variable"),
        ("p qubo 0 1000000000000 0 0\n", (1, 10), "QUBO (qbsolv)"),
        ("p ising 0 3 1 1\n", (1, 3), "'qubo'"),
        (&format!("{qubo}0 0 1\n0 3 1\n"), (3, 3), "not from 0 to 2"),
        (&format!("{qubo}0 0 1\n"), (1, 1), "and 1 and 0 follow"),
        ("p qubo 0 3 1 2\n0 0 1\n0 1 1\n1 0 1\n", (4, 1), "line 3 already"),
        ("c\np qubo 0 3 1\n", (2, 1), "expected 'p qubo"),
        ("{\n\"type\": 3}", (2, 9), "BQM (dimod, JSON)"),
        ("%%MatrixMarket matrix\n2 2 1\n2 1 1\n", (1, 1), "Matrix Market"),
    ] {
        match read(text) {
            Err(Error::Parse { line, column, reason, .. }) => {
                assert_eq!((line, column), place, "{text}: {reason}");
                assert!(reason.contains(words), "{text}: {reason}");
            }
            other => panic!("{text}: {other:?}"),
        }
    }
    let coo = read_as("0 1 1\n", Some(Format::Coo)).unwrap_err().to_string();
    assert!(coo.contains("coo-spin"), "{coo}");
}

#[test]
fn models_in_json_are_refused_in_words() {
    let file = |use_bytes: bool, schema: &str, n: u64, tail: u64| {
        format!(
            r#"{{"type": "BinaryQuadraticModel", "version": {{"bqm_schema": "{schema}"}}, "use_bytes": {use_bytes},
            "num_variables": {n}, "num_interactions": 1, "variable_labels": [0, 1], "variable_type": "SPIN", "offset": 0,
            "linear_biases": [1, 1], "quadratic_biases": [1], "quadratic_head": [0], "quadratic_tail": [{tail}]}}"#
        )
    };
    assert!(read(&file(false, "3.0.0", 2, 1)).is_ok());
    for (text, words) in [
        (file(true, "3.0.0", 2, 1), "use_bytes=False"),
        (file(false, "2.0.0", 2, 1), "'2.0.0'"),
        (file(false, "3.0.0", 1_000_000_000_000, 1), "num_variables"),
        (file(false, "3.0.0", 2, 2), "different variables"),
        (file(false, "3.0.0", 2, 0), "different variables"),
        ("{}".to_owned(), "BinaryQuadraticModel"),
    ] {
        let error = read(&text).unwrap_err().to_string();
        assert!(error.contains(words) && error.contains("BQM"), "{error}");
    }
}

/// The pairs of a lattice, as every reader could have them.
fn torus(shape: &[usize], boundary: Boundary, w: f64) -> Instance {
    let lattice = Lattice::new(shape, boundary).unwrap();
    Instance {
        variables: Variables::Spins,
        sites: lattice.sites(),
        pairs: lattice.bonds().into_iter().rev().map(|(i, j)| (j, i, w)).collect(),
        clusters: Vec::new(),
        fields: Vec::new(),
        constant: 0.0,
        lattice: None,
    }
}

#[test]
fn plain_lattices_are_recognised_in_every_format() {
    for (shape, boundary) in [
        (&[8, 8][..], Boundary::Periodic),
        (&[6, 4], Boundary::Periodic),
        (&[3, 7], Boundary::Free),
        (&[4, 4, 4], Boundary::Periodic),
        (&[2, 5, 3], Boundary::Free),
        (&[2, 6], Boundary::Periodic),
    ] {
        let instance = torus(shape, boundary, -0.75);
        for format in
            Format::ALL.into_iter().filter(|f| !matches!(f, Format::Npz | Format::NpzQubo))
        {
            let (back, _) = read(&instance.to_text(format).unwrap()).unwrap();
            let model = back.model().unwrap();
            let lattice = model.lattice().unwrap_or_else(|| panic!("{shape:?} as {format}"));
            assert_eq!((lattice.shape(), lattice.boundary()), (shape, boundary), "{format}");
            assert!(model.is_uniform(), "{shape:?} as {format}");
            assert!(back.describe_lattice().unwrap().contains("J = 0.75 on every bond"));
        }
    }
    // Kaufman's formula, and the constant of a cut.
    let text = torus(&[8, 8], Boundary::Periodic, -1.0).to_text(Format::Rudy).unwrap();
    let (cut, _) = read(&text).unwrap();
    let model = cut.model().unwrap();
    let solved = exact::solve(&model, &[0.4], None, &NoProgress).unwrap();
    let plain = exact::kaufman::torus(8, 8, 0.4).unwrap();
    assert_eq!(solved.method, Method::Kaufman);
    assert!((solved.log_z - plain.log_z).abs() < 1e-9);
    // Without the comment that keeps the constant the lowest energy is that of no cut at all.
    let bare: String =
        text.lines().filter(|l| !l.starts_with('#')).map(|l| format!("{l}\n")).collect();
    let model = read(&bare).unwrap().0.model().unwrap();
    let solved = exact::solve(&model, &[0.4], None, &NoProgress).unwrap();
    assert!((solved.log_z - (plain.log_z - 0.4 * 128.0)).abs() < 1e-9);
    let by_band = exact::solve(&model, &[0.4], Some(Method::TransferMatrix), &NoProgress).unwrap();
    assert!((solved.log_z - by_band.log_z).abs() < 1e-9);
    assert!((solved.energy - by_band.energy).abs() < 1e-9);
}

#[test]
fn what_is_no_plain_lattice_is_not_taken_for_one() {
    let mut one_less = torus(&[4, 4], Boundary::Periodic, -1.0);
    one_less.pairs.pop();
    assert_eq!(one_less.recognised(), None);
    let mut one_more = torus(&[4, 4], Boundary::Periodic, -1.0);
    one_more.pairs.push((0, 5, -1.0));
    assert_eq!(one_more.recognised(), None);
    let mut moved = torus(&[4, 4], Boundary::Free, -1.0);
    moved.pairs[3] = (0, 9, -1.0);
    assert_eq!(moved.recognised(), None);
    // Couplings that differ have a place and are not uniform; nor are fields.
    let mut glass = torus(&[4, 4], Boundary::Periodic, -1.0);
    glass.pairs[3].2 = 1.0;
    let model = glass.model().unwrap();
    assert!(model.lattice().is_some() && !model.is_uniform() && model.uniform_torus().is_none());
    for x in [vec![0; 16], (0..16).map(|i| (i * i / 3 % 2) as u8).collect()] {
        assert!((model.energy(0, &x) - glass.energy(&x)).abs() < 1e-12);
    }
    let mut field = torus(&[4, 4], Boundary::Periodic, -1.0);
    field.fields = vec![0.1; 16];
    assert!(field.model().unwrap().is_uniform());
    field.fields[3] = 0.2;
    assert!(!field.model().unwrap().is_uniform());
}

/// A random instance of up to six variables.
fn instances() -> impl Strategy<Value = Instance> {
    let pair = (0u32..6, 0u32..6, -4.0..4.0f64);
    let pairs = proptest::collection::vec(pair, 0..12);
    let fields = proptest::collection::vec(-2.0..2.0f64, 6);
    (2usize..=6, pairs, fields, -3.0..3.0f64, 0..3u8).prop_map(
        |(n, pairs, fields, constant, kind)| {
            let m = n as u32;
            let pairs = pairs.into_iter().map(|(i, j, w)| (i % m, j % m, w)).filter(|p| p.0 != p.1);
            let variables = [Variables::Spins, Variables::Bits, Variables::Potts(2)][kind as usize];
            let (pairs, fields) = (pairs.collect(), fields[..n].to_vec());
            Instance {
                variables,
                sites: n,
                pairs,
                clusters: Vec::new(),
                fields,
                constant,
                lattice: None,
            }
        },
    )
}

proptest! {
    #[test]
    fn energies_survive_every_format(instance in instances()) {
        for format in Format::ALL.into_iter().filter(|f| !matches!(f, Format::Npz | Format::NpzQubo)) {
            let own = match format {
                Format::Rudy => Instance { fields: Vec::new(), ..instance.spins().unwrap() },
                _ => instance.clone(),
            };
            let text = own.to_text(format).unwrap();
            let (back, found) = read(&text).unwrap();
            let expected = if matches!(format, Format::CooSpin | Format::CooBinary) { Format::Coo } else { format };
            prop_assert_eq!(found, expected, "{}", text);
            prop_assert_eq!(back.sites, own.sites);
            let model = back.model().unwrap();
            for x in states(own.sites, 2) {
                let wanted = own.energy(&x);
                prop_assert!((back.energy(&x) - wanted).abs() < 1e-11, "{}", text);
                let found = potential(&model, &vec![1.0; model.terms()], &x);
                prop_assert!((found - wanted).abs() < 1e-11, "{}", text);
            }
        }
    }

    #[test]
    fn bytes_never_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        for format in Format::ALL.into_iter().map(Some).chain([None]) {
            let _ = Instance::parse(bytes.clone(), Path::new("x"), format);
        }
    }

    #[test]
    fn almost_valid_text_never_panics(text in "(p qubo |# vartype=SPIN\n|[0-9]{1,3} [0-9]{1,3}\n)?([0-9a-z .#-]{0,12}\n){0,8}") {
        for format in Format::ALL.into_iter().map(Some).chain([None]) {
            if let Ok((instance, _)) = read_as(&text, format) {
                let _ = instance.target();
            }
        }
    }

    /// Clusters of random sites, in our own format: energies, changes, and what is written of them.
    #[test]
    fn clusters_survive(
        lines in proptest::collection::vec((1u32..32, -2.0..2.0f64), 1..9),
        fields in proptest::collection::vec(-1.0..1.0f64, 5),
        kind in 0..2u8,
        mut x in proptest::collection::vec(0u8..2, 5),
        site in 0usize..5,
    ) {
        let sites = |mask: u32| (0..5).filter(|i| mask >> i & 1 == 1).collect::<Vec<u32>>();
        let all: Vec<_> = lines.into_iter().map(|(mask, w)| (sites(mask), w)).collect();
        let pairs = all.iter().filter(|(own, _)| own.len() == 2);
        let pairs = pairs.map(|(own, w)| (own[0], own[1], *w)).collect();
        let clusters = all.into_iter().filter(|(own, _)| own.len() > 2).collect();
        let variables = [Variables::Spins, Variables::Potts(2)][kind as usize];
        let own = Instance { variables, sites: 5, pairs, clusters, fields, constant: 0.5, lattice: None };
        let (back, _) = read(&own.to_text(Format::Edges).unwrap()).unwrap();
        let model = back.target().unwrap();
        let lambda = vec![1.0; model.terms()];
        let mut changes = vec![0.0; 10];
        model.changes(&lambda, &mut x, &mut changes);
        let before = own.energy(&x);
        prop_assert!((potential(&*model, &lambda, &x) - before).abs() < 1e-11);
        let value = 1 - x[site];
        let change = model.change(&lambda, &mut x, site, value);
        prop_assert!((changes[2 * site + value as usize] - change).abs() < 1e-11);
        x[site] = value;
        prop_assert!((own.energy(&x) - before - change).abs() < 1e-11);
        let (mut after, mut anew) = (changes.clone(), changes);
        model.changes_after(&lambda, &mut x, site, &mut after);
        model.changes(&lambda, &mut x, &mut anew);
        prop_assert_eq!(after, anew);
    }
}
