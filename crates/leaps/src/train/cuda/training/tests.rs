//! The same training as on the CPU.

use super::*;
use crate::device::cuda::testing::compiles;
use crate::device::{Draw, NoProgress, Precision, Stream};
use crate::net::{FreeEnergy, GlassSpec, MlpSpec, Net, NetSpec};
use crate::path::{Path, Ranges, Schedule};
use crate::sampler::{Lineage, Resampling, Span};
use crate::target::cuda::PAIRWISE;
use crate::target::{Boundary, Disorder, Lattice, Pairwise, Target, on_shells};
use crate::train::{Buffer, Family, Instances, Loss, Optimiser, Pool, Trainer};

const HIDDEN: usize = 4;

#[test]
#[cfg_attr(not(has_nvrtc), ignore = "needs NVRTC: set LEAPS_NVRTC to its folder")]
fn kernels_compile() {
    for (q, parametrisation, conditions) in [
        (2, Parametrisation::Relu, 0),
        (2, Parametrisation::Barker, 1),
        (3, Parametrisation::Sqrt, 0),
        (3, Parametrisation::Barker, 2),
        (20, Parametrisation::Metropolis, 0),
    ] {
        let target = [
            ("SITES", 225),
            ("Q", q),
            ("TERMS", 2),
            ("CLASSES", 0),
            ("GROUPS", 0),
            ("SURROUNDINGS", 0),
            ("DEGREE", 4),
            ("REGULAR", 1),
            ("THREADS", 128),
            ("PITCH", 132),
            ("STAGED", 1),
        ];
        let mut defines = [&target[..], &train_defines(parametrisation, conditions)].concat();
        let source = [PAIRWISE, NETWORK_WALK, TRAIN].concat();
        compiles(&source, &defines);
        defines.push(("INSTANCES", 1));
        compiles(&source, &defines);
    }
}

fn objectives() -> Vec<Objective> {
    let torus = |shape: &[usize]| Lattice::new(shape, Boundary::Periodic).unwrap();
    let mlp = FreeEnergySpec::Mlp { hidden: vec![8, 8] };
    [
        (Pairwise::ising(torus(&[4, 5]), 1.0, 0.2).unwrap(), FreeEnergySpec::Rate),
        (Pairwise::potts(torus(&[3, 4]), 3, 1.0, 0.3).unwrap(), FreeEnergySpec::Rate),
        (Pairwise::ising(torus(&[4, 4]), 1.0, 0.0).unwrap(), mlp),
        (on_shells(&[4, 6], None, &[1.0, -0.6]), FreeEnergySpec::Rate),
    ]
    .into_iter()
    .map(|(target, free)| {
        let path = Path::new(&vec![0.5; target.terms()], Schedule::Trigonometric).unwrap();
        let net = Net::new(&NetSpec::Mlp(MlpSpec { hidden: HIDDEN }), &target).unwrap();
        let free = FreeEnergy::new(&free, target.sites()).unwrap();
        let target: Arc<dyn Target> = Arc::new(target);
        let barker = Parametrisation::Barker;
        Objective::new(&target, &path, &Arc::new(net), &Arc::new(free), barker)
    })
    .collect()
}

/// Families of targets over beta, and over beta and field.
fn families() -> Vec<Objective> {
    let torus = Lattice::new(&[4, 4], Boundary::Periodic).unwrap();
    let target: Arc<dyn Target> = Arc::new(Pairwise::ising(torus, 1.0, 1.0).unwrap());
    [(0.2, None), (0.0, Some([-0.4, 0.4]))]
        .into_iter()
        .map(|(fixed, field)| {
            let ranges = Ranges { beta: Some([0.1, 0.5]), field, ..Ranges::default() };
            let member = |(beta, field): (f64, f64)| {
                let path = Path::new(&[beta, beta * field], Schedule::Trigonometric).unwrap();
                Member { path, condition: ranges.condition(beta, field).unwrap() }
            };
            let own = member((0.4, 0.2));
            let members = ranges.members(7, 0.0, fixed).into_iter().map(member).collect();
            let family = Family { condition: own.condition, members };
            let (spec, conditions) =
                (NetSpec::Mlp(MlpSpec { hidden: HIDDEN }), ranges.conditions());
            let net = Arc::new(Net::conditioned_on(&spec, &*target, conditions).unwrap());
            let free = FreeEnergy::new(&FreeEnergySpec::Rate, target.sites()).unwrap();
            let free = Arc::new(free.conditioned_on(conditions).unwrap());
            let barker = Parametrisation::Barker;
            Objective::new(&target, &own.path, &net, &free, barker).over(&family).unwrap()
        })
        .collect()
}

