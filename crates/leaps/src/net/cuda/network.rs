//! What every network can do on a GPU.

use cudarc::driver::{CudaFunction, CudaSlice, CudaViewMut};

use crate::device::cuda::{Gpu, Kernels, launch};
use crate::net::dense::TimeEmbedding;
use crate::net::features::{FEATURES, features};
use crate::{Error, Result};

/// Configurations on a GPU. Lane `l` holds the state in row `rows[l]` at moment `moments[l]`.
pub(crate) struct CudaBatch<'a> {
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

/// Numbers per time: itself and its features.
pub(crate) const MOMENT: usize = 1 + FEATURES;

/// What networks read of a time.
pub(crate) fn moment(t: f64) -> [f32; MOMENT] {
    let mut out = [t as f32; MOMENT];
    for (out, feature) in out[1..].iter_mut().zip(features(t)) {
        *out = feature as f32;
    }
    out
}

/// A network on a GPU, with space for batches up to some number of lanes.
///
/// What it computes for a lane does not depend, bit by bit, on the other lanes or on the place in the batch.
pub(crate) trait CudaNetwork: Send {
    /// Take over parameters, in the order of `Network::tensors`; they lie at the start of `parameters`.
    fn refresh(&mut self, parameters: &CudaSlice<f32>) -> Result<()>;

    /// Take the memory that backward passes need, as far as it grows with the lanes; else they take it themselves.
    fn reserve(&mut self) -> Result<()> {
        Ok(())
    }

    /// Write `out[(lane * sites + site) * outputs + s]`.
    fn forward(&mut self, batch: &CudaBatch<'_>, out: &mut CudaSlice<f32>) -> Result<()>;

    /// [`forward`](Self::forward), keeping what [`backward`](Self::backward) needs.
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

/// Numbers in another order: `out[i] = +-from[index]`, or 0.
pub(crate) struct Permutation {
    table: CudaSlice<u32>,
    len: usize,
}

/// An entry of an [`Permutation`]: where a number comes from, and whether its sign turns.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Entry {
    Zero,
    Plus(usize),
    Minus(usize),
}

/// Source of [`Permutation::apply`]'s kernels.
pub(crate) const ORDER: &str = include_str!("order.cu");

impl Permutation {
    pub(crate) fn new(gpu: &Gpu, entries: &[Entry]) -> Result<Self> {
        let table: Vec<u32> = entries
            .iter()
            .map(|entry| match *entry {
                Entry::Zero => u32::MAX,
                Entry::Plus(index) => index as u32,
                Entry::Minus(index) => index as u32 | 1 << 31,
            })
            .collect();
        Ok(Permutation { table: gpu.upload(&table)?, len: entries.len() })
    }

    /// Write `out` with one of the kernels of [`ORDER`]: `reorder`, or `reorder_bf16`, which rounds.
    pub(crate) fn apply<T>(
        &self,
        gpu: &Gpu,
        kernel: &CudaFunction,
        from: &CudaSlice<f32>,
        out: &mut CudaSlice<T>,
    ) -> Result<()> {
        if self.len == 0 {
            return Ok(());
        }
        let (n, grid) = (self.len as u32, (self.len.div_ceil(256) as u32, 1, 1));
        launch!(gpu, kernel, (grid, 256, 0), from, &self.table, out, &n)
    }
}

/// Blocks that share the lanes of a batch to sum gradients: a fixed number, so that all GPUs compute the same sums.
pub(crate) const BLOCKS: usize = 256;

/// Refuse a batch that a network has no space for.
pub(crate) fn check_lanes(lanes: usize, most: usize) -> Result<()> {
    if lanes <= most {
        return Ok(());
    }
    Err(Error::invalid(
        "lanes",
        lanes,
        format!("at most {most}"),
        "ask for a larger network on the GPU",
    ))
}

/// Sums over rows, with the kernel of `sums.cu`.
pub(crate) struct SumRows(CudaFunction);

impl SumRows {
    pub(crate) fn new(kernels: &Kernels) -> Result<Self> {
        Ok(SumRows(kernels.get("sum_rows", 0)?))
    }

