//! Samplers that drive an ensemble of weighted walkers along a path: mutate, weigh, resample.

mod adaptive;
mod anneal;
mod grid;
mod moves;
mod rate_model;
mod resample;
mod scheme;
mod spec;
pub(crate) mod walkers;
mod warnings;

pub use adaptive::choose_times;
pub use anneal::{
    Ensemble, PathPoint, PathStop, Protocol, Reached, Resampling, anneal, anneal_until_stopped,
};
pub use grid::{Grid, Interval, Span};
pub use moves::{Amount, Moves, Settings, Times, sample, sample_on, sample_until_stopped};
pub use rate_model::{NetworkWalk, RateModel};
pub use resample::Resampler;
pub use scheme::{Scheme, WalkPlan};
pub use spec::{ResampleSpec, SchemeSpec, UpdateSpec, WalkerSpec};
pub use walkers::kernels::KernelWalkers;
pub use walkers::lanes::LaneWalkers;
pub use walkers::lockstep::{LockstepWalkers, Sweeps};
pub use walkers::network::NetworkWalkers;
pub use walkers::{Cost, Lineage, Population, Walkers};
pub use warnings::WalkerWarning;
