//! One network for many targets: exact whatever it is conditioned on, better when that is the truth.

use std::sync::Arc;

use leaps::device::{NoProgress, Placement};
use leaps::exact::enumerate;
use leaps::net::{FreeEnergy, FreeEnergySpec, HollowSpec, LecSpec, MlpSpec, Net, NetSpec};
use leaps::path::{Path, Ranges, Schedule, Strength};
use leaps::rates::Parametrisation;
use leaps::sampler::{
    Ensemble, NetworkWalk, Population, Protocol, RateModel, Resampling, Scheme, WalkPlan, anneal,
};
use leaps::target::{Boundary, Lattice, Pairwise, Target};
use leaps::train::{Batch, Family, Loss, Member, Objective, TrainSpec, Trainer};

const RANGES: Ranges =
    Ranges { beta: Some([0.1, 0.4]), field: Some([-0.4, 0.4]), of: Strength::Field };

/// Ising on a square torus with a field of strength 1, which paths weigh.
fn target(side: usize) -> Arc<dyn Target> {
    let lattice = Lattice::new(&[side, side], Boundary::Periodic).unwrap();
    Arc::new(Pairwise::ising(lattice, 1.0, 1.0).unwrap())
}

fn member(beta: f64, field: f64) -> Member {
    let path = Path::new(&[beta, beta * field], Schedule::Linear).unwrap();
    Member { path, condition: RANGES.condition(beta, field).unwrap() }
}

fn family(count: usize) -> Family {
    let members = RANGES.members(count, 0.0, 0.0);
    Family {
        condition: RANGES.condition(0.4, 0.2).unwrap(),
        members: members.into_iter().map(|(beta, field)| member(beta, field)).collect(),
    }
}

fn hollow() -> NetSpec {
    NetSpec::Hollow(HollowSpec {
        channels: 8,
        depth: None,
        rows: None,
        head: None,
        global_features: true,
        bond_features: true,
    })
}

/// Sample along the path of one member, the network being conditioned on another or the same.
fn sample(
    net: &Arc<Net>,
    parameters: &[f32],
    path: &Path,
    given: &Member,
    walkers: usize,
) -> Ensemble {
    let target = &target(4);
    let own = &parameters[..net.parameters()];
    let rates = RateModel::new(net, own, Parametrisation::Barker);
    let rates = &rates.conditioned_on(&given.condition);
    let cuts: Vec<f64> = (0..=30).map(|k| f64::from(k) / 30.0).collect();
    let plan = &WalkPlan::new(path, Scheme::Events, &cuts).unwrap();
    let population = Population::new(walkers, 5);
    let walk = NetworkWalk { target, path, rates, plan, population };
    let mut walkers = walk.on(&Placement::Cpu).unwrap();
    let resampling = Resampling::NEVER;
    let protocol = Protocol { grid: &plan.grid, resampling, trace_points: 1, seed: 5 };
    anneal(&**target, &mut *walkers, protocol, &NoProgress).unwrap()
}

fn free_energy(sites: usize, conditions: usize) -> Arc<FreeEnergy> {
    let free = FreeEnergy::new(&FreeEnergySpec::Rate, sites).unwrap();
    Arc::new(free.conditioned_on(conditions).unwrap())
}

#[test]
fn log_z_of_every_member_is_unbiased_with_an_untrained_network() {
    let target = target(4);
    for spec in [hollow(), NetSpec::Mlp(MlpSpec { hidden: 6 })] {
        let net = Arc::new(Net::conditioned_on(&spec, &*target, 2).unwrap());
        let parameters: Vec<f32> = net.initial(3).iter().map(|p| 1.5 * p).collect();
        for (beta, field) in [(0.1, 0.4), (0.15, -0.3), (0.2, 0.1)] {
            let at = member(beta, field);
            let ensemble = sample(&net, &parameters, &at.path, &at, 20_000);
            let exact = enumerate::solve(&*target, at.path.ends(), &NoProgress).unwrap().log_z;
            let log_z = ensemble.log_z();
            let z = (log_z.mean - exact) / log_z.error;
            // Another of these members' answers would be off by 0.2 and more.
            assert!(z.abs() < 5.0 && log_z.error < 0.04, "{beta} {field}: {log_z:?} {exact}");
        }
    }
}

