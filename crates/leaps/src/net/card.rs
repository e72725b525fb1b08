//! Say what every network can do on a card.

use cudarc::driver::{CudaFunction, CudaSlice, CudaViewMut};

use super::features::{FEATURES, features};
use crate::Result;
use crate::device::cuda::{Card, launch};

/// Configurations on a card. Lane `l` holds the state in row `rows[l]` at moment `moments[l]`.
pub(crate) struct CardBatch<'a> {
    /// Number of lanes.
    pub(crate) lanes: usize,
    /// States, `[row * sites + site]`.
    pub(crate) states: &'a CudaSlice<u8>,
    /// Row of every lane.
    pub(crate) rows: &'a CudaSlice<u32>,
    /// Moment of every lane.
    pub(crate) moments: &'a CudaSlice<u32>,
    /// What networks read of the moments, see [`moment`]: `[moment * MOMENT]`.
    pub(crate) table: &'a CudaSlice<f32>,
}

/// Numbers per moment: the time, and its features.
pub(crate) const MOMENT: usize = 1 + FEATURES;

/// What networks read of a time.
pub(crate) fn moment(t: f64) -> [f32; MOMENT] {
    let mut out = [t as f32; MOMENT];
    for (out, feature) in out[1..].iter_mut().zip(features(t)) {
        *out = feature as f32;
    }
    out
}

/// A network on a card, with space for batches up to some number of lanes.
///
/// What it computes for a lane does not depend, bit by bit, on the other lanes or on the place in the batch.
pub(crate) trait CardNetwork {
    /// Take over parameters, in the order of `Network::tensors`; they lie at the start of `parameters`.
    fn refresh(&mut self, parameters: &CudaSlice<f32>) -> Result<()>;

    /// Write `out[(lane * sites + site) * outputs + s]`.
    fn forward(&mut self, batch: &CardBatch<'_>, out: &mut CudaSlice<f32>) -> Result<()>;

    /// [`forward`](Self::forward), keeping what [`backward`](Self::backward) needs.
    fn forward_kept(&mut self, batch: &CardBatch<'_>, out: &mut CudaSlice<f32>) -> Result<()>;

    /// After [`forward_kept`](Self::forward_kept) on the same batch: write the gradient of `sum d_out * out`, in the order of
    /// the parameters.
    fn backward(
        &mut self,
        batch: &CardBatch<'_>,
        d_out: &CudaSlice<f32>,
        gradient: &mut CudaViewMut<'_, f32>,
    ) -> Result<()>;
}

impl<T: CardNetwork + ?Sized> CardNetwork for &mut T {
    fn refresh(&mut self, parameters: &CudaSlice<f32>) -> Result<()> {
        (**self).refresh(parameters)
    }

    fn forward(&mut self, batch: &CardBatch<'_>, out: &mut CudaSlice<f32>) -> Result<()> {
        (**self).forward(batch, out)
    }

    fn forward_kept(&mut self, batch: &CardBatch<'_>, out: &mut CudaSlice<f32>) -> Result<()> {
        (**self).forward_kept(batch, out)
    }

    fn backward(
        &mut self,
        batch: &CardBatch<'_>,
        d_out: &CudaSlice<f32>,
        gradient: &mut CudaViewMut<'_, f32>,
    ) -> Result<()> {
        (**self).backward(batch, d_out, gradient)
    }
}

/// Numbers in another order: `out[i] = +-from[index]`, or 0.
pub(crate) struct Order {
    table: CudaSlice<u32>,
    len: usize,
}

/// An entry of an [`Order`]: where a number comes from, and whether its sign turns.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Entry {
    Zero,
    Plus(usize),
    Minus(usize),
}

/// Source of [`Order::apply`]'s kernels.
pub(crate) const ORDER: &str = include_str!("order.cu");

impl Order {
    pub(crate) fn new(card: &Card, entries: &[Entry]) -> Result<Self> {
        let table: Vec<u32> = entries
            .iter()
            .map(|entry| match *entry {
                Entry::Zero => u32::MAX,
                Entry::Plus(index) => index as u32,
                Entry::Minus(index) => index as u32 | 1 << 31,
            })
            .collect();
        Ok(Order { table: card.upload(&table)?, len: entries.len() })
    }

    /// Write `out` with the kernel `reorder` of [`ORDER`].
    pub(crate) fn apply(
        &self,
        card: &Card,
        kernel: &CudaFunction,
        from: &CudaSlice<f32>,
        out: &mut CudaSlice<f32>,
    ) -> Result<()> {
        let (n, grid) = (self.len as u32, (self.len.div_ceil(256) as u32, 1, 1));
        launch!(card, kernel, (grid, 256, 0), from, &self.table, out, &n)
    }

    /// The same, rounded to bfloat16, with the kernel `reorder_bf16`.
    pub(crate) fn apply_bf16(
        &self,
        card: &Card,
        kernel: &CudaFunction,
        from: &CudaSlice<f32>,
        out: &mut CudaSlice<u16>,
    ) -> Result<()> {
        let (n, grid) = (self.len as u32, (self.len.div_ceil(256) as u32, 1, 1));
        launch!(card, kernel, (grid, 256, 0), from, &self.table, out, &n)
    }
}
