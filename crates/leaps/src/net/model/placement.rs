//! Where a network is computed and how exactly.

#[cfg(feature = "cuda")]
use std::sync::Arc;

#[cfg(feature = "cuda")]
use super::AnyNetwork;
use super::Net;
#[cfg(feature = "cuda")]
use crate::Result;
#[cfg(feature = "cuda")]
use crate::device::cuda::{Gpu, memory::counted};
use crate::device::{Placement, Precision};
#[cfg(feature = "cuda")]
use crate::net::cuda::CudaNetwork;

impl Net {
    /// The network on a GPU, for batches of up to `lanes`.
    #[cfg(feature = "cuda")]
    pub(crate) fn on_gpu(
        &self,
        gpu: &Arc<Gpu>,
        lanes: usize,
        precision: Precision,
    ) -> Result<Box<dyn CudaNetwork>> {
        if self.conditions > 0 {
            return Err(crate::path::Ranges::no_gpu());
        }
        match &self.network {
            AnyNetwork::Mlp(network) => network.on_gpu(gpu, lanes, precision),
            AnyNetwork::Lea(network) => network.on_gpu(gpu, lanes, precision),
            AnyNetwork::Lec(network) => network.on_gpu(gpu, lanes, precision),
            AnyNetwork::Hollow(network) => network.on_gpu(self.q, gpu, lanes, precision),
            AnyNetwork::HollowGraph(network) => network.on_gpu(gpu, lanes, precision),
        }
    }

    /// Where the network is computed, in words: the CPU, or a GPU and how exactly the network is computed there.
    pub fn computed_on(&self, placement: &Placement) -> String {
        match self.precision_on(placement) {
            Some(precision) => format!("{}, {}", placement.machine(), precision.name()),
            None => placement.machine().to_owned(),
        }
    }

    /// How exactly the network is computed on a GPU, which may be more exact than what was asked for.
    pub fn precision_on(&self, placement: &Placement) -> Option<Precision> {
        match placement {
            Placement::Cpu => None,
            #[cfg(feature = "cuda")]
            Placement::Cuda(_, Precision::Float32) => Some(Precision::Float32),
            #[cfg(not(feature = "cuda"))]
            Placement::Cuda(gpu, _) => match **gpu {},
            #[cfg(feature = "cuda")]
            Placement::Cuda(gpu, _) => Some(match &self.network {
                AnyNetwork::Lec(_) => Precision::Tf32,
                AnyNetwork::Hollow(network) if network.uses_tensor_cores(self.q, gpu) => {
                    Precision::Bf16
                }
                _ => Precision::Float32,
            }),
        }
    }

    /// Bytes that the network takes on a GPU: beside its lanes, and for every lane. With `backward`, for training.
    #[cfg(feature = "cuda")]
    pub(crate) fn cuda_bytes(
        &self,
        gpu: &Arc<Gpu>,
        precision: Precision,
        backward: bool,
    ) -> Result<(usize, usize)> {
        let bytes = |lanes| {
            counted(|| {
                let mut network = self.on_gpu(gpu, lanes, precision)?;
                if backward { network.reserve() } else { Ok(()) }
            })
        };
        // Beyond some hundred lanes nothing grows but what lanes need.
        let (few, many) = (bytes(1024)?, bytes(2048)?);
        let each = (many - few).div_ceil(1024);
        Ok((few.saturating_sub(1024 * each), each))
    }

    /// Compile the network's kernels, where there is a compiler.
    #[cfg(all(test, feature = "cuda"))]
    pub(crate) fn compiles(&self) {
        match &self.network {
            AnyNetwork::Mlp(network) => network.compiles(),
            AnyNetwork::Lea(network) => network.compiles(),
            AnyNetwork::Lec(network) => network.compiles(),
            AnyNetwork::HollowGraph(network) => network.compiles(),
            AnyNetwork::Hollow(_) => {}
        }
    }
}
