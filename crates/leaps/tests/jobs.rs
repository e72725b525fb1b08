//! Jobs through the public interface: results that a stop leaves, and devices that a job does not have.

use std::sync::atomic::{AtomicU64, Ordering};

use leaps::Error;
use leaps::device::{Device, NoProgress, Progress};
use leaps::job::Monitor;
use leaps::prelude::*;
use leaps::store::Observer;

/// Asks for a stop once so many parts, gradient steps or looks have been counted.
#[derive(Default)]
struct Stop {
    parts: Option<u64>,
    steps: Option<u64>,
    looks: Option<u64>,
    counted: AtomicU64,
}

impl Stop {
    fn count(&self, limit: Option<u64>, more: u64) -> bool {
        limit.is_some_and(|limit| self.counted.fetch_add(more, Ordering::Relaxed) >= limit)
    }
}

impl Progress for Stop {
    fn advance(&self, done: u64) {
        self.count(self.steps, done);
    }

    fn stopped(&self) -> bool {
        self.count(self.looks, 1) || self.count(self.parts, 0) || self.count(self.steps, 0)
    }
}

/// A part of what may be stopped.
struct Part<'a>(&'a Stop);

impl Progress for Part<'_> {
    fn stopped(&self) -> bool {
        self.0.stopped()
    }
}

impl Monitor for Stop {
    fn progress(&self, _: &str) -> Box<dyn Progress + '_> {
        self.count(self.parts, 1);
        Box::new(Part(self))
    }
}

impl Observer for Stop {}

fn glass() -> Problem {
    SpinGlass::lattice(&[3, 4], 3).field(0.3).beta(0.8).unwrap()
}

#[test]
fn a_stop_keeps_the_fields_that_are_finished() {
    for method in [FreeEnergyMethod::Ais, FreeEnergyMethod::Smc, FreeEnergyMethod::Tempering] {
        let mut job = FreeEnergies::new(glass()).betas([0.4, 0.8]).fields([0.1, 0.2, 0.3]);
        job = job.method(method);
        (job.spec.walkers.walkers, job.spec.chains.steps) = (50, 60);
        let context = Context { device: Device::Cpu, ..Context::default() };
        let whole = job.run_in(&context, &NoProgress).unwrap();
        assert_eq!((whole.points.len(), whole.interrupted, whole.asked), (6, false, None));
        // The second field begins, and is stopped at the first chance.
        let stop = Stop { parts: Some(2), ..Stop::default() };
        let part = job.run_in(&context, &stop).unwrap();
        assert_eq!((part.points.len(), part.interrupted, part.asked), (2, true, Some(6)));
        for (part, whole) in part.points.iter().zip(&whole.points) {
            assert_eq!((part.field, part.beta), (whole.field, whole.beta));
            assert_eq!((part.log_z, part.ess), (whole.log_z, whole.ess), "{method}");
        }
        let stop = Stop { parts: Some(1), ..Stop::default() };
        assert!(matches!(job.run_in(&context, &stop), Err(Error::Interrupted)), "{method}");
    }
}

#[test]
fn ladders_that_are_stopped_have_their_temperatures() {
    let mut job = FreeEnergies::new(glass()).betas([0.4, 0.8]).method(FreeEnergyMethod::Tempering);
    (job.spec.chains.chains, job.spec.chains.steps, job.spec.chains.burn_in) = (16, 100_000, 20);
    let stop = Stop { looks: Some(12), ..Stop::default() };
    let run = job.run_in(&Context::default(), &stop).unwrap();
    assert_eq!((run.points.len(), run.interrupted, run.asked), (2, true, Some(2)));
    for point in &run.points {
        let z = point.log_z.z().unwrap();
        assert!(z.abs() < 5.0 && point.log_z.error < 0.5, "{}: {}", point.beta, point.log_z);
    }
}

