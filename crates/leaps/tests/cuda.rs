//! The GPU beside the CPU, through the public interface.
#![cfg(feature = "cuda")]

use std::sync::Arc;

use leaps::device::{NoProgress, Placement, Precision};
use leaps::exact::enumerate;
use leaps::mcmc::lanes::Scan;
use leaps::mcmc::{AnyKernel, KernelName};
use leaps::net::{FreeEnergy, FreeEnergySpec, HollowSpec, MlpSpec, Net, NetSpec};
use leaps::path::{Path, Schedule};
use leaps::prelude::{Ising, Potts};
use leaps::rates::Parametrisation;
use leaps::sampler::{
    Amount, Ensemble, Grid, KernelWalkers, Moves, NetworkWalk, Population, Protocol, RateModel,
    Resampler, Resampling, Scheme, Settings, Times, WalkPlan, anneal, sample_on,
};
use leaps::target::{Boundary, Bravais, Disorder, Lattice, Pairwise, Target, TargetSpec};
use leaps::train::{Objective, TrainSpec, Trainer};

fn gpu(precision: Precision) -> Placement {
    Placement::cuda(0, precision).unwrap()
}

/// Whether there are so few walkers that only the kernels are tested, not the statistics: `LEAPS_FEW_WALKERS=1`, for
/// tools that slow kernels down a hundred times.
fn few() -> bool {
    std::env::var_os("LEAPS_FEW_WALKERS").is_some()
}

fn up_to(walkers: usize) -> usize {
    if few() { walkers.min(130) } else { walkers }
}

fn ising(side: usize) -> Arc<dyn Target> {
    let lattice = Lattice::new(&[side, side], Boundary::Periodic).unwrap();
    Arc::new(Pairwise::ising(lattice, 1.0, 0.1).unwrap())
}

/// The target of a description with bonds beyond those to nearest neighbours along the axes.
fn further(spec: TargetSpec) -> Arc<dyn Target> {
    spec.beta(1.0).unwrap().target
}

fn hollow(target: &dyn Target) -> Net {
    let spec = HollowSpec { channels: 16, ..HollowSpec::default() };
    Net::new(&NetSpec::Hollow(spec), target).unwrap()
}

/// Weighted walkers of a network that has learned nothing but says much.
fn run(
    placement: &Placement,
    target: &Arc<dyn Target>,
    beta: f64,
    (scheme, intervals): (Scheme, usize),
    walkers: usize,
) -> (Ensemble, Vec<u8>) {
    let net = Arc::new(hollow(&**target));
    let parameters: Vec<f32> = net.initial(3).iter().map(|p| 2.5 * p).collect();
    let rates = &RateModel::new(&net, &parameters, Parametrisation::Barker);
    let path = Path::new(&vec![beta; target.terms()], Schedule::Linear).unwrap();
    let cuts: Vec<f64> = (0..=intervals).map(|k| k as f64 / intervals as f64).collect();
    let plan = &WalkPlan::new(&path, scheme, &cuts).unwrap();
    let population = Population::new(walkers, 7);
    let walk = NetworkWalk { target, path: &path, rates, plan, population };
    let mut walkers = walk.on(placement).unwrap();
    let resampling = Resampling::NEVER;
    let protocol = Protocol { grid: &plan.grid, resampling, trace_points: 1, seed: 7 };
    let ensemble = anneal(&**target, &mut *walkers, protocol, &NoProgress).unwrap();
    let states = walkers.states().unwrap();
    (ensemble, states)
}

#[test]
#[ignore = "needs a GPU: cargo test -p leaps --test cuda -- --ignored --skip speed"]
fn walkers_take_the_same_way_on_a_gpu() {
    let placement = gpu(Precision::Float32);
    let frustrated = further(Ising::square(8).j2(-0.6).field(0.1));
    for (name, target, beta) in [("ising", ising(8), 0.4), ("J1-J2", frustrated, 0.5)] {
        for scheme in [Scheme::Events, Scheme::Euler, Scheme::Trapezoid] {
            let walkers = up_to(1000);
            let (_, here) = run(&Placement::Cpu, &target, beta, (scheme, 20), walkers);
            let (_, there) = run(&placement, &target, beta, (scheme, 20), walkers);
            let same = here.chunks(64).zip(there.chunks(64)).filter(|(a, b)| a == b).count();
            println!("{name} {scheme:?}: {same} of {walkers} walkers end in the same state");
            assert!(100 * same >= 99 * walkers, "{name} {scheme:?}: only {same} of {walkers}");
        }
    }
}

