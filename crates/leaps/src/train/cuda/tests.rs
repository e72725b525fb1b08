//! The same training as on the CPU.

use super::*;
use crate::device::cuda::testing::compiles;
use crate::device::{Draw, NoProgress, Precision, Stream};
use crate::net::{MlpSpec, Net, NetSpec};
use crate::path::Schedule;
use crate::target::cuda::PAIRWISE;
use crate::target::{Boundary, Lattice, Pairwise};
use crate::train::{Loss, Reference, Trainer};

const HIDDEN: usize = 4;

#[test]
#[cfg_attr(not(has_nvrtc), ignore = "needs NVRTC: set LEAPS_NVRTC to its folder")]
fn kernels_compile() {
    for (q, parametrisation) in [(2, 0), (2, 1), (3, 2), (20, 3)] {
        let defines = [
            ("SITES", 225),
            ("Q", q),
            ("TERMS", 2),
            ("CLASSES", 0),
            ("DEGREE", 4),
            ("REGULAR", 1),
            ("THREADS", 128),
            ("PITCH", 132),
            ("STAGED", 1),
            ("PARAMETRISATION", parametrisation),
            ("SCHEME", 2),
        ];
        compiles(&[PAIRWISE, FLOW, TRAIN].concat(), &defines);
    }
}

/// A target, its path, a network and a free energy.
struct Problem {
    target: Pairwise,
    path: Path,
    net: Net,
    free: FreeEnergy,
}

fn problems() -> Vec<Problem> {
    let torus = |shape: &[usize]| Lattice::new(shape, Boundary::Periodic).unwrap();
    let mlp = FreeEnergySpec::Mlp { hidden: vec![8, 8] };
    [
        (Pairwise::ising(torus(&[4, 5]), 1.0, 0.2).unwrap(), FreeEnergySpec::Rate),
        (Pairwise::potts(torus(&[3, 4]), 3, 1.0, 0.3).unwrap(), FreeEnergySpec::Rate),
        (Pairwise::ising(torus(&[4, 4]), 1.0, 0.0).unwrap(), mlp),
    ]
    .into_iter()
    .map(|(target, free)| Problem {
        path: Path::new(&vec![0.5; target.terms()], Schedule::Trigonometric).unwrap(),
        net: Net::new(&NetSpec::Mlp(MlpSpec { hidden: HIDDEN }), &target).unwrap(),
        free: FreeEnergy::new(&free, target.sites()).unwrap(),
        target,
    })
    .collect()
}

impl Problem {
    fn network(&self, gpu: &Arc<Gpu>, lanes: usize) -> Box<dyn CudaNetwork> {
        self.net.on_gpu(gpu, lanes, Precision::Float32).unwrap()
    }

    fn training(
        &self,
        gpu: &Arc<Gpu>,
        parametrisation: Parametrisation,
        batch: usize,
    ) -> CudaTraining<'_> {
        let (own, network) = (self.net.parameters(), (self.network(gpu, batch), batch));
        let (target, path, free) = (&self.target, &self.path, &self.free);
        CudaTraining::new(gpu, target, path, free, parametrisation, network, own, batch).unwrap()
    }

    fn parameters(&self) -> Vec<f32> {
        let mut all: Vec<f32> = self.net.initial(1).iter().map(|p| 2.0 * p).collect();
        all.extend(self.free.initial(1).iter().map(|p| 3.0 * p));
        all
    }
}

#[test]
#[ignore = "needs a GPU: cargo test -p leaps --lib cuda -- --ignored --skip speed"]
fn residuals_and_gradients_are_the_cpus() {
    let gpu = Gpu::open(0).unwrap();
    for problem in problems() {
        for parametrisation in Parametrisation::ALL {
            let Problem { target, path, net, free } = &problem;
            let optimiser = Optimiser::new(problem.parameters());
            let mut batch = Batch::new(target.sites());
            let mut stream = Stream::new(4, Purpose::Statistic, 0, 0);
            for k in 0..77 {
                batch.times.push((k as f64 + 0.5) / 77.0);
                let x = (0..target.sites()).map(|_| stream.below(target.q()) as u8);
                batch.states.extend(x);
            }
            let mut want = vec![0.0; optimiser.parameters.len()];
            let residuals = Loss::new(target, path, net, free, parametrisation)
                .gradient(&optimiser.parameters, &batch, &mut want, &NoProgress)
                .unwrap();
            let mut training = problem.training(&gpu, parametrisation, 80);
            training.upload(&optimiser, None).unwrap();
            training.take(&batch).unwrap();
            assert_eq!(training.batch().unwrap(), batch);
            training.gradient().unwrap();
            let got = gpu.download(&training.residuals).unwrap();
            let largest = residuals.iter().fold(1.0f64, |m, r| m.max(r.abs()));
            let worst = residuals.iter().zip(&got).fold(0.0f64, |m, (a, b)| m.max((a - b).abs()));
            assert!(worst < 1e-5 * largest, "{parametrisation:?}: residuals differ by {worst}");
            let got = gpu.download(&training.gradient).unwrap();
            let largest = want.iter().fold(0.0f32, |m, g| m.max(g.abs()));
            let own = net.parameters();
            let gap = |range: std::ops::Range<usize>| {
                range.fold(0.0f32, |m, i| m.max((want[i] - got[i]).abs()))
            };
            let worst = (gap(0..own), gap(own..want.len()));
            println!("{parametrisation:?}: gradients of {largest} differ by {worst:?}");
            assert!(worst.0 < 2e-5 * largest && worst.1 < 2e-5 * largest);
        }
    }
}

