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
    /// Features of the times, and of what the network is conditioned on beside them: [`conditioned_features`](super::time_features::conditioned_features).
    pub(crate) features: &'a [V],
    /// Couplings of the configurations' instances, as many as [`Network::couplings`].
    pub(crate) couplings: &'a [V],
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

    /// Couplings of an instance that the network is shown beside the values.
    fn couplings(&self) -> usize {
        0
    }

    /// Vectors of scratch space that [`forward_train`](Network::forward_train) followed by [`backward`](Network::backward) needs. The backward
    /// pass finds it as the forward pass left it.
    fn scratch(&self) -> usize;

    /// Vectors of scratch space that [`forward`](Network::forward) needs.
    fn forward_scratch(&self) -> usize {
        self.scratch()
    }

    /// Write `out[site * outputs + s]`.
    #[inline(always)]
    unsafe fn forward<V: Vector>(
        &self,
        packed: &[V::Scalar],
        group: &Group<'_, V>,
        scratch: &mut [V],
        out: &mut [V],
    ) {
        // SAFETY: the caller has the instructions of the vector.
        unsafe { self.forward_train(packed, group, scratch, out) }
    }

    /// [`forward`](Network::forward) to the bit, saving the activations that [`backward`](Network::backward) needs.
    unsafe fn forward_train<V: Vector>(
        &self,
        packed: &[V::Scalar],
        group: &Group<'_, V>,
        scratch: &mut [V],
        out: &mut [V],
    );

    /// After [`forward_train`](Network::forward_train): add the gradient of `sum d_out * out`, over all lanes, to `grad`
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
