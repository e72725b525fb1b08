//! Networks on a GPU.

#[cfg(not(feature = "cuda"))]
mod absent;
#[cfg(feature = "cuda")]
mod evaluator;
#[cfg(feature = "cuda")]
mod net;
#[cfg(feature = "cuda")]
mod network;
#[cfg(all(test, feature = "cuda"))]
mod tests;

#[cfg(feature = "cuda")]
pub use evaluator::CudaEvaluator;
#[cfg(feature = "cuda")]
pub(crate) use network::*;
