//! Walkers of any kind: parts of a run are the run, lockstep is one by one, and neither threads nor ranks change a byte.

use std::sync::{Arc, Barrier, Mutex};

use leaps::device::{NoProgress, Placement, Ranks};
use leaps::job::Context;
use leaps::mcmc::KernelName;
use leaps::mcmc::lanes::Scan;
use leaps::net::{FreeEnergy, FreeEnergySpec, MlpSpec, Net, NetSpec};
use leaps::path::{Path, Schedule};
use leaps::prelude::*;
use leaps::rates::Parametrisation;
use leaps::sampler::{
    Amount, Grid, Lineage, Moves, NetworkWalk, Population, RateModel, Resampler, Resampling,
    Scheme, Settings, Span, Times, WalkPlan, Walkers, sample,
};
use leaps::target::{Boundary, Lattice, Pairwise, TargetIdentity};
use leaps::train::{Objective, Reference, TrainSpec, Trainer};
use leaps::{Error, Result};

/// A three-body energy beside a field, which may prefer batches.
struct Triplets {
    q: usize,
    batches: bool,
    version: Option<&'static str>,
    scale: f64,
}

impl Triplets {
    fn new(q: usize, batches: bool) -> Self {
        Triplets { q, batches, version: None, scale: 1.0 }
    }
}

impl Target for Triplets {
    fn sites(&self) -> usize {
        7
    }
    fn q(&self) -> usize {
        self.q
    }
    fn terms(&self) -> usize {
        2
    }
    fn energy(&self, term: usize, x: &[u8]) -> f64 {
        let spin = |i: usize| f64::from(x[i % 7]) - 0.5;
        match term {
            0 => -self.scale * (0..7).map(|i| spin(i) * spin(i + 1) * spin(i + 3)).sum::<f64>(),
            _ => 0.3 * (0..7).map(spin).sum::<f64>(),
        }
    }
    fn prefers_batches(&self) -> bool {
        self.batches
    }
    fn identity(&self) -> TargetIdentity {
        let version = self.version.map(str::to_owned);
        TargetIdentity::Custom { name: self.name(), version }
    }
}

fn moves(kernel: KernelName) -> Moves {
    Moves { kernel, amount: Amount::Steps(2), scan: Scan::Systematic, reversed: false }
}

fn settings(kernel: KernelName, resampling: Resampling) -> Settings {
    let times = Times::Uniform(12);
    let (moves, trace_points, stops) = (moves(kernel), 4, Vec::new());
    Settings { walkers: 130, times, moves, resampling, trace_points, stops, seed: 3 }
}

#[test]
fn lockstep_walkers_are_in_the_states_of_walkers_moved_one_by_one() {
    let often = Resampling { threshold: 1.0, resampler: Resampler::Systematic };
    for q in [2, 3, 5] {
        let path = Path::new(&[0.9, 0.4], Schedule::Trigonometric).unwrap();
        for kernel in [KernelName::HeatBath, KernelName::Metropolis] {
            for resampling in [Resampling::NEVER, often] {
                let [one, all] = [false, true].map(|batches| {
                    let target: Arc<dyn Target> = Arc::new(Triplets::new(q, batches));
                    let settings = settings(kernel, resampling);
                    sample(&target, &path, &settings, &NoProgress).unwrap().0
                });
                assert_eq!(one.states, all.states, "{q} {kernel}");
                assert_eq!(one.weights.log(), all.weights.log(), "{q} {kernel}");
                assert_eq!((one.energies, one.cost), (all.energies, all.cost), "{q} {kernel}");
                assert_eq!(resampling.is_never(), one.segments.resamplings() == 0);
            }
        }
    }
}

/// Fails in the middle of a run.
struct Failing;

impl Target for Failing {
    fn sites(&self) -> usize {
        4
    }
    fn q(&self) -> usize {
        2
    }
    fn energy(&self, _term: usize, _x: &[u8]) -> f64 {
        0.0
    }
    fn prefers_batches(&self) -> bool {
        true
    }
    fn changes_many(&self, _: &[f64], _: &mut [u8], site: usize, _: &mut [f64]) -> Result<()> {
        match site {
            2 => Err(Error::not_applicable("the energy", "its worker is gone")),
            _ => Ok(()),
        }
    }
}

#[test]
fn a_batch_that_fails_ends_the_run_with_its_error() {
    let target: Arc<dyn Target> = Arc::new(Failing);
    let path = Path::new(&[1.0], Schedule::Linear).unwrap();
    let settings = settings(KernelName::HeatBath, Resampling::NEVER);
    let error = sample(&target, &path, &settings, &NoProgress).err().unwrap().to_string();
    assert!(error.contains("its worker is gone"), "{error}");
}

