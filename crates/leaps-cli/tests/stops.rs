//! Signals that stop walkers and comparisons: what has been measured by then is printed, and says what it is.
#![cfg(unix)]

mod common;

use std::io::Read;
use std::time::Duration;

use common::{begin, json, leaps, near_exact, number, send};
use serde_json::Value;

/// Send a signal once the work has gone on for a while; the exit code, the JSON and what was said.
fn stopped(
    words: &[&str],
    folder: &std::path::Path,
    signal: &str,
) -> (Option<i32>, Vec<u8>, String) {
    let (child, mut errors, _) = begin(leaps(words).current_dir(folder));
    std::thread::sleep(Duration::from_millis(1500));
    send(signal, &child);
    // Both at once: a pipe that nobody reads holds the program up.
    let talk = std::thread::spawn(move || {
        let mut talk = String::new();
        errors.read_to_string(&mut talk).unwrap();
        talk
    });
    let output = child.wait_with_output().unwrap();
    (output.status.code(), output.stdout, talk.join().unwrap())
}

/// 4096 walkers know log Z to a thousandth or so, and the exact value is that of the temperature reached, which `leaps exact` computes anew.
#[test]
fn walkers_are_printed_at_the_temperature_that_they_have_reached() {
    let target = "ising --size 4 --field 0.2 --beta 0.4 --json";
    for (verb, signal, code) in [("ais", "-INT", 130), ("ais", "-TERM", 75), ("smc", "-INT", 130)] {
        let folder = tempfile::tempdir().unwrap();
        let line = format!(
            "{verb} {target} --walkers 4096 --intervals 1000000 --trace-points 20000 --out x.npz --require-ess 1"
        );
        let words: Vec<&str> = line.split_whitespace().collect();
        let (status, printed, talk) = stopped(&words, folder.path(), signal);
        assert_eq!(status, Some(code), "{verb}: {talk}");
        let part: Value = serde_json::from_slice(&printed).unwrap();
        let beta = number(&part["reached"]["beta"]);
        assert!(part["interrupted"] == true && 0.0 < beta && beta < 0.399, "{verb}: {part}");
        near_exact(verb, &part["log_z"]);
        near_exact(verb, &part["observables"]["energy_per_site"]);
        near_exact(verb, &part["observables"]["magnetization"]);
        let line = format!("exact ising --size 4 --field 0.2 --json --beta {beta}");
        let exact = json(&leaps(&line.split_whitespace().collect::<Vec<_>>()).output().unwrap());
        let difference = number(&part["log_z"]["exact"]) - number(&exact["log_z"]);
        assert!(difference.abs() < 1e-9, "{verb}: {difference}");
        let last = format!("leaps: interrupted at beta {beta:.6}, ");
        assert!(talk.lines().last().unwrap().starts_with(&last), "{verb}: {talk}");
        assert!(talk.contains(&format!("for beta = {beta:.6} ")), "{verb}: {talk}");
        let (results, page) = (folder.path().join("x.json"), folder.path().join("x.html"));
        std::fs::write(&results, &printed).unwrap();
        assert!(leaps(&["report", results.to_str().unwrap(), "-q"]).status().unwrap().success());
        let page = std::fs::read_to_string(page).unwrap();
        assert!(page.contains(&format!("exp(-{beta} E)")), "{verb}: the page is of the end");
        let file = std::fs::read(folder.path().join("x.npz")).unwrap();
        // NumPy's text has four bytes a letter.
        let file: Vec<u8> = file.into_iter().filter(|byte| *byte != 0).collect();
        let file = String::from_utf8_lossy(&file);
        assert!(file.contains("(4096, 4, 4)") && file.contains("\"reached\""), "{verb}");
    }
}

#[test]
fn tables_and_rows_name_the_temperature() {
    let folder = tempfile::tempdir().unwrap();
    let line = "ais ising --size 4 --field 0.2 --beta 0.4 --walkers 4096 --intervals 1000000 --trace-points 20000 --csv x.csv";
    let words: Vec<&str> = line.split_whitespace().collect();
    let (status, printed, talk) = stopped(&words, folder.path(), "-INT");
    assert_eq!(status, Some(130), "{talk}");
    let table = String::from_utf8(printed).unwrap();
    let row = table.lines().find(|line| line.starts_with("interrupted")).unwrap();
    let beta = row.split(" at beta ").nth(1).unwrap().split(',').next().unwrap();
    let rows = std::fs::read_to_string(folder.path().join("x.csv")).unwrap();
    let log_z = rows.lines().find(|line| line.contains(",log_z,")).unwrap();
    // target, beta, ...: the table rounds to six digits, the file does not.
    let (printed, written): (f64, f64) =
        (beta.parse().unwrap(), log_z.split(',').nth(2).unwrap().parse().unwrap());
    assert!((printed - written).abs() < 1e-6 && written < 0.399, "{beta}: {log_z}");
}

#[test]
fn a_comparison_keeps_what_is_finished() {
    let folder = tempfile::tempdir().unwrap();
    let chains =
        "sampler = \"mcmc\"\nkernel = \"wolff\"\nsteps = 100000000\nburn_in = 10\nthin = 200\n";
    let spec = format!(
        "target = {{ kind = \"ising\", size = 4, field = 0.2, beta = 0.3 }}\n[[compare]]\nsampler = \"ais\"\n[[compare]]\n{chains}[[compare]]\nsampler = \"smc\"\n"
    );
    std::fs::write(folder.path().join("compare.toml"), spec).unwrap();
    let words = ["compare", "compare.toml", "--json"];
    let (status, printed, talk) = stopped(&words, folder.path(), "-TERM");
    assert_eq!(status, Some(75), "{talk}");
    let found: Value = serde_json::from_slice(&printed).unwrap();
    assert!(found["interrupted"] == true && found["asked"] == 3, "{found}");
    let samplers = found["samplers"].as_array().unwrap();
    assert_eq!(samplers.len(), 2, "{found}");
    near_exact("ais", &samplers[0]["log_z"]);
    assert!(samplers[0].get("interrupted").is_none() && samplers[1]["interrupted"] == true);
    near_exact("wolff", &samplers[1]["observables"]["energy_per_site"]);
    assert!(
        talk.ends_with("2 of 3 samplers; they are printed, the last as far as it has got\n"),
        "{talk}"
    );
}
