//! What a stop leaves of walkers, of comparisons and of free energies: the numbers of the place that was reached.

use std::sync::atomic::{AtomicI64, AtomicUsize, Ordering};

use leaps::Error;
use leaps::exact::{Exact, enumerate};
use leaps::job::{Comparison, Monitor, NamedSampler, Sampler, Samples};
use leaps::observe::Estimate;
use leaps::prelude::*;
use leaps::results::{SamplerResult, WalkerResult};
use leaps::sampler::{WalkerSpec, WalkerWarning};
use leaps::spec::RunSpec;

const BETA: f64 = 0.4;
const INTERVALS: usize = 40;

/// A field, so that no error of a sign is hidden.
fn problem() -> Problem {
    Ising::lattice(&[3, 4]).field(0.2).beta(BETA).unwrap()
}

fn exact(beta: f64) -> Exact {
    let problem = problem().at(beta, None).unwrap();
    enumerate::solve(&*problem.target, problem.path.ends(), &NoProgress).unwrap()
}

/// Asks for a stop after so many units of work, or when work of another kind is announced.
struct StopAfter {
    units: AtomicI64,
    works: AtomicUsize,
    most_works: usize,
    /// Whether it is after all units of the first work.
    at_end: bool,
}

impl StopAfter {
    fn units(units: i64) -> Self {
        let works = AtomicUsize::new(0);
        StopAfter { units: units.into(), works, most_works: usize::MAX, at_end: false }
    }

    fn works(works: usize) -> Self {
        StopAfter { most_works: works, ..Self::units(i64::MAX) }
    }

    fn end() -> Self {
        StopAfter { at_end: true, ..Self::units(i64::MAX) }
    }
}

impl Progress for StopAfter {
    fn total(&self, units: u64) {
        if self.works.fetch_add(1, Ordering::Relaxed) == 0 && self.at_end {
            self.units.store(units as i64, Ordering::Relaxed);
        }
    }

    fn advance(&self, done: u64) {
        self.units.fetch_sub(done as i64, Ordering::Relaxed);
    }

    fn stopped(&self) -> bool {
        let works = self.works.load(Ordering::Relaxed);
        self.units.load(Ordering::Relaxed) <= 0 || works > self.most_works
    }
}

fn context(progress: &dyn Progress) -> Context<'_> {
    Context { device: Device::Cpu, progress, ..Context::default() }
}

/// The jobs that lead walkers, each with its number of walkers.
fn jobs() -> Vec<(&'static str, usize, Sampler)> {
    let annealed = |job: Annealing, kernel| {
        Sampler::Annealing(job.walkers(20_000).intervals(INTERVALS).kernel(kernel))
    };
    let trained = Training::new(problem()).steps(20).batch(64).run().unwrap();
    let mut network: Sampling = trained.sampling().walkers(4000).intervals(INTERVALS);
    network.walkers.sweeps = Some(2);
    let single = Annealing::ais(problem()).walkers(4000).intervals(INTERVALS);
    vec![
        ("ais", 20_000, annealed(Annealing::ais(problem()), KernelName::HeatBath)),
        ("smc", 20_000, annealed(Annealing::smc(problem()), KernelName::HeatBath)),
        ("ais, clusters", 4000, Sampler::Annealing(single.kernel(KernelName::SwendsenWang))),
        ("network", 4000, Sampler::Network(Box::new(network))),
    ]
}

fn walkers(run: Run<SamplerResult>) -> (WalkerResult, Samples) {
    let SamplerResult::Walkers(result) = run.result else { panic!("no walkers") };
    (*result, run.samples)
}

fn near(name: &str, estimate: Estimate, exact: f64) {
    let z = (estimate.mean - exact) / estimate.error;
    assert!(z.abs() < 5.0, "{name}: {} +- {} is {z} from {exact}", estimate.mean, estimate.error);
}