#[test]
fn training_in_memory_that_is_stopped_keeps_its_network() {
    let train = |steps| Training::new(Ising::square(4).field(0.1).beta(0.3).unwrap()).steps(steps);
    let context = Context { device: Device::Cpu, ..Context::default() };
    let stop = Stop { steps: Some(5), ..Stop::default() };
    let stopped = train(1000).batch(32).run_in(&context, &stop).unwrap();
    assert!(stopped.interrupted);
    assert_eq!(stopped.training.steps, 5);
    assert!(stopped.training.loss.is_some_and(f64::is_finite));
    let run = stopped.sampling().walkers(100).run_in(&context).unwrap();
    assert!(run.log_z.error > 0.0 && run.log_z.z().unwrap().abs() < 5.0, "{}", run.log_z);
    let whole = train(6).batch(32).run_in(&context, &NoProgress).unwrap();
    assert!(!whole.interrupted && whole.training.steps == 6);
    // Before the first step there is nothing to keep.
    let stop = Stop { steps: Some(0), ..Stop::default() };
    assert!(matches!(train(10).run_in(&context, &stop), Err(Error::Interrupted)));
}

#[test]
fn jobs_of_the_cpu_refuse_a_gpu_and_record_why_auto_is_none() {
    let on = |device| Context { device, ..Context::default() };
    let solving = Solving::new(glass());
    let minimizing = Minimizing::new(glass());
    let exact = |device| solving.run_in(&on(device)).map(|run| run.computed);
    let lowest = |device| minimizing.run_in(&on(device), &NoProgress).map(|run| run.computed);
    let jobs: [&dyn Fn(Device) -> leaps::Result<_>; 2] = [&exact, &lowest];
    for (job, word) in jobs.into_iter().zip(["exact answers", "lowest energies"]) {
        let error = job(Device::Cuda(0)).unwrap_err();
        assert!(matches!(error, Error::NotApplicable { .. }), "{error}");
        assert!(error.to_string().contains(word) && error.to_string().contains("cpu"), "{error}");
        let computed = job(Device::Auto).unwrap();
        assert_eq!(computed.device, "cpu");
        assert!(computed.reason.unwrap().contains(word));
        let computed = job(Device::Cpu).unwrap();
        assert_eq!((&*computed.device, computed.reason), ("cpu", None));
    }
}

/// The energy of a state as results have it.
fn energy_of(lowest: &leaps::results::Lowest, problem: &Problem) -> f64 {
    let x: Vec<u8> = lowest.state.bytes().map(|digit| digit - b'0').collect();
    (0..problem.target.terms()).map(|term| problem.target.energy(term, &x)).sum()
}

#[test]
fn the_lowest_energy_may_be_met_on_the_way() {
    // At negative temperatures walkers end at the highest energies.
    let problem = Ising::square(4).field(0.3).beta(-0.6).unwrap();
    let run = Annealing::ais(problem.clone()).walkers(200).intervals(40).run().unwrap();
    let end = run.samples.energies.iter().copied().fold(f64::INFINITY, f64::min);
    let lowest = run.lowest.as_ref().unwrap();
    assert!(lowest.energy < end - 1.0, "{} on the way, {end} at the end", lowest.energy);
    assert!((energy_of(lowest, &problem) - lowest.energy).abs() < 1e-9);
    // Inverse temperatures that are asked for are looked at as well.
    let job = Annealing::ais(problem.clone()).walkers(200).intervals(40).at_beta([-0.01]);
    let mut job = job;
    job.walkers.trace_points = 1;
    let early = job.run().unwrap().lowest.clone().unwrap();
    assert!(early.energy < end - 1.0, "{} at a stop, {end} at the end", early.energy);
}

#[test]
fn exact_answers_have_the_ground_state() {
    let problem = glass();
    let target = &*problem.target;
    let energy = |code: usize| -> f64 {
        let x: Vec<u8> = (0..12).map(|site| (code >> site & 1) as u8).collect();
        (0..target.terms()).map(|term| target.energy(term, &x)).sum()
    };
    let least = (0..1 << 12).map(energy).fold(f64::INFINITY, f64::min);
    let run = Solving::new(problem.clone()).run().unwrap();
    let lowest = run.lowest.as_ref().unwrap();
    assert!((lowest.energy - least).abs() < 1e-9 && lowest.energy_per_site == lowest.energy / 12.0);
    assert!((energy_of(lowest, &problem) - least).abs() < 1e-9);
    // A long search is nobody's wish here.
    let torus = Solving::new(Ising::square(64).beta(0.4).unwrap()).run().unwrap();
    assert!(torus.lowest.is_none() && torus.log_z > 0.0);
}