#[test]
#[ignore = "needs a GPU: cargo test -p leaps --lib cuda -- --ignored --skip speed"]
fn adam_is_the_processors_bit_by_bit() {
    let gpu = Gpu::open(0).unwrap();
    let problem = &problems()[0];
    let spec = TrainSpec { clip: 3.0, ..TrainSpec::default() };
    let mut optimiser = Optimiser::new(problem.parameters());
    let mut training = problem.training(&gpu, Parametrisation::Barker, 8);
    training.upload(&optimiser, None).unwrap();
    training.chosen = vec![(0, 0.5)];
    let mut stream = Stream::new(4, Purpose::Statistic, 0, 0);
    for step in 1..=20u64 {
        // Now and then long enough to be clipped.
        let size = if step.is_multiple_of(3) { 10.0 } else { 0.01 };
        let gradient: Vec<f32> =
            optimiser.parameters.iter().map(|_| (size * stream.normal()) as f32).collect();
        gpu.write(&gradient, &mut training.gradient).unwrap();
        let (_, norm) = training.update(2e-3, step, &spec).unwrap();
        let want = optimiser.step(&gradient, 2e-3, &spec);
        assert!((norm / want - 1.0).abs() < 1e-12, "{norm} {want}");
    }
    let mut got = optimiser.clone();
    training.download(&mut got, None).unwrap();
    let gap = |a: &[f32], b: &[f32]| a.iter().zip(b).fold(0.0f32, |m, (a, b)| m.max((a - b).abs()));
    for (a, b) in [
        (&got.parameters, &optimiser.parameters),
        (&got.average, &optimiser.average),
        (&got.first, &optimiser.first),
        (&got.second, &optimiser.second),
    ] {
        println!("differ by {:e}", gap(a, b));
        assert!(gap(a, b) < 1e-6);
    }
    let mut gradient = vec![0.1; optimiser.parameters.len()];
    gradient[7] = f32::NAN;
    gpu.write(&gradient, &mut training.gradient).unwrap();
    let error = training.update(2e-3, 21, &spec).unwrap_err();
    assert!(matches!(error, Error::NonFinite { .. }), "{error}");
    let mut after = optimiser.clone();
    training.download(&mut after, None).unwrap();
    assert_eq!(after, got, "a gradient that is not a number changes nothing");
}

