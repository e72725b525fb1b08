//! Parts that networks on a GPU share: permuted weights, sums over rows, time embeddings.

use cudarc::driver::{CudaFunction, CudaSlice, CudaViewMut};

use super::{Base, CudaBatch};
use crate::Result;
use crate::device::cuda::arguments::{Input, Output, arguments, join};
use crate::device::cuda::{Gpu, Kernels, launch};
use crate::net::dense::{TIME_UNITS, TimeEmbedding};

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

/// Blocks that share the slots of a batch to sum gradients: a fixed number, so that all GPUs compute the same sums.
pub(crate) const BLOCKS: usize = 256;

/// Source of [`SumRows`].
pub(crate) const SUMS: &str = include_str!("sums.cu");

/// Source of [`CudaTime`] and [`SumRows`].
pub(crate) const DENSE: &str = join!(SUMS, TimeGradient::SOURCE, include_str!("dense.cu"));

arguments! {
    /// Of the gradient of the parameters of a time embedding.
    struct TimeGradient {
        /// `[slot]`.
        time_indices: Input<u32>,
        /// `[time index * TIME_FEATURES]`.
        table: Input<f32>,
        /// `[slot * 2 * TIME_UNITS]`: hidden units before and after their activation.
        saved: Input<f32>,
        /// `[slot * outputs]`.
        d_times: Input<f32>,
        /// `[slot * TIME_UNITS]`.
        d_hidden: Input<f32>,
        gradient: Output<f32>,
        /// Where that of these parameters starts.
        offset: u32,
        slots: u32,
        outputs: u32,
    }
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

/// What the kernels of `dense.cu`, and others that read so many features of times, are compiled with.
pub(crate) const fn time_defines(features: usize) -> [(&'static str, usize); 3] {
    [("TIME_FEATURES", 1 + features), ("FEATURES", features), ("TIME_UNITS", TIME_UNITS)]
}

/// A [`TimeEmbedding`] for every slot of a batch, with the kernels of `dense.cu`.
pub(crate) struct CudaTime {
    forward: CudaFunction,
    back: CudaFunction,
    sum: CudaFunction,
    embedding: TimeEmbedding,
    /// Where its parameters are among all.
    offset: usize,
    saved: CudaSlice<f32>,
    d_hidden: CudaSlice<f32>,
    /// Outputs and their gradients, `[slot][output]`.
    pub(crate) times: CudaSlice<f32>,
    pub(crate) d_times: CudaSlice<f32>,
}

impl CudaTime {
    pub(crate) fn new(
        gpu: &Gpu,
        kernels: &Kernels,
        time: TimeEmbedding,
        slots: usize,
        offset: usize,
    ) -> Result<Self> {
        Ok(CudaTime {
            forward: kernels.get("embed_time", 0)?,
            back: kernels.get("embed_time_back", 0)?,
            sum: kernels.get("embed_time_sum", 0)?,
            embedding: time,
            offset,
            saved: gpu.zeros(slots * 2 * TIME_UNITS)?,
            d_hidden: gpu.zeros(slots * TIME_UNITS)?,
            times: gpu.zeros(slots * time.outputs)?,
            d_times: gpu.zeros(slots * time.outputs)?,
        })
    }

    /// Write `times`.
    pub(crate) fn forward(&mut self, base: &Base, batch: &CudaBatch<'_>) -> Result<()> {
        let (p, grid) = (base.parameters.slice(self.offset..), (batch.slots as u32, 1, 1));
        let (saved, times, outputs) =
            (&mut self.saved, &mut self.times, self.embedding.outputs as u32);
        launch!(
            base.gpu,
            self.forward,
            (grid, 64, 0),
            &p,
            batch.time_indices,
            batch.table,
            saved,
            times,
            &outputs
        )
    }

    /// Write the gradient of its parameters, given `d_times`.
    pub(crate) fn backward(
        &mut self,
        base: &Base,
        batch: &CudaBatch<'_>,
        gradient: &mut CudaViewMut<'_, f32>,
    ) -> Result<()> {
        let (gpu, n) = (&base.gpu, batch.slots as u32);
        let p = base.parameters.slice(self.offset..);
        let (saved, d_times, d_hidden) = (&self.saved, &self.d_times, &mut self.d_hidden);
        let outputs = self.embedding.outputs as u32;
        let grid = (self.embedding.parameters().div_ceil(128) as u32, 1, 1);
        launch!(
            gpu,
            self.back,
            ((n, 1, 1), TIME_UNITS, 0),
            &p,
            saved,
            d_times,
            d_hidden,
            &outputs
        )?;
        let pass = TimeGradient {
            time_indices: Input::of(gpu, batch.time_indices),
            table: Input::of(gpu, batch.table),
            saved: Input::of(gpu, &self.saved),
            d_times: Input::of(gpu, &self.d_times),
            d_hidden: Input::of(gpu, &self.d_hidden),
            gradient: Output::of(gpu, &*gradient),
            offset: self.offset as u32,
            slots: n,
            outputs,
        };
        launch!(gpu, self.sum, (grid, 128, 0), &pass)
    }
}

/// A structure of kernels by name: `functions!(Functions, "prefix_"; name, ...)` has a field for every kernel
/// `prefix_name`, and a constructor that asks how much dynamic shared memory each of them may have.
macro_rules! functions {
    ($structure:ident, $prefix:literal; $($name:ident),* $(,)?) => {
        /// The kernels.
        struct $structure { $($name: cudarc::driver::CudaFunction,)* }

        impl $structure {
            fn new(
                kernels: &$crate::device::cuda::Kernels,
                shared: impl Fn(&str) -> usize,
            ) -> $crate::Result<Self> {
                Ok($structure {
                    $($name: kernels.get(concat!($prefix, stringify!($name)), shared(stringify!($name)))?,)*
                })
            }
        }
    };
}
pub(crate) use functions;
