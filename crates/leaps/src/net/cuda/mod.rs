//! Networks on a GPU.

#[cfg(not(feature = "cuda"))]
mod absent;
#[cfg(feature = "cuda")]
mod evaluator;
#[cfg(feature = "cuda")]
mod net;
#[cfg(feature = "cuda")]
mod network;
#[cfg(feature = "cuda")]
mod parts;
#[cfg(all(test, feature = "cuda"))]
mod tests;

#[cfg(feature = "cuda")]
pub(crate) use super::dense::TIME_UNITS;
#[cfg(feature = "cuda")]
pub use evaluator::CudaEvaluator;
#[cfg(feature = "cuda")]
pub(crate) use network::*;
#[cfg(feature = "cuda")]
pub(crate) use parts::*;
