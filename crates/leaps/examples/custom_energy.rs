//! Sample an energy of your own: the Blume-Capel model, spins -1, 0, +1 on a ring.

use leaps::prelude::*;

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
    let problem = Problem::new(BlumeCapel { sites: 10, crystal_field: 0.4 }, 0.8)?;
    let exact = Solving::new(problem.clone()).run()?;
    let run = Annealing::ais(problem).walkers(1000).run()?;
    println!("log Z = {}, exact {:.3}", run.log_z, exact.log_z);
    assert!((run.log_z.mean - exact.log_z).abs() < 5.0 * run.log_z.error);
    Ok(())
}
