//! Sweeps of many walkers in lockstep, for targets that prefer batches: every site of all walkers is one call of the target.
//!
//! Walkers draw what they draw one by one ([`HeatBath`](super::HeatBath), [`Metropolis`](super::Metropolis)), and so end in the same states.

use super::gibbs::drawn;
use super::lanes::Rule;
use super::moves::{accept, other_value};
use crate::Result;
use crate::device::Draw;
use crate::target::Density;

/// Sweep over the sites of all `states`, `[walker * sites + site]`, every walker with its own `draws`.
pub(crate) fn sweep<D: Draw>(
    rule: Rule,
    model: &Density<'_>,
    states: &mut [u8],
    draws: &mut [D],
) -> Result<()> {
    let (sites, q) = (model.sites(), model.q());
    let mut changes = vec![0.0; draws.len() * q];
    for site in 0..sites {
        model.target.changes_many(model.lambda, states, site, &mut changes)?;
        let rows = states.chunks_exact_mut(sites).zip(changes.chunks_exact_mut(q));
        for ((x, changes), draw) in rows.zip(&mut *draws) {
            let old = x[site];
            x[site] = match rule {
                Rule::HeatBath => drawn(old, changes, draw),
                Rule::Metropolis => {
                    let value = other_value(old, q, draw);
                    let (accepted, _) = accept(-changes[value as usize], draw);
                    if accepted { value } else { old }
                }
            };
        }
    }
    Ok(())
}
