//! Coverage of error bars: chains of every kernel over many seeds, held against exact values.
//!
//! With errors that are right the root mean square of z = (mean - exact) / error over seeds is 1. An ordinary test has the short form; the long one
//! writes its table to docs/coverage.md:
//! ```sh
//! cargo test --release -p leaps-cli --test coverage -- --ignored
//! ```
//! On a machine without cargo the test binary itself runs: `LEAPS_PROGRAM` then says where the program is, `LEAPS_COVERAGE_PAGE` where the page goes.

mod common;

use leaps_report::machine;
use leaps_report::markdown::wrapped;
use std::fmt::Write;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use common::{json, number, run_line};
use leaps::mcmc::KernelName;
use serde_json::Value;

/// Small enough to enumerate, none of them symmetric.
const TARGETS: [(&str, &str); 3] = [
    ("Ising", "ising --size 4 --beta 0.3 --field 0.2"),
    ("Potts", "potts --q 3 --size 3 --beta 0.6 --field 0.2"),
    ("Spin glass", "spin-glass --size 4 --beta 0.6 --field 0.2"),
];

/// Every kernel, and whether it is a ladder of temperatures, which takes fewer steps and longer over each.
fn kernels() -> Vec<(String, bool)> {
    let all = KernelName::ALL.map(|kernel| (kernel.to_string(), false));
    let ladders = ["parallel-tempering", "houdayer"].map(|name| (name.to_owned(), true));
    all.into_iter().chain(ladders).collect()
}

/// How far off a run was, in its own errors.
struct Run {
    z: [f64; 3],
    /// The same for the energy with the error that the autocorrelation time makes of the exact variance.
    by_time: f64,
    r_hat: f64,
    short: bool,
}

const OBSERVABLES: [&str; 3] = ["energy_per_site", "magnetization", "abs_magnetization"];

impl Run {
    fn new(result: &Value) -> Self {
        let all = &result["observables"];
        let off = |name: &str| number(&all[name]["mean"]) - number(&all[name]["exact"]);
        let (beta, sites) = (number(&result["target"]["beta"]), number(&result["target"]["sites"]));
        let variance = number(&all["heat_capacity_per_site"]["exact"]) / (beta * beta * sites);
        let copies = if result["kernel"] == "houdayer" { 2.0 } else { 1.0 };
        let states = copies * number(&result["chains"]) * number(&result["steps"]);
        let time = number(&all["energy_per_site"]["autocorrelation_time"]);
        Run {
            z: OBSERVABLES.map(|name| off(name) / number(&all[name]["error"])),
            by_time: off("energy_per_site") / (variance * 2.0 * time / states).sqrt(),
            r_hat: number(&result["r_hat"]),
            short: result["warnings"].to_string().contains("\"short\""),
        }
    }
}

/// What seeds 1 to `seeds` of a command say, in the order of the commands; all cores are used, which changes no number.
fn runs(commands: &[String], seeds: usize) -> Vec<Vec<Run>> {
    let (next, total) = (AtomicUsize::new(0), commands.len() * seeds);
    let found = Mutex::new((0..total).map(|_| None).collect::<Vec<Option<Run>>>());
    let work = || loop {
        let job = next.fetch_add(1, Ordering::Relaxed);
        let Some(command) = commands.get(job / seeds) else { return };
        let seed = job % seeds + 1;
        let line = format!("mcmc {command} --seed {seed} --threads 1 --json --quiet");
        let run = Run::new(&json(&run_line(&line)));
        found.lock().unwrap()[job] = Some(run);
    };
    std::thread::scope(|scope| {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        (0..cores).for_each(|_| drop(scope.spawn(work)));
    });
    let mut all = found.into_inner().unwrap().into_iter().flatten();
    commands.iter().map(|_| all.by_ref().take(seeds).collect()).collect()
}

fn rms(values: impl Iterator<Item = f64>) -> f64 {
    let (n, sum) = values.fold((0.0, 0.0), |(n, sum), z| (n + 1.0, sum + z * z));
    (sum / n).sqrt()
}

/// Where the root mean square of `n` normal numbers lies but for once in a million times, at either end (Wilson and Hilferty).
fn band(n: usize) -> std::ops::Range<f64> {
    let spread = 2.0 / (9.0 * n as f64);
    let end = |z: f64| (1.0 - spread + z * spread.sqrt()).powf(1.5);
    end(-4.75)..end(4.75)
}

/// Blocks are whole chains here. Finds errors that are off by a factor of 1.7, for copies that exchange parts 1.3: as independent chains they would be
/// off by 1.4.
#[test]
fn errors_of_every_kernel_cover() {
    for (name, ladder) in kernels() {
        let seeds = if name == "houdayer" { 150 } else { 30 };
        let flags = match ladder {
            true => "--beta 0.4 --field 0.1 --temperatures 2 --steps 100 --burn-in 100",
            false => "--beta 0.2 --field 0.3 --steps 100 --burn-in 600",
        };
        let command = format!("ising --size 4 --kernel {name} --chains 32 {flags}");
        let runs = runs(std::slice::from_ref(&command), seeds).remove(0);
        for (k, name) in OBSERVABLES.iter().enumerate() {
            let rms = rms(runs.iter().map(|run| run.z[k]));
            assert!(band(seeds).contains(&rms), "{command}: {name}: rms z {rms}");
        }
    }
}

