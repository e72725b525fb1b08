//! Give `dF/dt` directly.

use crate::device::vector::Vector;
use crate::net::dense::TimeEmbedding;
use crate::net::features::FEATURES;
use crate::net::layout::Tensor;

const EMBEDDING: TimeEmbedding = TimeEmbedding { outputs: 1 };

/// `dF/dt = sites * f(t)`, so that `f` is of order 1 whatever the lattice.
#[derive(Clone, Debug)]
pub(super) struct Rate {
    sites: usize,
}

impl Rate {
    pub(super) fn new(sites: usize) -> Self {
        Rate { sites }
    }

    pub(super) fn tensors(&self) -> Vec<Tensor> {
        EMBEDDING.tensors("free_energy", 0.1)
    }

    pub(super) fn scratch(&self) -> usize {
        EMBEDDING.scratch()
    }

    #[inline(always)]
    pub(super) unsafe fn forward<V: Vector>(
        &self,
        p: &[V::Scalar],
        features: &[V; FEATURES],
        scratch: &mut [V],
    ) -> V {
        unsafe {
            let mut out = [V::zero()];
            EMBEDDING.forward(p, features, scratch, &mut out);
            out[0].mul(V::constant(self.sites as f64))
        }
    }

    #[inline(always)]
    pub(super) unsafe fn backward<V: Vector>(
        &self,
        p: &[V::Scalar],
        features: &[V; FEATURES],
        scratch: &mut [V],
        d: V,
        grad: &mut [V::Scalar],
    ) {
        unsafe {
            let d = [d.mul(V::constant(self.sites as f64))];
            EMBEDDING.backward(p, features, scratch, &d, grad);
        }
    }
}