/// Random instances, for networks that are not shown them, as kernels of energies and losses do not care, and for one that is.
fn over_instances() -> Vec<(Objective, TrainSpec)> {
    let free = Lattice::new(&[4, 5], Boundary::Free).unwrap();
    let torus = Lattice::new(&[3, 3, 4], Boundary::Periodic).unwrap();
    let plane = Lattice::new(&[6, 5], Boundary::Periodic).unwrap();
    let mlp = NetSpec::Mlp(MlpSpec { hidden: HIDDEN });
    let glass = NetSpec::Glass(GlassSpec { channels: 8, ..GlassSpec::default() });
    [
        (free, Disorder::Gaussian, 4, mlp.clone()),
        (torus, Disorder::Pm1, 8, mlp),
        (plane.clone(), Disorder::Pm1, 4, glass.clone()),
        (plane, Disorder::Gaussian, 2, glass),
    ]
    .into_iter()
    .map(|(lattice, disorder, walkers, net)| {
        let count = 40;
        let instances = Instances { lattice, disorder, seed: 1, count, walkers, drawn: 16 };
        let spec = TrainSpec {
            batch: 16 * walkers,
            instances: Some(count),
            walkers_per_instance: Some(walkers),
            lr: 5e-3,
            warmup: 5,
            ..TrainSpec::default()
        };
        let own = Pairwise::edwards_anderson(instances.lattice.clone(), disorder, 3).unwrap();
        let path = Path::new(&[0.8], Schedule::Trigonometric).unwrap();
        let net = Net::new(&net, &own).unwrap();
        let free = FreeEnergy::new(&FreeEnergySpec::None, own.sites()).unwrap();
        let (net, free): (_, Arc<FreeEnergy>) = (Arc::new(net), Arc::new(free));
        let target: Arc<dyn Target> = Arc::new(own);
        let plain = Objective::new(&target, &path, &net, &free, Parametrisation::Barker);
        (plain.over_instances(&instances).unwrap(), spec)
    })
    .collect()
}

fn training(
    objective: &Objective,
    spec: &TrainSpec,
    gpu: &Arc<Gpu>,
    slots: usize,
) -> CudaTraining<'static> {
    let network = objective.net.on_gpu(gpu, slots, Precision::Float32).unwrap();
    CudaTraining::new(objective, spec, gpu, (network, slots)).unwrap()
}

fn spec(batch: usize) -> TrainSpec {
    TrainSpec { batch, ..TrainSpec::default() }
}

fn parameters(objective: &Objective) -> Vec<f32> {
    let mut all: Vec<f32> = objective.net.initial(1).iter().map(|p| 2.0 * p).collect();
    all.extend(objective.free.initial(1).iter().map(|p| 3.0 * p));
    all
}

/// A state with these parameters and no reference states.
fn state(objective: &Objective, parameters: Vec<f32>) -> TrainState {
    TrainState {
        optimiser: Optimiser::new(parameters),
        pool: None,
        buffer: Buffer::default(),
        rate_factor: 1.0,
        batch: Batch::new(objective.target.sites()),
    }
}

