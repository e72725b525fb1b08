//! Measure states and attach errors to the averages.

mod order;

pub use order::Order;

/// Takes in the kept states of one chain, in order.
pub trait Recorder: Send {
    /// Measure `x`.
    fn record(&mut self, x: &[u8]);
}