/// Rounding the network to 8 bits leaves the weights exact: out and back rates come from the same numbers, and J stays
/// antisymmetric. Steps of fixed length are what a bias looks like: with 5 of them, log Z is off by far more.
fn weights_are_exact(placement: &Placement) {
    let (target, beta) = (ising(4), 0.15);
    let name = hollow(&*target).computed_on(placement);
    let wanted = enumerate::solve(&*target, &[beta; 2], &NoProgress).unwrap().log_z;
    let z = |scheme| {
        let (ensemble, _) = run(placement, &target, beta, (scheme, 5), up_to(100_000));
        let log_z = ensemble.log_z();
        println!("{name} {scheme:?}: ESS {}, {log_z:?}", ensemble.weights.ess());
        (log_z.mean - wanted) / log_z.error
    };
    let (events, euler) = (z(Scheme::Events), z(Scheme::Euler));
    assert!(events.abs() < 4.0, "{name}: {events} errors");
    assert!(few() || euler.abs() > 5.0, "{name}: {euler} errors, too few to tell");
}

#[test]
fn weights_are_exact_on_the_cpu() {
    weights_are_exact(&Placement::Cpu);
}

#[test]
#[ignore = "needs a GPU: cargo test -p leaps --test cuda -- --ignored --skip speed"]
fn weights_are_exact_on_a_gpu_whatever_the_precision() {
    for precision in [Precision::Float32, Precision::Tf32, Precision::Bf16] {
        weights_are_exact(&gpu(precision));
    }
}

#[test]
#[ignore = "needs a GPU: cargo test -p leaps --test cuda -- --ignored --skip speed"]
fn training_goes_the_same_way_on_a_gpu() {
    let placement = gpu(Precision::Float32);
    let target = ising(6);
    let net = Arc::new(hollow(&*target));
    let free = Arc::new(FreeEnergy::new(&FreeEnergySpec::Rate, target.sites()).unwrap());
    let path = Path::new(&[0.4, 0.4], Schedule::Linear).unwrap();
    let spec = TrainSpec { batch: 64, pool: 256, ..TrainSpec::default() };
    let losses = |placement: &Placement| -> Vec<f64> {
        let objective = Objective::new(&target, &path, &net, &free, Parametrisation::Barker);
        let trainer = Trainer::new(&objective, &spec, 5, &NoProgress).unwrap();
        let mut trainer = trainer.place_on(placement).unwrap();
        (0..8).map(|_| trainer.step(&NoProgress).unwrap().loss).collect()
    };
    let (here, there) = (losses(&Placement::Cpu), losses(&placement));
    println!("{here:?}\n{there:?}");
    for (a, b) in here.iter().zip(&there) {
        assert!((a / b - 1.0).abs() < 1e-3, "{a} and {b}");
    }
}

/// Targets with tables of every code, and one without tables: complete graphs have too many neighbours.
fn targets() -> Vec<(&'static str, Arc<dyn Target>, f64)> {
    let torus = |side| Lattice::new(&[side, side], Boundary::Periodic).unwrap();
    let free = Lattice::new(&[5, 7], Boundary::Free).unwrap();
    let glass = Pairwise::edwards_anderson(torus(6), Disorder::Gaussian, 2).unwrap();
    let complete = Pairwise::sherrington_kirkpatrick(40, Disorder::Gaussian, 3).unwrap();
    vec![
        ("ising", ising(8), 0.4),
        ("free ends", Arc::new(Pairwise::ising(free, -1.0, 0.2).unwrap()), 0.6),
        ("potts 3", Arc::new(Pairwise::potts(torus(6), 3, 1.0, 0.3).unwrap()), 0.9),
        ("potts 5", Arc::new(Pairwise::potts(torus(5), 5, 1.0, 0.0).unwrap()), 1.1),
        ("glass", Arc::new(glass.with_uniform_field(-0.2).unwrap()), 0.9),
        ("complete", Arc::new(complete), 0.7),
        ("beyond shared memory", ising(95), 0.3),
        ("J1-J2", further(Ising::square(8).j2(-0.6).field(0.1)), 0.8),
        ("triangular", further(Ising::triangular(6).coupling(-1.0).field(0.2)), 0.7),
        ("fcc", further(Ising::lattice(&[4, 4, 3]).on(Bravais::Fcc).coupling(-1.0)), 0.4),
        ("many neighbours", further(Ising::lattice(&[4, 4, 3]).on(Bravais::Fcc).j2(0.2)), 0.2),
        ("potts, triangular", further(Potts::lattice(3, &[6, 6]).on(Bravais::Triangular)), 0.6),
    ]
}

