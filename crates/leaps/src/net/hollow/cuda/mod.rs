//! The hollow convolution on a GPU: in float32, or with bfloat16 products on tensor cores.
//!
//! Both are the same kernels with the same arguments ([plain.cu](plain.cu), [matrix.cu](matrix.cu)), around which this module
//! lays out tables and memory. On tensor cores channels are padded to a multiple of 8 with zeros.

#![cfg(feature = "cuda")]

mod arguments;
mod back;
mod changes;
mod global_features;
mod sizes;
mod tables;
mod taps;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use cudarc::driver::{CudaSlice, CudaViewMut};

use super::Hollow;
use super::entering::Entering;
use crate::Result;
use crate::device::cuda::arguments::{Input, Output};
use crate::device::cuda::{Gpu, Precision, launch};
use crate::net::cuda::{
    Base, CudaBatch, CudaNetwork, CudaPasses, Entry, Keep, ORDER, Permutation, functions, on_gpu,
};
use crate::net::dense::TIME_UNITS;
use crate::net::glass::cuda::{BONDS, CudaBonds};
pub(in crate::net) use arguments::Word;
use arguments::{Embedding, HeadForward, StackForward};
pub(in crate::net) use back::Saved;
use changes::{Changes, Cones};
use global_features::CudaGlobalFeatures;
use sizes::Sizes;
use tables::{Collection, Offsets, Orders};

const PLAIN: &str = include_str!("plain.cu");
/// In this order: the forward stack and what all share, the head, the way back, the gradients of weights.
const MATRIX: &str = concat!(
    include_str!("matrix.cu"),
    include_str!("matrix_head.cu"),
    include_str!("matrix_back.cu"),
    include_str!("matrix_weights.cu")
);
const GLOBAL_FEATURES: &str = include_str!("global_features.cu");
const TIMES: &str = include_str!("times.cu");

/// Numbers of a kernel that are parameters in another order.
struct WeightBuffer {
    order: Permutation,
    data: CudaSlice<u32>,
    rounded: bool,
}

functions!(
    Functions, "";
    reorder,
    reorder_bf16,
    embed,
    stack_forward,
    stack_train,
    head_forward,
    head_train,
    head_backward,
    stack_backward,
    weights_backward,
    first_backward,
    mix_outer,
    hidden_outer,
    gather_times,
    embed_back,
    embed_gradient,
    add_rows,
    add_parts,
    collect,
);

/// See the [module](self).
pub(in crate::net) struct CudaHollow {
    sizes: Sizes,
    functions: Functions,
    /// Where sites have global features.
    global: Option<CudaGlobalFeatures>,
    /// Where bonds enter instead of values.
    pub(in crate::net) bonds: Option<CudaBonds>,
    /// No numbers.
    nothing: CudaSlice<u32>,
    first: WeightBuffer,
    biases: WeightBuffer,
    weights: WeightBuffer,
    weights_back: WeightBuffer,
    mix: WeightBuffer,
    mix_back: WeightBuffer,
    mix_bias: WeightBuffer,
    hidden: WeightBuffer,
    hidden_back: WeightBuffer,
    hidden_bias: WeightBuffer,
    last: WeightBuffer,
    last_bias: WeightBuffer,
    embeddings: CudaSlice<Embedding>,
    taps: CudaSlice<u32>,
    taps_back: CudaSlice<u32>,
    before: CudaSlice<u32>,
    after: CudaSlice<u32>,
    collection: Collection,
    sections: CudaSlice<u32>,
    plus: CudaSlice<u32>,
    minus: CudaSlice<u32>,
    starts: CudaSlice<u32>,
    times: CudaSlice<f32>,
    hidden_units: CudaSlice<f32>,
    context: CudaSlice<u32>,
    /// Global features of sites, and how counts become numbers.
    global_features: CudaSlice<u32>,
    scratch: CudaSlice<u32>,
    /// Where only what a jump has changed can be computed again, and what it takes.
    cones: Option<Cones>,
    changes: Option<Changes>,
}

impl WeightBuffer {
    fn new(gpu: &Gpu, entries: &[Entry], rounded: bool) -> Result<Self> {
        let words = if rounded { entries.len().div_ceil(2) } else { entries.len() };
        Ok(WeightBuffer {
            order: Permutation::new(gpu, entries)?,
            data: gpu.zeros(words)?,
            rounded,
        })
    }

