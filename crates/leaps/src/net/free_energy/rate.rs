//! `dF/dt` by a multilayer perceptron.

use crate::device::vector::Vector;
use crate::net::dense::TimeEmbedding;
use crate::net::layout::Tensor;

/// `dF/dt = sites * f(t)`, so that `f` is of order 1 whatever the lattice.
#[derive(Clone, Debug)]
pub(super) struct Rate {
    sites: usize,
    embedding: TimeEmbedding,
}

impl Rate {
    pub(super) fn new(sites: usize) -> Self {
        Rate { sites, embedding: TimeEmbedding::new(1) }
    }

    /// The same as a function of so many numbers beside the time.
    pub(super) fn conditioned_on(self, conditions: usize) -> Self {
        Rate { embedding: self.embedding.conditioned_on(conditions), ..self }
    }

    pub(super) fn tensors(&self) -> Vec<Tensor> {
        self.embedding.tensors("free_energy", 0.1)
    }

    pub(super) fn scratch(&self) -> usize {
        self.embedding.scratch()
    }

    #[inline(always)]
    pub(super) unsafe fn forward<V: Vector>(
        &self,
        p: &[V::Scalar],
        features: &[V],
        scratch: &mut [V],
    ) -> V {
        // SAFETY: the caller has the instructions of the vector.
        unsafe {
            let mut out = [V::zero()];
            self.embedding.forward(p, features, scratch, &mut out);
            out[0].mul(V::constant(self.sites as f64))
        }
    }

    #[inline(always)]
    pub(super) unsafe fn backward<V: Vector>(
        &self,
        p: &[V::Scalar],
        features: &[V],
        scratch: &mut [V],
        d: V,
        grad: &mut [V::Scalar],
    ) {
        // SAFETY: the caller has the instructions of the vector.
        unsafe {
            let d = [d.mul(V::constant(self.sites as f64))];
            self.embedding.backward(p, features, scratch, &d, grad);
        }
    }
}
