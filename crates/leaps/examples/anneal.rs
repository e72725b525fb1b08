//! log Z of the critical Ising model by annealed importance sampling, as the README shows it.

use std::sync::Arc;

use leaps::device::NoProgress;
use leaps::path::{Path, Schedule};
use leaps::sampler::{Settings, sample};
use leaps::target::{Boundary, Lattice, Pairwise, Target};

pub(crate) fn main() -> leaps::Result<()> {
    let torus = Lattice::new(&[8, 8], Boundary::Periodic)?;
    let target: Arc<dyn Target> = Arc::new(Pairwise::ising(torus, 1.0, 0.0)?);
    let path = Path::new(&[0.4407], Schedule::Linear)?;
    let (ensemble, _) = sample(&target, &path, &Settings::default(), &NoProgress)?;
    let log_z = ensemble.log_z();
    println!("log Z = {:.3} +- {:.3}", log_z.mean, log_z.error);
    Ok(())
}