    fn refresh(&mut self, gpu: &Gpu, f: &Functions, parameters: &CudaSlice<f32>) -> Result<()> {
        let kernel = if self.rounded { &f.reorder_bf16 } else { &f.reorder };
        self.order.apply(gpu, kernel, parameters, &mut self.data)
    }
}

/// Bytes of dynamic shared memory of a kernel.
fn shared(s: &Sizes, kernel: &str) -> usize {
    match kernel {
        "stack_forward" | "stack_train" => s.forward_shared(),
        "head_forward" | "head_train" => s.head_shared() + s.head_tables(),
        "head_backward" => s.head_back_shared(),
        "stack_backward" => s.back_shared(),
        "weights_backward" => s.weights_shared(),
        "first_backward" => s.first_shared(),
        "mix_outer" => s.mix_outer().1,
        "hidden_outer" => s.hidden_outer().1,
        _ => 0,
    }
}

fn source(matrix: bool, bonds: bool) -> String {
    let kernels = if matrix { MATRIX } else { PLAIN };
    let beside = if bonds { BONDS } else { GLOBAL_FEATURES };
    [&arguments::source(matrix), kernels, beside, TIMES, ORDER].concat()
}

impl Hollow {
    /// The network on a GPU, with space for batches of `slots`.
    pub(crate) fn on_gpu(
        &self,
        q: usize,
        gpu: &Arc<Gpu>,
        slots: usize,
        precision: Precision,
    ) -> Result<Box<dyn CudaNetwork>> {
        on_gpu(gpu, slots, self, CudaHollow::new(self, q, gpu, slots, precision)?)
    }

    /// Whether a GPU has tensor cores that the network fits.
    pub(crate) fn uses_tensor_cores(&self, q: usize, gpu: &Gpu) -> bool {
        Sizes::matrix(self, q, gpu).is_some()
    }
}

impl CudaHollow {
    pub(in crate::net) fn new(
        network: &Hollow,
        q: usize,
        gpu: &Arc<Gpu>,
        slots: usize,
        precision: Precision,
    ) -> Result<Self> {
        let plain = || Sizes::plain(network, q, gpu);
        let sizes = match precision {
            Precision::Float32 => plain(),
            // What does not fit is computed in float32.
            _ => Sizes::matrix(network, q, gpu).unwrap_or_else(plain),
        };
        let bonds = sizes.entering > 0;
        let kernels = gpu.compile(&source(sizes.matrix, bonds), &sizes.defines())?;
        let functions = Functions::new(&kernels, |name| shared(&sizes, name))?;
        let global = match &network.stack.entering {
            Entering::Values { global_features: Some(features), .. } => {
                Some(CudaGlobalFeatures::new(features, gpu, &kernels)?)
            }
            _ => None,
        };
        let words = sizes.words(sizes.entering);
        let bonds = match &network.stack.entering {
            Entering::Bonds(bonds) => Some(CudaBonds::new(bonds, gpu, &kernels, slots, words)?),
            Entering::Values { .. } => None,
        };
        let offsets = Offsets::new(network, &sizes);
        let orders = Orders::new(&sizes, &offsets);
        let collection = Collection::new(&sizes, &offsets, gpu.multiprocessors());
        let numbers = |entries: &[Entry], rounded: bool| WeightBuffer::new(gpu, entries, rounded);
        let matrix = sizes.matrix;
        let s = &sizes;
        let embeddings: Vec<Embedding> = (0..s.layers)
            .map(|e| {
                let last = e + 1 == s.layers;
                let (real, padded) =
                    if last { (s.real_head, s.head) } else { (s.real_channels, s.channels) };
                Embedding {
                    parameters: offsets.embeddings[e].start as u32,
                    real: real as u32,
                    padded: padded as u32,
                    start: (e * 2 * s.channels) as u32,
                }
            })
            .collect();
        let none = |list: &[u32]| -> Vec<u32> {
            list.iter().map(|&i| if i as usize == s.sites { u32::MAX } else { i }).collect()
        };
        let geometry = &network.geometry;
        let before: Vec<u32> = geometry.directions.iter().flat_map(|d| none(&d.before)).collect();
        let after: Vec<u32> = geometry.directions.iter().flat_map(|d| none(&d.after)).collect();
        let items = slots * s.directions;
        Ok(CudaHollow {
            first: numbers(&orders.first, matrix && bonds.is_some())?,
            biases: numbers(&orders.biases, false)?,
            weights: numbers(&orders.weights, matrix)?,
            weights_back: numbers(&orders.weights_back, matrix)?,
            mix: numbers(&orders.mix, matrix)?,
            mix_back: numbers(&orders.mix_back, matrix)?,
            mix_bias: numbers(&orders.mix_bias, false)?,
            hidden: numbers(&orders.hidden, matrix)?,
            hidden_back: numbers(&orders.hidden_back, matrix)?,
            hidden_bias: numbers(&orders.hidden_bias, false)?,
            last: numbers(&orders.last, false)?,
            last_bias: numbers(&orders.last_bias, false)?,
            embeddings: gpu.upload(&embeddings)?,
            taps: gpu.upload(&taps::taps(network, s))?,
            taps_back: gpu.upload(&taps::taps_back(network, s))?,
            before: gpu.upload(&before)?,
            after: gpu.upload(&after)?,
            sections: gpu.upload(&collection.sections())?,
            plus: gpu.upload(&collection.plus)?,
            minus: gpu.upload(&collection.minus)?,
            starts: gpu.upload(&collection.starts)?,
            times: gpu.zeros(0)?,
            hidden_units: gpu.zeros(0)?,
            context: gpu.zeros(items * s.sites * s.words(s.channels))?,
            global_features: gpu.zeros(slots * s.sites * s.words(s.global_features))?,
            scratch: gpu.zeros(items * s.scratch())?,
            global,
            bonds,
            nothing: gpu.zeros(0)?,
            collection,
            functions,
            cones: Cones::new(network, &sizes, gpu.shared()),
            changes: None,
            sizes,
        })
    }

