//! The interface of networks on a GPU, and what all of them do alike.

use std::sync::Arc;

use cudarc::driver::{CudaSlice, CudaViewMut};

use crate::device::cuda::{Gpu, Kernels, failed};
use crate::net::layout::total;
use crate::net::network::Network;
use crate::net::time_features::{conditioned_features, features_with};
use crate::{Error, Result};

/// Couplings of instances on a GPU, for networks that are [shown](crate::net::Net::couplings) them: `[instance * couplings + c]`, else empty. The instance
/// of the state in row `r` is `r / rows`.
#[derive(Clone, Copy)]
pub(crate) struct Couplings<'a> {
    pub(crate) numbers: &'a CudaSlice<f32>,
    pub(crate) rows: u32,
}

impl<'a> Couplings<'a> {
    /// All states are of the one instance with these couplings.
    pub(crate) fn of_one(numbers: &'a CudaSlice<f32>) -> Self {
        Couplings { numbers, rows: u32::MAX }
    }
}

/// Configurations on a GPU. Slot `k` holds the state in row `rows[k]` at the time of index `time_indices[k]`.
pub(crate) struct CudaBatch<'a> {
    /// Number of slots.
    pub(crate) slots: usize,
    /// States, `[row * sites + site]`.
    pub(crate) states: &'a CudaSlice<u8>,
    /// Row of every slot.
    pub(crate) rows: &'a CudaSlice<u32>,
    /// Time index of every slot.
    pub(crate) time_indices: &'a CudaSlice<u32>,
    /// What networks read of the times, see [`time_features`]: `[time index * time_width]`.
    pub(crate) table: &'a CudaSlice<f32>,
    /// Couplings of the states.
    pub(crate) couplings: Couplings<'a>,
}

/// Numbers per time of a network that is conditioned on so many numbers beside it: the time and all features.
pub(crate) const fn time_width(conditions: usize) -> usize {
    1 + features_with(conditions)
}

/// What networks read of a time and of what they are conditioned on beside it: [`time_width`] numbers.
pub(crate) fn time_features(t: f64, condition: &[f64]) -> impl Iterator<Item = f32> {
    std::iter::once(t).chain(conditioned_features(t, condition)).map(|feature| feature as f32)
}

/// What stands for a slot in place of the site that has changed: everything has, or nobody waits for its outputs.
pub(crate) const WHOLE: u32 = u32::MAX;
pub(crate) const IDLE: u32 = u32::MAX - 1;

/// The same for kernels.
pub(crate) const MARKS: [(&str, usize); 2] = [("WHOLE", WHOLE as usize), ("IDLE", IDLE as usize)];

/// When a network keeps activations, so that after a change at one site it computes only what sees that site.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Keep {
    WhereItPays,
    /// Wherever it can.
    #[cfg(test)]
    Always,
}

/// A network on a GPU, with space for batches up to some number of slots.
///
/// What it computes for a slot does not depend, bit by bit, on the other slots or on the place in the batch.
pub(crate) trait CudaNetwork: Send {
    /// Take over parameters, in the order of `Network::tensors`; they lie at the start of `parameters`.
    fn refresh(&mut self, parameters: &CudaSlice<f32>) -> Result<()>;

    /// Take the memory that backward passes need; else the first training pass takes it.
    fn reserve(&mut self) -> Result<()> {
        Ok(())
    }

