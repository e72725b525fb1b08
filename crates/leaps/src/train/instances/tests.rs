//! Instances, their walkers and the variance loss beside what they are by definition.

use super::*;
use crate::device::NoProgress;
use crate::mcmc::{AnyKernel, KernelName};
use crate::net::{FreeEnergy, FreeEnergySpec, MlpSpec, Net, NetSpec};
use crate::path::Schedule;
use crate::rates::Parametrisation;
use crate::target::{Boundary, Interaction, Target};
use crate::train::{Loss, PoolDraw};

/// A lattice with free edges, so that sites differ in their number of bonds.
fn instances(disorder: Disorder) -> Instances {
    let lattice = Lattice::new(&[3, 4], Boundary::Free).unwrap();
    Instances { lattice, disorder, seed: 5, count: 24, walkers: 4, drawn: 6 }
}

/// A network that is not shown any couplings: pool and loss do not care.
fn objective(instances: &Instances) -> Objective {
    let own = Pairwise::edwards_anderson(instances.lattice.clone(), instances.disorder, 3).unwrap();
    let target: Arc<dyn Target> = Arc::new(own);
    let path = crate::path::Path::new(&[0.8], Schedule::Trigonometric).unwrap();
    let net = Arc::new(Net::new(&NetSpec::Mlp(MlpSpec { hidden: 4 }), &*target).unwrap());
    let free = Arc::new(FreeEnergy::new(&FreeEnergySpec::None, target.sites()).unwrap());
    let plain = Objective::new(&target, &path, &net, &free, Parametrisation::Barker);
    plain.over_instances(instances).unwrap()
}

fn drawn(objective: &Objective, step: u64) -> (Pool, Vec<usize>, Batch) {
    let mut pool = Pool::new(objective, 1, 7, &NoProgress).unwrap();
    pool.renew(objective, step, &NoProgress).unwrap();
    let kernel = AnyKernel::new(KernelName::HeatBath, &*objective.target, &[0.8]).unwrap();
    let draw = PoolDraw { size: 24, sweeps: 2, step };
    let (rows, batch) = pool.draw(objective, &kernel, draw, &NoProgress).unwrap();
    (pool, rows, batch)
}

#[test]
fn couplings_are_drawn_bond_by_bond() {
    for disorder in [Disorder::Pm1, Disorder::Gaussian] {
        let instances = instances(disorder);
        let couplings = |target: &Pairwise| target.energy_terms()[0].couplings.clone();
        let mut seen = vec![couplings(
            &Pairwise::edwards_anderson(instances.lattice.clone(), disorder, instances.seed)
                .unwrap(),
        )];
        // Renewals: 6 instances of every step, one in 1024 of them, every 64 steps.
        for (number, step, generation) in [(0, 0, 0), (1, 0, 0), (23, 0, 0), (0, 192, 1)] {
            assert_eq!(instances.generation(number, step), generation, "{number} {step}");
            let mut stream = Stream::new(5, Purpose::Disorder, number as u32 + 1, generation);
            let edges: Vec<_> = instances
                .lattice
                .bonds()
                .into_iter()
                .map(|(i, j)| match disorder {
                    Disorder::Pm1 => (i, j, 2.0 * stream.below(2) as f64 - 1.0),
                    Disorder::Gaussian => (i, j, stream.normal()),
                })
                .collect();
            let wanted = Pairwise::from_edges(Interaction::Ising, 12, 2, &edges).unwrap();
            let target = instances.target(number, step).unwrap();
            assert_eq!(couplings(&target), couplings(&wanted));
            assert_eq!(target.energy_terms()[0].constant, wanted.energy_terms()[0].constant);
            assert!(!seen.contains(&couplings(&target)), "{number} {step} is not new");
            seen.push(couplings(&target));
        }
    }
}

#[test]
fn instances_are_renewed_in_turn() {
    for (count, drawn) in [(24, 6), (7, 7), (100, 64)] {
        let instances = Instances { count, drawn, ..instances(Disorder::Pm1) };
        let mut generations = vec![0; count];
        let steps = 20_000;
        for step in 0..steps {
            for number in instances.renewed(step) {
                generations[number] += 1;
            }
            if step % 777 == 0 {
                for (number, generation) in generations.iter().enumerate() {
                    assert_eq!(instances.generation(number, step), *generation);
                }
            }
        }
        let wanted = steps as f64 * drawn as f64 / 1024.0;
        let made: u64 = generations.iter().sum();
        assert!((made as f64 - wanted).abs() <= drawn as f64 / 16.0 + 1.0, "{made} {wanted}");
    }
}

