//! Hold an ensemble of walkers in whatever form suits the moves they make.

use super::Grid;
use crate::device::Watch;
use crate::target::{Target, show_state};
use crate::{Error, Result};

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
    /// An interval may take hours: `watch` is asked now and then whether to stop. Progress is the caller's to report.
    fn mutate(
        &mut self,
        grid: &Grid,
        k: usize,
        log_weights: &mut [f64],
        watch: &dyn Watch,
    ) -> Result<()>;

    /// Weigh and move through the intervals `from..to` without a stop between them.
    fn advance(
        &mut self,
        grid: &Grid,
        intervals: std::ops::Range<usize>,
        log_weights: &mut [f64],
        watch: &dyn Watch,
    ) -> Result<()> {
        for k in intervals {
            watch.check()?;
            self.weigh(grid, k, log_weights)?;
            self.mutate(grid, k, log_weights, watch)?;
            watch.advance(self.walkers() as u64);
        }
        Ok(())
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
