//! Networks on a GPU: their memory, their precision and their kernels.

use std::sync::Arc;

use crate::Result;
use crate::device::Precision;
use crate::device::cuda::{Gpu, memory::counted};
use crate::net::cuda::{Compiled, CudaEvaluator, CudaNetwork};
use crate::net::model::AnyNetwork;
use crate::net::{Evaluator, Net};

impl Net {
    /// The network on a GPU, for batches of up to `slots`.
    pub(crate) fn on_gpu(
        &self,
        gpu: &Arc<Gpu>,
        slots: usize,
        precision: Precision,
    ) -> Result<Box<dyn CudaNetwork>> {
        match &self.network {
            AnyNetwork::Mlp(network) => network.on_gpu(gpu, slots),
            AnyNetwork::Lea(network) => network.on_gpu(gpu, slots),
            AnyNetwork::Lec(network) => network.on_gpu(gpu, slots, precision),
            AnyNetwork::Hollow(network) => network.on_gpu(self.q, gpu, slots, precision),
            AnyNetwork::HollowGraph(network) => network.on_gpu(gpu, slots),
            AnyNetwork::Glass(network) => network.on_gpu(gpu, slots, precision),
        }
    }

    /// See [`Net::evaluator`].
    pub(in crate::net) fn cuda_evaluator(
        &self,
        gpu: &Arc<Gpu>,
        batch: usize,
        precision: Precision,
    ) -> Result<Box<dyn Evaluator>> {
        Ok(Box::new(CudaEvaluator::new(self, gpu, batch, precision)?))
    }

    /// How exactly the network is computed on a GPU, which may be more exact than what was asked for.
    pub(in crate::net) fn cuda_precision(&self, gpu: &Gpu, asked: Precision) -> Precision {
        match &self.network {
            _ if asked == Precision::Float32 => Precision::Float32,
            AnyNetwork::Lec(_) => Precision::Tf32,
            AnyNetwork::Hollow(network) if network.uses_tensor_cores(self.q, gpu) => {
                Precision::Bf16
            }
            AnyNetwork::Glass(network) if network.uses_tensor_cores(gpu) => Precision::Bf16,
            _ => Precision::Float32,
        }
    }

    /// Bytes that the network takes on a GPU: beside its slots, and for every slot, with what it takes when it is made ready.
    pub(crate) fn cuda_bytes(
        &self,
        gpu: &Arc<Gpu>,
        precision: Precision,
        make_ready: impl Fn(&mut dyn CudaNetwork) -> Result<()>,
    ) -> Result<(usize, usize)> {
        let bytes = |slots| counted(|| make_ready(&mut *self.on_gpu(gpu, slots, precision)?));
        // Beyond some hundred slots nothing grows but what slots need.
        let (few, many) = (bytes(1024)?, bytes(2048)?);
        let each = (many - few).div_ceil(1024);
        Ok((few.saturating_sub(1024 * each), each))
    }

    /// Compile the network's kernels, where there is a compiler.
    #[cfg(test)]
    pub(crate) fn compiles(&self) {
        match &self.network {
            AnyNetwork::Mlp(network) => network.compiles(),
            AnyNetwork::Lea(network) => network.compiles(),
            AnyNetwork::Lec(network) => network.compiles(),
            AnyNetwork::HollowGraph(network) => network.compiles(),
            AnyNetwork::Hollow(_) | AnyNetwork::Glass(_) => {}
        }
    }
}
