//! Exact answers, by enumeration, transfer matrix or Kaufman's formula.

use std::time::Instant;

use super::{Context, Run, Samples, memory, total_energies};
use crate::device::NoProgress;
use crate::exact::{self, Method};
use crate::observe::symmetric;
use crate::problem::Problem;
use crate::results::{ExactResult, Lowest};
use crate::spec::SEED;
use crate::{Error, Result};

/// Bytes of a sample beside its states: random numbers on its way, energy, weight.
const PER_SAMPLE: usize = 240;

/// The effort for a ground state: 1 is well under a second.
const QUICK: f64 = 0.25;

/// The exact answer, where there is one.
///
/// ```
/// use leaps::prelude::*;
///
/// let exact = Solving::new(Ising::square(15).beta(0.4407)?).run()?;
/// assert!((exact.log_z - 209.82607).abs() < 1e-4);
/// # Ok::<(), leaps::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Solving {
    /// What to solve.
    pub problem: Problem,
    /// By which method; the best that applies if none is given.
    pub method: Option<Method>,
    /// How many independent samples to draw beside the answer.
    pub samples: usize,
    /// Whether the ground state is looked for, where that takes well under a second.
    pub ground: bool,
    /// The seed of the samples.
    pub seed: u64,
}

impl Solving {
    /// By the best method that applies.
    pub fn new(problem: Problem) -> Self {
        Solving { problem, method: None, samples: 0, ground: true, seed: SEED }
    }

    /// By this method.
    pub fn method(mut self, method: Method) -> Self {
        self.method = Some(method);
        self
    }

    /// Draw so many independent samples, each of weight 1.
    pub fn samples(mut self, samples: usize) -> Self {
        self.samples = samples;
        self
    }

    /// The seed of the samples.
    pub fn seed(mut self, seed: u64) -> Self {
        self.seed = seed;
        self
    }

    /// Refuse to start with more memory for samples than is free.
    pub fn check_memory(&self) -> Result<()> {
        let each = (2 * self.problem.target.sites() + PER_SAMPLE) as f64;
        memory::check(&[("samples", self.samples, each * self.samples as f64)])
    }

    /// Solve it.
    pub fn run(&self) -> Result<Run<ExactResult>> {
        self.run_in(&Context::default())
    }

    /// Solve it while somebody watches, on the CPU: a context that asks for a GPU is refused.
    pub fn run_in(&self, context: &Context<'_>) -> Result<Run<ExactResult>> {
        let Problem { path, beta, .. } = &self.problem;
        let (target, lambda) = (&*self.problem.target, path.ends());
        let computed = context.place_on_cpu("exact answers are computed")?;
        let start = Instant::now();
        let samples = self.draw(context)?;
        let solved = exact::solve(target, lambda, self.method, context.progress)?;
        let sites = target.sites();
        let symmetric = symmetric(target, lambda);
        let result = ExactResult {
            method: solved.method.to_string(),
            log_z: solved.log_z,
            energy_per_site: solved.energy_per_site(sites),
            heat_capacity_per_site: solved.heat_capacity_per_site(sites),
            free_energy_per_site: -solved.log_z / (beta * sites as f64),
            entropy_per_site: (solved.log_z + beta * solved.energy) / sites as f64,
            magnetization: solved.order.map(|order| order.m),
            abs_magnetization: solved.order.map(|order| order.abs),
            magnetization_squared: solved.order.map(|order| order.squared),
            binder: solved.binder(),
            susceptibility_per_site: solved.susceptibility_per_site(sites, *beta, symmetric),
            seconds: start.elapsed().as_secs_f64(),
            lowest: if self.ground { self.lowest()? } else { None },
        };
        Ok(Run { result, samples, computed })
    }

    /// The ground state, if it is proven in well under a second.
    fn lowest(&self) -> Result<Option<Lowest>> {
        let target = &*self.problem.target;
        match exact::ground_state(target, QUICK, &NoProgress) {
            Ok(ground) => Ok(Some(Lowest::new(ground.energy, &ground.state, target.q()))),
            Err(Error::NotApplicable { .. } | Error::NonFinite { .. }) => Ok(None),
            Err(other) => Err(other),
        }
    }

    /// Samples from the transfer matrix or from a table of all states.
    fn draw(&self, context: &Context<'_>) -> Result<Samples> {
        if self.samples == 0 {
            return Ok(Samples::default());
        }
        let (target, lambda) = (&*self.problem.target, self.problem.path.ends());
        if self.method == Some(Method::Kaufman) {
            let reason =
                "Kaufman's formula sums over states without looking at any; leave the method out";
            return Err(Error::not_applicable("drawing samples", reason));
        }
        self.check_memory()?;
        let (states, _) = exact::draw(target, lambda, self.samples, self.seed, context.progress)?;
        Ok(Samples {
            energies: total_energies(target, &states)?,
            log_weights: vec![0.0; self.samples],
            states,
        })
    }
}
