//! Gradient steps on a GPU.

#[cfg(not(feature = "cuda"))]
mod absent;
#[cfg(feature = "cuda")]
mod instances;
#[cfg(feature = "cuda")]
mod training;

#[cfg(not(feature = "cuda"))]
pub(super) use absent::training;
#[cfg(feature = "cuda")]
pub(super) use training::training;
