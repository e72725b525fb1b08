//! Measure states and attach errors to the averages.
//!
//! [`Measure`] reduces a state to a row of basic observables. [`WeightedSamples`] collects such rows from
//! weighted walkers. Either way [`Observables`] are functions of the averages, with errors from one [`Jackknife`].

mod estimate;
mod evidence;
mod families;
mod histogram;
mod measure;
mod observables;
mod order;
mod samples;

pub use estimate::{Estimate, Jackknife};
pub use evidence::{Segments, ess, lee_whiteley, log_z};
pub use families::Families;
pub use histogram::{Bins, Distance, Histogram};
pub use measure::{Layout, Measure};
pub use observables::{Correlation, Observables};
pub use order::Order;
pub use samples::WeightedSamples;

/// Takes in the kept states of one chain, in order.
pub trait Recorder: Send {
    /// Measure `x`.
    fn record(&mut self, x: &[u8]);
}
