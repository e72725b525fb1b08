//! Train a network on an energy of your own, sample with it, and keep the model: a ring of clocks with five hands in a field.

use std::f64::consts::TAU;

use leaps::prelude::*;

/// $E = -\sum_i \cos(\theta_i - \theta_{i+1}) - h \sum_i \cos \theta_i$ with angles $2 \pi x_i / 5$.
#[derive(Clone)]
struct Clocks {
    sites: usize,
    field: f64,
}

impl Target for Clocks {
    fn sites(&self) -> usize {
        self.sites
    }
    fn q(&self) -> usize {
        5
    }
    fn name(&self) -> String {
        "ring of clocks".to_owned()
    }
    fn energy(&self, _term: usize, x: &[u8]) -> f64 {
        let angle = |i: usize| TAU * f64::from(x[i % x.len()]) / 5.0;
        (0..x.len()).map(|i| -(angle(i) - angle(i + 1)).cos() - self.field * angle(i).cos()).sum()
    }
}

pub(crate) fn main() -> leaps::Result<()> {
    let clocks = Clocks { sites: 6, field: 0.3 };
    let problem = Problem::new(clocks.clone(), 1.0)?;
    let exact = Solving::new(problem.clone()).run()?;
    let trained = Training::new(problem).steps(150).batch(64).run()?;
    let run = trained.sampling().walkers(2000).run()?;
    println!("log Z = {}, exact {:.4}, ESS = {:.3}", run.log_z, exact.log_z, run.ess);
    assert!((run.log_z.mean - exact.log_z).abs() < 5.0 * run.log_z.error);

    // A model of a custom energy is used with the energy; another one is refused.
    let other = Problem::new(Clocks { field: 0.4, ..clocks }, 1.0)?;
    let refused = Sampling::new(trained.model.clone(), other).walkers(10).run();
    println!("with another field: {}", refused.expect_err("it is another energy"));
    Ok(())
}
