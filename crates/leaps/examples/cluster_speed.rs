//! Time cluster and sweep updates on one core: the critical Ising model on an L x L torus.
//!
//! `cargo run --release --example cluster_speed -- [L] [updates]` prints one line of JSON.

use std::time::Instant;

use leaps::device::{Purpose, Stream};
use leaps::mcmc::{AnyKernel, Kernel, KernelName, SwendsenWang, Wolff};
use leaps::target::{Boundary, Density, Lattice, Pairwise};

/// Updates per second (the best of five runs), mean number of sites changed and energy per site.
fn time<K: Kernel>(model: &Density<'_>, mut kernel: K, updates: u64) -> (f64, f64, f64) {
    let mut x = vec![1u8; model.sites()];
    let (mut step, mut best, mut changed, mut energy) = (0, f64::INFINITY, 0, 0.0);
    for run in 0..6 {
        let start = Instant::now();
        for k in 0..updates {
            let mut stream = Stream::new(1, Purpose::Move, 0, step);
            let info = kernel.step(model, &mut x, &mut stream);
            step += 1;
            if run > 0 {
                changed += info.changed;
                if k % 16 == 0 {
                    energy += model.target.energy(0, &x);
                }
            }
        }
        if run > 0 {
            best = best.min(start.elapsed().as_secs_f64());
        }
    }
    let kept = 5 * updates.div_ceil(16);
    let sites = model.sites() as f64;
    (updates as f64 / best, changed as f64 / (5 * updates) as f64, energy / kept as f64 / sites)
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let side: usize = arguments.next().map_or(Ok(32), |word| word.parse())?;
    let updates: u64 = arguments.next().map_or(Ok(10_000), |word| word.parse())?;
    let torus = Pairwise::ising(Lattice::new(&[side, side], Boundary::Periodic)?, 1.0, 0.0)?;
    let lambda = [(1.0 + 2f64.sqrt()).ln() / 2.0];
    let model = Density::new(&torus, &lambda);
    let metropolis = AnyKernel::new(KernelName::Metropolis, &torus, &lambda)?;
    let results = [
        ("wolff", time(&model, Wolff::new(&torus, &lambda)?, updates)),
        ("swendsen-wang", time(&model, SwendsenWang::new(&torus, &lambda)?, updates)),
        ("metropolis", time(&model, metropolis, updates)),
    ];
    let parts: Vec<String> = results
        .iter()
        .map(|(name, (rate, changed, energy))| {
            format!(
                "\"{name}\": {{\"updates_per_second\": {rate:.1}, \"changed\": {changed:.2}, \
                 \"energy_per_site\": {energy:.5}}}"
            )
        })
        .collect();
    println!("{{\"side\": {side}, {}}}", parts.join(", "));
    Ok(())
}
