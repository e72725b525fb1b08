//! Say where the arithmetic of networks and walkers is done.

#[cfg(feature = "cuda")]
use std::sync::Arc;

use super::Precision;
#[cfg(feature = "cuda")]
use super::cuda::Card;
use crate::Result;

/// The processor, or one card.
#[derive(Clone, Default)]
pub enum Engine {
    /// All cores of the processor.
    #[default]
    Cpu,
    /// An NVIDIA card, computing networks with some precision.
    #[cfg(feature = "cuda")]
    Cuda(Arc<Card>, Precision),
}

impl Engine {
    /// The first card of this machine, with a compiler for its kernels.
    pub fn cuda(precision: Precision) -> Result<Self> {
        #[cfg(feature = "cuda")]
        return Ok(Engine::Cuda(Card::ready(0)?, precision));
        #[cfg(not(feature = "cuda"))]
        {
            let _ = precision;
            Err(crate::Error::device(
                "CUDA",
                "this program was built without the feature cuda",
                "use --engine cpu",
            ))
        }
    }

    /// Its short name: `cpu` or `cuda`.
    pub fn name(&self) -> &'static str {
        match self {
            Engine::Cpu => "cpu",
            #[cfg(feature = "cuda")]
            Engine::Cuda(..) => "cuda",
        }
    }

    /// Which machine it is.
    pub fn machine(&self) -> &str {
        match self {
            Engine::Cpu => "the processor",
            #[cfg(feature = "cuda")]
            Engine::Cuda(card, _) => card.name(),
        }
    }
}