#[test]
#[ignore = "needs a GPU: cargo test -p leaps --lib cuda -- --ignored --skip speed"]
fn training_goes_as_on_the_cpu() {
    let gpu = Gpu::open(0).unwrap();
    for problem in problems() {
        for reference in [Reference::Pool, Reference::Buffer, Reference::Policy] {
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
            let Problem { target, path, net, free } = &problem;
            let trainer = || {
                Trainer::new(
                    target,
                    path,
                    net,
                    free,
                    Parametrisation::Barker,
                    &spec,
                    1,
                    &NoProgress,
                )
                .unwrap()
            };
            let (mut here, mut there) = (trainer(), trainer());
            there.with_gpu(&gpu, problem.network(&gpu, 100), 100).unwrap();
            for step in 0..8 {
                let (want, got) =
                    (here.step(&NoProgress).unwrap(), there.step(&NoProgress).unwrap());
                println!("{reference:?} {step}: loss {} {}", want.loss, got.loss);
                assert_eq!((want.step, want.rate), (got.step, got.rate));
                assert!((got.loss / want.loss - 1.0).abs() < 2e-3, "{want:?} {got:?}");
                assert!((got.norm / want.norm - 1.0).abs() < 2e-3, "{want:?} {got:?}");
            }
            there.sync().unwrap();
            assert_eq!(here.steps(), there.steps());
            assert_eq!(here.pool, there.pool);
            assert_eq!(here.batch().times, there.batch().times);
            let (a, b) = (&here.optimiser.parameters, &there.optimiser.parameters);
            let far = a.iter().zip(b).filter(|(a, b)| (*a - *b).abs() > 1e-4).count();
            assert!(far * 50 <= a.len(), "{far} of {} parameters differ", a.len());
            // The averages hardly differ, so neither do the walks.
            let want = here.validate(200, 10, &NoProgress).unwrap();
            let got = there.validate(200, 10, &NoProgress).unwrap();
            let (want, got) = (want.log_z().mean, got.log_z().mean);
            assert!((want - got).abs() < 0.02, "{want} {got}");
            // Going on from host copies is going on.
            let mut again = trainer();
            again.optimiser = there.optimiser.clone();
            again.pool = there.pool.clone();
            again.buffer = there.buffer.clone();
            again.with_gpu(&gpu, problem.network(&gpu, 64), 64).unwrap();
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
        let free = FreeEnergy::new(&FreeEnergySpec::Rate, target.sites()).unwrap();
        let (own, lanes, q) = (180_000, 16384, target.q());
        let spec = TrainSpec { batch: 1024, pool: 65536, ..TrainSpec::default() };
        let start = std::time::Instant::now();
        let only = crate::train::Member { path: path.clone(), condition: Vec::new() };
        let pool = Pool::new(&target, &[only], spec.pool, 1, &NoProgress).unwrap();
        println!("{q} values: a pool in {:?} on the CPU", start.elapsed());
        let barker = Parametrisation::Barker;
        let network: (Box<dyn CudaNetwork>, usize) = (Box::new(Still), lanes);
        let mut training =
            CudaTraining::new(&gpu, &target, &path, &free, barker, network, own, spec.batch)
                .unwrap();
        let optimiser = Optimiser::new(vec![0.01; training.all]);
        training.upload(&optimiser, Some(&pool)).unwrap();
        let mut start = std::time::Instant::now();
        for step in 0..110 {
            if step == 10 {
                start = std::time::Instant::now();
            }
            training.draw(&pool, &spec, step).unwrap();
            training.step(1e-3, step + 1, &spec).unwrap();
        }
        println!("{q} values: a step of {} in {:?}", spec.batch, start.elapsed() / 100);

        let cuts: Vec<f64> = (0..=100).map(|k| k as f64 / 100.0).collect();
        for (scheme, walkers) in [(Scheme::Events, 4 * lanes), (Scheme::Euler, lanes)] {
            let (grid, durations) = crate::sampler::scheme_grid(&path, scheme, &cuts).unwrap();
            let flow = CudaRates { network: Box::new(Still), lanes, parametrisation: barker };
            let on_gpu = &training.on_gpu;
            let mut population =
                CudaWalkers::new(&target, on_gpu, &path, flow, scheme, durations, 0, walkers, 1)
                    .unwrap();
            let outputs = population.outputs_mut();
            let count = lanes * target.sites() * if q == 2 { 1 } else { q };
            let numbers: Vec<f32> =
                (0..count).map(|i| 0.02 * ((i % 101) as f32 - 50.0) / 50.0).collect();
            gpu.write(&numbers, outputs).unwrap();
            let mut log_weights = vec![0.0; walkers];
            let start = std::time::Instant::now();
            use crate::sampler::Population;
            let all = 1..grid.intervals() + 1;
            population.advance(&grid, all, &mut log_weights, &NoProgress).unwrap();
            let seconds = start.elapsed().as_secs_f64();
            let passes = population.passes().unwrap();
            println!(
                "{q} values {scheme:?}: {:.1} us for a pass of {lanes} lanes ({passes} passes a walker)",
                1e6 * seconds / (passes * walkers as f64) * lanes as f64
            );
        }
    }
}

#[test]
#[ignore = "needs a GPU: cargo test -p leaps --lib cuda -- --ignored --skip speed"]
fn a_residual_that_is_not_finite_stops_the_step() {
    let gpu = Gpu::open(0).unwrap();
    let problem = &problems()[0];
    let Problem { target, path, net, free } = problem;
    let spec = TrainSpec { batch: 16, pool: 40, ..TrainSpec::default() };
    let mut trainer =
        Trainer::new(target, path, net, free, Parametrisation::Relu, &spec, 1, &NoProgress)
            .unwrap();
    trainer.optimiser.parameters[0] = f32::NAN;
    let before = trainer.optimiser.average.clone();
    trainer.with_gpu(&gpu, problem.network(&gpu, 16), 16).unwrap();
    let error = trainer.step(&NoProgress).unwrap_err();
    let Error::NonFinite { what, seed, step, .. } = &error else { panic!("{error}") };
    assert!(what.starts_with("residual") && (*seed, *step) == (1, 0), "{error}");
    trainer.sync().unwrap();
    assert_eq!(trainer.steps(), 0);
    assert_eq!(trainer.optimiser.average, before);
    assert_eq!(trainer.batch().len(), 16);
}
