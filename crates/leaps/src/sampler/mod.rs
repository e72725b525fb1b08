//! Drive an ensemble of weighted walkers along a path: mutate, weigh, resample.

mod adaptive;
mod anneal;
#[cfg(feature = "cuda")]
mod card_resample;
#[cfg(feature = "cuda")]
mod card_sweeps;
#[cfg(feature = "cuda")]
pub(crate) mod card_walkers;
mod flow_walkers;
mod followers;
mod grid;
mod kernel_walkers;
mod lane_walkers;
mod moves;
mod population;
mod resample;
mod warnings;
mod weights;

pub use adaptive::choose_times;
pub use anneal::{Ensemble, PathPoint, PathStop, Resampling, anneal};
pub use flow_walkers::{Flow, FlowWalkers, Stepper, flow_grid, flow_grid_with_stops};
pub use followers::{Followers, followers};
pub use grid::Grid;
pub use kernel_walkers::KernelWalkers;
pub use lane_walkers::LaneWalkers;
pub use moves::{Amount, Moves, Settings, Times, sample, sample_on};
pub use population::{Lineage, Population};
pub use resample::Scheme;
pub use warnings::WalkerWarning;
pub use weights::LogWeights;