fn annealing(walkers: usize, kernel: KernelName) -> Settings {
    Settings {
        walkers,
        times: Times::Uniform(25),
        moves: Moves { kernel, amount: Amount::Steps(1), scan: Scan::Systematic, reversed: false },
        resampling: Resampling::NEVER,
        trace_points: 4,
        stops: Vec::new(),
        seed: 11,
    }
}

fn anneal_on(
    placement: &Placement,
    target: &Arc<dyn Target>,
    beta: f64,
    settings: &Settings,
) -> Ensemble {
    let path = Path::new(&vec![beta; target.terms()], Schedule::Trigonometric).unwrap();
    sample_on(placement, target, &path, settings, &NoProgress).unwrap().0
}

/// The same with walkers that the kernel moves one by one.
fn one_by_one(target: &Arc<dyn Target>, beta: f64, settings: &Settings) -> Ensemble {
    let &Settings { walkers, ref moves, resampling, trace_points, seed, .. } = settings;
    let path = Path::new(&vec![beta; target.terms()], Schedule::Trigonometric).unwrap();
    let kernel = AnyKernel::new(moves.kernel, &**target, path.ends()).unwrap();
    let population = Population::new(walkers, seed);
    let mut walkers = KernelWalkers::new(target, &kernel, 1, population).unwrap();
    let grid = &Grid::uniform(&path, 25).unwrap();
    let protocol = Protocol { grid, resampling, trace_points, seed };
    anneal(&**target, &mut walkers, protocol, &NoProgress).unwrap()
}

/// AIS and SMC: walkers in the same states with the same weights and families.
fn same_walkers(name: &str, target: &Arc<dyn Target>, here: &Ensemble, there: &Ensemble) {
    let (n, sites) = (here.weights.len(), target.sites());
    let differ = (0..n).filter(|i| {
        here.states[i * sites..][..sites] != there.states[i * sites..][..sites]
            || (here.weights.log()[*i] - there.weights.log()[*i]).abs() > 1e-9
            || here.families.of(*i) != there.families.of(*i)
    });
    let differ = differ.count();
    let log_z = (here.log_z().mean, there.log_z().mean);
    let resamplings = (here.segments.resamplings(), there.segments.resamplings());
    println!("{name}: {differ} of {n} walkers differ, log Z {log_z:?}, resampled {resamplings:?}");
    assert!(differ * 200 <= n, "{name}: {differ} of {n} walkers differ");
    assert_eq!(resamplings.0, resamplings.1, "{name}");
    if differ == 0 {
        assert!((log_z.0 - log_z.1).abs() < 1e-9, "{name}: {log_z:?}");
        assert!((here.smallest_step - there.smallest_step).abs() < 1e-9, "{name}");
        for (a, b) in here.trace.iter().zip(&there.trace) {
            assert!((a.ess - b.ess).abs() < 1e-9 && a.resampled == b.resampled, "{name}");
            assert!((a.log_z.mean - b.log_z.mean).abs() < 1e-9, "{name}");
        }
    }
    assert_eq!(here.cost, there.cost, "{name}");
}

#[test]
#[ignore = "needs a GPU: cargo test -p leaps --test cuda -- --ignored --skip speed"]
fn annealed_walkers_take_the_same_way_on_a_gpu() {
    let placement = gpu(Precision::Float32);
    for (name, target, beta) in targets() {
        for kernel in Moves::ON_GPU {
            let walkers = if target.sites() > 1000 { 70 } else { up_to(1000) };
            let ais = annealing(walkers, kernel);
            let resampling = Resampling { threshold: 0.7, resampler: Resampler::Systematic };
            let smc = Settings { resampling, ..ais.clone() };
            for (kind, settings) in [("ais", ais), ("smc", smc)] {
                let there = anneal_on(&placement, &target, beta, &settings);
                // The CPU counts the neighbours there that GPUs go through one by one.
                let here = match name {
                    "many neighbours" => one_by_one(&target, beta, &settings),
                    _ => anneal_on(&Placement::Cpu, &target, beta, &settings),
                };
                same_walkers(&format!("{kind} {kernel} {name}"), &target, &here, &there);
            }
        }
    }
}

