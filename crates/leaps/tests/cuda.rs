//! Whether a card computes what the processor does, through the public interface. Says so and skips where there is no card.
#![cfg(feature = "cuda")]

use leaps::device::{Engine, Precision, Unwatched};
use leaps::exact::enumerate;
use leaps::net::{FreeEnergy, FreeEnergySpec, HollowSpec, Net, NetSpec};
use leaps::path::{Path, Schedule};
use leaps::rates::Parametrisation;
use leaps::sampler::{Ensemble, Flow, Resampling, Stepper, anneal, flow_grid, followers};
use leaps::target::{Boundary, Lattice, Pairwise, Target};
use leaps::train::{TrainSpec, Trainer};

fn card(precision: Precision) -> Option<Engine> {
    Engine::cuda(precision).inspect_err(|error| println!("skipped: {error}")).ok()
}

fn ising(side: usize) -> Pairwise {
    let lattice = Lattice::new(&[side, side], Boundary::Periodic).unwrap();
    Pairwise::ising(lattice, 1.0, 0.1).unwrap()
}

fn hollow(target: &dyn Target) -> Net {
    let spec = HollowSpec { channels: 16, ..HollowSpec::default() };
    Net::new(&NetSpec::Hollow(spec), target).unwrap()
}

/// Weighted walkers of a network that has learned nothing but says much.
fn run(
    engine: &Engine,
    target: &dyn Target,
    beta: f64,
    (stepper, intervals): (Stepper, usize),
    walkers: usize,
) -> (Ensemble, Vec<u8>) {
    let net = hollow(target);
    let parameters: Vec<f32> = net.initial(3).iter().map(|p| 2.5 * p).collect();
    let flow = Flow::new(&net, &parameters, Parametrisation::Barker);
    let path = Path::new(&vec![beta; target.terms()], Schedule::Linear).unwrap();
    let cuts: Vec<f64> = (0..=intervals).map(|k| k as f64 / intervals as f64).collect();
    let (grid, durations) = flow_grid(&path, stepper, &cuts).unwrap();
    let mut population =
        followers(engine, target, &path, &flow, stepper, durations, 0, walkers, 7).unwrap();
    let never = Resampling::NEVER;
    let ensemble = anneal(target, &mut *population, &grid, &never, 1, 7, &Unwatched).unwrap();
    let states = population.states().unwrap();
    (ensemble, states)
}

#[test]
fn walkers_take_the_same_way_on_a_card() {
    let Some(engine) = card(Precision::Float32) else { return };
    let target = ising(8);
    for stepper in [Stepper::Events, Stepper::Euler, Stepper::Trapezoid] {
        let (_, here) = run(&Engine::Cpu, &target, 0.4, (stepper, 20), 1000);
        let (_, there) = run(&engine, &target, 0.4, (stepper, 20), 1000);
        let same = here.chunks(64).zip(there.chunks(64)).filter(|(a, b)| a == b).count();
        println!("{stepper:?}: {same} of 1000 walkers end in the same state");
        assert!(same >= 990, "{stepper:?}: only {same} of 1000 walkers");
    }
}

/// Rounding the network to 8 bits leaves the weights exact: out and back rates come from the same numbers, and J stays
/// antisymmetric. Steps of fixed length are what a bias looks like: with 5 of them, log Z is off by far more.
#[test]
fn weights_are_exact_whatever_the_precision() {
    let cards = [Precision::Float32, Precision::Tf32, Precision::Bf16].into_iter().map_while(card);
    for engine in std::iter::once(Engine::Cpu).chain(cards) {
        let name = engine.description();
        let (target, beta) = (ising(4), 0.15);
        let wanted = enumerate::solve(&target, &[beta; 2], &Unwatched).unwrap().log_z;
        let z = |stepper| {
            let (ensemble, _) = run(&engine, &target, beta, (stepper, 5), 100_000);
            let log_z = ensemble.log_z();
            println!("{name} {stepper:?}: ESS {}, {log_z:?}", ensemble.weights.ess());
            (log_z.mean - wanted) / log_z.error
        };
        let (events, euler) = (z(Stepper::Events), z(Stepper::Euler));
        assert!(events.abs() < 4.0, "{name}: {events} errors");
        assert!(euler.abs() > 5.0, "{name}: {euler} errors, too few to tell");
    }
}

#[test]
fn training_goes_the_same_way_on_a_card() {
    let Some(engine) = card(Precision::Float32) else { return };
    let target = ising(6);
    let net = hollow(&target);
    let free = FreeEnergy::new(&FreeEnergySpec::Rate, target.sites()).unwrap();
    let path = Path::new(&[0.4, 0.4], Schedule::Linear).unwrap();
    let spec = TrainSpec { batch: 64, pool: 256, ..TrainSpec::default() };
    let losses = |engine: &Engine| -> Vec<f64> {
        let barker = Parametrisation::Barker;
        let trainer =
            Trainer::new(&target, &path, &net, &free, barker, &spec, 5, &Unwatched).unwrap();
        let mut trainer = trainer.on_engine(engine).unwrap();
        (0..8).map(|_| trainer.step(&Unwatched).unwrap().loss).collect()
    };
    let (here, there) = (losses(&Engine::Cpu), losses(&engine));
    println!("{here:?}\n{there:?}");
    for (a, b) in here.iter().zip(&there) {
        assert!((a / b - 1.0).abs() < 1e-3, "{a} and {b}");
    }
}
