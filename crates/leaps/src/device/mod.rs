//! What the engines share: random numbers, threads, SIMD lanes.

pub(crate) mod lanes;
mod philox;
pub(crate) mod random;
pub(crate) mod vector;
mod watch;

pub use lanes::Level;
pub use philox::{Key, philox4x32};
pub use random::{Draw, Purpose, Stream, threshold};
pub use watch::{Unwatched, Watch};
