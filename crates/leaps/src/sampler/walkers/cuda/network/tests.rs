//! The same walks as on the CPU.

use std::sync::Arc;

use super::*;
use crate::device::cuda::testing::compiles;
use crate::device::{NoProgress, Placement, Precision, Purpose};
use crate::net::{GlassSpec, HollowSpec, MlpSpec, Net, NetSpec};
use crate::observe::LogWeights;
use crate::path::Schedule;
use crate::sampler::{Grid, NetworkWalkers, RateModel, Resampler};
use crate::target::cuda::PAIRWISE;
use crate::target::{Boundary, Disorder, Lattice, Pairwise, on_shells};

const SCHEMES: [Scheme; 3] = [Scheme::Euler, Scheme::Trapezoid, Scheme::Events];
const HIDDEN: usize = 8;

fn torus(shape: &[usize]) -> Lattice {
    Lattice::new(shape, Boundary::Periodic).unwrap()
}

#[test]
#[cfg_attr(not(has_nvrtc), ignore = "needs NVRTC: set LEAPS_NVRTC to its folder")]
fn kernels_compile_for_all_schemes_and_parametrisations() {
    for (q, parametrisation, scheme) in [
        (2, Parametrisation::Relu, Scheme::Euler),
        (2, Parametrisation::Barker, Scheme::Events),
        (3, Parametrisation::Sqrt, Scheme::Trapezoid),
        (3, Parametrisation::Metropolis, Scheme::Events),
        (20, Parametrisation::Barker, Scheme::Events),
        (20, Parametrisation::Relu, Scheme::Trapezoid),
    ] {
        let target = [
            ("SITES", 49),
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
        let defines =
            [&target[..], &defines(parametrisation, scheme, scheme == Scheme::Events)].concat();
        compiles(&[PAIRWISE, NETWORK_WALK].concat(), &defines);
    }
}

/// What a test runs.
struct Case {
    name: &'static str,
    target: Arc<dyn Target>,
    beta: f64,
    parametrisation: Parametrisation,
    scheme: Scheme,
    substeps: usize,
    sweeps: u64,
    walkers: usize,
    slots: usize,
    resample: bool,
}

struct Outcome {
    states: Vec<u8>,
    energies: Vec<f64>,
    log_weights: Vec<f64>,
    calls: f64,
}

fn go(population: &mut dyn Walkers, grid: &Grid, resample: bool) -> Outcome {
    let mut log_weights = vec![0.0; population.walkers()];
    let n = grid.intervals();
    if resample {
        for k in 1..=n {
            let at = Interval { grid, k };
            population.weigh(at, &mut log_weights).unwrap();
            if k == n / 2 {
                // Ancestors that do not hang on the last bits of the weights.
                let flat: Vec<f64> =
                    (0..population.walkers()).map(|i| (i % 7) as f64 * 0.3).collect();
                let mut stream = crate::device::Stream::new(3, Purpose::Resample, 0, 0);
                let weights = LogWeights::new(flat).unwrap();
                let ancestors = Resampler::Systematic.ancestors(&weights, &mut stream);
                population.resample(&ancestors).unwrap();
                log_weights =
                    ancestors.iter().map(|&ancestor| log_weights[ancestor as usize]).collect();
            }
            population.mutate(at, &mut log_weights, &NoProgress).unwrap();
        }
    } else {
        // In two parts: walkers keep what belongs to them.
        let mut lineage = Lineage::new(population.walkers(), 0.0, 3);
        for intervals in [1..n / 3 + 1, n / 3 + 1..n + 1] {
            let (span, never) = (Span { grid, intervals }, &Resampling::NEVER);
            population.advance(span, never, &mut lineage, &NoProgress).unwrap();
        }
        log_weights = lineage.log_weights;
    }
    Outcome {
        states: population.states().unwrap(),
        energies: population.energies().unwrap(),
        log_weights,
        calls: population.cost().unwrap().energy_calls,
    }
}

fn compare(gpu: &Arc<Gpu>, case: &Case) {
    let target = &case.target;
    let net = Arc::new(Net::new(&NetSpec::Mlp(MlpSpec { hidden: HIDDEN }), &**target).unwrap());
    let parameters: Vec<f32> = net.initial(3).iter().map(|p| 2.2 * p).collect();
    let rates = &RateModel::new(&net, &parameters, case.parametrisation);
    let path = &Path::new(&vec![case.beta; target.terms()], Schedule::Trigonometric).unwrap();
    let cuts: Vec<f64> = (0..=20).map(|k| k as f64 / 20.0).collect();
    let plan = WalkPlan::with_substeps(path, case.scheme, (&cuts, case.substeps), &[0.3]);
    let plan = &plan.unwrap().sweeps(case.sweeps);
    let population = Population::new(case.walkers, 17);
    let on_gpu = &Arc::new(CudaTarget::new(gpu, &**target).unwrap());
    let mut network = net.on_gpu(gpu, case.slots, Precision::Float32).unwrap();
    network.refresh(&gpu.upload(&parameters).unwrap()).unwrap();
    let on_device = CudaRates {
        network,
        keeps: false,
        slots: case.slots,
        parametrisation: case.parametrisation,
        condition: Vec::new(),
        couplings: Vec::new().into(),
        reversed: false,
    };
    let walk = CudaWalk { target, on_gpu, path, plan, population };
    let mut there = CudaWalkers::new(on_device, walk).unwrap();
    let walk = NetworkWalk { target, path, rates, plan, population };
    let mut here = NetworkWalkers::new(walk).unwrap();
    let got = go(&mut there, &plan.grid, case.resample);
    let want = go(&mut here, &plan.grid, case.resample);
    agree(case, &got, &want);
}

/// Claim that walkers went the same way here and there.
fn agree(case: &Case, got: &Outcome, want: &Outcome) {
    let (target, walkers) = (&case.target, case.walkers);
    let (sites, terms) = (target.sites(), target.terms());
    let (mut same, mut worst) = (0, 0.0f64);
    for walker in 0..walkers {
        let x = &got.states[walker * sites..][..sites];
        if x != &want.states[walker * sites..][..sites] {
            continue;
        }
        same += 1;
        worst = worst.max((got.log_weights[walker] - want.log_weights[walker]).abs());
        for term in walker * terms..(walker + 1) * terms {
            assert!((got.energies[term] - want.energies[term]).abs() < 1e-9);
        }
    }
    println!(
        "{} {:?} {:?}: {same} of {walkers} walkers agree, log-weights within {worst:.1e}, energy calls {} and {}",
        case.name, case.scheme, case.parametrisation, got.calls, want.calls
    );
    assert!(same * 100 >= walkers * 99, "{}: only {same} of {walkers} agree", case.name);
    assert!(worst < 1e-4, "{}: log-weights differ by {worst}", case.name);
    assert!((got.calls / want.calls - 1.0).abs() < 0.01);
}

fn cases() -> Vec<Case> {
    let ising =
        || -> Arc<dyn Target> { Arc::new(Pairwise::ising(torus(&[8, 8]), 1.0, 0.3).unwrap()) };
    let mut all = Vec::new();
    for scheme in SCHEMES {
        for parametrisation in Parametrisation::ALL {
            all.push(Case {
                name: "ising",
                target: ising(),
                beta: 0.4,
                parametrisation,
                scheme,
                substeps: 1,
                sweeps: 0,
                walkers: 500,
                slots: 500,
                resample: false,
            });
        }
        let barker = Parametrisation::Barker;
        let potts = Pairwise::potts(torus(&[5, 5]), 3, 1.0, 0.3).unwrap();
        let glass = Pairwise::edwards_anderson(torus(&[5, 5]), Disorder::Gaussian, 2)
            .unwrap()
            .with_uniform_field(-0.2)
            .unwrap();
        for (name, target, sweeps, slots, resample) in [
            ("few slots", ising(), 0, 37, false),
            ("sweeps", ising(), 2, 300, false),
            ("resampled", ising(), 0, 128, true),
            ("sweeps and resampled", ising(), 1, 300, true),
            ("potts", Arc::new(potts) as _, 0, 100, false),
            ("glass", Arc::new(glass) as _, 1, 300, false),
            ("J1-J2", Arc::new(on_shells(&[6, 4], None, &[1.0, -0.6])) as _, 1, 300, false),
        ] {
            all.push(Case {
                name,
                target,
                beta: 0.5,
                parametrisation: barker,
                scheme,
                substeps: 1,
                sweeps,
                walkers: 300,
                slots,
                resample,
            });
        }
    }
    for (substeps, slots) in [(4, 300), (7, 37)] {
        all.push(Case {
            name: "substeps",
            target: ising(),
            beta: 0.5,
            parametrisation: Parametrisation::Barker,
            scheme: Scheme::Events,
            substeps,
            sweeps: 0,
            walkers: 300,
            slots,
            resample: false,
        });
    }
    all
}

#[test]
#[ignore = "needs a GPU: cargo test -p leaps --lib cuda -- --ignored --skip speed"]
fn walkers_go_where_they_go_on_the_cpu() {
    let gpu = Gpu::open(0).unwrap();
    for case in cases() {
        compare(&gpu, &case);
    }
}

#[test]
#[ignore = "needs a GPU: cargo test -p leaps --lib cuda -- --ignored --skip speed"]
fn walkers_of_a_conditioned_network_go_where_they_go_on_the_cpu() {
    let gpu = Placement::Cuda(Gpu::open(0).unwrap(), Precision::Float32);
    let target: &Arc<dyn Target> =
        &(Arc::new(Pairwise::ising(torus(&[6, 6]), 1.0, 1.0).unwrap()) as _);
    let spec = NetSpec::Mlp(MlpSpec { hidden: HIDDEN });
    let net = Arc::new(Net::conditioned_on(&spec, &**target, 2).unwrap());
    let parameters: Vec<f32> = net.initial(3).iter().map(|p| 2.2 * p).collect();
    let path = &Path::new(&[0.4, 0.1], Schedule::Trigonometric).unwrap();
    let cuts: Vec<f64> = (0..=20).map(|k| k as f64 / 20.0).collect();
    for scheme in SCHEMES {
        let plan = &WalkPlan::new(path, scheme, &cuts).unwrap();
        let case = Case {
            name: "conditioned",
            target: target.clone(),
            beta: 0.4,
            parametrisation: Parametrisation::Barker,
            scheme,
            substeps: 1,
            sweeps: 0,
            walkers: 200,
            slots: 200,
            resample: false,
        };
        let run = |condition: [f64; 2], placement: &Placement| {
            let rates = RateModel::new(&net, &parameters, case.parametrisation);
            let rates = &rates.conditioned_on(&condition);
            let population = Population::new(case.walkers, 17);
            let walk = NetworkWalk { target, path, rates, plan, population };
            go(&mut *walk.on(placement).unwrap(), &plan.grid, case.resample)
        };
        let got = run([0.7, -0.4], &gpu);
        agree(&case, &got, &run([0.7, -0.4], &Placement::Cpu));
        let other = run([-0.9, 0.8], &gpu);
        assert_ne!(got.log_weights, other.log_weights, "{scheme:?}: the condition is not read");
    }
}

#[test]
#[ignore = "needs a GPU: cargo test -p leaps --lib cuda -- --ignored --skip speed"]
fn walkers_that_are_shown_couplings_go_where_they_go_on_the_cpu() {
    let gpu = Placement::Cuda(Gpu::open(0).unwrap(), Precision::Float32);
    let glass =
        |seed| Pairwise::edwards_anderson(torus(&[6, 5]), Disorder::Gaussian, seed).unwrap();
    let target: &Arc<dyn Target> = &(Arc::new(glass(4)) as _);
    let spec = NetSpec::Glass(GlassSpec { channels: HIDDEN, ..GlassSpec::default() });
    let net = Arc::new(Net::new(&spec, &**target).unwrap());
    let parameters: Vec<f32> = net.initial(3).iter().map(|p| 2.2 * p).collect();
    let path = &Path::new(&[0.6], Schedule::Trigonometric).unwrap();
    let cuts: Vec<f64> = (0..=20).map(|k| k as f64 / 20.0).collect();
    for scheme in SCHEMES {
        let plan = &WalkPlan::new(path, scheme, &cuts).unwrap();
        let case = Case {
            name: "glass",
            target: target.clone(),
            beta: 0.6,
            parametrisation: Parametrisation::Barker,
            scheme,
            substeps: 1,
            sweeps: 0,
            walkers: 200,
            slots: 200,
            resample: false,
        };
        let run = |instance: &[f32], placement: &Placement| {
            let rates = RateModel::new(&net, &parameters, case.parametrisation);
            let rates = &rates.on_instance(instance);
            let population = Population::new(case.walkers, 17);
            let walk = NetworkWalk { target, path, rates, plan, population };
            go(&mut *walk.on(placement).unwrap(), &plan.grid, case.resample)
        };
        let got = run(net.instance(), &gpu);
        agree(&case, &got, &run(net.instance(), &Placement::Cpu));
        let other = run(&glass(5).axis_couplings().unwrap(), &gpu);
        assert_ne!(got.log_weights, other.log_weights, "{scheme:?}: couplings are not read");
    }
}

#[test]
#[ignore = "needs a GPU: cargo test -p leaps --lib cuda -- --ignored --skip speed"]
fn rates_that_are_not_finite_are_reported() {
    let gpu = Gpu::open(0).unwrap();
    let target: &Arc<dyn Target> =
        &(Arc::new(Pairwise::ising(torus(&[4, 4]), 1.0, 0.0).unwrap()) as _);
    let net = Net::new(&NetSpec::Mlp(MlpSpec { hidden: 2 }), &**target).unwrap();
    let path = &Path::new(&[0.4], Schedule::Linear).unwrap();
    let on_gpu = &Arc::new(CudaTarget::new(&gpu, &**target).unwrap());
    for scheme in SCHEMES {
        let plan = &WalkPlan::new(path, scheme, &[0.0, 0.5, 1.0]).unwrap();
        let mut network = net.on_gpu(&gpu, 64, Precision::Float32).unwrap();
        network.refresh(&gpu.upload(&vec![f32::NAN; net.parameters()]).unwrap()).unwrap();
        let rates = CudaRates {
            network,
            keeps: false,
            slots: 64,
            parametrisation: Parametrisation::Barker,
            condition: Vec::new(),
            couplings: Vec::new().into(),
            reversed: false,
        };
        let population = Population::new(100, 1);
        let walk = CudaWalk { target, on_gpu, path, plan, population };
        let mut walkers = CudaWalkers::new(rates, walk).unwrap();
        let (span, mut lineage) = (Span::whole(&plan.grid), Lineage::new(100, 0.0, 1));
        let never = &Resampling::NEVER;
        let error = walkers.advance(span, never, &mut lineage, &NoProgress).unwrap_err();
        let Error::NonFinite { what, value, step, walker, .. } = error else { panic!("{error}") };
        assert_eq!((what.as_str(), step), ("sum of the rates", 1));
        assert!(value.is_nan() && walker < 64);
    }
}

#[test]
#[ignore = "needs a GPU: cargo test -p leaps --lib cuda -- --ignored --skip speed"]
fn other_targets_are_refused() {
    struct Chain;
    impl Target for Chain {
        fn sites(&self) -> usize {
            3
        }
        fn q(&self) -> usize {
            2
        }
        fn energy(&self, _term: usize, _x: &[u8]) -> f64 {
            0.0
        }
    }
    let gpu = Gpu::open(0).unwrap();
    assert!(matches!(CudaTarget::new(&gpu, &Chain), Err(Error::NotApplicable { .. })));
}

/// Walkers of a case that follow a hollow convolution, with or without activations that are kept.
fn followed(gpu: &Arc<Gpu>, case: &Case, rates: &RateModel, keep: bool) -> (Outcome, f64) {
    let target = &case.target;
    let path = &Path::new(&vec![case.beta; target.terms()], Schedule::Trigonometric).unwrap();
    let cuts: Vec<f64> = (0..=20).map(|k| k as f64 / 20.0).collect();
    let plan = WalkPlan::with_substeps(path, case.scheme, (&cuts, case.substeps), &[0.3]);
    let plan = &plan.unwrap().sweeps(case.sweeps);
    let on_gpu = &Arc::new(CudaTarget::new(gpu, &**target).unwrap());
    let mut network = rates.net.on_gpu(gpu, case.slots, Precision::Bf16).unwrap();
    network.refresh(&gpu.upload(rates.parameters()).unwrap()).unwrap();
    let keeps = keep && network.keep(Keep::Always).unwrap();
    assert_eq!(keeps, keep);
    let there = CudaRates {
        network,
        keeps,
        slots: case.slots,
        parametrisation: case.parametrisation,
        condition: Vec::new(),
        couplings: Vec::new().into(),
        reversed: false,
    };
    let population = Population::new(case.walkers, 17);
    let walk = CudaWalk { target, on_gpu, path, plan, population };
    let mut walkers = CudaWalkers::new(there, walk).unwrap();
    let outcome = go(&mut walkers, &plan.grid, case.resample);
    (outcome, walkers.cost().unwrap().network_passes)
}

#[test]
#[ignore = "needs a GPU: cargo test -p leaps --lib cuda -- --ignored --skip speed"]
fn walkers_go_the_same_way_where_only_changes_are_computed() {
    let gpu = Gpu::open(0).unwrap();
    let ising = |shape: &[usize]| -> Arc<dyn Target> {
        Arc::new(Pairwise::ising(torus(shape), 1.0, 0.0).unwrap())
    };
    let free = Lattice::new(&[9, 11], Boundary::Free).unwrap();
    let potts =
        |lattice| -> Arc<dyn Target> { Arc::new(Pairwise::potts(lattice, 3, 1.0, 0.0).unwrap()) };
    for (name, target, depth, slots, substeps, sweeps, resample) in [
        ("8x8", ising(&[8, 8]), 3, 300, 1, 0, false),
        ("few slots", ising(&[8, 8]), 3, 37, 1, 0, false),
        ("substeps", ising(&[15, 15]), 6, 200, 4, 0, false),
        ("sweeps", ising(&[15, 15]), 6, 128, 1, 1, false),
        ("resampled", ising(&[16, 16]), 6, 128, 1, 0, true),
        ("potts", potts(torus(&[15, 15])), 6, 100, 1, 0, false),
        ("free", potts(free), 4, 100, 1, 0, false),
        ("32x32", ising(&[32, 32]), 6, 150, 1, 0, false),
    ] {
        let spec = HollowSpec { channels: 24, depth: Some(depth), ..HollowSpec::default() };
        let net = Arc::new(Net::new(&NetSpec::Hollow(spec), &*target).unwrap());
        let parameters: Vec<f32> = net.initial(3).iter().map(|p| 2.2 * p).collect();
        let case = Case {
            name,
            target,
            beta: 0.4,
            parametrisation: Parametrisation::Barker,
            scheme: Scheme::Events,
            substeps,
            sweeps,
            walkers: 300,
            slots,
            resample,
        };
        let rates = &RateModel::new(&net, &parameters, case.parametrisation);
        let (whole, passes) = followed(&gpu, &case, rates, false);
        let (local, local_passes) = followed(&gpu, &case, rates, true);
        println!("{name}: {passes} and {local_passes} passes a walker");
        assert!(passes > 20.5, "{name}: walkers do not jump");
        assert!(whole.states == local.states, "{name}: other states");
        assert_eq!(whole.log_weights, local.log_weights, "{name}");
        assert_eq!(whole.energies, local.energies, "{name}");
        assert_eq!(passes, local_passes, "{name}");
    }
}

#[cfg(feature = "models")]
#[test]
#[ignore = "needs a GPU: cargo test -p leaps --lib speed -- --ignored --nocapture"]
fn speed_of_walkers_where_only_changes_are_computed() {
    let gpu = Gpu::open(0).unwrap();
    for (name, side, walkers) in
        [("ising-15-critical", 15, 32768), ("ising-32-critical", 32, 16384)]
    {
        let model = crate::store::Shipped::find(name).unwrap().model().unwrap();
        let target: Arc<dyn Target> =
            Arc::new(Pairwise::ising(torus(&[side, side]), 1.0, 0.0).unwrap());
        let rates = &model.rates(&Arc::new(model.net(&*target).unwrap())).unwrap();
        let path = &Path::new(&vec![0.4407; target.terms()], Schedule::Linear).unwrap();
        let cuts: Vec<f64> = (0..=100).map(|k| k as f64 / 100.0).collect();
        let plan = &WalkPlan::new(path, Scheme::Events, &cuts).unwrap();
        let on_gpu = &Arc::new(CudaTarget::new(&gpu, &*target).unwrap());
        let slots = walkers.min(SLOTS);
        let run = |keep: bool| {
            let mut network = rates.net.on_gpu(&gpu, slots, Precision::Bf16).unwrap();
            network.refresh(&gpu.upload(rates.parameters()).unwrap()).unwrap();
            let keeps = keep && network.keep(Keep::WhereItPays).unwrap();
            assert_eq!(keeps, keep);
            let there = CudaRates {
                network,
                keeps,
                slots,
                parametrisation: rates.parametrisation,
                condition: Vec::new(),
                couplings: Vec::new().into(),
                reversed: false,
            };
            let population = Population::new(walkers, 1);
            let walk = CudaWalk { target: &target, on_gpu, path, plan, population };
            let mut all = CudaWalkers::new(there, walk).unwrap();
            let (span, mut lineage) = (Span::whole(&plan.grid), Lineage::new(walkers, 0.0, 1));
            gpu.wait().unwrap();
            let start = std::time::Instant::now();
            all.advance(span, &Resampling::NEVER, &mut lineage, &NoProgress).unwrap();
            let seconds = start.elapsed().as_secs_f64();
            (seconds, all.cost().unwrap().network_passes, lineage.log_weights)
        };
        let (whole, passes, weights) = run(false);
        let (local, _, local_weights) = run(true);
        assert!(weights == local_weights, "{name}: other weights");
        println!(
            "{name}: {walkers} walkers, {passes:.0} passes each; whole {whole:.2} s, after jumps only changes {local:.2} s: \
             {:.2} times faster",
            whole / local
        );
    }
}
