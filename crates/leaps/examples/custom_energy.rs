//! Sample an energy of your own: the Blume-Capel model, spins -1, 0, +1 on a ring.

use std::sync::Arc;

use leaps::device::NoProgress;
use leaps::exact;
use leaps::path::{Path, Schedule};
use leaps::sampler::{Settings, sample};
use leaps::target::Target;

struct BlumeCapel {
    sites: usize,
    crystal_field: f64,
}

impl Target for BlumeCapel {
    fn sites(&self) -> usize {
        self.sites
    }
    fn q(&self) -> usize {
        3 // values 0, 1, 2 are the spins -1, 0, +1
    }
    fn energy(&self, _term: usize, x: &[u8]) -> f64 {
        let spin = |i: usize| f64::from(x[i % x.len()]) - 1.0;
        (0..x.len()).map(|i| self.crystal_field * spin(i).powi(2) - spin(i) * spin(i + 1)).sum()
    }
}

pub(crate) fn main() -> leaps::Result<()> {
    let target: Arc<dyn Target> = Arc::new(BlumeCapel { sites: 10, crystal_field: 0.4 });
    let beta = 0.8;
    let path = Path::new(&[beta], Schedule::Linear)?;
    let (ensemble, _) = sample(&target, &path, &Settings::default(), &NoProgress)?;
    let log_z = ensemble.log_z();
    let exact = exact::solve(&*target, &[beta], None, &NoProgress)?.log_z;
    println!("log Z = {:.3} +- {:.3}, exact {exact:.3}", log_z.mean, log_z.error);
    assert!((log_z.mean - exact).abs() < 5.0 * log_z.error);
    Ok(())
}
