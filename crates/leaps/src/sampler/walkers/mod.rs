//! Ensembles of walkers, in whatever form suits the moves they make.

#[cfg(feature = "cuda")]
pub(crate) mod cuda;
pub(crate) mod kernels;
pub(crate) mod lanes;
pub(crate) mod network;
pub(crate) mod place;

use crate::device::{Progress, Purpose, Stream};
use crate::observe::LogWeights;
use crate::observe::Segments;
use crate::sampler::{Grid, Resampling};
use crate::target::{Target, show_state};
use crate::{Error, Result};

/// What walkers carry besides their states.
#[derive(Clone, Debug, PartialEq)]
pub struct Lineage {
    /// Log-weights since the last resampling.
    pub log_weights: Vec<f64>,
    /// From which walker at the start every walker descends.
    pub ancestry: Vec<u32>,
    /// What resampling took out of the weights.
    pub segments: Segments,
    /// Smallest conditional effective sample size of a step that was looked at.
    pub smallest_step: f64,
    /// Effective sample size after the last weighing that was looked at, as a fraction, and whether walkers were then
    /// resampled.
    pub last: (f64, bool),
}

impl Lineage {
    /// `walkers` walkers at the start, where the log normalisation is `log_z0`.
    pub fn new(walkers: usize, log_z0: f64) -> Self {
        Lineage {
            log_weights: vec![0.0; walkers],
            ancestry: (0..walkers as u32).collect(),
            segments: Segments::new(log_z0),
            smallest_step: 1.0,
            last: (1.0, false),
        }
    }

    /// Note an interval without resampling: effective sample size after weighing, and that of the step alone.
    pub(super) fn went_on(&mut self, ess: f64, conditional: f64) {
        self.smallest_step = self.smallest_step.min(conditional);
        self.last = (ess, false);
    }

    /// Note an interval with resampling, by weights of this log mean.
    pub(super) fn resampled(&mut self, ess: f64, conditional: f64, log_mean: f64) {
        self.went_on(ess, conditional);
        self.segments.close_at(log_mean);
        self.last = (ess, true);
    }
}

/// The mutating half of a Feynman-Kac model: walkers that can be weighed and moved along a grid.
///
/// Interval `k` goes from time `k - 1` to time `k` of the grid. Weighing adds
/// `U_{t_{k-1}}(x) - U_{t_k}(x)` to every log-weight; moving then leaves `rho_{t_k}` invariant, so the
/// weighted walkers keep representing it.
pub trait Population {
    /// Number of walkers.
    fn walkers(&self) -> usize;

    /// Weigh for interval `k`.
    fn weigh(&mut self, grid: &Grid, k: usize, log_weights: &mut [f64]) -> Result<()>;

    /// Move at `rho_{t_k}`. Moves that do not leave it invariant say so in the log-weights.
    ///
    /// An interval may take hours: `progress` is asked now and then whether to stop. Progress is the caller's to report.
    fn mutate(
        &mut self,
        grid: &Grid,
        k: usize,
        log_weights: &mut [f64],
        progress: &dyn Progress,
    ) -> Result<()>;

    /// Weigh and move through the intervals `from..to` without a stop between them.
    fn advance(
        &mut self,
        grid: &Grid,
        intervals: std::ops::Range<usize>,
        log_weights: &mut [f64],
        progress: &dyn Progress,
    ) -> Result<()> {
        for k in intervals {
            progress.check()?;
            self.weigh(grid, k, log_weights)?;
            self.mutate(grid, k, log_weights, progress)?;
            progress.advance(self.walkers() as u64);
        }
        Ok(())
    }

    /// Weigh, resample where the effective sample size asks for it, and move, through the intervals given. The seed is that
    /// of the resampling.
    fn advance_resampling(
        &mut self,
        grid: &Grid,
        intervals: std::ops::Range<usize>,
        resampling: &Resampling,
        seed: u64,
        lineage: &mut Lineage,
        progress: &dyn Progress,
    ) -> Result<()> {
        one_by_one(self, grid, intervals, resampling, seed, lineage, progress)
    }

    /// Replace walker `i` by a copy of walker `ancestors[i]`; ancestors are in increasing order.
    fn resample(&mut self, ancestors: &[u32]) -> Result<()>;

    /// Energy terms of the walkers as they are now, `[walker * terms + term]`.
    fn energies(&self) -> Result<Vec<f64>>;

    /// All states, `[walker * sites + site]`.
    fn states(&self) -> Result<Vec<u8>>;

    /// Energy evaluations made per walker so far, charged as for Markov chains
    /// ([`Kernel::energy_calls`](crate::mcmc::Kernel::energy_calls)).
    fn energy_calls(&self) -> f64;
}

/// [`Population::advance_resampling`] with the decision made here.
pub(super) fn one_by_one<P: Population + ?Sized>(
    population: &mut P,
    grid: &Grid,
    intervals: std::ops::Range<usize>,
    resampling: &Resampling,
    seed: u64,
    lineage: &mut Lineage,
    progress: &dyn Progress,
) -> Result<()> {
    for k in intervals {
        progress.check()?;
        let before = LogWeights::new(lineage.log_weights.clone())?;
        population.weigh(grid, k, &mut lineage.log_weights)?;
        let weights = LogWeights::new(lineage.log_weights.clone())?;
        let conditional = before.conditional_ess(|i| weights.log()[i] - before.log()[i]);
        let ess = weights.ess();
        if ess < resampling.threshold && !grid.is_measured(k) {
            let mut stream = Stream::new(seed, Purpose::Resample, 0, k as u64);
            let ancestors = resampling.resampler.ancestors(&weights, &mut stream);
            population.resample(&ancestors)?;
            lineage.ancestry = ancestors.iter().map(|&a| lineage.ancestry[a as usize]).collect();
            lineage.log_weights.fill(0.0);
            lineage.resampled(ess, conditional, weights.log_mean());
        } else {
            lineage.went_on(ess, conditional);
        }
        population.mutate(grid, k, &mut lineage.log_weights, progress)?;
        progress.advance(population.walkers() as u64);
    }
    Ok(())
}

/// Refuse an energy that is not finite.
pub(crate) fn check_energy(
    target: &dyn Target,
    energies: &[f64],
    x: impl FnOnce() -> Vec<u8>,
    seed: u64,
    walker: usize,
    step: u64,
) -> Result<()> {
    match energies.iter().position(|e| !e.is_finite()) {
        None => Ok(()),
        Some(term) => Err(Error::NonFinite {
            what: format!("energy term '{}'", target.term_name(term)),
            value: energies[term],
            seed,
            walker,
            step,
            state: show_state(&x()),
        }),
    }
}
