//! Descent: single changes that lower the energy, until none is left.

use rayon::prelude::*;

use crate::target::Target;
use crate::{Error, Result};

/// States that descend together where one at a time is as cheap.
const TOGETHER: usize = 8;

/// Changes smaller than this part of the energy scale are rounding.
const ROUNDING: f64 = 1e-12;

/// Let states `[state * sites + site]` descend; returns their energies, computed from them.
///
/// # Errors
/// An energy that is not a number, or one that is infinite in every state.
pub fn descend(target: &dyn Target, states: &mut [u8]) -> Result<Vec<f64>> {
    let sites = target.sites();
    let together = match target.prefers_batches() {
        true => states.len().max(1),
        false => TOGETHER * sites,
    };
    states.par_chunks_mut(together).try_for_each(|part| descend_part(target, part))?;
    let mut terms = vec![0.0; states.len() / sites * target.terms()];
    target.energies(states, &mut terms)?;
    let energies: Vec<f64> =
        terms.chunks_exact(target.terms()).map(|row| row.iter().sum()).collect();
    match energies.iter().find(|energy| energy.is_nan()) {
        Some(&value) => Err(Error::NonFinite {
            what: "energy".into(),
            value,
            seed: 0,
            walker: 0,
            step: 0,
            state: "at the end of a descent".into(),
        }),
        None => Ok(energies),
    }
}

fn descend_part(target: &dyn Target, states: &mut [u8]) -> Result<()> {
    let (sites, q) = (target.sites(), target.q());
    let ones = vec![1.0; target.terms()];
    let mut changes = vec![0.0; states.len() / sites * q];
    // What still moves comes first; the others are where they stay.
    loop {
        let mut moved = false;
        for site in 0..sites {
            target.changes_many(&ones, states, site, &mut changes)?;
            for (x, row) in states.chunks_exact_mut(sites).zip(changes.chunks_exact(q)) {
                let scale = row.iter().fold(1.0, |scale: f64, change| match change.is_finite() {
                    true => scale.max(change.abs()),
                    false => scale,
                });
                let best = row.iter().enumerate().min_by(|a, b| a.1.total_cmp(b.1));
                if let Some((value, &change)) = best
                    && change < -ROUNDING * scale
                {
                    x[site] = value as u8;
                    moved = true;
                }
            }
        }
        if !moved {
            return Ok(());
        }
    }
}