/// 20,000 walkers know log Z to 0.003 here, and the temperatures are 0.1 and more apart: the end's numbers would be hundreds of errors off.
#[test]
fn walkers_that_are_stopped_are_exact_where_they_are() {
    for (name, count, job) in jobs() {
        let progress = StopAfter::units((count * INTERVALS) as i64 * 11 / 20);
        let (part, samples) = walkers(job.run_in(&context(&progress)).unwrap());
        let reached = part.reached.clone().unwrap();
        assert!(part.interrupted && (0.05..0.65).contains(&reached.t), "{name}: {reached:?}");
        let beta = reached.beta.unwrap();
        assert!((beta - BETA * reached.t).abs() < 1e-12, "{name}: {reached:?}");
        let (there, end) = (exact(beta), exact(BETA));
        assert!((there.log_z - end.log_z).abs() > 20.0 * part.log_z.error, "{name}: no test");
        assert!((part.log_z.exact.unwrap() - there.log_z).abs() < 1e-9, "{name}");
        near(name, part.log_z, there.log_z);
        near(name, part.observables.energy_per_site, there.energy_per_site(12));
        near(name, part.observables.magnetization, there.order.unwrap().m);
        near(name, part.entropy_per_site, part.entropy_per_site.exact.unwrap());
        let free = -there.log_z / (12.0 * beta);
        assert!((part.free_energy_per_site.exact.unwrap() - free).abs() < 1e-9, "{name}");
        // The states with their weights say the same.
        let most = samples.log_weights.iter().fold(f64::NEG_INFINITY, |a, &b| a.max(b));
        let weights: Vec<f64> = samples.log_weights.iter().map(|w| (w - most).exp()).collect();
        let energy: f64 = samples.energies.iter().zip(&weights).map(|(e, w)| e * w).sum();
        let energy = energy / weights.iter().sum::<f64>() / 12.0;
        assert!((energy - part.observables.energy_per_site.mean).abs() < 1e-9, "{name}");
        assert!(matches!(part.warnings[0], WalkerWarning::Stopped { end: BETA, .. }), "{name}");
        assert!(part.snapshots.is_none() && part.path.last().unwrap().t == reached.t);

        let (whole, _) = walkers(job.run_in(&context(&NoProgress)).unwrap());
        assert!(!whole.interrupted && whole.reached.is_none(), "{name}");
        assert_eq!(part.path[..], whole.path[..part.path.len()], "{name}: another path");
        assert_eq!(part.log_z.mean, part.path.last().unwrap().log_z.mean, "{name}");
        assert!(matches!(job.run_whole(&context(&progress)), Err(Error::Interrupted)), "{name}");
    }
}

#[test]
fn temperatures_on_the_way_are_places_to_stop_at() {
    let job = Annealing::ais(problem()).walkers(2000).intervals(INTERVALS).at_beta([0.07, 0.35]);
    let job = Annealing { walkers: WalkerSpec { trace_points: 1, ..job.walkers.clone() }, ..job };
    let run = job.run_in(&context(&StopAfter::units(2000 * 5))).unwrap();
    let reached = run.reached.clone().unwrap();
    assert!((reached.beta.unwrap() - 0.07).abs() < 1e-12, "{reached:?}");
    assert_eq!((run.at_beta.len(), run.path.len()), (1, 1));
    assert_eq!(run.at_beta[0].log_z, run.log_z);
    // Nothing is known before the first of them.
    let early = job.run_in(&context(&StopAfter::units(0)));
    assert!(matches!(early, Err(Error::Interrupted)));
}

