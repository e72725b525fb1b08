//! States, energies and log-weights of walkers on a GPU.

use std::sync::Arc;

use cudarc::driver::{CudaSlice, CudaView};

use crate::device::cuda::Gpu;
use crate::device::cuda::arguments::Output;
use crate::sampler::Population;
use crate::sampler::walkers::cuda::resample::Rows;
use crate::target::cuda::CudaTarget;
use crate::{Error, Result};

/// Walkers on a GPU.
pub(crate) struct CudaEnsemble {
    pub(crate) target: Arc<CudaTarget>,
    pub(crate) walkers: usize,
    pub(crate) seed: u64,
    pub(crate) states: CudaSlice<u8>,
    pub(crate) energies: CudaSlice<f64>,
    pub(crate) log_weights: CudaSlice<f64>,
}

impl CudaEnsemble {
    /// Walkers in uniformly random states, their energies still to be computed.
    pub(crate) fn new(target: &Arc<CudaTarget>, population: Population) -> Result<Self> {
        let Population { walkers, first, seed } = population;
        if first != 0 {
            let reason = "kernels number walkers from 0 on; use the device cpu";
            return Err(Error::not_applicable("a GPU", reason));
        }
        Ok(CudaEnsemble {
            target: target.clone(),
            walkers,
            seed,
            states: target.initial_states(walkers, seed)?,
            energies: target.gpu.zeros(walkers * target.terms)?,
            log_weights: target.gpu.zeros(walkers)?,
        })
    }

    pub(crate) fn gpu(&self) -> Arc<Gpu> {
        self.target.gpu.clone()
    }

    /// Take over states from the host, their energies still to be computed.
    pub(crate) fn take_states(&mut self, states: &[u8]) -> Result<()> {
        self.gpu().write(states, &mut self.states)
    }

    /// Compute the energies.
    pub(crate) fn measure(&mut self) -> Result<()> {
        self.target.energies(&self.states, self.walkers, &mut self.energies)
    }

    /// What goes with a walker when it is copied: where it lies, and the bytes of a row.
    pub(crate) fn rows(&self) -> Rows {
        let gpu = &self.target.gpu;
        [
            (Output::of(gpu, &self.states), self.target.sites),
            (Output::cast(gpu, &self.energies), self.target.terms * size_of::<f64>()),
            (Output::none(), 0),
        ]
    }

    /// Replace walkers by copies of their ancestors, whose numbers lie on the GPU.
    pub(crate) fn gather(&mut self, ancestors: &CudaSlice<u32>) -> Result<()> {
        let (target, n) = (&self.target, self.walkers);
        self.states = target.gathered(&self.states, target.sites, ancestors, n)?;
        self.energies = target.gathered(&self.energies, target.terms, ancestors, n)?;
        Ok(())
    }

    pub(crate) fn host_energies(&self) -> Result<Vec<f64>> {
        self.gpu().download(&self.energies.slice(..self.walkers * self.target.terms))
    }

    pub(crate) fn host_states(&self) -> Result<Vec<u8>> {
        self.gpu().download(&self.states.slice(..self.walkers * self.target.sites))
    }

    /// The state of one walker.
    pub(crate) fn host_state(&self, walker: usize) -> Result<Vec<u8>> {
        let sites = self.target.sites;
        self.gpu().download(&self.states.slice(walker * sites..(walker + 1) * sites))
    }

    /// Take over log-weights from the host.
    pub(crate) fn take_log_weights(&mut self, log_weights: &[f64]) -> Result<()> {
        self.gpu().write(log_weights, &mut self.log_weights)
    }

    /// Give log-weights back to the host.
    pub(crate) fn give_log_weights(&self, log_weights: &mut [f64]) -> Result<()> {
        let own: CudaView<'_, f64> = self.log_weights.slice(..self.walkers);
        log_weights.copy_from_slice(&self.gpu().download(&own)?);
        Ok(())
    }
}