#[test]
#[ignore = "needs a GPU: cargo test -p leaps --lib cuda -- --ignored --skip speed"]
fn residuals_and_gradients_are_the_cpus() {
    let gpu = Gpu::open(0).unwrap();
    for objective in objectives().into_iter().chain(families()) {
        let members = objective.members.len();
        for parametrisation in Parametrisation::ALL {
            let objective = Objective { parametrisation, ..objective.clone() };
            let target = &*objective.target;
            let state = state(&objective, parameters(&objective));
            let optimiser = &state.optimiser;
            let mut batch = Batch::new(target.sites());
            let mut stream = Stream::new(4, Purpose::Statistic, 0, 0);
            for k in 0..77 {
                batch.times.push((k as f64 + 0.5) / 77.0);
                if members > 1 {
                    batch.members.push(5 * k % members);
                }
                let x = (0..target.sites()).map(|_| stream.below(target.q()) as u8);
                batch.states.extend(x);
            }
            let mut want = vec![0.0; optimiser.parameters.len()];
            let residuals = Loss::new(&objective)
                .gradient(&optimiser.parameters, &batch, &mut want, &NoProgress)
                .unwrap();
            let mut training = training(&objective, &spec(80), &gpu, 80);
            training.upload(&state).unwrap();
            training.take(&batch).unwrap();
            assert_eq!(training.batch().unwrap(), batch);
            training.differentiate().unwrap();
            let got = gpu.download(&training.residuals).unwrap();
            let largest = residuals.iter().fold(1.0f64, |m, r| m.max(r.abs()));
            let worst = residuals.iter().zip(&got).fold(0.0f64, |m, (a, b)| m.max((a - b).abs()));
            assert!(
                worst < 1e-5 * largest,
                "{members} members, {parametrisation:?}: residuals differ by {worst}"
            );
            let got = gpu.download(&training.gradient).unwrap();
            let largest = want.iter().fold(0.0f32, |m, g| m.max(g.abs()));
            let own = objective.net.parameters();
            let gap = |range: std::ops::Range<usize>| {
                range.fold(0.0f32, |m, i| m.max((want[i] - got[i]).abs()))
            };
            let worst = (gap(0..own), gap(own..want.len()));
            println!(
                "{members} members, {parametrisation:?}: gradients of {largest} differ by {worst:?}"
            );
            assert!(worst.0 < 2e-5 * largest && worst.1 < 2e-5 * largest);
        }
    }
}

#[test]
#[ignore = "needs a GPU: cargo test -p leaps --lib cuda -- --ignored --skip speed"]
fn adam_is_the_cpus_bit_by_bit() {
    let gpu = Gpu::open(0).unwrap();
    let objective = &objectives()[0];
    let spec = TrainSpec { clip: 3.0, ..spec(8) };
    let mut got = state(objective, parameters(objective));
    let mut optimiser = got.optimiser.clone();
    let mut training = training(objective, &spec, &gpu, 8);
    training.upload(&got).unwrap();
    training.chosen = vec![(0, 0.5)];
    let mut stream = Stream::new(4, Purpose::Statistic, 0, 0);
    for step in 1..=20u64 {
        // Now and then long enough to be clipped.
        let size = if step.is_multiple_of(3) { 10.0 } else { 0.01 };
        let gradient: Vec<f32> =
            optimiser.parameters.iter().map(|_| (size * stream.normal()) as f32).collect();
        gpu.write(&gradient, &mut training.gradient).unwrap();
        let (_, norm) = training.update(2e-3, step).unwrap();
        let want = optimiser.step(&gradient, 2e-3, &spec);
        assert!((norm / want - 1.0).abs() < 1e-12, "{norm} {want}");
    }
    training.download(&mut got).unwrap();
    let got = got;
    let gap = |a: &[f32], b: &[f32]| a.iter().zip(b).fold(0.0f32, |m, (a, b)| m.max((a - b).abs()));
    for (a, b) in [
        (&got.optimiser.parameters, &optimiser.parameters),
        (&got.optimiser.average, &optimiser.average),
        (&got.optimiser.first, &optimiser.first),
        (&got.optimiser.second, &optimiser.second),
    ] {
        println!("differ by {:e}", gap(a, b));
        assert!(gap(a, b) < 1e-6);
    }
    let mut gradient = vec![0.1; optimiser.parameters.len()];
    gradient[7] = f32::NAN;
    gpu.write(&gradient, &mut training.gradient).unwrap();
    let error = training.update(2e-3, 21).unwrap_err();
    assert!(matches!(error, Error::NonFinite { .. }), "{error}");
    let mut after = got.clone();
    training.download(&mut after).unwrap();
    assert_eq!(after, got, "a gradient that is not a number changes nothing");
}

