//! Chains on a GPU beside those of the CPU.

use std::fmt::Debug;
use std::sync::atomic::{AtomicU64, Ordering};

use super::chains::run_cuda_chains;
use super::places::{PLACES, defines};
use super::rungs::run_cuda_ladders;
use crate::device::cuda::Gpu;
use crate::device::{NoProgress, Progress};
use crate::mcmc::lanes::{LadderPlan, Plan, Scan, run_lane_chains, run_lane_tempering};
use crate::mcmc::{
    AnyKernel, ChainOutcome, ChainSettings, KernelName, TemperingOutcome, TemperingSettings,
    run_chains,
};
use crate::observe::{ChainRecorder, LadderTable, Recorder, Reduced, RemoteRecorder};
use crate::target::cuda::testing::compiles_behind;
use crate::target::{Boundary, Bravais, Density, Disorder, Lattice, Pairwise, Target, on_shells};

#[test]
#[cfg_attr(not(has_nvrtc), ignore = "needs NVRTC: set LEAPS_NVRTC to its folder")]
fn kernels_compile_for_places() {
    for (_, target, _) in targets() {
        compiles_behind(&target, PLACES, &defines());
    }
}

fn torus(shape: &[usize]) -> Lattice {
    Lattice::new(shape, Boundary::Periodic).unwrap()
}

/// Targets with tables of every code and without, states beyond shared memory, several shapes; and an inverse temperature for each.
fn targets() -> Vec<(&'static str, Pairwise, f64)> {
    let free = Lattice::new(&[5, 7], Boundary::Free).unwrap();
    let glass = Pairwise::edwards_anderson(torus(&[6, 6]), Disorder::Gaussian, 2).unwrap();
    vec![
        ("ising", Pairwise::ising(torus(&[8, 8]), 1.0, 0.1).unwrap(), 0.4),
        ("free ends", Pairwise::ising(free, -0.3, 0.0).unwrap(), 0.9),
        ("three dimensions", Pairwise::ising(torus(&[3, 4, 5]), 1.0, 0.0).unwrap(), 0.2),
        ("glass", glass.with_uniform_field(-0.2).unwrap(), 0.7),
        ("potts", Pairwise::potts(torus(&[6, 7]), 3, 1.0, 0.2).unwrap(), 0.9),
        ("20 values", Pairwise::potts(torus(&[3, 4]), 20, 2.0, 0.5).unwrap(), 0.8),
        ("complete", Pairwise::sherrington_kirkpatrick(40, Disorder::Gaussian, 3).unwrap(), 0.7),
        ("J1-J2", on_shells(&[6, 8], None, &[1.0, -0.6]).with_uniform_field(0.1).unwrap(), 0.8),
        ("triangular", on_shells(&[5, 6], Some(Bravais::Triangular), &[-1.0]), 0.7),
        ("fcc", on_shells(&[4, 4, 3], Some(Bravais::Fcc), &[-1.0, 0.2]), 0.4),
        ("large", Pairwise::ising(torus(&[90, 91]), 1.0, 0.1).unwrap(), 0.4),
    ]
}

/// Those whose kernels are compiled in a second.
fn quick_targets() -> impl Iterator<Item = (&'static str, Pairwise, f64)> {
    targets().into_iter().filter(|(_, target, _)| target.q() < 20)
}

/// Keeps rows and states.
#[derive(Clone)]
struct Rows<'a> {
    chain: ChainRecorder<'a>,
    rows: Vec<Vec<f64>>,
    states: Vec<u8>,
}

impl<'a> Rows<'a> {
    fn new(target: &'a Pairwise, lambda: &[f64]) -> Self {
        let chain = ChainRecorder::new(target, lambda, 5);
        Rows { chain, rows: Vec::new(), states: Vec::new() }
    }

    /// The row of the last state, and behind it the distance.
    fn note(&mut self, x: &[u8]) {
        let (row, distance) = self.chain.last();
        self.rows.push([row, &[f64::from(distance)]].concat());
        self.states.extend_from_slice(x);
    }
}

impl Recorder for Rows<'_> {
    fn record(&mut self, x: &[u8]) {
        self.chain.record(x);
        self.note(x);
    }
}