    fn room_for_times(&mut self, gpu: &Gpu, times: usize) -> Result<()> {
        let s = &self.sizes;
        if self.times.len() < times * s.time_row() {
            self.times = gpu.zeros(times * s.time_row())?;
            self.hidden_units = gpu.zeros(times * s.layers * 2 * TIME_UNITS)?;
        }
        Ok(())
    }

    fn embed(&mut self, base: &Base, batch: &CudaBatch<'_>) -> Result<()> {
        let times = batch.table.len() / (1 + self.sizes.features);
        self.room_for_times(&base.gpu, times)?;
        let grid = (times as u32, self.sizes.layers as u32, 1);
        launch!(
            base.gpu,
            self.functions.embed,
            (grid, 256, 0),
            &base.parameters,
            &self.embeddings,
            batch.table,
            &mut self.times,
            &mut self.hidden_units,
        )
    }

    /// What every forward pass starts with: times and global features.
    fn before_stack(&mut self, base: &Base, batch: &CudaBatch<'_>) -> Result<()> {
        self.embed(base, batch)?;
        self.write_global_features(&base.gpu, batch)
    }

    /// The arguments of the kernels of the stack.
    fn stack_pass(&self, gpu: &Gpu, batch: &CudaBatch<'_>, saved: Option<&Saved>) -> StackForward {
        StackForward {
            states: Input::of(gpu, batch.states),
            rows: Input::of(gpu, batch.rows),
            time_indices: Input::of(gpu, batch.time_indices),
            times: Input::of(gpu, &self.times),
            taps: Input::of(gpu, &self.taps),
            entering: Input::cast(gpu, self.entering()),
            first: Input::cast(gpu, &self.first.data),
            biases: Input::cast(gpu, &self.biases.data),
            weights: Input::cast(gpu, &self.weights.data),
            context: Output::cast(gpu, &self.context),
            saved: saved.map_or(Output::none(), |saved| Output::cast(gpu, &saved.layers)),
            scratch: Output::cast(gpu, &self.scratch),
        }
    }

