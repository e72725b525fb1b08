//! Training: gradients of the whole loss, references in equilibrium, a network that learns.

use std::sync::Arc;

use leaps::device::NoProgress;
use leaps::exact::enumerate;
use leaps::net::{FreeEnergy, FreeEnergySpec, LeaSpec, MlpSpec, Net, NetSpec};
use leaps::path::{Path, Schedule};
use leaps::rates::Parametrisation;
use leaps::target::{Boundary, Lattice, Pairwise, Target};
use leaps::train::{Batch, Loss, Objective, Reference, TrainSpec, Trainer};

fn torus(shape: &[usize]) -> Lattice {
    Lattice::new(shape, Boundary::Periodic).unwrap()
}

fn random_batch(target: &dyn Target, n: usize) -> Batch {
    let mut batch = Batch::new(target.sites());
    let mut bits = 12345u64;
    for i in 0..n {
        for _ in 0..target.sites() {
            bits = bits.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            batch.states.push(((bits >> 33) % target.q() as u64) as u8);
        }
        batch.times.push((i as f64 + 0.5) / n as f64);
    }
    batch
}

#[test]
fn the_gradient_of_the_loss_is_a_finite_difference() {
    let ising = Pairwise::ising(torus(&[3, 3]), 1.0, 0.2).unwrap();
    let potts = Pairwise::potts(torus(&[2, 3]), 3, 1.0, 0.3).unwrap();
    for target in [ising, potts] {
        let target: Arc<dyn Target> = Arc::new(target);
        for spec in [
            NetSpec::Mlp(MlpSpec { hidden: 4 }),
            NetSpec::Lea(LeaSpec { heads: 2, width: 3, embedding: 6 }),
        ] {
            for parametrisation in Parametrisation::ALL {
                let path = Path::new(&vec![0.5; target.terms()], Schedule::Linear).unwrap();
                let net = Arc::new(Net::new(&spec, &*target).unwrap());
                let free =
                    Arc::new(FreeEnergy::new(&FreeEnergySpec::Rate, target.sites()).unwrap());
                let objective = Objective::new(&target, &path, &net, &free, parametrisation);
                let mut loss = Loss::new(&objective);
                let mut p: Vec<f32> = net.initial(1).iter().map(|p| 2.0 * p).collect();
                p.extend(free.initial(1));
                let batch = random_batch(&*target, 37);
                let mut g = vec![f32::NAN; p.len()];
                loss.gradient(&p, &batch, &mut g, &NoProgress).unwrap();
                let norm: f64 = g.iter().map(|g| f64::from(*g).powi(2)).sum::<f64>().sqrt();
                let mut value = |h: f64| {
                    // Along the gradient the loss must change by its norm.
                    let moved: Vec<f32> = p
                        .iter()
                        .zip(&g)
                        .map(|(p, g)| p + (h * f64::from(*g) / norm) as f32)
                        .collect();
                    let mut unused = vec![0.0; p.len()];
                    let r = loss.gradient(&moved, &batch, &mut unused, &NoProgress).unwrap();
                    r.iter().map(|r| r * r).sum::<f64>() / r.len() as f64
                };
                let h = 1e-3;
                let slope = (value(h) - value(-h)) / (2.0 * h);
                let error = (slope / norm - 1.0).abs();
                // relu has corners; single precision the rest.
                assert!(error < 5e-3, "{spec:?} {parametrisation:?}: {slope} {norm}");
            }
        }
    }
}

fn train(target: &Arc<dyn Target>, beta: f64, spec: &TrainSpec) -> (f64, f64, f64, f64) {
    let path = Path::new(&vec![beta; target.terms()], Schedule::Linear).unwrap();
    let net = Arc::new(Net::new(&NetSpec::Mlp(MlpSpec { hidden: 8 }), &**target).unwrap());
    let free = Arc::new(FreeEnergy::new(&FreeEnergySpec::Rate, target.sites()).unwrap());
    let objective = Objective::new(target, &path, &net, &free, Parametrisation::Barker);
    let mut trainer = Trainer::new(&objective, spec, 1, &NoProgress).unwrap();
    let untrained = trainer.validate(1000, 30, &NoProgress).unwrap().weights.ess();
    for _ in 0..spec.steps {
        trainer.step(&NoProgress).unwrap();
    }
    let ensemble = trainer.validate(2000, 30, &NoProgress).unwrap();
    let exact = enumerate::solve(&**target, path.ends(), &NoProgress).unwrap().log_z;
    let log_z = ensemble.log_z();
    (untrained, ensemble.weights.ess(), (log_z.mean - exact) / log_z.error, log_z.error)
}

#[test]
fn networks_learn_from_every_reference() {
    let ising: Arc<dyn Target> = Arc::new(Pairwise::ising(torus(&[3, 3]), 1.0, 0.2).unwrap());
    for reference in [Reference::Pool, Reference::Policy, Reference::Buffer] {
        let spec = TrainSpec {
            steps: 400,
            batch: 128,
            lr: 5e-3,
            warmup: 20,
            reference,
            pool: 1024,
            rollout_walkers: 64,
            rollout_steps: 20,
            rollout_every: 20,
            buffer: 10,
            anneal: 200,
            sweeps: 1,
            ..TrainSpec::default()
        };
        let (untrained, ess, z, error) = train(&ising, 0.44, &spec);
        println!("{reference:?}: {untrained:.3} to {ess:.3}, z {z:.2}, error {error:.4}");
        assert!(untrained < 0.35 && ess > 0.8, "{reference:?}: {untrained} to {ess}");
        assert!(z.abs() < 5.0);
    }
}
