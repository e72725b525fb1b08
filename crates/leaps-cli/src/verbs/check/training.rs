//! The cost of training a configuration's network.

use std::sync::Arc;
use std::time::Instant;

use leaps::Result;
use leaps::device::{Draw, NoProgress, Purpose, Stream};
use leaps::target::Target;
use leaps::train::{Batch, Instances, Loss, Objective, Reference, TrainSpec};

use super::{KERNEL_UPDATE, bytes, seconds};
use leaps::job::{sizes, training_memory};
use leaps::problem::Problem;
use leaps::spec::RunSpec;
use leaps::target::Size;

/// Vectors of 16 configurations that share a network pass.
const LANES: usize = 16;

/// Accumulators of the gradient, see [`Loss`].
const SLOTS: usize = 16;

/// Bytes of networks' space to measure with.
const SPACE: usize = 1 << 30;

/// A forward pass as a part of a pass with its gradient.
const FORWARD: f64 = 0.35;

/// The network in a few words, its parameters, memory and time. The time is that of one gradient of a few
/// configurations, measured here.
pub fn rows(config: &RunSpec, problem: &Problem) -> Result<Vec<(&'static str, String)>> {
    let spec = &config.train;
    let net = Arc::new(config.net(&*problem.target)?);
    let free = Arc::new(config.free(&*problem.target)?);
    let Problem { target, path, .. } = problem;
    let objective = Objective::new(target, path, &net, &free, config.network.parametrisation);
    let parameters = objective.parameters();
    let family = config.family()?.zip(spec.ranges()).map(|(made, ranges)| {
        let (ranges, members) = (ranges.describe(), made.family.members.len());
        ("family", format!("{ranges}; {members} targets are trained on"))
    });
    let instances = config.instances()?.map(|made| {
        let Instances { count, walkers, drawn, .. } = made;
        let text = format!(
            "{count} random ones at a time, {walkers} walkers each; {drawn} in a gradient step, of which one in 1024 gives way to a new one"
        );
        ("instances", text)
    });
    let mut rows = vec![
        ("network", config.network.describe()),
        ("parameters", parameters.to_string()),
        ("memory_train", bytes(training_memory(&net, spec, &*problem.target))),
        ("time_train", time(&objective, config.seed, spec)?),
    ];
    rows.splice(1..1, family.into_iter().chain(instances));
    let first = sizes(config);
    if !first.is_empty() {
        let sizes: Vec<String> = first.iter().map(Size::to_string).collect();
        let (sizes, steps) = (sizes.join(", "), config.train.steps);
        rows.push((
            "trained_first",
            format!("on {sizes}, {steps} steps each, not counted in time_train"),
        ));
    }
    Ok(rows)
}

fn time(objective: &Objective, seed: u64, spec: &TrainSpec) -> Result<String> {
    let (target, net) = (&*objective.target, &objective.net);
    let parameters = objective.initial(seed);
    let mut loss = Loss::new(objective);
    let mut gradient = vec![0.0; parameters.len()];
    // One group of configurations for every thread, unless their space alone would take long to get.
    let room = (SPACE / net.workspace()).max(1);
    let groups = rayon::current_num_threads().min(SLOTS).min(room);
    let batch = random_batch(target, LANES * groups);
    let mut best = f64::INFINITY;
    // The first call meets cold caches; a network that takes seconds is measured once.
    for _ in 0..3 {
        let start = Instant::now();
        loss.gradient(&parameters, &batch, &mut gradient, &NoProgress)?;
        best = best.min(start.elapsed().as_secs_f64());
        if best > 0.3 {
            break;
        }
    }
    // Nanoseconds of one core for the gradient of one configuration.
    let one = 1e9 * best * groups as f64 / batch.len() as f64;
    let (sites, size, steps) = (target.sites() as f64, spec.batch as f64, spec.steps as f64);
    let gradients = one * size * steps;
    let reference = match spec.reference {
        Reference::Pool => KERNEL_UPDATE * sites * spec.sweeps as f64 * size * steps,
        reference => {
            let passes = (spec.rollout_walkers * spec.rollout_steps) as f64;
            let every = if reference == Reference::Policy { 1 } else { spec.rollout_every };
            FORWARD * one * passes * steps / every as f64
        }
    };
    // Events takes a pass for every interval and for every jump, about one for every second site.
    let validations = steps / spec.validate_every.max(1) as f64;
    let walk = spec.validate_walkers as f64 * (spec.validate_intervals as f64 + 0.5 * sites);
    let validation =
        if spec.validate_every == 0 { 0.0 } else { FORWARD * one * walk * validations };
    Ok(seconds(gradients + reference + validation))
}

fn random_batch(target: &dyn Target, size: usize) -> Batch {
    let mut stream = Stream::new(1, Purpose::Reference, 0, 0);
    let mut batch = Batch::new(target.sites());
    batch.times = (0..size).map(|i| (i as f64 + 0.5) / size as f64).collect();
    let q = size * target.sites();
    batch.states = (0..q).map(|_| stream.below(target.q()) as u8).collect();
    batch
}
