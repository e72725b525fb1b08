//! Work for which a GPU's memory does not suffice. Alone in its process: it takes all of that memory. Ignored, and counted as
//! such, unless asked for on a machine with a GPU.
#![cfg(feature = "cuda")]

use std::sync::Arc;

use leaps::Result;
use leaps::device::{NoProgress, Placement, Precision};
use leaps::mcmc::KernelName;
use leaps::net::{FreeEnergy, FreeEnergySpec, HollowSpec, LecSpec, MlpSpec, Net, NetSpec};
use leaps::path::{Path, Schedule};
use leaps::rates::Parametrisation;
use leaps::sampler::{
    Lineage, Moves, NetworkWalk, Population, RateModel, Resampling, Scheme, Settings, Span,
    WalkPlan, Walkers,
};
use leaps::target::{Boundary, Lattice, Pairwise, Target};
use leaps::train::{Objective, Reference, StepMetrics, TrainSpec, Trainer};

fn ising(side: usize) -> Arc<dyn Target> {
    let lattice = Lattice::new(&[side, side], Boundary::Periodic).unwrap();
    Arc::new(Pairwise::ising(lattice, 1.0, 0.1).unwrap())
}

fn path() -> Path {
    Path::new(&[0.4, 0.4], Schedule::Linear).unwrap()
}

/// The number that an error says would fit.
fn fits(error: &leaps::Error, start: &str) -> usize {
    let text = error.to_string();
    println!("{text}");
    assert!(text.starts_with(start) && text.contains("must be small enough for the GPU"), "{text}");
    let before = text.split(" would fit").next().unwrap_or_default();
    before.rsplit(' ').next().unwrap_or_default().parse().unwrap()
}

/// Put training with a batch on the GPU, and go some steps.
fn train(
    placement: &Placement,
    spec: &NetSpec,
    batch: usize,
    steps: usize,
) -> Result<Vec<StepMetrics>> {
    let (target, path) = (ising(16), path());
    let net = Arc::new(Net::new(spec, &*target)?);
    let free = Arc::new(FreeEnergy::new(&FreeEnergySpec::Rate, target.sites())?);
    let reference = Reference::Buffer;
    let spec = TrainSpec { batch, reference, rollout_steps: 3, ..TrainSpec::default() };
    let objective = Objective::new(&target, &path, &net, &free, Parametrisation::Barker);
    let trainer = Trainer::new(&objective, &spec, 5, &NoProgress)?;
    let mut trainer = trainer.place_on(placement)?;
    (0..steps).map(|_| trainer.step(&NoProgress)).collect()
}

/// Walkers of a network, and where they end.
fn follow(placement: &Placement, walkers: usize) -> Result<Vec<u8>> {
    let (target, path) = (ising(16), path());
    let net = Arc::new(Net::new(&NetSpec::Mlp(MlpSpec { hidden: 64 }), &*target)?);
    let parameters = net.initial(3);
    let rates = &RateModel::new(&net, &parameters, Parametrisation::Barker);
    let plan = &WalkPlan::new(&path, Scheme::Euler, &[0.0, 0.5, 1.0])?;
    let (population, mut lineage) = (Population::new(walkers, 7), Lineage::new(walkers, 0.0, 7));
    let walk = NetworkWalk { target: &target, path: &path, rates, plan, population };
    let mut made = walk.on(placement)?;
    made.advance(Span::whole(&plan.grid), &Resampling::NEVER, &mut lineage, &NoProgress)?;
    made.states()
}

fn sweepers(placement: &Placement, target: &Arc<dyn Target>, n: usize) -> Result<Box<dyn Walkers>> {
    let moves = Moves { kernel: KernelName::HeatBath, ..Settings::default().moves };
    moves.walkers(placement, target, &path(), Population::new(n, 1))
}

#[test]
#[ignore = "needs a GPU: cargo test -p leaps --test cuda_memory -- --ignored"]
fn what_does_not_fit_is_refused_with_what_does_and_walkers_take_turns() {
    let placement = Placement::cuda(0, Precision::Bf16).unwrap();

    // Training: the number named is no lie, and what does not fit takes nothing.
    for (name, spec) in [
        ("mlp", NetSpec::Mlp(MlpSpec { hidden: 64 })),
        ("lec", NetSpec::Lec(LecSpec::default())),
        ("hollow", NetSpec::Hollow(HollowSpec::default())),
    ] {
        let error = train(&placement, &spec, 20_000_000, 0).unwrap_err();
        let most = fits(&error, "train.batch = 20000000:");
        train(&placement, &spec, most, 0).unwrap();
        let steps = train(&placement, &spec, most.min(20_000) / 10, 2).unwrap();
        println!("{name}: a batch of {most} has room; {steps:?}");
    }

    let large = ising(64);
    let error = sweepers(&placement, &large, 2_000_000_000).err().unwrap();
    let most = fits(&error, "sample.walkers = 2000000000:");
    assert_eq!(sweepers(&placement, &large, most).unwrap().walkers(), most);

    // With little memory left, walkers of a network go fewer at a time, and nowhere else.
    let walkers = 16_384;
    let wanted = follow(&placement, walkers).unwrap();
    let mut hogs = Vec::new();
    let n = (most / 300).clamp(1, 100_000);
    while let Ok(hog) = sweepers(&placement, &large, n) {
        hogs.push(hog);
    }
    println!("{} hogs of {n} walkers", hogs.len());
    assert!(follow(&placement, walkers).unwrap() == wanted, "fewer slots change results");
    drop(hogs);
    assert_eq!(large.sites(), 4096);
}
