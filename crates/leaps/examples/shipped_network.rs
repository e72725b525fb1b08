//! Sample with a network that the library brings along, at its own temperature and at others on the way there.

use leaps::prelude::*;

pub(crate) fn main() -> leaps::Result<()> {
    let model = Model::open("ising-8-critical")?;
    let run = model.sampling()?.walkers(500).at_beta([0.2, 0.3]).run()?;
    println!("log Z = {} (exact {:.4})", run.log_z, run.log_z.exact.unwrap_or(f64::NAN));
    println!("ESS = {:.3}, |m| = {}", run.ess, run.observables.abs_magnetization);
    for at in &run.at_beta {
        println!("at beta {}: log Z = {}, ESS = {:.3}", at.beta, at.log_z, at.ess);
    }
    assert!(run.log_z.z().is_some_and(|z| z.abs() < 5.0) && run.ess > 0.9);
    Ok(())
}
