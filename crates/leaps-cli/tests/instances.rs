//! One network for all instances of a spin glass: trained on random ones, sampled on others.

mod common;

use std::path::Path;

use common::{fails, json, near_exact, number, run, run_line, stdout};

/// A glass on 4x4 with free edges, whose couplings are drawn afresh as training goes on.
fn train(directory: &Path) -> std::process::Output {
    let out = directory.display();
    run_line(&format!(
        "train spin-glass --size 4 --boundary free --couplings gaussian --beta 0.8 --instances 50 --batch 64 --steps 600 --lr 0.005 \
         --channels 8 --validate-every 300 --validate-walkers 50 --set sample.walkers=200 --set sample.intervals=20 --device cpu --out {out}"
    ))
}

#[test]
fn a_network_for_all_instances_samples_any_of_them() {
    let scratch = tempfile::tempdir().unwrap();
    let directory = scratch.path().join("a");
    let trained = train(&directory);
    let talk = String::from_utf8_lossy(&trained.stderr).into_owned();
    assert!(talk.contains("trained on 50 random ones at a time, 4 walkers each"), "{talk}");
    stdout(&trained);
    let name = directory.to_str().unwrap();
    // A lattice with couplings of the file's own.
    let file = scratch.path().join("own.txt");
    let bonds: String = (0..12)
        .flat_map(|site| {
            let strength = 0.3 + 0.1 * f64::from(site % 7) - 0.2 * f64::from(site % 3);
            let along = (site % 4 < 3).then(|| format!("{site} {} {strength}\n", site + 1));
            let down = (site < 8).then(|| format!("{site} {} {}\n", site + 4, -strength));
            along.into_iter().chain(down)
        })
        .collect();
    std::fs::write(&file, format!("lattice 3x4 free\n{bonds}")).unwrap();
    let file = file.to_str().unwrap();
    for (member, trained) in [
        (String::new(), false),
        ("--set target.disorder_seed=7".to_owned(), true),
        ("--set target.couplings=pm1 --set target.size=4x5".to_owned(), true),
        (format!("--target-file {file}"), true),
        (format!("--set target.kind=file --set target.path={file} --beta 0.6"), true),
    ] {
        let sampled = run_line(&format!(
            "sample --model {name} {member} --walkers 2000 --intervals 30 --device cpu --json"
        ));
        let talk = String::from_utf8_lossy(&sampled.stderr).into_owned();
        assert_eq!(talk.contains("over 50 random instances at a time"), trained, "{talk}");
        let result = json(&sampled);
        near_exact("log_z", &result["log_z"]);
        // Seen were 4x4 sites with couplings of both sizes: +-1 on 4x5 is the farthest from it.
        assert!(number(&result["ess"]) > 0.3, "{member}: {}", result["ess"]);
    }
    let checked = stdout(&run(&["check", directory.join("config.toml").to_str().unwrap()]));
    assert!(checked.contains("50 random ones at a time, 4 walkers each; 16 in a"), "{checked}");
    // With other instances it is another run.
    let again = run_line(&format!("train {name} --set train.instances=40"));
    let talk = String::from_utf8_lossy(&again.stderr).into_owned();
    assert!(talk.contains("train.instances = 40"), "{talk}");
}

#[test]
fn the_word_random_stands_for_a_number_and_a_batch() {
    let checked = |more: &str| {
        stdout(&run_line(&format!(
            "init spin-glass --size 4 --boundary free --set train.instances=random {more}"
        )))
    };
    let settings = checked("");
    assert!(
        settings.contains("instances = 4096") && settings.contains("batch = 1024"),
        "{settings}"
    );
    assert!(settings.contains("kind = \"glass\""), "{settings}");
    let settings = checked("--set train.batch=256");
    assert!(settings.contains("batch = 256"), "{settings}");
}

#[test]
fn what_has_no_instances_is_refused() {
    let scratch = tempfile::tempdir().unwrap();
    let out = scratch.path().join("a");
    let refused = |line: &str, words: &[&str]| {
        let line = format!("train {line} --out {}", out.display());
        fails(&line.split_whitespace().collect::<Vec<_>>(), 2, words);
        assert!(!out.join("checkpoints").exists(), "{line}");
    };
    refused("ising --size 4 --instances 900", &["--instances", "spin-glass"]);
    refused(
        "spin-glass --geometry complete --size 9 --instances random",
        &["--instances", "without a lattice"],
    );
    let glass = "spin-glass --size 4 --boundary free";
    let glass = |more: &str| format!("{glass} {more}");
    refused(&glass("--instances many"), &["--instances = many", "random"]);
    refused(&glass("--set train.instances=many"), &["train.instances", "random"]);
    refused(&glass("--instances 900 --walkers-per-instance 3"), &["2, 4, 8 or 16"]);
    refused(&glass("--walkers-per-instance 4"), &["--walkers-per-instance = 4", "train.instances"]);
    refused(&glass("--instances 90 --batch 33"), &["--batch = 33", "a multiple of 4"]);
    refused(&glass("--instances 9 --batch 64"), &["--batch = 64", "at most the pool, 36"]);
    refused(&glass("--instances 90 --batch 64 --reference policy"), &["--instances", "pool"]);
    refused(
        &glass("--instances 90 --batch 64 --beta-range 0.5,1"),
        &["--instances", "left out beside"],
    );
    refused(
        &glass("--instances 90 --batch 64 --network mlp"),
        &["--instances", "network.kind = glass"],
    );
}