impl RemoteRecorder for Rows<'_> {
    fn measures(&self) -> &ChainRecorder<'_> {
        &self.chain
    }

    fn keeps_states(&self) -> bool {
        true
    }

    fn record_reduced(&mut self, state: &Reduced<'_>, x: Option<&[u8]>) {
        self.chain.record_reduced(state);
        self.note(x.unwrap());
    }
}

/// The first difference between what two chains recorded, structure factors being sums in another order.
fn difference(here: &Rows<'_>, there: &Rows<'_>) -> Option<String> {
    if here.rows.len() != there.rows.len() {
        return Some(format!("{} and {} states are kept", here.rows.len(), there.rows.len()));
    }
    let at = here.states.iter().zip(&there.states).position(|(a, b)| a != b);
    if let Some(at) = at {
        let sites = here.chain.layout().sites;
        return Some(format!("kept state {} differs at site {}", at / sites, at % sites));
    }
    let layout = here.chain.layout();
    let waves = layout.structure(0)..layout.structure(layout.sides.len());
    for (kept, (a, b)) in here.rows.iter().zip(&there.rows).enumerate() {
        for (column, (a, b)) in a.iter().zip(b).enumerate() {
            // Structure factors at wave vectors are measured on the CPU alone.
            if column >= layout.wave(0) && b.is_nan() {
                continue;
            }
            let bound = if waves.contains(&column) { 1e-12 * (1.0 + a.abs()) } else { 0.0 };
            if (a - b).abs() > bound || a.is_nan() != b.is_nan() {
                let names = (waves.clone(), layout.width());
                return Some(format!(
                    "row {kept}, column {column} of {names:?}: {a} here, {b} there"
                ));
            }
        }
    }
    None
}

fn on_cpu<'a>(
    target: &'a Pairwise,
    lambda: &[f64],
    (kernel, scan): (KernelName, Scan),
    settings: &ChainSettings,
) -> (Vec<ChainOutcome<Rows<'a>>>, bool) {
    let (model, make) = (Density::new(target, lambda), |_| Rows::new(target, lambda));
    match Plan::new(target, kernel.rule().unwrap(), scan) {
        Ok(plan) => (run_lane_chains(&model, &plan, settings, make, &NoProgress).unwrap(), true),
        Err(_) => {
            let kernel = AnyKernel::new(kernel, target, lambda).unwrap();
            (run_chains(&model, &kernel, settings, make, &NoProgress).unwrap(), false)
        }
    }
}

#[test]
#[ignore = "needs a GPU: cargo test -p leaps --lib cuda -- --ignored --skip speed"]
fn chains_are_those_of_the_cpu() {
    let gpu = Gpu::open(0).unwrap();
    for (name, target, beta) in quick_targets() {
        let lambda = vec![beta; target.terms()];
        let large = target.sites() > 1000;
        for kernel in KernelName::ON_GPU {
            for (scan, thin, burn_in) in
                [(Scan::Systematic, 1, 0), (Scan::Coloured, 3, 7), (Scan::Systematic, 3, 2)]
            {
                let chains = if large { 35 } else { 133 };
                let steps = if large { 6 } else { 20 };
                let settings = ChainSettings { chains, burn_in, steps, thin, seed: 5 };
                let (here, tables) = on_cpu(&target, &lambda, (kernel, scan), &settings);
                let model = Density::new(&target, &lambda);
                let make = |_| Rows::new(&target, &lambda);
                let there =
                    run_cuda_chains(&gpu, &model, (kernel, scan), &settings, make, &NoProgress)
                        .unwrap();
                assert_eq!(here.len(), there.len());
                let label = format!("{name} {kernel} {scan:?} every {thin} after {burn_in}");
                let mut differ = 0;
                for (chain, (a, b)) in here.iter().zip(&there).enumerate() {
                    assert_eq!((a.steps, a.energy_calls), (b.steps, b.energy_calls), "{label}");
                    let found = difference(&a.recorder, &b.recorder);
                    if let Some(found) = found
                        .or_else(|| (a.last != b.last).then(|| "the last state differs".to_owned()))
                    {
                        println!("{label}, chain {chain}: {found}");
                        differ += 1;
                        continue;
                    }
                    let off = (a.acceptance - b.acceptance).abs();
                    assert!(off < 1e-12, "{label}: acceptance {} {}", a.acceptance, b.acceptance);
                }
                println!("{label}: {differ} of {chains} chains differ");
                // Site by site a choice may be closer to even than the rounding of an exponential.
                let allowed = if tables { 0 } else { chains / 100 };
                assert!(differ <= allowed, "{label}: {differ} of {chains} chains differ");
            }
        }
    }
}