/// Other orders, parts of sweeps, and several sweeps an interval.
#[test]
#[ignore = "needs a GPU: cargo test -p leaps --test cuda -- --ignored --skip speed"]
fn other_amounts_take_the_same_way_on_a_gpu() {
    let placement = gpu(Precision::Float32);
    let has_tables = |name: &str| !["complete", "many neighbours"].contains(&name);
    for (name, target, beta) in targets().into_iter().filter(|(name, ..)| has_tables(name)) {
        for kernel in Moves::ON_GPU {
            for amount in [Amount::Steps(3), Amount::Updates(1), Amount::Updates(43)] {
                let walkers = if target.sites() > 1000 { 10 } else { up_to(300) };
                let mut settings = annealing(walkers, kernel);
                settings.moves = Moves { kernel, amount, scan: Scan::Coloured, reversed: false };
                // Adaptive times of a large lattice are thousands.
                if !(few() && target.sites() > 1000) {
                    settings.times = Times::Adaptive { conditional_ess: 0.8, pilot_walkers: 64 };
                }
                let [here, there] =
                    [&Placement::Cpu, &placement].map(|at| anneal_on(at, &target, beta, &settings));
                same_walkers(&format!("{name} {kernel} {amount:?}"), &target, &here, &there);
            }
        }
    }
}

/// Ancestors of every scheme, for populations of one walker, of odd numbers and of more than a block has threads.
#[test]
#[ignore = "needs a GPU: cargo test -p leaps --test cuda -- --ignored --skip speed"]
fn ancestors_are_the_same_on_a_gpu() {
    let placement = gpu(Precision::Float32);
    let target = ising(6);
    for resampler in Resampler::ALL {
        for walkers in [1, 2, 31, 1023, 1025, 20_001].into_iter().filter(|n| !few() || *n < 2000) {
            let resampling = Resampling { threshold: 0.999, resampler };
            let settings = Settings { resampling, ..annealing(walkers, KernelName::HeatBath) };
            let [here, there] =
                [&Placement::Cpu, &placement].map(|at| anneal_on(at, &target, 0.5, &settings));
            same_walkers(&format!("{resampler:?} {walkers}"), &target, &here, &there);
            assert!(walkers < 31 || there.segments.resamplings() > 5, "{resampler:?} {walkers}");
        }
    }
}

/// Networks too are resampled on the GPU.
#[test]
#[ignore = "needs a GPU: cargo test -p leaps --test cuda -- --ignored --skip speed"]
fn walkers_of_networks_are_resampled_on_a_gpu() {
    let placement = gpu(Precision::Float32);
    let target = &ising(6);
    let net = Arc::new(Net::new(&NetSpec::Mlp(MlpSpec { hidden: 8 }), &**target).unwrap());
    let parameters: Vec<f32> = net.initial(3).iter().map(|p| 2.2 * p).collect();
    let rates = &RateModel::new(&net, &parameters, Parametrisation::Barker);
    let path = Path::new(&[0.3, 0.3], Schedule::Linear).unwrap();
    let cuts: Vec<f64> = (0..=12).map(|k| f64::from(k) / 12.0).collect();
    for scheme in [Scheme::Events, Scheme::Euler, Scheme::Trapezoid] {
        let plan = &WalkPlan::new(&path, scheme, &cuts).unwrap().sweeps(1);
        let resampling = Resampling { threshold: 0.8, resampler: Resampler::Systematic };
        let [here, there] = [&Placement::Cpu, &placement].map(|placement| {
            let population = Population::new(500, 7);
            let walk = NetworkWalk { target, path: &path, rates, plan, population };
            let protocol = Protocol { grid: &plan.grid, resampling, trace_points: 2, seed: 7 };
            let mut walkers = walk.on(placement).unwrap();
            anneal(&**target, &mut *walkers, protocol, &NoProgress).unwrap()
        });
        let resamplings = (here.segments.resamplings(), there.segments.resamplings());
        let log_z = (here.log_z(), there.log_z());
        println!("{scheme:?}: {log_z:?}, resampled {resamplings:?}");
        assert_eq!(resamplings.0, resamplings.1, "{scheme:?}");
        assert!(resamplings.0 > 0, "{scheme:?}");
        assert!((log_z.0.mean - log_z.1.mean).abs() < 0.2 * log_z.0.error, "{scheme:?}");
    }
}