#[test]
#[ignore = "needs a GPU: cargo test -p leaps --lib cuda -- --ignored --skip speed"]
fn training_goes_as_on_the_cpu() {
    let gpu = Gpu::open(0).unwrap();
    for objective in objectives().into_iter().chain(families()) {
        let members = objective.members.len();
        // Reference states of families come from pools alone.
        let references = if members > 1 { 1 } else { 3 };
        for reference in
            [Reference::Pool, Reference::Buffer, Reference::Policy].into_iter().take(references)
        {
            let spec = TrainSpec {
                steps: 100,
                batch: 64,
                lr: 5e-3,
                warmup: 5,
                reference,
                pool: 300,
                sweeps: 2,
                rollout_walkers: 16,
                rollout_steps: 8,
                rollout_every: 4,
                buffer: 3,
                anneal: 6,
                ..TrainSpec::default()
            };
            let trainer = || Trainer::new(&objective, &spec, 1, &NoProgress).unwrap();
            let on_gpu = |trainer: Trainer, slots| {
                trainer.with_device(Box::new(training(&objective, &spec, &gpu, slots))).unwrap()
            };
            let (mut here, mut there) = (trainer(), on_gpu(trainer(), 100));
            for step in 0..8 {
                let (want, got) =
                    (here.step(&NoProgress).unwrap(), there.step(&NoProgress).unwrap());
                println!(
                    "{members} members, {reference:?} {step}: loss {} {}",
                    want.loss, got.loss
                );
                assert_eq!((want.step, want.rate), (got.step, got.rate));
                assert!((got.loss / want.loss - 1.0).abs() < 2e-3, "{want:?} {got:?}");
                assert!((got.norm / want.norm - 1.0).abs() < 2e-3, "{want:?} {got:?}");
            }
            there.sync().unwrap();
            assert_eq!(here.steps(), there.steps());
            assert_eq!(here.state.pool, there.state.pool);
            assert_eq!(here.batch().times, there.batch().times);
            assert_eq!(here.batch().members, there.batch().members);
            let (a, b) = (&here.state.optimiser.parameters, &there.state.optimiser.parameters);
            let far = a.iter().zip(b).filter(|(a, b)| (*a - *b).abs() > 1e-4).count();
            assert!(far * 50 <= a.len(), "{far} of {} parameters differ", a.len());
            // The averages hardly differ, so neither do the walks.
            let want = here.validate(200, 10, &NoProgress).unwrap();
            let got = there.validate(200, 10, &NoProgress).unwrap();
            let (want, got) = (want.log_z().mean, got.log_z().mean);
            assert!((want - got).abs() < 0.02, "{want} {got}");
            // Going on from host copies is going on.
            let mut again = trainer();
            again.state = there.state.clone();
            let mut again = on_gpu(again, 64);
            let (a, b) = (there.step(&NoProgress).unwrap(), again.step(&NoProgress).unwrap());
            assert_eq!(a, b);
        }
    }
}

#[test]
#[ignore = "needs a GPU: cargo test -p leaps --lib cuda -- --ignored --skip speed"]
fn residuals_over_instances_are_the_cpus() {
    let gpu = Gpu::open(0).unwrap();
    for (objective, spec) in over_instances() {
        let all = parameters(&objective);
        let mut state = state(&objective, all.clone());
        state.pool = Some(Pool::new(&objective, 1, 1, &NoProgress).unwrap());
        // Instances have been renewed by then: 1 of them every 64 steps.
        state.optimiser.step = 64 * 45;
        let mut training = training(&objective, &spec, &gpu, spec.batch);
        training.upload(&state).unwrap();
        training.reference(&mut state, Source::Pool, &NoProgress).unwrap();
        let batch = training.batch().unwrap();
        assert!(batch.instances.len() > 8 && batch.len() > 8 * spec.walkers_per_instance());
        training.differentiate().unwrap();
        let mut want = vec![0.0; all.len()];
        let residuals =
            Loss::new(&objective).gradient(&all, &batch, &mut want, &NoProgress).unwrap();
        let got = gpu.download(&training.residuals).unwrap();
        let largest = residuals.iter().fold(1.0f64, |m, r| m.max(r.abs()));
        let worst = residuals.iter().zip(&got).fold(0.0f64, |m, (a, b)| m.max((a - b).abs()));
        let loss = |r: &[f64]| r.iter().map(|r| r * r).sum::<f64>() / batch.len() as f64;
        let ratio = loss(&got[..batch.len()]) / loss(&residuals);
        println!("residuals of {largest} differ by {worst}, losses by a factor {ratio}");
        assert!(worst < 1e-5 * largest && (ratio - 1.0).abs() < 1e-5);
        let got = gpu.download(&training.gradient).unwrap();
        let largest = want.iter().fold(0.0f32, |m, g| m.max(g.abs()));
        let worst = want.iter().zip(&got).fold(0.0f32, |m, (a, b)| m.max((a - b).abs()));
        println!("gradients of {largest} differ by {worst}");
        assert!(worst < 1e-4 * largest);
    }
}