#[test]
fn the_gradient_over_members_is_a_finite_difference() {
    let target = target(3);
    for spec in [hollow(), NetSpec::Mlp(MlpSpec { hidden: 4 })] {
        let net = Arc::new(Net::conditioned_on(&spec, &*target, 2).unwrap());
        let free = free_energy(9, 2);
        let path = member(0.4, 0.2).path;
        let objective = Objective::new(&target, &path, &net, &free, Parametrisation::Barker);
        let mut loss = Loss::new(&objective.over(&family(5)).unwrap());
        let mut parameters: Vec<f32> = net.initial(1).iter().map(|p| 2.0 * p).collect();
        parameters.extend(free.initial(1));
        let mut batch = Batch::new(9);
        for i in 0..40 {
            batch.states.extend((0..9).map(|site| ((i * i + 3 * site + i * site) / 4 % 2) as u8));
            batch.times.push((i as f64 + 0.5) / 40.0);
            batch.members.push(i % 5);
        }
        let mut g = vec![f32::NAN; parameters.len()];
        loss.gradient(&parameters, &batch, &mut g, &NoProgress).unwrap();
        let mut slope_along = |d: &[f32]| {
            let mut value = |h: f32| {
                let moved: Vec<f32> = parameters.iter().zip(d).map(|(p, d)| p + h * d).collect();
                let mut unused = vec![0.0; d.len()];
                let r = loss.gradient(&moved, &batch, &mut unused, &NoProgress).unwrap();
                r.iter().map(|r| r * r).sum::<f64>() / r.len() as f64
            };
            (value(1e-3) - value(-1e-3)) / 2e-3
        };
        let norm = |g: &[f32]| g.iter().map(|g| f64::from(*g).powi(2)).sum::<f64>().sqrt();
        // Along the gradient the loss changes by its norm: of all parameters, and of those alone that read what the network is conditioned on.
        let mut conditioned = vec![0.0; g.len()];
        let (mut at, tensors) = (0, [net.tensors(), free.tensors()].concat());
        for tensor in tensors {
            if tensor.name.ends_with("hidden.weight") {
                for row in 0..tensor.shape[0] {
                    for feature in 9..tensor.shape[1] {
                        let k = at + row * tensor.shape[1] + feature;
                        conditioned[k] = g[k];
                    }
                }
            }
            at += tensor.len();
        }
        for part in [g.clone(), conditioned] {
            let size = norm(&part);
            assert!(size > 1e-3, "{spec:?}: {size}");
            let along: Vec<f32> = part.iter().map(|g| g / size as f32).collect();
            let slope = slope_along(&along);
            assert!((slope / size - 1.0).abs() < 1e-2, "{spec:?}: {slope} {size}");
        }
    }
}

#[test]
fn a_family_is_learnt_between_its_members_and_the_network_listens() {
    let target = target(4);
    let net = Arc::new(Net::conditioned_on(&hollow(), &*target, 2).unwrap());
    let free = free_energy(16, 2);
    let spec = TrainSpec {
        steps: 600,
        batch: 128,
        lr: 5e-3,
        warmup: 20,
        pool: 2048,
        beta_range: RANGES.beta,
        field_range: RANGES.field,
        ..TrainSpec::default()
    };
    let own = member(0.4, 0.2);
    let barker = Parametrisation::Barker;
    let objective = Objective::new(&target, &own.path, &net, &free, barker);
    let objective = objective.over(&family(24)).unwrap();
    let mut trainer = Trainer::new(&objective, &spec, 1, &NoProgress).unwrap();
    let before = trainer.state.optimiser.average.clone();
    for _ in 0..spec.steps {
        trainer.step(&NoProgress).unwrap();
    }
    let after = &trainer.state.optimiser.average;
    for (beta, field) in [(0.33, 0.27), (0.37, -0.21), (0.29, -0.35)] {
        let (at, wrong) = (member(beta, field), member(0.5 - beta, -field));
        let ess = |parameters: &[f32], given: &Member| {
            sample(&net, parameters, &at.path, given, 1000).weights.ess()
        };
        let (untrained, trained, misled) = (ess(&before, &at), ess(after, &at), ess(after, &wrong));
        println!("{beta} {field}: {untrained:.3} to {trained:.3}, misled {misled:.3}");
        assert!(trained > 0.85 && untrained < 0.4, "{beta} {field}: {untrained} to {trained}");
        assert!(
            misled < 0.8 * trained,
            "{beta} {field}: conditioned wrongly {misled}, rightly {trained}"
        );
        let exact = enumerate::solve(&*target, at.path.ends(), &NoProgress).unwrap().log_z;
        let log_z = sample(&net, after, &at.path, &at, 2000).log_z();
        assert!(((log_z.mean - exact) / log_z.error).abs() < 5.0, "{log_z:?} {exact}");
    }
}

#[test]
fn what_cannot_be_conditioned_on_is_refused() {
    let target = target(4);
    let lec = NetSpec::Lec(LecSpec::default());
    let error = Net::conditioned_on(&lec, &*target, 1).unwrap_err().to_string();
    assert!(error.contains("network.kind = hollow"), "{error}");
    // A family of two conditions and a network of none.
    let net = Arc::new(Net::new(&hollow(), &*target).unwrap());
    let free = Arc::new(FreeEnergy::new(&FreeEnergySpec::Rate, 16).unwrap());
    let path = member(0.2, 0.1).path;
    let objective = Objective::new(&target, &path, &net, &free, Parametrisation::Barker);
    let error = objective.over(&family(8)).err().unwrap().to_string();
    assert!(error.contains("0 numbers that the network is conditioned on"), "{error}");
}
