//! Ensembles of walkers, in whatever form suits the moves they make and the device they live on.

pub(crate) mod cuda;
pub(crate) mod kernels;
pub(crate) mod lanes;
pub(crate) mod lockstep;
pub(crate) mod network;

use rayon::prelude::*;

use crate::device::{Progress, Purpose, Stream};
use crate::observe::{LogWeights, Segments};
use crate::sampler::{Interval, Resampling, Span};
use crate::target::{Target, initial_state, show_state};
use crate::{Error, Result};

/// Which walkers an ensemble holds: consecutive ones of a run, whose numbers address their random numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Population {
    /// Number of walkers.
    pub walkers: usize,
    /// The number of the first of them in the whole run.
    pub first: usize,
    /// The seed.
    pub seed: u64,
}

impl Population {
    /// All walkers of a run.
    pub fn new(walkers: usize, seed: u64) -> Self {
        Population { walkers, first: 0, seed }
    }

    /// Refuse numbers of walkers that random numbers do not have.
    pub fn check(&self) -> Result<()> {
        let Population { walkers, first, .. } = *self;
        let most = u32::MAX as usize;
        if walkers == 0 || walkers > most {
            let advice = "1000 is a good start";
            return Err(Error::invalid("walkers", walkers, "from 1 to 2^32 - 1", advice));
        }
        if first > most - walkers {
            let condition = "such that all walkers have numbers below 2^32";
            return Err(Error::invalid("first walker", first, condition, "use fewer walkers"));
        }
        Ok(())
    }

    /// The number of walker `i` in the whole run.
    pub(crate) fn number(&self, i: usize) -> u32 {
        (self.first + i) as u32
    }

    /// Walker `i` at a step.
    pub(crate) fn visit<'a>(&self, target: &'a dyn Target, i: usize, step: u64) -> Visit<'a> {
        Visit { target, seed: self.seed, walker: self.first + i, step }
    }

    /// Put walkers, none of which has moved, into states of their own: `place` is where a walker has its state and energies.
    pub(crate) fn put<W: Send>(
        &self,
        target: &dyn Target,
        walkers: &mut [W],
        states: &[u8],
        place: impl Fn(&mut W) -> (&mut Vec<u8>, &mut Vec<f64>) + Sync,
    ) -> Result<()> {
        let starts = states.par_chunks_exact(target.sites());
        walkers.par_iter_mut().zip(starts).enumerate().try_for_each(|(i, (walker, x))| {
            let (own, energies) = place(walker);
            own.copy_from_slice(x);
            self.visit(target, i, 0).measure(x, energies)
        })
    }

    /// The initial state of walker `i`, uniform over all states, and its energies.
    pub(crate) fn initial(&self, target: &dyn Target, i: usize) -> Result<(Vec<u8>, Vec<f64>)> {
        let x = initial_state(target, self.seed, self.number(i));
        let mut energies = vec![0.0; target.terms()];
        self.visit(target, i, 0).measure(&x, &mut energies)?;
        Ok((x, energies))
    }
}

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
    /// The seed of resampling.
    pub seed: u64,
}