/// The first difference between two ladders, structure factors being sums in another order.
fn first_difference(
    a: &TemperingOutcome<Rows<'_>>,
    b: &TemperingOutcome<Rows<'_>>,
) -> Option<String> {
    let recorded = difference(&a.recorders[0], &b.recorders[0]);
    let rung = a.last.iter().zip(&b.last).position(|(a, b)| a != b);
    let differ = |what: &str, a: &dyn Debug, b: &dyn Debug| format!("{what}: {a:?} {b:?}");
    let lowest =
        |ladder: &TemperingOutcome<_>| ladder.table.as_ref().and_then(|t| t.lowest().cloned());
    let (here, there) = (lowest(a), lowest(b));
    recorded
        .or_else(|| rung.map(|rung| format!("rung {rung} ends elsewhere")))
        .or_else(|| {
            (a.swap_rates != b.swap_rates)
                .then(|| differ("swap rates", &a.swap_rates, &b.swap_rates))
        })
        .or_else(|| {
            (a.round_trips != b.round_trips)
                .then(|| differ("round trips", &a.round_trips, &b.round_trips))
        })
        .or_else(|| {
            (a.acceptance != b.acceptance)
                .then(|| differ("acceptance", &a.acceptance, &b.acceptance))
        })
        .or_else(|| (here != there).then(|| differ("lowest energy", &here, &there)))
        .or_else(|| (a.table != b.table).then(|| differ("tables", &a.table, &b.table)))
}

#[test]
#[ignore = "needs a GPU: cargo test -p leaps --lib cuda -- --ignored --skip speed"]
fn tiled_ladders_are_those_of_the_cpu() {
    let gpu = Gpu::open(0).unwrap();
    let names = ["ising", "glass", "potts", "large"];
    for (name, target, beta) in targets().into_iter().filter(|(name, ..)| names.contains(name)) {
        let (rungs, large) = (5, name == "large");
        let ladder: Vec<Vec<f64>> = (1..=rungs)
            .map(|k| vec![beta * f64::from(k) / f64::from(rungs); target.terms()])
            .collect();
        let coldest = &ladder[ladder.len() - 1];
        for kernel in KernelName::ON_GPU {
            for (thin, burn_in, exchange) in [(1, 5, true), (3, 4, true), (3, 2, false)] {
                // More than a tile, and not two.
                let (chains, steps) = if large { (3, 4) } else { (70, 41) };
                let settings = TemperingSettings {
                    ladder: ladder.clone(),
                    houdayer: false,
                    exchange,
                    table: Some(LadderTable::width_for(&target, 5)),
                    chains: ChainSettings { chains, burn_in, steps, thin, seed: 5 },
                };
                let scan = if thin == 1 { Scan::Systematic } else { Scan::Coloured };
                let plan = LadderPlan::new(&target, kernel.rule().unwrap(), scan).unwrap();
                let make = |_| Rows::new(&target, coldest);
                let here =
                    run_lane_tempering(&target, &plan, &settings, make, &NoProgress).unwrap();
                let there =
                    run_cuda_ladders(&gpu, &target, &plan, &settings, make, &NoProgress).unwrap();
                let label =
                    format!("{name} {kernel} every {thin} after {burn_in}, exchange {exchange}");
                assert_eq!(here.len(), there.len(), "{label}");
                let mut differ = 0;
                for (number, (a, b)) in here.iter().zip(&there).enumerate() {
                    assert_eq!((a.steps, a.energy_calls), (b.steps, b.energy_calls), "{label}");
                    if let Some(found) = first_difference(a, b) {
                        println!("{label}, ladder {number}: {found}");
                        differ += 1;
                    }
                }
                println!("{label}: {differ} of {chains} ladders differ");
                assert_eq!(differ, 0, "{label}: so many of {chains} ladders differ");
                let moved = here.iter().any(|ladder| ladder.swap_rates.iter().any(|r| *r > 0.0));
                // Rungs of the large lattice are too far apart.
                assert_eq!(moved, exchange && name != "large", "{label}");
            }
        }
    }
}