#[test]
#[ignore = "needs a GPU: cargo test -p leaps --test cuda -- --ignored --skip speed"]
fn log_z_of_annealing_on_a_gpu_is_exact() {
    let placement = gpu(Precision::Float32);
    let torus = |shape: &[usize]| Lattice::new(shape, Boundary::Periodic).unwrap();
    let glass = Pairwise::edwards_anderson(torus(&[4, 4]), Disorder::Gaussian, 2).unwrap();
    for (name, target, beta) in [
        ("ising", ising(4), 0.44),
        ("potts", Arc::new(Pairwise::potts(torus(&[3, 3]), 3, 1.0, 0.3).unwrap()), 0.9),
        ("glass", Arc::new(glass.with_uniform_field(-0.2).unwrap()), 0.8),
        ("J1-J2", further(Ising::lattice(&[3, 4]).j2(-0.6).field(0.15)), 0.6),
    ] {
        let lambda = vec![beta; target.terms()];
        let wanted = enumerate::solve(&*target, &lambda, &NoProgress).unwrap().log_z;
        for kernel in Moves::ON_GPU {
            for threshold in [0.0, 0.9] {
                let resampling = Resampling { threshold, resampler: Resampler::Systematic };
                let settings = Settings { resampling, ..annealing(up_to(100_000), kernel) };
                let log_z = anneal_on(&placement, &target, beta, &settings).log_z();
                let z = (log_z.mean - wanted) / log_z.error;
                println!("{name} {kernel} {threshold}: {log_z:?}, exact {wanted}, {z:.2} errors");
                // Errors are about 0.005: a bias of 0.03 is seen.
                assert!(
                    z.abs() < 5.0 && (few() || log_z.error < 0.01),
                    "{name} {kernel} {threshold}: {z}"
                );
            }
        }
    }
}

#[test]
fn kernels_that_gpus_do_not_have_are_refused() {
    let settings = annealing(10, KernelName::Wolff);
    let error = settings.moves.check_gpu(&*ising(4)).unwrap_err().to_string();
    assert!(
        error.contains("heat-bath and metropolis") && error.contains("the device cpu"),
        "{error}"
    );
}

#[test]
#[ignore = "needs a GPU: cargo test -p leaps --test cuda -- --ignored --skip speed"]
fn gpus_refuse_what_they_do_not_have() {
    let (placement, settings) = (gpu(Precision::Float32), annealing(10, KernelName::Wolff));
    let path = Path::new(&[0.4, 0.4], Schedule::Linear).unwrap();
    assert!(sample_on(&placement, &ising(4), &path, &settings, &NoProgress).is_err());
}

/// Seconds of AIS and SMC on 15x15 Ising, resampled here and there; run it in release mode.
#[test]
#[ignore = "a measurement"]
fn speed_of_annealing() {
    let placement = gpu(Precision::Float32);
    let target = ising(15);
    let path = Path::new(&[0.4407; 2], Schedule::Linear).unwrap();
    for walkers in [1000, 20_000, 1_000_000] {
        for (kind, threshold, resampler) in [
            ("ais", 0.0, Resampler::Systematic),
            ("smc, systematic", 0.9, Resampler::Systematic),
            ("smc, multinomial", 0.9, Resampler::Multinomial),
        ] {
            for placement in [&Placement::Cpu, &placement] {
                if walkers > 100_000 && placement.name() == "cpu" {
                    continue;
                }
                let resampling = Resampling { threshold, resampler };
                let settings = Settings {
                    times: Times::Uniform(200),
                    trace_points: 1,
                    resampling,
                    ..annealing(walkers, KernelName::HeatBath)
                };
                // The first run compiles kernels.
                let mut seconds = [0.0; 2];
                for seconds in &mut seconds {
                    let start = std::time::Instant::now();
                    sample_on(placement, &target, &path, &settings, &NoProgress).unwrap();
                    *seconds = start.elapsed().as_secs_f64();
                }
                let updates = 200.0 * (walkers * target.sites()) as f64;
                println!(
                    "{} {kind}, {walkers} walkers: {:.3} s, {:.2} G updates/s",
                    placement.name(),
                    seconds[1],
                    1e-9 * updates / seconds[1]
                );
            }
        }
    }
}