/// States, log-weights and energies after the whole grid.
fn walked(mut walkers: Box<dyn Walkers>, grid: &Grid) -> (Vec<u8>, Vec<f64>, Vec<f64>) {
    let mut lineage = Lineage::new(walkers.walkers(), 0.0, 1);
    let (span, never) = (Span::whole(grid), &Resampling::NEVER);
    walkers.advance(span, never, &mut lineage, &NoProgress).unwrap();
    (walkers.states().unwrap(), lineage.log_weights, walkers.energies().unwrap())
}

#[test]
fn walkers_with_a_first_number_are_those_of_the_whole_run() {
    let torus = Lattice::new(&[3, 3], Boundary::Periodic).unwrap();
    let ising: Arc<dyn Target> = Arc::new(Pairwise::ising(torus, 1.0, 0.2).unwrap());
    let plain: Arc<dyn Target> = Arc::new(Triplets::new(3, false));
    let batches: Arc<dyn Target> = Arc::new(Triplets::new(3, true));
    let path = &Path::new(&[0.4, 0.4], Schedule::Linear).unwrap();
    let net = Arc::new(Net::new(&NetSpec::Mlp(MlpSpec { hidden: 4 }), &*ising).unwrap());
    let rates = &RateModel::new(&net, &net.initial(3), Parametrisation::Barker);
    let plan = &WalkPlan::new(path, Scheme::Events, &[0.0, 0.3, 1.0]).unwrap().sweeps(1);
    let grid = &Grid::uniform(path, 5).unwrap();
    let swept = |target: &Arc<dyn Target>, population| {
        let moves = moves(KernelName::HeatBath);
        walked(moves.walkers(&Placement::Cpu, target, path, population).unwrap(), grid)
    };
    let network = |population| {
        let walk = NetworkWalk { target: &ising, path, rates, plan, population };
        walked(walk.on(&Placement::Cpu).unwrap(), &plan.grid)
    };
    let whole = Population::new(150, 7);
    let part = Population { walkers: 80, first: 70, seed: 7 };
    for (name, all, some, sites) in [
        ("lanes", swept(&ising, whole), swept(&ising, part), 9),
        ("kernels", swept(&plain, whole), swept(&plain, part), 7),
        ("lockstep", swept(&batches, whole), swept(&batches, part), 7),
        ("network", network(whole), network(part), 9),
    ] {
        assert_eq!(all.0[70 * sites..], some.0, "{name}");
        assert_eq!(all.1[70..], some.1, "{name}");
        assert_eq!(all.2[70 * 2..], some.2, "{name}");
    }
    let far = Population { walkers: 2, first: u32::MAX as usize, seed: 1 };
    assert!(far.check().is_err() && Population::new(0, 1).check().is_err());
}

#[test]
fn jobs_give_the_same_bytes_for_any_number_of_threads() {
    let problem = Ising::square(5).beta(0.4).unwrap();
    let run = |threads| {
        let context = Context { threads, ..Context::default() };
        let run = Annealing::smc(problem.clone()).walkers(200).intervals(10);
        let samples = run.run_in(&context).unwrap().samples;
        (samples.states, samples.log_weights)
    };
    let all = run(None);
    assert!(run(Some(1)) == all && run(Some(3)) == all);
}

/// Two ranks in one process.
struct Pair {
    rank: usize,
    barrier: Arc<Barrier>,
    numbers: Arc<Mutex<[Vec<f32>; 2]>>,
}

impl Ranks for Pair {
    fn rank(&self) -> usize {
        self.rank
    }
    fn size(&self) -> usize {
        2
    }
    fn sum(&self, numbers: &mut [f32]) -> Result<()> {
        self.numbers.lock().unwrap()[self.rank] = numbers.to_vec();
        self.barrier.wait();
        let all = self.numbers.lock().unwrap().clone();
        self.barrier.wait();
        for (i, number) in numbers.iter_mut().enumerate() {
            *number = all[0][i] + all[1][i];
        }
        Ok(())
    }
    fn exchange(&self, _: Vec<Vec<u8>>) -> Result<Vec<Vec<u8>>> {
        unreachable!("training exchanges nothing")
    }
}

fn objective() -> Objective {
    let torus = Lattice::new(&[3, 3], Boundary::Periodic).unwrap();
    let target: Arc<dyn Target> = Arc::new(Pairwise::ising(torus, 1.0, 0.2).unwrap());
    let path = Path::new(&[0.4, 0.4], Schedule::Linear).unwrap();
    let net = Arc::new(Net::new(&NetSpec::Mlp(MlpSpec { hidden: 4 }), &*target).unwrap());
    let free = Arc::new(FreeEnergy::new(&FreeEnergySpec::Rate, 9).unwrap());
    Objective::new(&target, &path, &net, &free, Parametrisation::Barker)
}

