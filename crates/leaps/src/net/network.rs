//! The interface of networks on the CPU.

use super::layout::{Tensor, total};
use crate::device::vector::{Real, Vector};

/// Sixteen configurations and their times.
pub(crate) struct Group<'a, V> {
    /// The configurations: `[site * inputs + c]`. Two values: one input, the spin -1 or +1. More: one input
    /// per value, 1 for the value in place and 0 for the others.
    pub(crate) x: &'a [V],
    /// The times.
    pub(crate) t: V,
    /// Features of the times, and of what the network is conditioned on beside them: [`conditioned_features`](super::features::conditioned_features).
    pub(crate) features: &'a [V],
}

/// A hollow network: outputs at a site do not depend on the value there.
///
/// Parameters are a flat slice in the order of [`tensors`](Network::tensors). A network may keep them in
/// another order for speed ([`pack`](Network::pack)); the passes see packed parameters only.
///
/// # Safety
/// The passes may only be called where the vector's instructions exist. Everything they call must be
/// `#[inline(always)]`, so that it is compiled for those instructions; no closures in `map`, no trait objects.
pub(crate) trait Network: Send + Sync {
    /// The parameters.
    fn tensors(&self) -> Vec<Tensor>;

    /// Number of packed parameters.
    fn packed(&self) -> usize {
        total(&self.tensors())
    }

    /// Write the packed parameters.
    fn pack<S: Real>(&self, parameters: &[S], out: &mut [S]) {
        out.copy_from_slice(parameters);
    }

    /// Add the gradient with respect to packed parameters to the one with respect to parameters: the
    /// transpose of [`pack`](Network::pack), which must be linear.
    fn unpack<S: Real>(&self, packed: &[S], out: &mut [S]) {
        for (out, &value) in out.iter_mut().zip(packed) {
            *out += value;
        }
    }

    /// Vectors of scratch space that a forward pass followed by a backward pass needs. The backward
    /// pass finds it as the forward pass left it.
    fn scratch(&self) -> usize;

    /// Vectors of scratch space that [`infer`](Network::infer) needs.
    fn infer_scratch(&self) -> usize {
        self.scratch()
    }

    /// Write what [`forward`](Network::forward) writes, to the bit, but keep nothing for a backward pass.
    #[inline(always)]
    unsafe fn infer<V: Vector>(
        &self,
        packed: &[V::Scalar],
        group: &Group<'_, V>,
        scratch: &mut [V],
        out: &mut [V],
    ) {
        // SAFETY: the caller has the instructions of the vector.
        unsafe { self.forward(packed, group, scratch, out) }
    }

    /// Write `out[site * outputs + s]`.
    unsafe fn forward<V: Vector>(
        &self,
        packed: &[V::Scalar],
        group: &Group<'_, V>,
        scratch: &mut [V],
        out: &mut [V],
    );

    /// After [`forward`](Network::forward): add the gradient of `sum d_out * out`, over all lanes, to `grad`
    /// (packed).
    unsafe fn backward<V: Vector>(
        &self,
        packed: &[V::Scalar],
        group: &Group<'_, V>,
        scratch: &mut [V],
        d_out: &[V],
        grad: &mut [V::Scalar],
    );
}