    /// Write `out[offset + k]`, the sum of `from[row * n + k]`.
    pub(crate) fn sum(
        &self,
        gpu: &Gpu,
        from: &CudaSlice<f32>,
        out: &mut CudaViewMut<'_, f32>,
        offset: usize,
        n: usize,
        rows: usize,
    ) -> Result<()> {
        let grid = ((n * 32).div_ceil(256).max(1) as u32, 1, 1);
        let (offset, n, rows) = (offset as u32, n as u32, rows as u32);
        launch!(gpu, self.0, (grid, 256, 0), from, out, &offset, &n, &rows)
    }
}

/// A [`TimeEmbedding`] for every lane of a batch, with the kernels of `dense.cu`.
pub(crate) struct CudaTime {
    forward: CudaFunction,
    back: CudaFunction,
    sum: CudaFunction,
    embedding: TimeEmbedding,
    /// Where its parameters are among all.
    offset: usize,
    kept: CudaSlice<f32>,
    d_hidden: CudaSlice<f32>,
    /// Outputs and their gradients, `[lane][output]`.
    pub(crate) times: CudaSlice<f32>,
    pub(crate) d_times: CudaSlice<f32>,
}

impl CudaTime {
    pub(crate) fn new(
        gpu: &Gpu,
        kernels: &Kernels,
        time: TimeEmbedding,
        lanes: usize,
        offset: usize,
    ) -> Result<Self> {
        Ok(CudaTime {
            forward: kernels.get("embed_time", 0)?,
            back: kernels.get("embed_time_back", 0)?,
            sum: kernels.get("embed_time_sum", 0)?,
            embedding: time,
            offset,
            kept: gpu.zeros(lanes * 2 * 32)?,
            d_hidden: gpu.zeros(lanes * 32)?,
            times: gpu.zeros(lanes * time.outputs)?,
            d_times: gpu.zeros(lanes * time.outputs)?,
        })
    }

    /// Write `times`.
    pub(crate) fn forward(
        &mut self,
        gpu: &Gpu,
        parameters: &CudaSlice<f32>,
        batch: &CudaBatch<'_>,
    ) -> Result<()> {
        let (p, grid) = (parameters.slice(self.offset..), (batch.lanes as u32, 1, 1));
        let (kept, times, outputs) =
            (&mut self.kept, &mut self.times, self.embedding.outputs as u32);
        launch!(
            gpu,
            self.forward,
            (grid, 64, 0),
            &p,
            batch.moments,
            batch.table,
            kept,
            times,
            &outputs
        )
    }

    /// Write the gradient of its parameters, given `d_times`.
    pub(crate) fn backward(
        &mut self,
        gpu: &Gpu,
        parameters: &CudaSlice<f32>,
        batch: &CudaBatch<'_>,
        gradient: &mut CudaViewMut<'_, f32>,
    ) -> Result<()> {
        let (p, n) = (parameters.slice(self.offset..), batch.lanes as u32);
        let (kept, d_times, d_hidden) = (&self.kept, &self.d_times, &mut self.d_hidden);
        let (offset, outputs) = (self.offset as u32, self.embedding.outputs as u32);
        let grid = (self.embedding.parameters().div_ceil(128) as u32, 1, 1);
        launch!(gpu, self.back, ((n, 1, 1), 32, 0), &p, kept, d_times, &mut *d_hidden, &outputs)?;
        let (moments, table, d_hidden) = (batch.moments, batch.table, &self.d_hidden);
        launch!(
            gpu,
            self.sum,
            (grid, 128, 0),
            moments,
            table,
            kept,
            d_times,
            d_hidden,
            gradient,
            &offset,
            &n,
            &outputs
        )
    }
}
