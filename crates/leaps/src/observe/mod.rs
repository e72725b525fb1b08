//! Measure states and attach errors to the averages.

mod estimate;
mod evidence;
mod families;
mod order;

pub use estimate::{Estimate, Jackknife};
pub use evidence::{Segments, ess, lee_whiteley, log_z};
pub use families::Families;
pub use order::Order;

/// Takes in the kept states of one chain, in order.
pub trait Recorder: Send {
    /// Measure `x`.
    fn record(&mut self, x: &[u8]);
}
