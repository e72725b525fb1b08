//! Annealed importance sampling and sequential Monte Carlo: one driver, with or without resampling.
//!
//! Interval `k`: every walker's log-weight grows by `U_{t_{k-1}}(x) - U_{t_k}(x)` ([`Interval::weigh`]); if the effective sample
//! size has fallen below the threshold, walkers are resampled and the segment's log mean weight is added to
//! log Z; then walkers move at `rho_{t_k}`. Weighted walkers represent `rho_{t_k}` after every interval, so
//! one run gives free energy, energy and heat capacity all along the path.

use super::{Cost, Grid, Interval, Lineage, Resampler, Span, Walkers};
use crate::device::Progress;
use crate::observe::{
    Estimate, Families, Jackknife, LogWeights, Observables, OrderParameter, Segments,
    WeightedSamples, entropy, ess, log_z,
};
use crate::target::Target;
use crate::{Error, Result};

/// When and how to resample.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Resampling {
    /// Resample when the effective sample size falls below this fraction, in [0, 1]; 0 is never.
    pub threshold: f64,
    /// How ancestors are drawn.
    pub resampler: Resampler,
}

impl Resampling {
    /// Never resample: annealed importance sampling.
    pub const NEVER: Resampling = Resampling { threshold: 0.0, resampler: Resampler::Systematic };

    /// Whether walkers are never resampled.
    pub fn is_never(&self) -> bool {
        self.threshold == 0.0
    }

    /// The threshold after an interval; where walkers are measured next they are not resampled.
    pub(super) fn threshold_at(&self, at: Interval<'_>) -> f64 {
        if at.grid.is_measured(at.k) { 0.0 } else { self.threshold }
    }

    fn check(&self) -> Result<()> {
        if (0.0..=1.0).contains(&self.threshold) {
            return Ok(());
        }
        let condition = "from 0 (never) to 1 (always)";
        Err(Error::invalid("resample", self.threshold, condition, "0.5 is usual"))
    }
}

/// How walkers are led along a path.
#[derive(Clone, Copy, Debug)]
pub struct Protocol<'a> {
    /// Where they are weighed.
    pub grid: &'a Grid,
    /// When they are resampled.
    pub resampling: Resampling,
    /// About how many estimates to keep along the path.
    pub trace_points: usize,
    /// The seed of resampling.
    pub seed: u64,
}

/// What is known at one time of the path.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct PathPoint {
    /// The time, from 0 to 1.
    pub t: f64,
    /// The weights of the energy terms there.
    pub lambda: Vec<f64>,
    /// log Z of `rho_t`.
    pub log_z: Estimate,
    /// Effective sample size as a fraction, before any resampling at this time.
    pub ess: f64,
    /// Whether walkers were resampled here.
    pub resampled: bool,
    /// `<sum_k E_k> / sites`.
    pub energy_per_site: Estimate,
    /// `Var(U_t) / sites`.
    pub heat_capacity_per_site: Estimate,
    /// `(log Z + <U_t>) / sites`; files of older versions have none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub entropy_per_site: Option<Estimate>,
    /// `<|m|>`; files of older versions have none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub abs_magnetization: Option<Estimate>,
}

/// Everything that is measured at a stop of the grid.
#[derive(Clone, Debug)]
pub struct PathStop {
    /// The time, above 0 and at most 1.
    pub t: f64,
    /// The weights of the energy terms there.
    pub lambda: Vec<f64>,
    /// log Z of `rho_t`.
    pub log_z: Estimate,
    /// `log Z + <U>` of `rho_t`.
    pub entropy: Estimate,
    /// Effective sample size as a fraction.
    pub ess: Estimate,
    /// Observables of `rho_t`.
    pub observables: Observables,
}

/// Where on the path walkers are that were stopped before its end.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
#[non_exhaustive]
pub struct Reached {
    /// The inverse temperature there; `None` if schedules of the energy terms differ there.
    pub beta: Option<f64>,
    /// The time, above 0 and below 1.
    pub t: f64,
    /// The weights of the energy terms there.
    pub lambda: Vec<f64>,
}

impl Reached {
    /// The end of an interval of a grid.
    fn new(at: Interval<'_>) -> Self {
        let lambda = at.lambda();
        let near = |weight: &f64| (weight - lambda[0]).abs() <= 1e-12 * lambda[0].abs();
        let beta = lambda.iter().all(near).then(|| lambda[0]);
        Reached { beta, t: at.grid.time(at.k), lambda: lambda.to_vec() }
    }
}