    /// Write `out[(slot * sites + site) * outputs + s]`.
    fn forward(&mut self, batch: &CudaBatch<'_>, out: &mut CudaSlice<f32>) -> Result<()>;

    /// Take the memory that [`forward_changed`](Self::forward_changed) needs to keep activations, and say whether it will.
    fn keep(&mut self, _keep: Keep) -> Result<bool> {
        Ok(false)
    }

    /// [`forward`](Self::forward), the same to the bit, after the states of the slots have changed since the last such pass at the sites `changed`, each at
    /// most at one. The times of these slots have the same features as then. Slots marked [`WHOLE`] were other ones, the outputs of [`IDLE`] ones are undefined.
    fn forward_changed(
        &mut self,
        batch: &CudaBatch<'_>,
        _changed: &CudaSlice<u32>,
        out: &mut CudaSlice<f32>,
    ) -> Result<()> {
        self.forward(batch, out)
    }

    /// [`forward`](Self::forward), saving the activations that [`backward`](Self::backward) needs.
    fn forward_train(&mut self, batch: &CudaBatch<'_>, out: &mut CudaSlice<f32>) -> Result<()>;

    /// After [`forward_train`](Self::forward_train) on the same batch: write the gradient of `sum d_out * out`, in the order of
    /// the parameters.
    fn backward(
        &mut self,
        batch: &CudaBatch<'_>,
        d_out: &CudaSlice<f32>,
        gradient: &mut CudaViewMut<'_, f32>,
    ) -> Result<()>;
}

impl<T: CudaNetwork + ?Sized> CudaNetwork for &mut T {
    fn refresh(&mut self, parameters: &CudaSlice<f32>) -> Result<()> {
        (**self).refresh(parameters)
    }

    fn reserve(&mut self) -> Result<()> {
        (**self).reserve()
    }

    fn forward(&mut self, batch: &CudaBatch<'_>, out: &mut CudaSlice<f32>) -> Result<()> {
        (**self).forward(batch, out)
    }

    fn keep(&mut self, keep: Keep) -> Result<bool> {
        (**self).keep(keep)
    }

    fn forward_changed(
        &mut self,
        batch: &CudaBatch<'_>,
        changed: &CudaSlice<u32>,
        out: &mut CudaSlice<f32>,
    ) -> Result<()> {
        (**self).forward_changed(batch, changed, out)
    }

    fn forward_train(&mut self, batch: &CudaBatch<'_>, out: &mut CudaSlice<f32>) -> Result<()> {
        (**self).forward_train(batch, out)
    }

    fn backward(
        &mut self,
        batch: &CudaBatch<'_>,
        d_out: &CudaSlice<f32>,
        gradient: &mut CudaViewMut<'_, f32>,
    ) -> Result<()> {
        (**self).backward(batch, d_out, gradient)
    }
}

/// What every network has on a GPU.
pub(crate) struct Base {
    pub(crate) gpu: Arc<Gpu>,
    /// Most slots of a batch.
    pub(crate) slots: usize,
    pub(crate) parameters: CudaSlice<f32>,
}

/// The passes of one kind of network, of which [`on_gpu`] makes a [`CudaNetwork`].
pub(crate) trait CudaPasses: Send {
    /// Saved activations, and whatever else a backward pass writes to.
    type Saved: Send;

    /// Bring other forms of the parameters up to date with them.
    fn refresh(&mut self, _base: &Base) -> Result<()> {
        Ok(())
    }

    /// Memory for backward passes of full batches.
    fn reserve(&mut self, base: &Base) -> Result<Self::Saved>;

    /// See [`CudaNetwork::forward`]; with `saved`, a backward pass follows. There is at least one slot.
    fn forward(
        &mut self,
        base: &Base,
        batch: &CudaBatch<'_>,
        saved: Option<&mut Self::Saved>,
        out: &mut CudaSlice<f32>,
    ) -> Result<()>;

    /// See [`CudaNetwork::keep`].
    fn keep(&mut self, _base: &Base, _keep: Keep) -> Result<bool> {
        Ok(false)
    }

    /// See [`CudaNetwork::forward_changed`]. There is at least one slot.
    fn forward_changed(
        &mut self,
        base: &Base,
        batch: &CudaBatch<'_>,
        _changed: &CudaSlice<u32>,
        out: &mut CudaSlice<f32>,
    ) -> Result<()> {
        self.forward(base, batch, None, out)
    }

    /// See [`CudaNetwork::backward`].
    fn backward(
        &mut self,
        base: &Base,
        batch: &CudaBatch<'_>,
        saved: &mut Self::Saved,
        d_out: &CudaSlice<f32>,
        gradient: &mut CudaViewMut<'_, f32>,
    ) -> Result<()>;
}

/// A network in float32, all of whose kernels are compiled from one source.
pub(crate) trait Compiled: Network {
    const SOURCE: &'static str;

    /// Numbers that shape the kernels.
    fn defines(&self) -> Vec<(&'static str, usize)>;

    /// Refuse what no GPU can do.
    fn check(&self) -> Result<()> {
        Ok(())
    }

    /// The passes, with memory for batches of up to `slots`.
    fn passes(
        &self,
        gpu: &Gpu,
        kernels: &Kernels,
        slots: usize,
    ) -> Result<impl CudaPasses + 'static>;

    /// The network on a GPU, for batches of up to `slots`.
    fn on_gpu(&self, gpu: &Arc<Gpu>, slots: usize) -> Result<Box<dyn CudaNetwork>>
    where
        Self: Sized,
    {
        self.check()?;
        let kernels = gpu.compile(Self::SOURCE, &self.defines())?;
        on_gpu(gpu, slots, self, self.passes(gpu, &kernels, slots)?)
    }

    /// Compile the kernels, where there is a compiler.
    #[cfg(test)]
    fn compiles(&self) {
        crate::device::cuda::testing::compiles(Self::SOURCE, &self.defines());
    }
}

/// Passes with their parameters and the memory of their backward passes.
struct OnGpu<P: CudaPasses> {
    base: Base,
    passes: P,
    saved: Option<P::Saved>,
}

/// `network` on a GPU, computed by `passes`, with space for batches of `slots`.
pub(crate) fn on_gpu<P: CudaPasses + 'static>(
    gpu: &Arc<Gpu>,
    slots: usize,
    network: &impl Network,
    passes: P,
) -> Result<Box<dyn CudaNetwork>> {
    let parameters = gpu.zeros(total(&network.tensors()))?;
    Ok(Box::new(OnGpu { base: Base { gpu: gpu.clone(), slots, parameters }, passes, saved: None }))
}

impl<P: CudaPasses> OnGpu<P> {
    /// Whether there is anything to do; refuses a batch that there is no space for.
    fn some(&self, batch: &CudaBatch<'_>) -> Result<bool> {
        let (slots, most) = (batch.slots, self.base.slots);
        if slots <= most {
            return Ok(slots > 0);
        }
        let advice = "ask for a larger network on the GPU";
        Err(Error::invalid("slots", slots, format!("at most {most}"), advice))
    }
}

impl<P: CudaPasses> CudaNetwork for OnGpu<P> {
    fn refresh(&mut self, parameters: &CudaSlice<f32>) -> Result<()> {
        let Base { gpu, parameters: own, .. } = &mut self.base;
        let given = parameters.slice(..own.len());
        gpu.stream.memcpy_dtod(&given, own).map_err(failed("memory of the GPU"))?;
        self.passes.refresh(&self.base)
    }

    fn reserve(&mut self) -> Result<()> {
        if self.saved.is_none() {
            self.saved = Some(self.passes.reserve(&self.base)?);
        }
        Ok(())
    }

    fn forward(&mut self, batch: &CudaBatch<'_>, out: &mut CudaSlice<f32>) -> Result<()> {
        match self.some(batch)? {
            true => self.passes.forward(&self.base, batch, None, out),
            false => Ok(()),
        }
    }

    fn keep(&mut self, keep: Keep) -> Result<bool> {
        self.passes.keep(&self.base, keep)
    }

    fn forward_changed(
        &mut self,
        batch: &CudaBatch<'_>,
        changed: &CudaSlice<u32>,
        out: &mut CudaSlice<f32>,
    ) -> Result<()> {
        match self.some(batch)? {
            true => self.passes.forward_changed(&self.base, batch, changed, out),
            false => Ok(()),
        }
    }

    fn forward_train(&mut self, batch: &CudaBatch<'_>, out: &mut CudaSlice<f32>) -> Result<()> {
        self.reserve()?;
        match self.some(batch)? {
            true => self.passes.forward(&self.base, batch, self.saved.as_mut(), out),
            false => Ok(()),
        }
    }

    fn backward(
        &mut self,
        batch: &CudaBatch<'_>,
        d_out: &CudaSlice<f32>,
        gradient: &mut CudaViewMut<'_, f32>,
    ) -> Result<()> {
        let Some(saved) = &mut self.saved else { unreachable!("forward_train comes first") };
        self.passes.backward(&self.base, batch, saved, d_out, gradient)
    }
}
