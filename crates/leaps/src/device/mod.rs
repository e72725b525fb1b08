//! What the engines share: random numbers, threads, SIMD lanes.

#[cfg(feature = "cuda")]
pub(crate) mod cuda;
mod engine;
pub(crate) mod lanes;
pub(crate) mod level;
mod memory;
mod philox;
mod precision;
mod processor;
pub(crate) mod random;
pub(crate) mod vector;
mod watch;

#[cfg(feature = "cuda")]
pub use cuda::Card;
pub use engine::Engine;
pub use level::Level;
pub use memory::{Bytes, free_memory};
pub use philox::{Key, philox4x32};
pub use precision::Precision;
pub use processor::processor;
pub use random::{Draw, Purpose, Stream, threshold};
pub use watch::{Part, Unwatched, Watch};