/// Weighted walkers at the end of the path, or where a stop kept them from it.
#[derive(Clone, Debug)]
pub struct Ensemble {
    /// Where they were stopped, if they were: states, weights and estimates are for there.
    pub reached: Option<Reached>,
    /// States, `[walker * sites + site]`.
    pub states: Vec<u8>,
    /// Log-weights since the last resampling.
    pub weights: LogWeights,
    /// log Z of the uniform start plus what resampling took out of the weights.
    pub segments: Segments,
    /// Which walkers descend from the same walker at the start.
    pub families: Families,
    /// Energy terms, `[walker * terms + term]`.
    pub energies: Vec<f64>,
    /// Estimates along the path.
    pub trace: Vec<PathPoint>,
    /// What was measured at the stops of the grid.
    pub stops: Vec<PathStop>,
    /// The lowest energy that walkers had where they were looked at, at points of the trace and at stops, and a state that has it.
    pub lowest: Option<(f64, Vec<u8>)>,
    /// What the walkers have cost.
    pub cost: Cost,
    /// Smallest conditional effective sample size of a step, where steps are looked at one by one (with
    /// resampling); else 1.
    pub smallest_step: f64,
}

impl Ensemble {
    /// The ensemble if it is at the end of the path.
    ///
    /// # Errors
    /// [`Error::Interrupted`] if it was stopped on the way.
    pub fn whole(self) -> Result<Self> {
        if self.reached.is_some() { Err(Error::Interrupted) } else { Ok(self) }
    }

    /// log Z of the target, with its error.
    pub fn log_z(&self) -> Estimate {
        log_z(&self.weights, &self.families, &self.segments)
    }

    /// Effective sample size as a fraction, with its error.
    pub fn ess(&self) -> Estimate {
        ess(&self.weights, &self.families)
    }

    /// The entropy `log Z + <U>` of the target, whose energy terms have the weights `lambda`, with its error.
    pub fn entropy(&self, lambda: &[f64]) -> Estimate {
        let potentials = potentials(&self.energies, lambda);
        entropy(&self.weights, &self.families, &self.segments, &potentials)
    }

    /// A lower bound of log Z: the mean log-weight.
    pub fn elbo(&self) -> f64 {
        self.segments.log_z() + self.weights.mean_log()
    }
}

/// `sum_k lambda_k E_k` of every walker.
fn potentials(energies: &[f64], lambda: &[f64]) -> Vec<f64> {
    let potential = |row: &[f64]| row.iter().zip(lambda).map(|(e, l)| e * l).sum();
    energies.chunks_exact(lambda.len()).map(potential).collect()
}

/// Lead walkers of `target` along a path.
///
/// # Errors
/// [`Error::Interrupted`] if they were stopped before its end; [`anneal_until_stopped`] has what they were by then.
pub fn anneal(
    target: &dyn Target,
    walkers: &mut dyn Walkers,
    protocol: Protocol<'_>,
    progress: &dyn Progress,
) -> Result<Ensemble> {
    anneal_until_stopped(target, walkers, protocol, progress)?.whole()
}

/// Lead walkers of `target` along a path as far as they may go. If they are stopped, the ensemble is that of the last point at which all of them
/// were looked at: their weights are exact for the distribution there.
///
/// # Errors
/// [`Error::Interrupted`] if they were stopped before the first such point.
pub fn anneal_until_stopped(
    target: &dyn Target,
    walkers: &mut dyn Walkers,
    protocol: Protocol<'_>,
    progress: &dyn Progress,
) -> Result<Ensemble> {
    let Protocol { grid, resampling, trace_points, seed } = protocol;
    let count = walkers.walkers();
    if count < 1 {
        return Err(Error::invalid("walkers", count, "at least 1", "errors need at least 2"));
    }
    resampling.check()?;
    progress.total(grid.intervals() as u64 * count as u64);
    let log_z0 = target.sites() as f64 * (target.q() as f64).ln();
    let mut lineage = Lineage::new(count, log_z0, seed);
    let (mut trace, mut stops, mut lowest) = (Vec::new(), Vec::new(), None);
    let keep = |k: usize| {
        let n = grid.intervals();
        k == n || k * trace_points / n != (k - 1) * trace_points / n
    };
    let look = |k: usize| keep(k) || grid.is_stop(k);
    let mut seen: Option<Seen<'_>> = None;
    let mut k = 1;
    while k <= grid.intervals() {
        // Nobody looks at the walkers before the next point that is kept.
        let last = (k..=grid.intervals()).find(|&k| look(k)).unwrap_or(grid.intervals());
        let span = Span { grid, intervals: k..last + 1 };
        k = last;
        match walkers.advance(span, &resampling, &mut lineage, progress) {
            Err(Error::Interrupted) => break,
            done => done?,
        }
        // First, so that the states of one point at a time take memory.
        drop(seen.take());
        let found = Seen::new(target, Interval { grid, k }, walkers, &lineage)?;
        found.lower(&mut lowest);
        if grid.is_stop(k) {
            stops.push(found.stop()?);
        }
        if keep(k) {
            trace.push(found.point(!resampling.is_never()));
        }
        seen = Some(found);
        k += 1;
    }
    let Some(seen) = seen else { return Err(Error::Interrupted) };
    if !keep(seen.at.k) {
        trace.push(seen.point(!resampling.is_never()));
    }
    let reached = (seen.at.k < grid.intervals()).then(|| Reached::new(seen.at));
    Ok(Ensemble {
        reached,
        states: seen.states,
        weights: seen.weights,
        segments: seen.segments,
        families: seen.families,
        energies: seen.energies,
        trace,
        stops,
        lowest,
        cost: seen.cost,
        smallest_step: seen.smallest_step,
    })
}

