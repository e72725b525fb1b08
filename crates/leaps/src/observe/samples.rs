//! Averages of weighted walkers, with errors.

use rayon::prelude::*;

use super::modes;
use super::{
    Bins, Estimate, Families, Histogram, Jackknife, Layout, Measure, Observables, Segments,
};
use crate::observe::LogWeights;
use crate::target::Target;
use crate::{Error, Result};

/// Walkers that have been measured: a row of basic observables, a weight and a family each.
#[derive(Clone, Debug)]
pub struct WeightedSamples {
    layout: Layout,
    rows: Vec<f64>,
    weights: LogWeights,
    families: Families,
    sums: Jackknife,
}

impl WeightedSamples {
    /// Measure the states `states[walker * sites + site]` of `rho(x) ~ exp(-sum_k lambda_k E_k(x))`, on all
    /// threads, with the same result for any number of them.
    pub fn new(
        target: &dyn Target,
        lambda: &[f64],
        states: &[u8],
        weights: &LogWeights,
        families: &Families,
    ) -> Result<Self> {
        Self::measured(&Measure::new(target, lambda), states, weights, families)
    }

    /// The same by a measure that may have more columns than usual.
    pub fn measured(
        measure: &Measure<'_>,
        states: &[u8],
        weights: &LogWeights,
        families: &Families,
    ) -> Result<Self> {
        let (target, layout) = (measure.target(), measure.layout().clone());
        let (walkers, q) = (weights.len(), target.q());
        if states.len() != walkers * layout.sites || families.len() != walkers {
            return Err(Error::invalid(
                "samples",
                format!("{} values and {} families", states.len(), families.len()),
                format!("{} values and one family for each of {walkers} walkers", layout.sites),
                "give every walker a full state",
            ));
        }
        if let Some(bad) = states.iter().position(|&site_value| site_value as usize >= q) {
            return Err(Error::invalid(
                "value",
                states[bad],
                format!("below {q} (walker {})", bad / layout.sites),
                "use the target the states were drawn from",
            ));
        }
        let mut rows = vec![0.0; walkers * layout.width()];
        let both =
            rows.par_chunks_exact_mut(layout.width()).zip(states.par_chunks_exact(layout.sites));
        match target.prefers_batches() {
            false => both.for_each(|(row, x)| measure.row(x, row)),
            true => {
                let mut energies = vec![0.0; walkers * target.terms()];
                target.energies(states, &mut energies)?;
                both.zip(energies.par_chunks_exact(target.terms()))
                    .for_each(|((row, x), energies)| measure.row_with(x, energies, row));
            }
        }
        let sums = Jackknife::new(layout.width(), &rows, weights.relative(), families);
        Ok(WeightedSamples {
            layout,
            rows,
            weights: weights.clone(),
            families: families.clone(),
            sums,
        })
    }

    /// What the columns of a row are.
    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    /// The sums over families, for observables of your own.
    pub fn jackknife(&self) -> &Jackknife {
        &self.sums
    }

    /// The observables with their errors.
    pub fn observables(&self) -> Observables {
        Observables::new(&self.layout, &self.sums)
    }

    /// log Z with its error; see [`log_z`](super::log_z).
    pub fn log_z(&self, closed: &Segments) -> Estimate {
        super::log_z(&self.weights, &self.families, closed)
    }

    /// Effective sample size with its error; see [`ess`](super::ess).
    pub fn ess(&self) -> Estimate {
        super::ess(&self.weights, &self.families)
    }

    /// The probability that masses of modes as unequal as these, or more, come out where a symmetry makes modes equally
    /// likely; `None` where none does.
    pub fn mode_equality(&self) -> Option<f64> {
        modes::equality(&self.layout, &self.sums)
    }

    /// One column of all rows, such as [`Layout::ENERGY`], walker by walker.
    pub fn column(&self, column: usize) -> Vec<f64> {
        self.rows.chunks_exact(self.layout.width()).map(|row| row[column]).collect()
    }

    /// The weighted histogram of the energy per site.
    pub fn energy_histogram(&self, bins: Bins) -> Histogram {
        let n = self.layout.sites as f64;
        self.histogram(bins, |row| row[Layout::ENERGY] / n)
    }

    /// The weighted histogram of `|m|`.
    pub fn abs_magnetization_histogram(&self, bins: Bins) -> Histogram {
        self.histogram(bins, |row| row[Layout::ABS_M])
    }

    fn histogram(&self, bins: Bins, value: impl Fn(&[f64]) -> f64) -> Histogram {
        let values: Vec<f64> = self.rows.chunks_exact(self.layout.width()).map(value).collect();
        Histogram::new(bins, &values, self.weights.relative(), &self.families)
    }
}
