//! Any sampler, for comparisons and experiments.

use super::{Annealing, Chains, Context, Drawing, Run, Sampling};
use crate::device::{Device, Placement};
use crate::problem::Problem;
use crate::results::SamplerResult;
use crate::{Error, Result};

/// One of the jobs that sample.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Sampler {
    /// Annealed importance sampling or sequential Monte Carlo.
    Annealing(Annealing),
    /// Markov chains.
    Chains(Chains),
    /// A network.
    Network(Box<Sampling>),
    /// Exact samples.
    Exact(Drawing),
}

impl Sampler {
    /// What it samples.
    pub fn problem(&self) -> &Problem {
        match self {
            Sampler::Annealing(job) => &job.problem,
            Sampler::Chains(job) => &job.problem,
            Sampler::Network(job) => &job.problem,
            Sampler::Exact(job) => &job.problem,
        }
    }

    /// Refuse to start with more memory than is free.
    pub fn check_memory(&self) -> Result<()> {
        match self {
            Sampler::Annealing(job) => job.check_memory(),
            Sampler::Chains(job) => job.check_memory(),
            Sampler::Network(job) => job.check_memory(),
            Sampler::Exact(job) => job.check_memory(),
        }
    }

    /// Keep the states of chains; those of walkers are always there.
    pub fn keep(&mut self, keep: bool) {
        if let Sampler::Chains(job) = self {
            job.keep = keep;
        }
    }

    /// Where it would run.
    pub fn placement(&self, context: &Context<'_>) -> Result<Placement> {
        let able = match self {
            Sampler::Annealing(job) => job.gpu_has(),
            Sampler::Chains(job) => return Ok(here(job, context).place(job.gpu_has())?.0),
            Sampler::Network(job) => job.gpu_has(),
            Sampler::Exact(_) => return Ok(Placement::Cpu),
        };
        Ok(context.place(able)?.0)
    }

    /// Where it would run, in words, with the precision of its network.
    pub fn computed_on(&self, placement: &Placement) -> Result<String> {
        match self {
            Sampler::Network(job) => {
                Ok(job.model.net(&*job.problem.target)?.computed_on(placement))
            }
            _ => Ok(placement.machine().to_owned()),
        }
    }

    /// Run it. What is stopped says so: [`SamplerResult::interrupted`].
    pub fn run_in(&self, context: &Context<'_>) -> Result<Run<SamplerResult>> {
        let walkers = |run: Run<_>| Run {
            result: SamplerResult::Walkers(Box::new(run.result)),
            samples: run.samples,
            computed: run.computed,
        };
        match self {
            Sampler::Annealing(job) => job.run_in(context).map(walkers),
            Sampler::Network(job) => job.run_in(context).map(walkers),
            Sampler::Exact(job) => job.run_in(context).map(walkers),
            Sampler::Chains(job) => {
                let Run { result, samples, computed } = job.run_in(&here(job, context))?;
                Ok(Run { result: SamplerResult::Chains(Box::new(result)), samples, computed })
            }
        }
    }

    /// Run all of it.
    ///
    /// # Errors
    /// [`Error::Interrupted`] if it was stopped on the way.
    pub fn run_whole(&self, context: &Context<'_>) -> Result<Run<SamplerResult>> {
        let run = self.run_in(context)?;
        if run.result.interrupted() { Err(Error::Interrupted) } else { Ok(run) }
    }
}

/// Where chains of a comparison run: on the CPU if no GPU has their kernel, since the other samplers go on without them.
fn here<'a>(job: &Chains, context: &Context<'a>) -> Context<'a> {
    let device = if job.gpu_has().is_ok() { context.device } else { Device::Cpu };
    Context { device, ..context.clone() }
}
