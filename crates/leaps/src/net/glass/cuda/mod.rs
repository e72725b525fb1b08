//! The network for spin glasses on a GPU: the kernels of the hollow convolution, between those that look at bonds.

#![cfg(feature = "cuda")]

mod bonds;

use std::sync::Arc;

use cudarc::driver::{CudaSlice, CudaViewMut};

use super::Glass;
use crate::Result;
use crate::device::cuda::{Gpu, Precision, launch};
use crate::net::cuda::{Base, CudaBatch, CudaNetwork, CudaPasses, on_gpu};
use crate::net::hollow::cuda::{CudaHollow, Saved};
pub(in crate::net) use bonds::{BONDS, CudaBonds, defines};

/// Values of a spin.
const Q: usize = 2;
/// Threads of a block of the kernels around the convolution.
const BLOCK: u32 = 256;

impl Glass {
    /// The network on a GPU, with space for batches of `slots`.
    pub(crate) fn on_gpu(
        &self,
        gpu: &Arc<Gpu>,
        slots: usize,
        precision: Precision,
    ) -> Result<Box<dyn CudaNetwork>> {
        let passes = CudaGlass {
            hollow: CudaHollow::new(&self.hollow, Q, gpu, slots, precision)?,
            o: gpu.zeros(slots * self.bonds.sites * self.bonds.directions())?,
            sites: self.bonds.sites,
            directions: self.bonds.directions(),
        };
        on_gpu(gpu, slots, self, passes)
    }

    /// Whether a GPU has tensor cores that the network fits.
    pub(crate) fn uses_tensor_cores(&self, gpu: &Gpu) -> bool {
        self.hollow.uses_tensor_cores(Q, gpu)
    }
}

/// See the [module](self).
struct CudaGlass {
    hollow: CudaHollow,
    /// Outputs of every site, one for each direction.
    o: CudaSlice<f32>,
    sites: usize,
    directions: usize,
}

impl CudaPasses for CudaGlass {
    /// What the convolution saves, and the gradient of its outputs.
    type Saved = (Saved, CudaSlice<f32>);

    fn refresh(&mut self, base: &Base) -> Result<()> {
        self.hollow.refresh(base)
    }

    fn reserve(&mut self, base: &Base) -> Result<Self::Saved> {
        let d_o = base.gpu.zeros(base.slots * self.sites * self.directions)?;
        Ok((self.hollow.reserve(base)?, d_o))
    }

    fn forward(
        &mut self,
        base: &Base,
        batch: &CudaBatch<'_>,
        saved: Option<&mut Self::Saved>,
        out: &mut CudaSlice<f32>,
    ) -> Result<()> {
        let saved = saved.map(|(saved, _)| saved);
        self.hollow.forward(base, batch, saved, &mut self.o)?;
        let Some(bonds) = &self.hollow.bonds else { return Ok(()) };
        let n = (batch.slots * self.sites) as u32;
        let grid = (n.div_ceil(BLOCK), 1, 1);
        launch!(base.gpu, bonds.contract, (grid, BLOCK, 0), &self.o, &bonds.pulls, out, &n)
    }

    fn backward(
        &mut self,
        base: &Base,
        batch: &CudaBatch<'_>,
        (saved, d_o): &mut Self::Saved,
        d_out: &CudaSlice<f32>,
        gradient: &mut CudaViewMut<'_, f32>,
    ) -> Result<()> {
        if let Some(bonds) = &self.hollow.bonds {
            let n = (batch.slots * self.sites) as u32;
            let grid = (n.div_ceil(BLOCK), 1, 1);
            launch!(base.gpu, bonds.expand, (grid, BLOCK, 0), d_out, &bonds.pulls, &mut *d_o, &n)?;
        }
        self.hollow.backward(base, batch, saved, d_o, gradient)
    }
}
