//! Exact samples: drawn into a file, the same for the same seed, refused where there are none.

mod common;

use common::{json, leaps, number, refused, stdout};

/// The numbers of a plain array of an .npz file: little-endian float64 after a header that ends with a line.
fn floats(file: &[u8], name: &str) -> Vec<f64> {
    let start = file.windows(name.len()).position(|part| part == name.as_bytes()).unwrap();
    let magic = file[start..].windows(6).position(|part| part == b"\x93NUMPY").unwrap() + start;
    let head = u16::from_le_bytes([file[magic + 8], file[magic + 9]]) as usize;
    let text = String::from_utf8_lossy(&file[magic + 10..magic + 10 + head]).into_owned();
    assert!(text.contains("<f8"), "{text}");
    let count: usize =
        text.split('(').nth(1).unwrap().split([',', ')']).next().unwrap().trim().parse().unwrap();
    let data = &file[magic + 10 + head..][..8 * count];
    data.chunks_exact(8).map(|bytes| f64::from_le_bytes(bytes.try_into().unwrap())).collect()
}

#[test]
fn samples_have_the_energy_of_the_exact_solution() {
    let scratch = tempfile::tempdir().unwrap();
    let draw = |seed: &str, name: &str| {
        let line = format!(
            "exact ising --size 5x6 --beta 0.5 --field 0.1 --samples 4e3 --seed {seed} --json -q --out {name}"
        );
        let words: Vec<&str> = line.split_whitespace().collect();
        let output = leaps(&words).current_dir(scratch.path()).output().unwrap();
        (json(&output), std::fs::read(scratch.path().join(name)).unwrap())
    };
    let (result, file) = draw("3", "a.npz");
    assert_eq!(result["method"], "transfer-matrix");
    let energies = floats(&file, "energy.npy");
    assert_eq!(energies.len(), 4000);
    let mean = energies.iter().sum::<f64>() / 4000.0;
    let variance = energies.iter().map(|e| (e - mean).powi(2)).sum::<f64>() / 4000.0;
    let exact = 30.0 * number(&result["energy_per_site"]);
    assert!((mean - exact).abs() < 5.0 * (variance / 4000.0).sqrt(), "{mean}, exact {exact}");
    assert!(floats(&file, "log_weight.npy").iter().all(|weight| *weight == 0.0));
    assert_eq!(draw("3", "b.npz").1, file, "the same seed gives the same bytes");
    assert_ne!(draw("4", "b.npz").1, file);
}

#[test]
fn samples_need_a_file_and_a_target_that_can_be_summed_over() {
    refused("exact ising --samples 10", &["--out"]);
    refused("exact ising --out x.npz", &["--samples"]);
    refused("exact ising --samples 0 --out x.npz", &["--samples = 0"]);
    refused("exact ising --size 6 --samples 4e9 --out x.npz", &["memory suffices"]);
    refused("exact ising --size 6 --samples 9 --method kaufman --out x.npz", &["Kaufman"]);
    refused("exact ising --samples 10 --out x.csv", &[".npz"]);
    // Kaufman's formula knows log Z there, but no states.
    let scratch = tempfile::tempdir().unwrap();
    let line = ["exact", "ising", "--size", "40", "--samples", "10", "--out", "x.npz"];
    let output = leaps(&line).current_dir(scratch.path()).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("exact samples"), "{output:?}");
    assert!(!scratch.path().join("x.npz").exists());
    stdout(&leaps(&["exact", "ising", "--size", "40"]).output().unwrap());
}