#[test]
#[ignore = "needs a GPU: cargo test -p leaps --lib cuda -- --ignored --skip speed"]
fn training_over_instances_goes_as_on_the_cpu() {
    let gpu = Gpu::open(0).unwrap();
    for (objective, spec) in over_instances() {
        let spec = TrainSpec { steps: 300, ..spec };
        let trainer = || Trainer::new(&objective, &spec, 1, &NoProgress).unwrap();
        let on_gpu = |trainer: Trainer, slots| {
            trainer.with_device(Box::new(training(&objective, &spec, &gpu, slots))).unwrap()
        };
        let (mut here, mut there) = (trainer(), on_gpu(trainer(), spec.batch + 10));
        // Beyond two renewals.
        for step in 0..140 {
            let (want, got) = (here.step(&NoProgress).unwrap(), there.step(&NoProgress).unwrap());
            if step < 8 {
                println!("step {step}: loss {} {}", want.loss, got.loss);
                assert!((got.loss / want.loss - 1.0).abs() < 2e-3, "{want:?} {got:?}");
                assert!((got.norm / want.norm - 1.0).abs() < 2e-3, "{want:?} {got:?}");
            }
        }
        there.sync().unwrap();
        // Walkers do not depend on the network: they are the same to the bit.
        assert_eq!(here.state.pool, there.state.pool);
        assert_eq!(here.batch(), there.batch());
        let want = here.validate(400, 20, &NoProgress).unwrap().log_z();
        let got = there.validate(400, 20, &NoProgress).unwrap().log_z();
        assert!((want.mean - got.mean).abs() < 5.0 * want.error.hypot(got.error));
        // Going on from host copies is going on, also over a renewal.
        let mut again = trainer();
        again.state = there.state.clone();
        let mut again = on_gpu(again, spec.batch);
        for _ in 140..200 {
            let (a, b) = (there.step(&NoProgress).unwrap(), again.step(&NoProgress).unwrap());
            assert_eq!(a, b);
        }
    }
}

/// A network that always says the same, and costs nothing.
struct Still;

impl CudaNetwork for Still {
    fn refresh(&mut self, _parameters: &CudaSlice<f32>) -> Result<()> {
        Ok(())
    }
    fn forward(&mut self, _batch: &CudaBatch<'_>, _out: &mut CudaSlice<f32>) -> Result<()> {
        Ok(())
    }
    fn forward_train(&mut self, _batch: &CudaBatch<'_>, _out: &mut CudaSlice<f32>) -> Result<()> {
        Ok(())
    }
    fn backward(
        &mut self,
        _batch: &CudaBatch<'_>,
        _d_out: &CudaSlice<f32>,
        _gradient: &mut cudarc::driver::CudaViewMut<'_, f32>,
    ) -> Result<()> {
        Ok(())
    }
}

