//! CPU or GPU, and what they share: random numbers, threads, SIMD lanes.

mod cpu_name;
#[cfg(feature = "cuda")]
pub(crate) mod cuda;
pub(crate) mod lanes;
pub(crate) mod level;
mod memory;
#[cfg(not(feature = "cuda"))]
mod no_cuda;
mod philox;
mod placement;
mod precision;
mod progress;
pub(crate) mod random;
mod ranks;
pub(crate) mod vector;

pub use cpu_name::cpu_name;
#[cfg(feature = "cuda")]
pub use cuda::Gpu;
pub use level::SimdLevel;
pub use memory::{Bytes, free_memory};
#[cfg(not(feature = "cuda"))]
pub use no_cuda::Gpu;
pub use philox::{Key, philox4x32};
pub use placement::{Device, Placement};
pub use precision::Precision;
pub use progress::{NoProgress, Progress, StopOnly};
pub use random::{Draw, Purpose, Stream, threshold};
pub use ranks::{Ranks, Single};