/// Asks for a stop once it has been asked so often.
struct After(AtomicU64);

impl Progress for After {
    fn stopped(&self) -> bool {
        self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |n| n.checked_sub(1)).is_err()
    }
}

#[test]
#[ignore = "needs a GPU: cargo test -p leaps --lib cuda -- --ignored --skip speed"]
fn stopped_chains_have_what_shorter_ones_have() {
    let gpu = Gpu::open(0).unwrap();
    let target = Pairwise::ising(torus(&[4, 4]), 1.0, 0.2).unwrap();
    let lambda = vec![0.3; 2];
    let settings = ChainSettings { chains: 5, burn_in: 3, steps: 1 << 20, thin: 2, seed: 5 };
    let moves = (KernelName::Metropolis, Scan::Systematic);
    let model = Density::new(&target, &lambda);
    let run = |settings: &ChainSettings, progress: &dyn Progress| {
        let make = |_| Rows::new(&target, &lambda);
        run_cuda_chains(&gpu, &model, moves, settings, make, progress)
    };
    let early = run(&settings, &After(AtomicU64::new(1)));
    assert!(matches!(early, Err(crate::Error::Interrupted)), "no state was kept");
    let stopped = run(&settings, &After(AtomicU64::new(9))).unwrap();
    let steps = stopped[0].steps;
    assert!(steps >= settings.thin && steps < settings.steps, "{steps}");
    let (shorter, _) = on_cpu(&target, &lambda, moves, &ChainSettings { steps, ..settings });
    for (a, b) in shorter.iter().zip(&stopped) {
        assert_eq!(difference(&a.recorder, &b.recorder), None);
        assert_eq!((a.steps, &a.last), (b.steps, &b.last));
    }
}

/// Batches that are full before a round ends, and recorders that want nothing but rows.
#[test]
#[ignore = "needs a GPU: cargo test -p leaps --lib cuda -- --ignored --skip speed"]
fn long_chains_are_recorded_batch_by_batch() {
    struct Plain<'a>(ChainRecorder<'a>);
    impl Recorder for Plain<'_> {
        fn record(&mut self, x: &[u8]) {
            self.0.record(x);
        }
    }
    impl RemoteRecorder for Plain<'_> {
        fn measures(&self) -> &ChainRecorder<'_> {
            &self.0
        }
        fn record_reduced(&mut self, state: &Reduced<'_>, x: Option<&[u8]>) {
            assert!(x.is_none());
            self.0.record_reduced(state);
        }
    }
    let gpu = Gpu::open(0).unwrap();
    let target = Pairwise::ising(torus(&[4, 6]), 1.0, 0.0).unwrap();
    let lambda = vec![0.3; target.terms()];
    let model = Density::new(&target, &lambda);
    let settings = ChainSettings { chains: 3, burn_in: 11, steps: 5000, thin: 1, seed: 5 };
    let fresh = ChainRecorder::new(&target, &lambda, 5);
    let plan = Plan::new(&target, KernelName::HeatBath.rule().unwrap(), Scan::Coloured).unwrap();
    let make = |_| Plain(fresh.clone());
    let here = run_lane_chains(&model, &plan, &settings, make, &NoProgress).unwrap();
    let moves = (KernelName::HeatBath, Scan::Coloured);
    let there = run_cuda_chains(&gpu, &model, moves, &settings, make, &NoProgress).unwrap();
    for (a, b) in here.iter().zip(&there) {
        assert_eq!(a.last, b.last);
        assert_eq!(a.recorder.0.series(), b.recorder.0.series());
    }
}