/// Time of gradient steps and of sampling passes without the network; run it in release mode.
#[test]
#[ignore = "a measurement"]
fn speed_of_steps_and_passes_without_the_network() {
    let gpu = Gpu::open(0).unwrap();
    let torus = Lattice::new(&[15, 15], Boundary::Periodic).unwrap();
    for target in [
        Pairwise::ising(torus.clone(), 1.0, 0.0).unwrap(),
        Pairwise::potts(torus, 3, 1.0, 0.0).unwrap(),
    ] {
        let path = Path::new(&[0.4], Schedule::Linear).unwrap();
        let net = Net::new(&NetSpec::Mlp(MlpSpec { hidden: 400 }), &target).unwrap();
        let free = FreeEnergy::new(&FreeEnergySpec::Rate, target.sites()).unwrap();
        let (slots, q) = (16384, target.q());
        let target: Arc<dyn Target> = Arc::new(target);
        let barker = Parametrisation::Barker;
        let objective = Objective::new(&target, &path, &Arc::new(net), &Arc::new(free), barker);
        let spec = TrainSpec { pool: 65536, ..spec(1024) };
        let start = std::time::Instant::now();
        let pool = Pool::new(&objective, spec.pool, 1, &NoProgress).unwrap();
        println!("{q} values: a pool in {:?} on the CPU", start.elapsed());
        let network: (Box<dyn CudaNetwork>, usize) = (Box::new(Still), slots);
        let mut training = CudaTraining::new(&objective, &spec, &gpu, network).unwrap();
        let mut state = state(&objective, vec![0.01; training.all]);
        state.pool = Some(pool);
        training.upload(&state).unwrap();
        let mut start = std::time::Instant::now();
        for step in 0..110 {
            if step == 10 {
                start = std::time::Instant::now();
            }
            training.reference(&mut state, Source::Pool, &NoProgress).unwrap();
            training.gradient(&mut state, &NoProgress).unwrap();
            training.apply(&mut state, 1e-3).unwrap();
        }
        println!("{q} values: a step of {} in {:?}", spec.batch, start.elapsed() / 100);

        let cuts: Vec<f64> = (0..=100).map(|k| k as f64 / 100.0).collect();
        for (scheme, walkers) in [(Scheme::Events, 4 * slots), (Scheme::Euler, slots)] {
            let plan = &WalkPlan::new(&path, scheme, &cuts).unwrap();
            let rates = CudaRates {
                network: Box::new(Still),
                keeps: false,
                slots,
                parametrisation: barker,
                condition: Vec::new(),
                couplings: Vec::new().into(),
                reversed: false,
            };
            let (on_gpu, population) = (&training.on_gpu, Population::new(walkers, 1));
            let walk = CudaWalk { target: &target, on_gpu, path: &path, plan, population };
            let mut population = CudaWalkers::new(rates, walk).unwrap();
            let outputs = population.outputs_mut();
            let count = slots * target.sites() * if q == 2 { 1 } else { q };
            let numbers: Vec<f32> =
                (0..count).map(|i| 0.02 * ((i % 101) as f32 - 50.0) / 50.0).collect();
            gpu.write(&numbers, outputs).unwrap();
            let (span, mut lineage) = (Span::whole(&plan.grid), Lineage::new(walkers, 0.0, 1));
            let start = std::time::Instant::now();
            population.advance(span, &Resampling::NEVER, &mut lineage, &NoProgress).unwrap();
            let seconds = start.elapsed().as_secs_f64();
            let passes = population.cost().unwrap().network_passes;
            println!(
                "{q} values {scheme:?}: {:.1} us for a pass of {slots} slots ({passes} passes a walker)",
                1e6 * seconds / (passes * walkers as f64) * slots as f64
            );
        }
    }
}

#[test]
#[ignore = "needs a GPU: cargo test -p leaps --lib cuda -- --ignored --skip speed"]
fn a_residual_that_is_not_finite_stops_the_step() {
    let gpu = Gpu::open(0).unwrap();
    let objective = &objectives()[0];
    let objective = Objective { parametrisation: Parametrisation::Relu, ..objective.clone() };
    let spec = TrainSpec { pool: 40, ..spec(16) };
    let mut trainer = Trainer::new(&objective, &spec, 1, &NoProgress).unwrap();
    trainer.state.optimiser.parameters[0] = f32::NAN;
    let before = trainer.state.optimiser.average.clone();
    let mut trainer = trainer.with_device(Box::new(training(&objective, &spec, &gpu, 16))).unwrap();
    let error = trainer.step(&NoProgress).unwrap_err();
    let Error::NonFinite { what, seed, step, .. } = &error else { panic!("{error}") };
    assert!(what.starts_with("residual") && (*seed, *step) == (1, 0), "{error}");
    trainer.sync().unwrap();
    assert_eq!(trainer.steps(), 0);
    assert_eq!(trainer.state.optimiser.average, before);
    assert_eq!(trainer.batch().len(), 16);
}