/// Parameters after some steps. Seeds are those of the reference states; parameters start alike.
fn trained(seed: u64, ranks: Option<Pair>) -> Vec<f32> {
    let (batch, pool, reference) = (32, 64, Reference::Pool);
    let spec = TrainSpec { batch, pool, reference, ..TrainSpec::default() };
    let objective = objective();
    let mut trainer = Trainer::new(&objective, &spec, seed, &NoProgress).unwrap();
    trainer.start_from(&objective.initial(1)).unwrap();
    if let Some(ranks) = ranks {
        trainer = trainer.with_ranks(Arc::new(ranks));
    }
    for _ in 0..4 {
        trainer.step(&NoProgress).unwrap();
    }
    trainer.state.optimiser.parameters
}

#[test]
fn ranks_follow_the_mean_of_their_gradients() {
    let both = |seeds: [u64; 2]| {
        let (barrier, numbers) = (Arc::new(Barrier::new(2)), Arc::default());
        let pair =
            |rank| Pair { rank, barrier: Arc::clone(&barrier), numbers: Arc::clone(&numbers) };
        std::thread::scope(|scope| {
            let [a, b] = [0, 1].map(|rank| {
                let pair = pair(rank);
                scope.spawn(move || trained(seeds[rank], Some(pair)))
            });
            (a.join().unwrap(), b.join().unwrap())
        })
    };
    let alone = trained(1, None);
    let (a, b) = both([1, 1]);
    assert!(a == alone && b == alone, "the mean of equal gradients is the gradient");
    let (a, b) = both([1, 2]);
    assert!(a == b, "ranks stay together");
    assert!(a != alone, "and follow both");
}

#[test]
fn jobs_refuse_ranks_that_would_all_draw_the_same() {
    let problem = Ising::square(3).beta(0.4).unwrap();
    let pair = Pair { rank: 0, barrier: Arc::new(Barrier::new(1)), numbers: Arc::default() };
    let context = Context { ranks: Arc::new(pair), ..Context::default() };
    let network = NetworkOptions { kind: Some(leaps::net::NetworkKind::Mlp), ..Default::default() };
    let training = Training::new(problem.clone()).steps(2).batch(16).network(network);
    let model = training.run().unwrap().model;
    let refused = [
        Annealing::smc(problem.clone()).walkers(4).intervals(2).run_in(&context).err(),
        Sampling::new(model, problem.clone()).walkers(4).intervals(2).run_in(&context).err(),
        Chains::new(problem.clone()).chains(2).steps(20).run_in(&context).err(),
        training.run_in(&context, &NoProgress).err(),
        Minimizing::new(problem.clone()).run_in(&context, &NoProgress).err(),
        Solving::new(problem).run_in(&context).err(),
    ];
    for (job, error) in refused.into_iter().enumerate() {
        let text = error.map(|error| error.to_string()).unwrap_or_default();
        assert!(text.starts_with("ranks = 2: must be 1"), "job {job}: {text}");
    }
}

#[test]
fn models_of_custom_energies_are_bound_to_them() {
    let problem = |triplets: Triplets| Problem::new(triplets, 0.5).unwrap();
    let first = Triplets { version: Some("1"), ..Triplets::new(2, false) };
    let own = problem(first);
    let identity = TargetIdentity::Custom { name: "Triplets".into(), version: Some("1".into()) };
    assert_eq!(own.identity(), identity);
    let network = NetworkOptions { kind: Some(leaps::net::NetworkKind::Mlp), ..Default::default() };
    let model = Training::new(own.clone()).steps(2).batch(16).network(network).run().unwrap();
    let sampling = |problem: Problem| {
        Sampling::new(model.model.clone(), problem).walkers(10).intervals(3).run()
    };
    sampling(own).unwrap();
    // The same energy through batches is the same energy.
    sampling(problem(Triplets { version: Some("1"), ..Triplets::new(2, true) })).unwrap();
    for (other, what) in [
        (Triplets { version: Some("2"), ..Triplets::new(2, false) }, "version"),
        (Triplets { version: Some("1"), scale: 1.1, ..Triplets::new(2, false) }, "energies"),
    ] {
        let error = sampling(problem(other)).err().unwrap().to_string();
        assert!(error.contains("Triplets") && error.contains(what), "{error}");
    }
    let built_in = Ising::square(3).beta(0.4).unwrap();
    assert!(matches!(built_in.identity(), TargetIdentity::BuiltIn(_)));
    assert!(sampling(built_in).is_err());
}