#[test]
fn a_stop_after_the_path_keeps_what_the_path_said() {
    for (_, _, job) in jobs() {
        let (Sampler::Annealing(Annealing { resample: None, .. }) | Sampler::Network(_)) = &job
        else {
            continue;
        };
        let mut job = job;
        match &mut job {
            Sampler::Annealing(job) => job.walkers.two_sided = true,
            Sampler::Network(job) => {
                job.walkers.two_sided = true;
                job.walkers.sweeps = None;
            }
            _ => unreachable!(),
        }
        let whole = walkers(job.run_in(&context(&NoProgress)).unwrap()).0;
        assert!(whole.two_sided.is_some() && whole.snapshots.is_some() && !whole.interrupted);
        let pictured = StopAfter::works(1);
        // Walkers of a network look for stops after their last step, too.
        let mut stops = vec![(pictured, true)];
        stops.extend(matches!(job, Sampler::Annealing(_)).then(|| (StopAfter::end(), false)));
        for (progress, pictures) in stops {
            let part = walkers(job.run_in(&context(&progress)).unwrap()).0;
            assert!(part.interrupted && part.two_sided.is_none());
            assert_eq!(part.reached, None);
            assert_eq!(part.snapshots.is_some(), pictures);
            assert_eq!((part.log_z, &part.path), (whole.log_z, &whole.path));
            assert_eq!(part.warnings[0], WalkerWarning::NoWayBack);
        }
    }
}

/// Lets the first samplers run, and stops the one that follows them after some units.
struct StopIn {
    others: AtomicUsize,
    units: i64,
}

impl Monitor for StopIn {
    fn progress(&self, _: &str) -> Box<dyn Progress + '_> {
        let first = self.others.fetch_sub(1, Ordering::Relaxed) > 0;
        Box::new(StopAfter::units(if first { i64::MAX } else { self.units }))
    }
}

#[test]
fn a_comparison_keeps_what_is_finished() {
    let named =
        |name: &str, sampler| NamedSampler { name: name.into(), spec: RunSpec::default(), sampler };
    let ais = || Sampler::Annealing(Annealing::ais(problem()).walkers(500).intervals(INTERVALS));
    let chains = Chains::new(problem()).chains(4).steps(1000).burn_in(10);
    let samplers = vec![named("a", ais()), named("b", ais()), named("c", Sampler::Chains(chains))];
    let comparison = Comparison { problem: problem(), seed: 1, samplers, lenient: true };
    let run = |first: usize, units: i64| {
        let monitor = StopIn { others: first.into(), units };
        comparison.run_in(&context(&NoProgress), &monitor)
    };
    let names = |units, first| -> Vec<String> {
        let found = run(first, units).unwrap();
        assert!(found.interrupted && found.asked == Some(3));
        found.samplers.iter().map(|one| one.name.clone()).collect()
    };
    assert_eq!(names(1, 1), ["a"]);
    // Halfway to the target, it cannot stand beside those that are there.
    assert_eq!(names(500 * 25, 1), ["a"]);
    assert_eq!(names(1, 2), ["a", "b"]);
    assert_eq!(names(4 * 500, 2), ["a", "b", "c"]);
    assert!(matches!(run(0, 500 * 25), Err(Error::Interrupted)));
    assert!(matches!(run(0, 1), Err(Error::Interrupted)));
    let whole = run(3, 1).unwrap();
    assert!(!whole.interrupted && whole.asked.is_none() && whole.samplers.len() == 3);
}

#[test]
fn free_energies_keep_the_temperatures_that_walkers_have_passed() {
    let mut job = FreeEnergies::new(problem()).betas([0.05, 0.1, 0.4]);
    job.method = FreeEnergyMethod::Ais;
    (job.spec.walkers.walkers, job.spec.walkers.intervals) = (2000, INTERVALS);
    let monitor = StopIn { others: 0.into(), units: 2000 * 24 };
    let found = job.run_in(&context(&NoProgress), &monitor).unwrap();
    let betas: Vec<f64> = found.points.iter().map(|point| point.beta).collect();
    assert_eq!((betas, found.asked, found.interrupted), (vec![0.05, 0.1], Some(3), true));
    for point in &found.points {
        near("free energy", point.log_z, exact(point.beta).log_z);
    }
    assert!(found.warnings.iter().all(|warning| !warning.contains("interrupted")));
}
