//! One network for all instances of a spin glass: what it learns on random ones holds on those it never saw.

use std::sync::Arc;

use leaps::device::{NoProgress, Placement};
use leaps::exact;
use leaps::net::{FreeEnergy, FreeEnergySpec, GlassSpec, Net, NetSpec};
use leaps::path::{Path, Schedule};
use leaps::rates::Parametrisation;
use leaps::sampler::{
    Ensemble, NetworkWalk, Population, Protocol, RateModel, Resampling, Scheme, WalkPlan, anneal,
};
use leaps::target::{Boundary, Disorder, Lattice, Pairwise, Target};
use leaps::train::{Instances, Objective, TrainSpec, Trainer};

const BETA: f64 = 0.9;

fn glass(lattice: &Lattice, disorder: Disorder, seed: u64) -> Arc<dyn Target> {
    Arc::new(Pairwise::edwards_anderson(lattice.clone(), disorder, seed).unwrap())
}

fn path() -> Path {
    Path::new(&[BETA], Schedule::Linear).unwrap()
}

/// Walkers by events on an instance, whose couplings the network reads.
fn sample(spec: &NetSpec, parameters: &[f32], target: &Arc<dyn Target>) -> Ensemble {
    let (path, net) = (&path(), Arc::new(Net::new(spec, &**target).unwrap()));
    let rates = &RateModel::new(&net, parameters, Parametrisation::Barker);
    let cuts: Vec<f64> = (0..=40).map(|k| f64::from(k) / 40.0).collect();
    let plan = &WalkPlan::new(path, Scheme::Events, &cuts).unwrap();
    let population = Population::new(1000, 5);
    let mut walkers =
        NetworkWalk { target, path, rates, plan, population }.on(&Placement::Cpu).unwrap();
    let resampling = Resampling::NEVER;
    let protocol = Protocol { grid: &plan.grid, resampling, trace_points: 1, seed: 5 };
    anneal(&**target, &mut *walkers, protocol, &NoProgress).unwrap()
}

/// Mean ESS on four unseen instances before and after training.
fn before_and_after(shape: &[usize], boundary: Boundary, disorder: Disorder) -> (f64, f64) {
    let lattice = Lattice::new(shape, boundary).unwrap();
    let spec = NetSpec::Glass(GlassSpec { channels: 8, ..GlassSpec::default() });
    let own = glass(&lattice, disorder, 1);
    let net = Arc::new(Net::new(&spec, &*own).unwrap());
    let spec = net.spec().clone();
    let free = Arc::new(FreeEnergy::new(&FreeEnergySpec::None, lattice.sites()).unwrap());
    let instances = Instances {
        lattice: lattice.clone(),
        disorder,
        seed: 1,
        count: 256,
        walkers: 4,
        drawn: 16,
    };
    let objective = Objective::new(&own, &path(), &net, &free, Parametrisation::Barker);
    let objective = objective.over_instances(&instances).unwrap();
    let train = TrainSpec {
        steps: 400,
        batch: 64,
        lr: 5e-3,
        warmup: 30,
        instances: Some(256),
        ..TrainSpec::default()
    };
    let mut trainer = Trainer::new(&objective, &train, 1, &NoProgress).unwrap();
    let fresh = trainer.state.optimiser.average.clone();
    while trainer.steps() < train.steps {
        trainer.step(&NoProgress).unwrap();
    }
    let trained = &trainer.state.optimiser.average;
    let mut sums = [0.0; 2];
    for seed in 11..15 {
        let target = glass(&lattice, disorder, seed);
        let exact = exact::solve(&*target, &[BETA], None, &NoProgress).unwrap().log_z;
        sums[0] += sample(&spec, &fresh, &target).weights.ess() / 4.0;
        let ensemble = sample(&spec, trained, &target);
        let (log_z, ess) = (ensemble.log_z(), ensemble.weights.ess());
        let z = (log_z.mean - exact) / log_z.error;
        println!("{shape:?}, instance {seed}: ESS {ess:.3}, log Z {z:+.1} sigmas off");
        // Another instance's answer would be off by 0.5 and more.
        assert!(z.abs() < 5.0 && log_z.error < 0.1, "{log_z:?} {exact}");
        sums[1] += ess / 4.0;
    }
    (sums[0], sums[1])
}

#[test]
fn training_over_instances_helps_on_unseen_ones() {
    for (shape, boundary, disorder) in [
        (&[6, 6][..], Boundary::Free, Disorder::Pm1),
        (&[4, 4], Boundary::Periodic, Disorder::Gaussian),
        (&[3, 3, 3], Boundary::Free, Disorder::Pm1),
    ] {
        let (before, after) = before_and_after(shape, boundary, disorder);
        println!("{shape:?}: mean ESS {before:.3} before, {after:.3} after");
        assert!(after > 0.2 && after > 3.0 * before, "{shape:?}: {before} {after}");
    }
}
