//! What the engines share: random numbers, threads, SIMD lanes.

mod philox;
mod random;
mod watch;

pub use philox::{Key, philox4x32};
pub use random::{Draw, Purpose, Stream, threshold};
pub use watch::{Unwatched, Watch};
