//! Walkers that go alone and walkers that share passes take the same paths.

use super::*;
use crate::device::NoProgress;
use crate::net::{GlassSpec, HollowSpec, Net, NetSpec};
use crate::path::Schedule;
use crate::rates::Parametrisation;
use crate::sampler::{Protocol, Resampler, anneal};
use crate::target::{Boundary, Disorder, Lattice, Pairwise};

/// States, energies, weights and passes of some walkers at the end of their paths.
fn run(
    target: &Arc<dyn Target>,
    rates: &RateModel,
    (resampling, intervals, substeps): (Resampling, usize, usize),
    alone: bool,
) -> (Vec<u8>, Vec<f64>, Vec<f64>, f64) {
    let path = Path::new(&vec![0.4; target.terms()], Schedule::Linear).unwrap();
    let cuts: Vec<f64> = (0..=intervals).map(|k| k as f64 / intervals as f64).collect();
    let events = Scheme::Events;
    let plan = WalkPlan::with_substeps(&path, events, (&cuts, substeps), &[]).unwrap();
    let plan = plan.sweeps(if substeps == 1 { 1 } else { 0 });
    let population = Population::new(21, 5);
    let walk = NetworkWalk { target, path: &path, rates, plan: &plan, population };
    let mut walkers = NetworkWalkers { alone, ..NetworkWalkers::new(walk).unwrap() };
    assert_eq!(rates.net.places(walkers.jumps()), if alone { 1 } else { 16 });
    let protocol = Protocol { grid: &plan.grid, resampling, trace_points: 3, seed: 5 };
    let ensemble = anneal(&**target, &mut walkers, protocol, &NoProgress).unwrap();
    let log_weights = ensemble.weights.log().to_vec();
    (ensemble.states, ensemble.energies, log_weights, ensemble.cost.network_passes)
}

#[test]
fn walkers_alone_take_the_paths_of_those_that_share_passes() {
    let lattice = Lattice::new(&[16, 12], Boundary::Periodic).unwrap();
    let hollow = HollowSpec { channels: 16, depth: Some(3), ..HollowSpec::default() };
    let glass = GlassSpec { channels: 16, depth: Some(3), ..GlassSpec::default() };
    let (hollow, glass) = (NetSpec::Hollow(hollow), NetSpec::Glass(glass));
    let cases: [(Arc<dyn Target>, NetSpec); 3] = [
        (Arc::new(Pairwise::ising(lattice.clone(), 1.0, 0.1).unwrap()), hollow.clone()),
        (Arc::new(Pairwise::potts(lattice.clone(), 3, 1.0, 0.1).unwrap()), hollow),
        (Arc::new(Pairwise::edwards_anderson(lattice, Disorder::Gaussian, 3).unwrap()), glass),
    ];
    let often = Resampling { threshold: 0.9, resampler: Resampler::Systematic };
    for (target, spec) in &cases {
        let net = Arc::new(Net::new(spec, &**target).unwrap());
        let parameters: Vec<f32> = net.initial(3).iter().map(|p| 1.5 * p).collect();
        for how in [(Resampling::NEVER, 8, 1), (often, 8, 1), (Resampling::NEVER, 8, 5)] {
            let rates = RateModel::new(&net, &parameters, Parametrisation::Barker);
            for rates in [rates.clone(), rates.reversed()] {
                let (shared, alone) =
                    (run(target, &rates, how, false), run(target, &rates, how, true));
                assert!(shared.3 > 9.0, "few jumps: {} passes", shared.3);
                assert_eq!(shared, alone, "{}", target.name());
            }
        }
    }
}

#[test]
fn substeps_have_no_passes_of_their_own() {
    let lattice = Lattice::new(&[16, 16], Boundary::Periodic).unwrap();
    let target: Arc<dyn Target> = Arc::new(Pairwise::ising(lattice, 1.0, 0.1).unwrap());
    let spec = HollowSpec { channels: 16, depth: Some(3), ..HollowSpec::default() };
    let net = Arc::new(Net::new(&NetSpec::Hollow(spec), &*target).unwrap());
    // Without fluxes nobody jumps.
    let rates = RateModel::new(&net, &vec![0.0; net.parameters()], Parametrisation::Barker);
    let passes = |intervals, substeps| {
        run(&target, &rates, (Resampling::NEVER, intervals, substeps), true).3
    };
    // The first pass of each of the three parts of the path may be one more.
    assert_eq!(passes(40, 1), 40.0);
    assert!((8.0..=10.0).contains(&passes(8, 5)), "{}", passes(8, 5));
}
