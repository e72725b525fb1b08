//! Independent exact samples as a sampler among others: what comparisons and experiments hold theirs against.

use std::time::Instant;

use super::measured::{Journey, measured};
use super::{Context, Run, Solving};
use crate::device::Device;
use crate::observe::{Estimate, Families, LogWeights, MeasureSpec, Segments};
use crate::problem::Problem;
use crate::results::{Computed, WalkerResult, free_energy_per_site};
use crate::sampler::{Cost, Ensemble};
use crate::spec::{RunSpec, SEED};
use crate::{Error, Result};

/// Exact samples of equal weight, measured as walkers are.
///
/// ```
/// use leaps::job::Drawing;
/// use leaps::prelude::*;
///
/// let run = Drawing::new(Ising::square(4).field(0.1).beta(0.3)?).samples(2000).run()?;
/// assert_eq!((run.ess, run.log_z.error), (1.0, 0.0));
/// assert!(run.observables.energy_per_site.z().unwrap().abs() < 5.0); // beside the exact value
/// # Ok::<(), leaps::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Drawing {
    /// What to sample.
    pub problem: Problem,
    /// How many samples to draw.
    pub samples: usize,
    /// The seed.
    pub seed: u64,
}

impl Drawing {
    /// As many samples as walkers are usual.
    pub fn new(problem: Problem) -> Self {
        let samples = RunSpec::default().walkers.walkers;
        Drawing { problem, samples, seed: SEED }
    }

    /// As configured: a sample for every walker.
    pub fn of(spec: &RunSpec, problem: Problem) -> Self {
        Drawing { problem, samples: spec.walkers.walkers, seed: spec.seed }
    }

    /// Draw so many samples.
    pub fn samples(mut self, samples: usize) -> Self {
        self.samples = samples;
        self
    }

    settings!(seed);

    /// Refuse to start with more memory than is free.
    pub fn check_memory(&self) -> Result<()> {
        self.solving().check_memory()
    }

    fn solving(&self) -> Solving {
        Solving::new(self.problem.clone()).samples(self.samples).seed(self.seed)
    }

    /// Draw and measure them.
    pub fn run(&self) -> Result<Run<WalkerResult>> {
        self.run_in(&Context::default())
    }

    /// Draw and measure them while somebody watches.
    pub fn run_in(&self, context: &Context<'_>) -> Result<Run<WalkerResult>> {
        let (problem, target) = (&self.problem, &*self.problem.target);
        if self.samples == 0 {
            let advice = "leave it out for the usual number";
            return Err(Error::invalid("sample.walkers", 0, "at least 1", advice));
        }
        // Whatever computes the rest of a comparison, this is done by the CPU.
        let here = Context { device: Device::Cpu, ..context.clone() };
        let start = Instant::now();
        let exact = self.solving().run_in(&here)?;
        let seconds = start.elapsed().as_secs_f64();
        let states = exact.samples.states;
        let mut energies = vec![0.0; self.samples * target.terms()];
        target.energies(&states, &mut energies)?;
        let ensemble = Ensemble {
            reached: None,
            weights: LogWeights::new(vec![0.0; self.samples])?,
            segments: Segments::new(exact.result.log_z),
            families: Families::separate(self.samples),
            energies,
            trace: Vec::new(),
            stops: Vec::new(),
            lowest: None,
            cost: Cost { energy_calls: 0.0, network_passes: 0.0 },
            smallest_step: 1.0,
            states,
        };
        let journey = Journey {
            seed: self.seed,
            scheme: "exact",
            kernel: "none".to_owned(),
            model: None,
            intervals: 0,
            substeps: None,
            betas: Vec::new(),
            seconds,
            snapshots: None,
            both_ways: false,
            two_sided: None,
            stopped: false,
            measure: MeasureSpec::default(),
        };
        let (mut result, samples) = measured(problem, journey, ensemble)?;
        // Nothing was estimated: sums of equal weights leave roundings that look like errors.
        let log_z = Estimate::new(exact.result.log_z, 0.0).with_exact(exact.result.log_z);
        (result.ess, result.ess_error) = (1.0, 0.0);
        (result.log_z, result.elbo) = (log_z, log_z.mean);
        result.log_z_merit = f64::NAN;
        result.free_energy_per_site =
            free_energy_per_site(log_z, problem.beta, target.sites() as f64);
        Ok(Run { result, samples, computed: Computed::on_cpu() })
    }
}
