//! Ensembles of walkers on a GPU.

#[cfg(not(feature = "cuda"))]
mod absent;
#[cfg(feature = "cuda")]
mod ensemble;
#[cfg(feature = "cuda")]
pub(crate) mod network;
#[cfg(feature = "cuda")]
pub(crate) mod resample;
#[cfg(feature = "cuda")]
pub(crate) mod sweeps;

#[cfg(not(feature = "cuda"))]
pub(in crate::sampler) use absent::{network_walkers, sweep_walkers};
#[cfg(feature = "cuda")]
pub(in crate::sampler) use network::network_walkers;
#[cfg(feature = "cuda")]
pub(in crate::sampler) use sweeps::sweep_walkers;