/// Within these errors are called right in the long form.
const RIGHT: std::ops::Range<f64> = 0.8..1.25;
const SEEDS: usize = 150;

/// Chains that are blocks by themselves, and few chains that are cut into blocks; of single states and of ladders.
const LENGTHS: [[&str; 2]; 2] = [
    ["--chains 32 --steps 500 --burn-in 4000", "--chains 4 --steps 12000 --burn-in 4000"],
    [
        "--temperatures 3 --chains 32 --steps 500 --burn-in 500",
        "--temperatures 3 --chains 4 --steps 12000 --burn-in 500",
    ],
];

#[test]
#[ignore = "many minutes; writes docs/coverage.md"]
fn the_table_of_coverage() {
    let mut page = format!(
        "# Coverage of error bars\n\n\
         Every kernel of `leaps mcmc` with seeds 1 to {SEEDS}, held against enumeration: the root mean square over seeds of\n\
         z = (mean - exact) / error, which is 1 where error bars are right (spread by chance: {:.2}). \"E by tau\" takes as the error of the\n\
         energy what its autocorrelation time makes of the exact variance, so that it judges effective sample sizes. \"within 1\" and \"within 2\" are the\n\
         shares of energies, m and |m| within one and two errors (normal: 0.683 and 0.954). \"R-hat\" is the largest of all seeds. Targets have a field,\n\
         since symmetric ones hide errors; m and |m| are the same for Potts models. With 32 chains every chain is a block, with 4 they are cut into blocks of ten autocorrelation\n\
         times of the slowest observable. Numbers outside {} to {} are bold. \"short\" is the share of runs which warn that their chains are too short for their errors to be\n\
         trusted: at least half of them wherever a number is bold.\n\n\
         `cargo test --release -p leaps-cli --test coverage -- --ignored`, leaps {}, {}, {}\n",
        1.0 / (2.0 * SEEDS as f64).sqrt(),
        RIGHT.start,
        RIGHT.end,
        env!("CARGO_PKG_VERSION"),
        machine::today(),
        machine::cpu_name(),
    );
    let mut wrong = Vec::new();
    for (heading, target) in TARGETS {
        write!(page, "\n## {heading}\n\n`leaps mcmc {target}`\n\n").unwrap();
        page += "| kernel | flags | E | m | \\|m\\| | E by tau | within 1 | within 2 | R-hat | short |\n";
        page += "|---|---|---:|---:|---:|---:|---:|---:|---:|---:|\n";
        for (name, ladder) in kernels() {
            let flags = LENGTHS[usize::from(ladder)];
            let command = |flags: &str| format!("{target} --kernel {name} {flags}");
            let found = runs(&flags.map(command), SEEDS);
            for (flags, runs) in flags.iter().zip(found) {
                let of = |k: usize| rms(runs.iter().map(|run| run.z[k]));
                let mut judged = vec![of(0), of(1), of(2)];
                judged.push(rms(runs.iter().map(|run| run.by_time)));
                let cell = |rms: &f64| match RIGHT.contains(rms) {
                    true => format!("{rms:.2}"),
                    false => format!("**{rms:.2}**"),
                };
                let cells: Vec<String> = judged.iter().map(cell).collect();
                let z: Vec<f64> = runs.iter().flat_map(|run| run.z).collect();
                let within = |limit: f64| {
                    z.iter().filter(|z| z.abs() < limit).count() as f64 / z.len() as f64
                };
                let r_hat = runs.iter().map(|run| run.r_hat).fold(0.0, f64::max);
                let (one, two, cells) = (within(1.0), within(2.0), cells.join(" | "));
                let short = runs.iter().filter(|run| run.short).count() as f64 / SEEDS as f64;
                let row = format!(
                    "| {name} | `{flags}` | {cells} | {one:.3} | {two:.3} | {r_hat:.3} | {short:.2} |\n"
                );
                eprint!("{heading} {row}");
                page += &row;
                // Chains that are too short say so themselves.
                if !judged.iter().all(|rms| RIGHT.contains(rms)) && short < 0.5 {
                    wrong.push(row);
                }
            }
        }
    }
    let usual = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/coverage.md");
    let file = std::env::var_os("LEAPS_COVERAGE_PAGE").unwrap_or_else(|| usual.into());
    std::fs::write(file, wrapped(&page)).unwrap();
    assert!(wrong.is_empty(), "errors are wrong:\n{}", wrong.concat());
}