    /// The head, from the context on.
    fn after_stack(
        &self,
        gpu: &Gpu,
        batch: &CudaBatch<'_>,
        saved: Option<&Saved>,
        out: &mut CudaSlice<f32>,
    ) -> Result<()> {
        let (f, s) = (&self.functions, &self.sizes);
        let head = if saved.is_some() { &f.head_train } else { &f.head_forward };
        let saved = |layer: fn(&Saved) -> &CudaSlice<u32>| {
            saved.map_or(Output::none(), |saved| Output::cast(gpu, layer(saved)))
        };
        let pass = HeadForward {
            context: Input::cast(gpu, &self.context),
            global_features: Input::cast(gpu, &self.global_features),
            before: Input::of(gpu, &self.before),
            time_indices: Input::of(gpu, batch.time_indices),
            times: Input::of(gpu, &self.times),
            mix: Input::cast(gpu, &self.mix.data),
            mix_bias: Input::cast(gpu, &self.mix_bias.data),
            hidden: Input::cast(gpu, &self.hidden.data),
            hidden_bias: Input::cast(gpu, &self.hidden_bias.data),
            last: Input::cast(gpu, &self.last.data),
            last_bias: Input::cast(gpu, &self.last_bias.data),
            out: Output::of(gpu, &*out),
            u: saved(|saved| &saved.u),
            v: saved(|saved| &saved.v),
            w: saved(|saved| &saved.w),
        };
        let grid = (batch.slots as u32, s.head_blocks() as u32, 1);
        launch!(gpu, head, (grid, s.head_threads(), s.head_shared()), &pass)
    }

    /// What enters the first layer beside the values.
    fn entering(&self) -> &CudaSlice<u32> {
        self.bonds.as_ref().map_or(&self.nothing, |bonds| &bonds.entering)
    }

    fn write_global_features(&mut self, gpu: &Gpu, batch: &CudaBatch<'_>) -> Result<()> {
        if let Some(bonds) = &mut self.bonds {
            return bonds.enter(gpu, batch, &mut self.global_features);
        }
        match &self.global {
            Some(features) => features.write(gpu, batch, &mut self.global_features),
            None => Ok(()),
        }
    }
}

impl CudaPasses for CudaHollow {
    type Saved = Saved;

    fn refresh(&mut self, base: &Base) -> Result<()> {
        for numbers in [
            &mut self.first,
            &mut self.biases,
            &mut self.weights,
            &mut self.weights_back,
            &mut self.mix,
            &mut self.mix_back,
            &mut self.mix_bias,
            &mut self.hidden,
            &mut self.hidden_back,
            &mut self.hidden_bias,
            &mut self.last,
            &mut self.last_bias,
        ] {
            numbers.refresh(&base.gpu, &self.functions, &base.parameters)?;
        }
        Ok(())
    }

    fn reserve(&mut self, base: &Base) -> Result<Saved> {
        // Every configuration of a batch has a time of its own.
        self.room_for_times(&base.gpu, base.slots)?;
        self.saved(base)
    }

    fn forward(
        &mut self,
        base: &Base,
        batch: &CudaBatch<'_>,
        saved: Option<&mut Saved>,
        out: &mut CudaSlice<f32>,
    ) -> Result<()> {
        self.before_stack(base, batch)?;
        let (gpu, f, s, saved) = (&base.gpu, &self.functions, &self.sizes, saved.as_deref());
        let stack = if saved.is_some() { &f.stack_train } else { &f.stack_forward };
        let pass = self.stack_pass(gpu, batch, saved);
        let grid = ((batch.slots * s.directions) as u32, 1, 1);
        launch!(gpu, stack, (grid, s.forward_threads(), s.forward_shared()), &pass)?;
        self.after_stack(gpu, batch, saved, out)
    }

    fn keep(&mut self, base: &Base, keep: Keep) -> Result<bool> {
        let Some(cones) = &self.cones else { return Ok(false) };
        if self.changes.is_none() && (keep != Keep::WhereItPays || cones.pay()) {
            self.changes = Some(Changes::new(base, cones, &self.sizes)?);
        }
        Ok(self.changes.is_some())
    }

    fn forward_changed(
        &mut self,
        base: &Base,
        batch: &CudaBatch<'_>,
        changed: &CudaSlice<u32>,
        out: &mut CudaSlice<f32>,
    ) -> Result<()> {
        self.before_stack(base, batch)?;
        let gpu = &base.gpu;
        let pass = self.stack_pass(gpu, batch, None);
        let (Some(changes), Some(cones)) = (&self.changes, &self.cones) else {
            unreachable!("keep comes first")
        };
        changes.forward(gpu, (cones, &self.sizes), &pass, (changed, batch.slots))?;
        self.after_stack(gpu, batch, None, out)
    }

    fn backward(
        &mut self,
        base: &Base,
        batch: &CudaBatch<'_>,
        saved: &mut Saved,
        d_out: &CudaSlice<f32>,
        gradient: &mut CudaViewMut<'_, f32>,
    ) -> Result<()> {
        self.back(base, batch, saved, d_out, gradient)
    }
}
