//! Let numbers, disks and permissions fail.

use std::sync::atomic::AtomicI64;

use leaps::Error;
use leaps::store::{Checkpoints, Event};
use safetensors::SafeTensors;

use super::*;

/// Ising whose energy is not a number at one call, or from there on.
struct Faulty {
    ising: Pairwise,
    calls: AtomicI64,
    fatal: bool,
}

impl Faulty {
    /// Fault at call number `at` of the energy.
    fn new(at: i64, fatal: bool) -> Self {
        Faulty { ising: ising(), calls: AtomicI64::new(at), fatal }
    }
}

impl Target for Faulty {
    fn sites(&self) -> usize {
        self.ising.sites()
    }
    fn q(&self) -> usize {
        self.ising.q()
    }
    fn terms(&self) -> usize {
        self.ising.terms()
    }
    fn energy(&self, term: usize, x: &[u8]) -> f64 {
        let left = self.calls.fetch_sub(1, Ordering::Relaxed);
        let fault = if self.fatal { left <= 0 } else { left == 0 };
        if fault { f64::NAN } else { self.ising.energy(term, x) }
    }
    fn change(&self, lambda: &[f64], x: &mut [u8], site: usize, site_value: u8) -> f64 {
        self.ising.change(lambda, x, site, site_value)
    }
    fn changes(&self, lambda: &[f64], x: &mut [u8], out: &mut [f64]) {
        self.ising.changes(lambda, x, out)
    }
}

/// Only the loss asks for energies, until the first validation: two terms of the 40 states of a batch.
const STEP_8: i64 = 2 * (40 * 7 + 20);

#[test]
fn a_number_that_is_not_finite_stops_the_run_with_a_dump() {
    let (small, scratch) =
        (SmallProblem::new(Faulty::new(STEP_8, true)), tempfile::tempdir().unwrap());
    let run = TrainingRun::new(scratch.path(), small.setup(Reference::Pool));
    let error = run.run(&NoProgress).unwrap_err();
    let Error::NonFinite { step: 7, seed: 7, value, .. } = error else { panic!("{error}") };
    assert!(value.is_nan());
    let bytes = fs::read(scratch.path().join("dump-step-00000007.safetensors")).unwrap();
    let dump = SafeTensors::deserialize(&bytes).unwrap();
    let states = dump.tensor("states").unwrap();
    assert_eq!(
        (states.shape()[1], states.shape()[0]),
        (9, dump.tensor("times").unwrap().shape()[0])
    );
    assert!(states.shape()[0] >= 30 && states.data().iter().all(|&site_value| site_value < 2));
    assert_eq!(dump.tensor("seed").unwrap().data(), 7u64.to_le_bytes());
    assert_eq!(dump.tensor("step").unwrap().data(), 7u64.to_le_bytes());
    let (_, header) = SafeTensors::read_metadata(&bytes).unwrap();
    let notes = header.metadata().clone().unwrap();
    assert!(notes["error"].contains("NaN"), "{notes:?}");
    // Target, network and parameters: enough to see it fail again.
    let run: leaps::store::Identity = serde_json::from_str(&notes["run"]).unwrap();
    assert_eq!(run, small.setup(Reference::Pool).identity());
    for tensor in small.net.tensors() {
        let kept = dump.tensor(&format!("net.{}", tensor.name)).unwrap();
        assert_eq!(kept.shape(), tensor.shape);
    }
    let events = fs::read_to_string(scratch.path().join("events.jsonl")).unwrap();
    assert!(events.lines().last().unwrap().contains(r#""event":"failed""#), "{events}");
    let (good, _) = Checkpoints::of(scratch.path()).load(false).unwrap().unwrap();
    assert_eq!(good.manifest.step, 5);
}

#[test]
fn rolling_back_halves_the_learning_rate_as_often_as_allowed() {
    #[derive(Default)]
    struct Back(std::sync::Mutex<Vec<(u64, u64, f64)>>);
    impl Progress for Back {}
    impl Observer for Back {
        fn happened(&self, event: &Event) {
            if let Event::RolledBack { step, to, rate_factor, .. } = event {
                self.0.lock().unwrap().push((*step, *to, *rate_factor));
            }
        }
    }
    for fatal in [false, true] {
        let (small, scratch) =
            (SmallProblem::new(Faulty::new(STEP_8, fatal)), tempfile::tempdir().unwrap());
        let mut setup = small.setup(Reference::Pool);
        setup.train.rollbacks = 2;
        let back = Back::default();
        let run = TrainingRun::new(scratch.path(), setup.clone());
        let outcome = run.run(&back);
        let back = back.0.into_inner().unwrap();
        if fatal {
            assert!(matches!(outcome, Err(Error::NonFinite { step: 5, .. })), "{outcome:?}");
            assert_eq!(back, [(7, 5, 0.5), (5, 5, 0.25)]);
            continue;
        }
        outcome.unwrap();
        assert_eq!(back, [(7, 5, 0.5)]);
        let lines = metrics(scratch.path());
        let steps: Vec<u64> = lines.iter().map(|line| line["step"].as_u64().unwrap()).collect();
        assert_eq!(steps, (1..=20).collect::<Vec<u64>>());
        for line in &lines {
            let step = line["step"].as_u64().unwrap();
            let factor = if step > 5 { 0.5 } else { 1.0 };
            assert_eq!(line["lr"].as_f64().unwrap(), factor * setup.train.rate(step - 1));
        }
        let (last, _) = Checkpoints::of(scratch.path()).load(false).unwrap().unwrap();
        assert_eq!(last.resume(&setup).unwrap().state.rate_factor, 0.5);
    }
}

#[test]
fn a_place_that_cannot_be_written_is_named() {
    let (small, scratch) = (small(), tempfile::tempdir().unwrap());
    fs::write(scratch.path().join("file"), b"").unwrap();
    let mut places = vec![scratch.path().join("file/run")];
    if cfg!(target_os = "linux") {
        places.push("/proc/leaps/run".into()); // not even root may write there
    }
    for place in places {
        let run = TrainingRun::new(&place, small.setup(Reference::Pool));
        let error = run.run(&NoProgress).unwrap_err();
        assert!(matches!(&error, Error::Io { path, .. } if *path == place), "{error}");
    }
}

#[cfg(unix)]
#[test]
#[cfg_attr(
    not(read_only_folders_bind),
    ignore = "needs a user whom read-only folders bind: root is none"
)]
fn a_directory_that_became_read_only_keeps_its_checkpoints() {
    use std::os::unix::fs::PermissionsExt;
    let (small, scratch) = (small(), tempfile::tempdir().unwrap());
    let directory = scratch.path().join("run");
    let setup = small.setup(Reference::Pool);
    TrainingRun::new(&directory, setup.clone()).run(&StopAfter::steps(7)).unwrap();
    let folder = directory.join("checkpoints");
    let allow = |mode| fs::set_permissions(&folder, fs::Permissions::from_mode(mode)).unwrap();
    allow(0o555);
    let error = TrainingRun::new(&directory, setup.clone()).run(&NoProgress).unwrap_err();
    assert!(matches!(&error, Error::Io { path, .. } if path.starts_with(&folder)), "{error}");
    let (good, _) = Checkpoints::of(&directory).load(false).unwrap().unwrap();
    assert_eq!(good.manifest.step, 7);
    allow(0o755);
    assert_eq!(train(&setup, &directory).step, 20);
}