/// Walkers are annealed and swept with the couplings of their own instance, at its time.
#[test]
fn walkers_go_by_their_own_couplings() {
    let instances = instances(Disorder::Gaussian);
    let objective = objective(&instances);
    let step = 192;
    let renewed: Vec<usize> = instances.renewed(step).collect();
    assert_eq!(renewed, [0]);
    let (pool, rows, batch) = drawn(&objective, step);
    assert_eq!((pool.walkers(), batch.together()), (96, 4));
    assert_eq!(rows.len() % 4, 0);
    for (slot, &row) in rows.iter().enumerate() {
        let (number, t) = (row / 4, batch.times[slot]);
        assert_eq!((row % 4, rows[slot / 4 * 4] / 4), (slot % 4, number));
        assert!((number as f64..=(number + 1) as f64).contains(&(24.0 * t)), "{number} {t}");
        assert_eq!(t, batch.times[slot / 4 * 4]);
        let target = instances.target(number, step).unwrap();
        assert_eq!(*batch.instances[slot / 4], target);
        let generation = instances.generation(number, step);
        let mut kernel = HeatBath::new(&target).unwrap();
        let sweep = |x: &mut [u8], lambda: &[f64], stream: &mut Stream, kernel: &mut HeatBath| {
            kernel.step(&Density::new(&target, lambda), x, stream);
        };
        let mut x = crate::target::initial_state(&target, 7, row as u32);
        if generation > 0 {
            let mut stream = Stream::new(7, Purpose::Initial, row as u32, 65 * generation);
            x.fill_with(|| stream.below(2) as u8);
        }
        for k in 0..64 {
            let mut stream = Stream::new(7, Purpose::Initial, row as u32, 65 * generation + k + 1);
            let own = (number as f64 + 0.5) / 24.0 * ((k + 1) as f64 / 32.0).min(1.0);
            sweep(&mut x, &objective.path.lambda(own), &mut stream, &mut kernel);
        }
        assert_eq!(&pool.states[row * 12..][..12], &x, "row {row}");
        for k in 0..2 {
            let mut stream = Stream::new(7, Purpose::Reference, row as u32, 2 * step + k);
            sweep(&mut x, &objective.path.lambda(t), &mut stream, &mut kernel);
        }
        assert_eq!(batch.state(slot), x, "slot {slot}");
    }
}

#[test]
fn residuals_are_deviations_within_an_instance() {
    for disorder in [Disorder::Pm1, Disorder::Gaussian] {
        let objective = objective(&instances(disorder));
        let (_, _, batch) = drawn(&objective, 3);
        let parameters: Vec<f32> = objective.initial(1).iter().map(|p| 3.0 * p).collect();
        let mut gradient = vec![0.0; parameters.len()];
        let mut loss = Loss::new(&objective);
        let got = loss.gradient(&parameters, &batch, &mut gradient, &NoProgress).unwrap();
        for group in 0..batch.instances.len() {
            // Each instance as the target of an ordinary loss, whose residual is K where no free energy is learnt.
            let target: Arc<dyn Target> = batch.instances[group].clone();
            let Objective { path, net, free, parametrisation, .. } = &objective;
            let plain = Objective::new(&target, path, net, free, *parametrisation);
            let mut own = Batch::new(12);
            for slot in 4 * group..4 * group + 4 {
                own.states.extend_from_slice(batch.state(slot));
                own.times.push(batch.times[slot]);
            }
            let mut unused = vec![0.0; parameters.len()];
            let k = Loss::new(&plain).gradient(&parameters, &own, &mut unused, &NoProgress);
            let k = k.unwrap();
            let mean = k.iter().sum::<f64>() / 4.0;
            for (slot, k) in k.iter().enumerate() {
                let wanted = (4.0f64 / 3.0).sqrt() * (k - mean);
                assert!((got[4 * group + slot] - wanted).abs() < 1e-9 * (1.0 + wanted.abs()));
            }
        }
    }
}

#[test]
fn the_gradient_of_the_variance_is_a_finite_difference() {
    let objective = objective(&instances(Disorder::Gaussian));
    let (_, _, batch) = drawn(&objective, 3);
    let mut loss = Loss::new(&objective);
    let parameters: Vec<f32> = objective.initial(1).iter().map(|p| 3.0 * p).collect();
    let mut gradient = vec![f32::NAN; parameters.len()];
    loss.gradient(&parameters, &batch, &mut gradient, &NoProgress).unwrap();
    let norm = gradient.iter().map(|g| f64::from(*g).powi(2)).sum::<f64>().sqrt();
    // Along the gradient, and along every third parameter.
    let along = gradient.iter().map(|g| (f64::from(*g) / norm) as f32).collect::<Vec<_>>();
    let axis = |at: usize| (0..gradient.len()).map(|i| f32::from(u8::from(i == at))).collect();
    let mut directions: Vec<Vec<f32>> = (0..gradient.len()).step_by(3).map(axis).collect();
    directions.push(along);
    for direction in directions {
        let mut value = |h: f32| {
            let moved: Vec<f32> =
                parameters.iter().zip(&direction).map(|(p, d)| p + h * d).collect();
            let mut unused = vec![0.0; moved.len()];
            let r = loss.gradient(&moved, &batch, &mut unused, &NoProgress).unwrap();
            r.iter().map(|r| r * r).sum::<f64>() / r.len() as f64
        };
        let found = (value(1e-2) - value(-1e-2)) / 2e-2;
        let pairs = gradient.iter().zip(&direction);
        let wanted: f64 = pairs.map(|(g, d)| f64::from(*g) * f64::from(*d)).sum();
        assert!((found - wanted).abs() < 2e-3 * norm, "{found} {wanted} of {norm}");
    }
}
