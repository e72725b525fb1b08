//! Drive an ensemble of weighted walkers along a path: mutate, weigh, resample.

mod adaptive;
mod anneal;
mod grid;
mod moves;
mod resample;
mod spec;
pub(crate) mod walkers;
mod warnings;

pub use adaptive::choose_times;
pub use anneal::{Ensemble, PathPoint, PathStop, Resampling, anneal};
pub use grid::Grid;
pub use moves::{Amount, Moves, Settings, Times, sample, sample_on};
pub use resample::Resampler;
pub use spec::{ResampleSpec, SchemeSpec, UpdateSpec, WalkerSpec};
pub use walkers::kernels::KernelWalkers;
pub use walkers::lanes::LaneWalkers;
pub use walkers::network::{
    NetworkWalkers, RateModel, Scheme, scheme_grid, scheme_grid_with_stops,
};
pub use walkers::place::{Followers, followers};
pub use walkers::{Lineage, Population};
pub use warnings::WalkerWarning;