/// Walkers as they were after an interval, whatever becomes of them.
struct Seen<'a> {
    target: &'a dyn Target,
    at: Interval<'a>,
    states: Vec<u8>,
    energies: Vec<f64>,
    weights: LogWeights,
    families: Families,
    segments: Segments,
    cost: Cost,
    smallest_step: f64,
    /// See [`Lineage::last`].
    last: (f64, bool),
}

impl<'a> Seen<'a> {
    fn new(
        target: &'a dyn Target,
        at: Interval<'a>,
        walkers: &dyn Walkers,
        lineage: &Lineage,
    ) -> Result<Self> {
        Ok(Seen {
            target,
            at,
            states: walkers.states()?,
            energies: walkers.energies()?,
            weights: LogWeights::new(lineage.log_weights.clone())?,
            families: Families::new(&lineage.ancestry),
            segments: lineage.segments,
            cost: walkers.cost()?,
            smallest_step: lineage.smallest_step,
            last: lineage.last,
        })
    }

    fn log_z(&self) -> Estimate {
        log_z(&self.weights, &self.families, &self.segments)
    }

    /// Take the lowest energy of these walkers if it is lower than what there is; of equal ones the later.
    fn lower(&self, lowest: &mut Option<(f64, Vec<u8>)>) {
        let each = self.energies.chunks_exact(self.target.terms()).map(|e| e.iter().sum::<f64>());
        let Some((walker, energy)) = each.enumerate().min_by(|a, b| a.1.total_cmp(&b.1)) else {
            return;
        };
        if lowest.as_ref().is_none_or(|(least, _)| energy <= *least) {
            let sites = self.target.sites();
            *lowest = Some((energy, self.states[walker * sites..][..sites].to_vec()));
        }
    }

    fn stop(&self) -> Result<PathStop> {
        let (lambda, weights, families) = (self.at.lambda(), &self.weights, &self.families);
        let samples = WeightedSamples::new(self.target, lambda, &self.states, weights, families)?;
        Ok(PathStop {
            t: self.at.grid.time(self.at.k),
            lambda: lambda.to_vec(),
            log_z: self.log_z(),
            entropy: {
                let potentials = potentials(&self.energies, lambda);
                entropy(weights, families, &self.segments, &potentials)
            },
            ess: ess(weights, families),
            observables: samples.observables(),
        })
    }

    fn point(&self, resampling: bool) -> PathPoint {
        let (lambda, weights) = (self.at.lambda(), &self.weights);
        let potentials = potentials(&self.energies, lambda);
        let entropy = entropy(weights, &self.families, &self.segments, &potentials);
        // Squares about a typical value: the variance of a large energy would lose its digits.
        let origin = potentials[0];
        let order = OrderParameter::of(self.target);
        let mut rows = Vec::with_capacity(4 * weights.len());
        let each = self.energies.chunks_exact(lambda.len()).zip(&potentials);
        for ((energies, u), x) in each.zip(self.states.chunks_exact(self.target.sites())) {
            let (h, u) = (energies.iter().sum::<f64>(), u - origin);
            rows.extend([h, u, u * u, order.of_state(x).abs]);
        }
        let jackknife = Jackknife::new(4, &rows, weights.relative(), &self.families);
        let sites = self.target.sites() as f64;
        let (ess, resampled) = if resampling { self.last } else { (weights.ess(), false) };
        PathPoint {
            t: self.at.grid.time(self.at.k),
            lambda: lambda.to_vec(),
            log_z: self.log_z(),
            ess,
            resampled,
            energy_per_site: jackknife.estimate(|m| m[0] / sites),
            heat_capacity_per_site: jackknife.estimate(|m| (m[2] - m[1] * m[1]) / sites),
            entropy_per_site: Some(Estimate::new(entropy.mean / sites, entropy.error / sites)),
            abs_magnetization: Some(jackknife.mean(3)),
        }
    }
}
