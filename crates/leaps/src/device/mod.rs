//! What the engines share: random numbers, threads, SIMD lanes.

#[cfg(feature = "cuda")]
pub(crate) mod cuda;
pub(crate) mod lanes;
mod philox;
pub(crate) mod random;
pub(crate) mod vector;
mod watch;

#[cfg(feature = "cuda")]
pub use cuda::Card;
pub use lanes::Level;
pub use philox::{Key, philox4x32};
pub use random::{Draw, Purpose, Stream, threshold};
pub use watch::{Part, Unwatched, Watch};
