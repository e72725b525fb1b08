//! Sweeps of many walkers at once: heat bath and Metropolis with walkers along SIMD lanes.
//!
//! The chance of a new value depends on a site's neighbours only through a small integer, so that all
//! chances at one temperature fit a table of 32-bit thresholds and an update is a few additions, a
//! look-up and a comparison; where the integer would be large, a chance is a product of factors that
//! small ones look up. Chances are rounded to multiples of 2^-32. Lane `l` of a tile draws from the
//! stream of its own walker, so no result depends on which walkers share a tile.

pub(super) mod chains;
mod counts;
pub(crate) mod cuda;
mod effects;
mod factors;
mod plan;
mod tables;
mod tempering;
#[cfg(test)]
mod tests;
mod tile;

pub use chains::run_lane_chains;
pub use plan::{Plan, Rule, Scan};
pub use tables::Tables;
pub use tempering::{LadderPlan, run_lane_tempering};
pub use tile::{Tile, Updates};

/// Energies that are kept in step with updates are measured afresh every so many sweeps, which bounds the rounding of real
/// couplings.
pub(crate) const FRESH: u64 = 16;
