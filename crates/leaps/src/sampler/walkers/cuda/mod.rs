//! Ensembles of walkers on a GPU.

pub(crate) mod network;
pub(crate) mod resample;
pub(crate) mod sweeps;
