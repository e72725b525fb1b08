//! The temperatures between which a search cools.

use super::descent::descend;
use crate::target::{Target, initial_state};
use crate::{Error, Result};

/// States at which energy changes are looked at.
const STATES: u32 = 8;

/// The share of the smallest changes at local minima that are passed over.
const SMALLEST: f64 = 0.05;

/// At the coldest temperature the smallest changes that count happen with a chance of `exp(-COLD)`.
const COLD: f64 = 12.0;

/// Inverse temperatures from hot, where most changes are accepted, to cold, where hardly any is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BetaRange {
    /// The hottest.
    pub hot: f64,
    /// The coldest.
    pub cold: f64,
}

impl BetaRange {
    /// By the energy changes of single sites at random states and at the local minima below them; a cold end that is given stays.
    ///
    /// # Errors
    /// Energies that are not numbers.
    pub fn of(target: &dyn Target, seed: u64, cold: Option<f64>) -> Result<Self> {
        let random: Vec<u8> =
            (0..STATES).flat_map(|walker| initial_state(target, seed, walker)).collect();
        let mut minima = random.clone();
        descend(target, &mut minima)?;
        let (mut above, mut below) = (changes(target, random), changes(target, minima));
        above.sort_by(f64::total_cmp);
        below.sort_by(f64::total_cmp);
        let typical = above.get(above.len() / 2).copied().unwrap_or(1.0);
        let smallest = below.get((SMALLEST * below.len() as f64) as usize).copied();
        let hot = 0.5 / typical;
        let cold = cold.unwrap_or(COLD / smallest.unwrap_or(typical)).max(f64::MIN_POSITIVE);
        if !hot.is_finite() || !cold.is_finite() {
            let reason =
                "its energy changes are too small or too large to choose temperatures by; give one";
            return Err(Error::not_applicable("the search", reason));
        }
        Ok(BetaRange { hot: hot.min(0.5 * cold), cold })
    }

    /// So many inverse temperatures from hot to cold, each a constant factor above the last.
    pub fn ladder(self, rungs: usize) -> Vec<f64> {
        let factor = (self.cold / self.hot).powf(1.0 / (rungs - 1) as f64);
        let rung = |k: usize| match k + 1 == rungs {
            true => self.cold,
            false => self.hot * factor.powi(k as i32),
        };
        (0..rungs).map(rung).collect()
    }
}

/// The sizes of all finite energy changes by single sites that are not 0.
fn changes(target: &dyn Target, mut states: Vec<u8>) -> Vec<f64> {
    let ones = vec![1.0; target.terms()];
    let mut row = vec![0.0; target.sites() * target.q()];
    let mut all = Vec::new();
    for x in states.chunks_exact_mut(target.sites()) {
        target.changes(&ones, x, &mut row);
        let largest = row.iter().filter(|change| change.is_finite());
        let largest = largest.fold(0.0, |largest: f64, change| largest.max(change.abs()));
        let sizes = row.iter().map(|change| change.abs());
        all.extend(sizes.filter(|size| size.is_finite() && *size > 1e-9 * largest));
    }
    all
}
