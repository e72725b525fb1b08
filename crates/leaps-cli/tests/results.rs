//! Results that programs and people can read, whatever standard output is.

mod common;

use std::process::Stdio;

use common::{json, leaps, run, run_line, stdout};

#[test]
fn exact_values_are_flat_numbers() {
    let result = json(&run_line("exact ising --size 15 --beta 0.4407 --json"));
    assert_eq!(result["schema"], 2);
    assert_eq!(result["method"], "kaufman");
    assert_eq!(result["device"], "cpu");
    assert_eq!(result["target"]["kind"], "ising");
    assert_eq!(result["target"]["sites"], 225);
    assert_eq!(result["command"][1], "exact");
    let number = |key: &str| result[key].as_f64().unwrap_or_else(|| panic!("{key} in {result}"));
    assert!((number("log_z") - 209.8260701363).abs() < 1e-9);
    assert!((number("energy_per_site") + 1.45574698).abs() < 1e-8);
    assert!(number("heat_capacity_per_site") > 1.0);
}

#[test]
fn exact_values_with_a_field_have_the_right_sign() {
    // MATH: weight exp(K sum ss + h sum s), K = .4407, h = .1; here h multiplies -beta.
    let field = format!("--field={}", -0.1 / 0.4407);
    let result =
        json(&run(&["exact", "ising", "--size", "4", "--beta", "0.4407", &field, "--json"]));
    assert!((result["log_z"].as_f64().unwrap() - 16.2975361949).abs() < 1e-9, "{result}");
    assert!(result["magnetization"].as_f64().unwrap() > 0.1, "{result}");
}

#[test]
fn flags_come_in_any_order() {
    let one = json(&run_line("exact --json ising --size 4 --method enumeration --quiet"));
    let two = json(&run_line("--quiet exact --method enumeration --size 4 ising --json"));
    assert_eq!(one["log_z"], two["log_z"]);
}

#[test]
fn tables_are_plain_text() {
    for line in ["exact ising --size 15", "exact potts --size 3", "init rbm", "exact ising --help"]
    {
        let output = run_line(line);
        for bytes in [&output.stdout, &output.stderr] {
            let control = bytes.iter().find(|&&byte| byte < 0x20 && byte != b'\n');
            assert_eq!(control, None, "leaps {line} printed a control character");
        }
    }
    let text = stdout(&run_line("exact ising --size 15"));
    assert!(text.lines().any(|line| {
        line.split_whitespace().collect::<Vec<_>>() == ["log_z", "209.8260701363"]
    }));
}

#[test]
fn quiet_is_silent_on_standard_error() {
    let output = run_line("exact ising --size 4 --quiet");
    assert!(output.stderr.is_empty() && !output.stdout.is_empty());
}

#[test]
fn infinite_numbers_are_null() {
    let result = json(&run_line("exact ising --size 4 --beta 0 --json"));
    assert!(result["free_energy_per_site"].is_null(), "{result}");
    assert!((result["log_z"].as_f64().unwrap() - 16.0 * 2f64.ln()).abs() < 1e-12);
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_ends_with_4() {
    let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let output = leaps(&["exact", "ising", "--quiet"]).stdout(full).output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(4), "{errors}");
    assert!(errors.starts_with("leaps: error: standard output: "), "{errors}");
}

#[test]
fn a_closed_pipe_is_no_error() {
    for line in [
        "exact ising --size 4",
        "exact ising --json",
        "init ising",
        "man",
        "completions bash",
        "--help",
    ] {
        let arguments: Vec<&str> = line.split_whitespace().collect();
        let mut child =
            leaps(&arguments).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        drop(child.stdout.take());
        let output = child.wait_with_output().unwrap();
        let errors = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(0), "leaps {line}: {errors}");
        assert!(!errors.contains("error"), "leaps {line}: {errors}");
    }
}

#[test]
fn an_input_is_not_written_over() {
    let scratch = tempfile::tempdir().unwrap();
    let file = scratch.path().join("bonds.npz");
    let name = file.to_str().unwrap();
    std::fs::write(&file, "0 1 1\n1 2 -1\n").unwrap();
    let words = ["ais", "file", name, "--walkers", "10", "--intervals", "2", "--out", name];
    let output = run(&words);
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("must be a new name"));
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "0 1 1\n1 2 -1\n");
}
