//! Networks that have learned next to nothing: the weights alone must make log Z right.
//!
//! One gradient step with a vanishing learning rate leaves a network as it was drawn: its walkers hardly jump. Four long steps
//! make it jump without making it any good. The threshold is four standard errors, at fixed seeds; errors are at most 0.04, so
//! that a bias of log Z of 0.16 is always detected, and in most of the runs one of 0.1.

mod common;

use common::{json, number, run_line, stdout};

const UNTRAINED: &str = "--steps 1 --lr 1e-9";
const BAD: &str = "--steps 4 --warmup 0 --ema 0 --lr 0.02";

/// Sample with events on `target` and compare log Z with its exact value.
fn unbiased(target: &str, network: &str, steps: &str) {
    let scratch = tempfile::tempdir().unwrap();
    let model = scratch.path().join("model");
    let model = model.to_str().unwrap();
    stdout(&run_line(&format!(
        "train {target} --network {network} {steps} --batch 16 --pool 64 --validate-every 0 \
         --set sample.walkers=16 --set sample.intervals=2 --quiet --out {model}"
    )));
    let result = json(&run_line(&format!(
        "sample --model {model} --scheme events --walkers 8000 --intervals 5 --json --quiet"
    )));
    let (log_z, name) = (&result["log_z"], format!("{target}, {network}, {steps}"));
    let error = number(&log_z["error"]);
    let z = (number(&log_z["mean"]) - number(&log_z["exact"])) / error;
    assert!(z.abs() < 4.0, "{name}: {log_z} is {z} errors off");
    let ess = number(&result["ess"]);
    assert!(error < 0.04 && ess > 0.1, "{name}: too noisy to tell, {log_z}, ess {ess}");
    let jumps = number(&result["network_passes_per_walker"]) - 5.0;
    assert!(steps == UNTRAINED || jumps > 0.1, "{name}: only {jumps} jumps a walker");
}

#[test]
fn log_z_of_ising_in_a_field_is_unbiased() {
    for network in ["hollow", "hollow-graph", "mlp"] {
        for steps in [UNTRAINED, BAD] {
            unbiased("ising --size 4 --field 0.1 --beta 0.2", network, steps);
        }
    }
}

#[test]
fn log_z_of_potts_in_a_field_is_unbiased() {
    for network in ["hollow", "hollow-graph", "lea"] {
        for steps in [UNTRAINED, BAD] {
            unbiased("potts --q 3 --size 3 --field 0.1 --beta 0.3", network, steps);
        }
    }
}

#[test]
fn log_z_of_a_spin_glass_is_unbiased() {
    for steps in [UNTRAINED, BAD] {
        unbiased("spin-glass --size 4 --beta 0.25", "glass", steps);
    }
}
