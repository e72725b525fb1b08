//! Stop, damage, kill and resume training runs: the result is that of a run that never stopped, or an error that names the file.

mod damage;
mod failures;
mod interrupt;
mod kill;
mod resume;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use leaps::device::{NoProgress, Progress};
use leaps::net::{FreeEnergy, FreeEnergySpec, MlpSpec, Net, NetSpec};
use leaps::path::{self, Schedule};
use leaps::rates::Parametrisation;
use leaps::store::{Observer, Outcome, Setup, TrainingRun};
use leaps::target::{Boundary, Lattice, Pairwise, Target};
use leaps::train::{Reference, TrainSpec};

const REFERENCES: [Reference; 3] = [Reference::Pool, Reference::Buffer, Reference::Policy];

/// A small network on 3x3 Ising with a field.
struct SmallProblem {
    target: Arc<dyn Target>,
    path: path::Path,
    net: Arc<Net>,
    free: Arc<FreeEnergy>,
}

fn ising() -> Pairwise {
    let lattice = Lattice::new(&[3, 3], Boundary::Periodic).unwrap();
    Pairwise::ising(lattice, 1.0, 0.2).unwrap()
}

fn small() -> SmallProblem {
    SmallProblem::new(ising())
}

impl SmallProblem {
    fn new(target: impl Target + 'static) -> Self {
        let path = path::Path::new(&vec![0.4; target.terms()], Schedule::Linear).unwrap();
        let net = Net::new(&NetSpec::Mlp(MlpSpec { hidden: 4 }), &target).unwrap();
        let free = FreeEnergy::new(&FreeEnergySpec::Rate, target.sites()).unwrap();
        let (net, free) = (Arc::new(net), Arc::new(free));
        SmallProblem { target: Arc::new(target), path, net, free }
    }

    /// Every step writes files, so there are few of them.
    fn setup(&self, reference: Reference) -> Setup {
        Setup {
            family: None,
            instances: None,
            from: None,
            parameters: None,
            placement: leaps::device::Placement::Cpu,
            ranks: Arc::new(leaps::device::Single),
            target: self.target.clone(),
            path: self.path.clone(),
            net: self.net.clone(),
            free: self.free.clone(),
            parametrisation: Parametrisation::Barker,
            train: TrainSpec {
                steps: 20,
                batch: 40,
                warmup: 3,
                lr: 1e-2,
                reference,
                pool: 100,
                rollout_walkers: 10,
                rollout_steps: 6,
                buffer: 4,
                rollout_every: 3,
                anneal: 10,
                validate_every: 8,
                validate_walkers: 50,
                validate_intervals: 5,
                checkpoint_every: 5,
                ..TrainSpec::default()
            },
            seed: 7,
            described_target: serde_json::json!({ "kind": "ising", "size": 3, "field": 0.2 }),
            files: Default::default(),
            described_path: leaps::path::PathSpec::default(),
        }
    }
}

/// Train in a directory of a reference run, to the end.
fn train(setup: &Setup, directory: &Path) -> Outcome {
    TrainingRun::new(directory, setup.clone()).run(&NoProgress).unwrap()
}

/// Asks for a stop once so many steps are made.
struct StopAfter {
    limit: u64,
    steps: AtomicU64,
}

impl StopAfter {
    fn steps(limit: u64) -> Self {
        StopAfter { limit, steps: AtomicU64::new(0) }
    }
}

impl Progress for StopAfter {
    fn advance(&self, done: u64) {
        self.steps.fetch_add(done, Ordering::Relaxed);
    }
    fn stopped(&self) -> bool {
        self.steps.load(Ordering::Relaxed) >= self.limit
    }
}

impl Observer for StopAfter {}

/// Asks for a stop when it has been asked so many times whether to.
struct StopAtQuestion {
    number: u64,
    asked: AtomicU64,
}

impl StopAtQuestion {
    fn new(number: u64) -> Self {
        StopAtQuestion { number, asked: AtomicU64::new(0) }
    }
}

impl Progress for StopAtQuestion {
    fn stopped(&self) -> bool {
        self.asked.fetch_add(1, Ordering::Relaxed) + 1 >= self.number
    }
}

impl Observer for StopAtQuestion {}

/// All files of a directory.
fn files(directory: &Path) -> BTreeMap<String, Vec<u8>> {
    let entries = fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path());
    let name = |path: &PathBuf| path.file_name().unwrap().to_str().unwrap().to_string();
    entries
        .filter(|path| path.is_file())
        .map(|path| (name(&path), fs::read(path).unwrap()))
        .collect()
}

/// The metrics without what a clock measured.
fn metrics(directory: &Path) -> Vec<serde_json::Value> {
    let text = fs::read_to_string(directory.join("metrics.jsonl")).unwrap();
    let lines = text.lines().map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap());
    lines
        .map(|mut line| {
            line.as_object_mut().unwrap().remove("seconds").unwrap();
            line
        })
        .collect()
}

/// What must not depend on stops: the checkpoint, file by file, and the metrics.
fn assert_same(directory: &Path, outcome: &Outcome, expected: (&Path, &Outcome), what: &str) {
    let (found, wanted) = (files(&outcome.checkpoint), files(&expected.1.checkpoint));
    assert_eq!(outcome.checkpoint.file_name(), expected.1.checkpoint.file_name(), "{what}");
    assert_eq!(found.keys().collect::<Vec<_>>(), wanted.keys().collect::<Vec<_>>(), "{what}");
    for (name, bytes) in &wanted {
        assert!(found[name] == *bytes, "{what}: {name} differs");
    }
    assert_eq!(metrics(directory), metrics(expected.0), "{what}");
    assert_eq!(outcome.standing, expected.1.standing, "{what}");
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let path = entry.unwrap().path();
        let copied = to.join(path.file_name().unwrap());
        if path.is_dir() {
            copy(&path, &copied);
        } else {
            fs::copy(&path, copied).unwrap();
        }
    }
}