impl Lineage {
    /// `walkers` walkers at the start, where the log normalisation is `log_z0`.
    pub fn new(walkers: usize, log_z0: f64, seed: u64) -> Self {
        Lineage {
            log_weights: vec![0.0; walkers],
            ancestry: (0..walkers as u32).collect(),
            segments: Segments::new(log_z0),
            smallest_step: 1.0,
            last: (1.0, false),
            seed,
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

/// What walkers have cost so far, per walker.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Cost {
    /// Energy evaluations, charged as for Markov chains ([`Kernel::energy_calls`](crate::mcmc::Kernel::energy_calls)).
    pub energy_calls: f64,
    /// Passes of the network; 0 if there is none.
    pub network_passes: f64,
}

/// The mutating half of a Feynman-Kac model: walkers that can be weighed and moved along a grid.
///
/// Interval `k` goes from time `k - 1` to time `k` of the grid. Weighing adds
/// `U_{t_{k-1}}(x) - U_{t_k}(x)` to every log-weight; moving then leaves `rho_{t_k}` invariant, so the
/// weighted walkers keep representing it.
pub trait Walkers {
    /// Number of walkers.
    fn walkers(&self) -> usize;

    /// Weigh for an interval.
    fn weigh(&mut self, at: Interval<'_>, log_weights: &mut [f64]) -> Result<()> {
        let energies = self.energies()?;
        let rows = energies.chunks_exact(at.lambda().len());
        rows.zip(log_weights).for_each(|(row, log_weight)| at.weigh(row, log_weight));
        Ok(())
    }

    /// Move at the end of an interval. Moves that do not leave its distribution invariant say so in the log-weights.
    ///
    /// An interval may take hours: `progress` is asked now and then whether to stop. Progress is the caller's to report.
    fn mutate(
        &mut self,
        at: Interval<'_>,
        log_weights: &mut [f64],
        progress: &dyn Progress,
    ) -> Result<()>;

    /// Weigh, resample where the effective sample size asks for it, and move, through some intervals.
    fn advance(
        &mut self,
        span: Span<'_>,
        rule: &Resampling,
        lineage: &mut Lineage,
        progress: &dyn Progress,
    ) -> Result<()> {
        interval_by_interval(self, span, rule, lineage, progress)
    }

    /// Replace walker `i` by a copy of walker `ancestors[i]`; ancestors are in increasing order.
    fn resample(&mut self, ancestors: &[u32]) -> Result<()>;

    /// Put every walker, none of which has moved, into a state of its own: `[walker * sites + site]` in place of random ones.
    fn start_at(&mut self, states: &[u8]) -> Result<()>;

    /// Energy terms of the walkers as they are now, `[walker * terms + term]`.
    fn energies(&self) -> Result<Vec<f64>>;

    /// All states, `[walker * sites + site]`.
    fn states(&self) -> Result<Vec<u8>>;

    /// What was done so far.
    fn cost(&self) -> Result<Cost>;
}

/// [`Walkers::advance`] with all decisions made here.
pub(super) fn interval_by_interval<W: Walkers + ?Sized>(
    walkers: &mut W,
    span: Span<'_>,
    rule: &Resampling,
    lineage: &mut Lineage,
    progress: &dyn Progress,
) -> Result<()> {
    for at in span.iter() {
        progress.check()?;
        if rule.is_never() {
            walkers.weigh(at, &mut lineage.log_weights)?;
        } else {
            weigh_and_resample(walkers, at, rule, lineage)?;
        }
        walkers.mutate(at, &mut lineage.log_weights, progress)?;
        progress.advance(walkers.walkers() as u64);
    }
    Ok(())
}

fn weigh_and_resample<W: Walkers + ?Sized>(
    walkers: &mut W,
    at: Interval<'_>,
    rule: &Resampling,
    lineage: &mut Lineage,
) -> Result<()> {
    let before = LogWeights::new(lineage.log_weights.clone())?;
    walkers.weigh(at, &mut lineage.log_weights)?;
    let weights = LogWeights::new(lineage.log_weights.clone())?;
    let conditional = before.conditional_ess(|i| weights.log()[i] - before.log()[i]);
    let ess = weights.ess();
    let poor = ess < rule.threshold_at(at);
    if !poor {
        lineage.went_on(ess, conditional);
        return Ok(());
    }
    let mut stream = Stream::new(lineage.seed, Purpose::Resample, 0, at.k as u64);
    let ancestors = rule.resampler.ancestors(&weights, &mut stream);
    walkers.resample(&ancestors)?;
    lineage.ancestry = ancestors.iter().map(|&a| lineage.ancestry[a as usize]).collect();
    lineage.log_weights.fill(0.0);
    lineage.resampled(ess, conditional, weights.log_mean());
    Ok(())
}

/// Where a walker is looked at, for errors that name it.
#[derive(Clone, Copy)]
pub(crate) struct Visit<'a> {
    pub(crate) target: &'a dyn Target,
    pub(crate) seed: u64,
    pub(crate) walker: usize,
    pub(crate) step: u64,
}

impl Visit<'_> {
    /// Write the energies of the walker, all of which must be finite.
    pub(crate) fn measure(&self, x: &[u8], energies: &mut [f64]) -> Result<()> {
        for (term, energy) in energies.iter_mut().enumerate() {
            *energy = self.target.energy(term, x);
        }
        self.check(energies, || x.to_vec())
    }

    /// Refuse an energy that is not finite.
    pub(crate) fn check(&self, energies: &[f64], x: impl FnOnce() -> Vec<u8>) -> Result<()> {
        match energies.iter().position(|e| !e.is_finite()) {
            None => Ok(()),
            Some(term) => Err(self.infinite(self.energy_term(term), energies[term], &x())),
        }
    }

    /// What an energy term is called in errors.
    pub(crate) fn energy_term(&self, term: usize) -> String {
        format!("energy term '{}'", self.target.term_name(term))
    }

    /// The error of a number that is not finite.
    pub(crate) fn infinite(&self, what: impl Into<String>, value: f64, x: &[u8]) -> Error {
        let &Visit { seed, walker, step, .. } = self;
        Error::NonFinite { what: what.into(), value, seed, walker, step, state: show_state(x) }
    }
}
