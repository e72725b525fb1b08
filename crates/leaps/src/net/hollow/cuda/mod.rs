//! Run the hollow convolution on a GPU: in float32, or with bfloat16 products on tensor cores.
//!
//! Both are the same kernels with the same arguments ([plain.cu](plain.cu), [matrix.cu](matrix.cu)), around which this module
//! lays out tables and memory. On tensor cores channels are padded to a multiple of 8 with zeros.

#![cfg(feature = "cuda")]

mod back;
mod sizes;
mod tables;
mod taps;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use cudarc::driver::{CudaFunction, CudaSlice, CudaViewMut};

use super::Hollow;
use crate::Result;
use crate::device::cuda::{Gpu, Kernels, Precision, failed, launch};
use crate::net::cuda::{CudaBatch, CudaNetwork, Entry, MOMENT, ORDER, Permutation};
use back::Kept;
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

/// Kernels by name.
struct Functions {
    reorder: CudaFunction,
    reorder_bf16: CudaFunction,
    embed: CudaFunction,
    /// Where sites are told anything.
    tell: Option<CudaFunction>,
    stack_forward: CudaFunction,
    stack_kept: CudaFunction,
    head_forward: CudaFunction,
    head_kept: CudaFunction,
    head_backward: CudaFunction,
    stack_backward: CudaFunction,
    weights_backward: CudaFunction,
    first_backward: CudaFunction,
    mix_outer: CudaFunction,
    hidden_outer: CudaFunction,
    gather_times: CudaFunction,
    embed_back: CudaFunction,
    embed_gradient: CudaFunction,
    add_rows: CudaFunction,
    add_parts: CudaFunction,
    collect: CudaFunction,
}

/// See the [module](self).
pub(super) struct CudaHollow {
    gpu: Arc<Gpu>,
    sizes: Sizes,
    lanes: usize,
    functions: Functions,
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
    /// The parameters of the time embeddings are read where they are.
    parameters: CudaSlice<f32>,
    embeddings: CudaSlice<u32>,
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
    seen: CudaSlice<u32>,
    /// What sites are told, and how counts become numbers.
    global_features: CudaSlice<u32>,
    scales: [f32; 5],
    scratch: CudaSlice<u32>,
    kept: Option<Kept>,
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

impl Functions {
    fn new(kernels: &Kernels, s: &Sizes) -> Result<Self> {
        let get = |name: &str, shared: usize| kernels.get(name, shared);
        Ok(Functions {
            reorder: get("reorder", 0)?,
            reorder_bf16: get("reorder_bf16", 0)?,
            embed: get("embed", 0)?,
            tell: (s.global_features > 0).then(|| get("tell", 0)).transpose()?,
            stack_forward: get("stack_forward", s.forward_shared())?,
            stack_kept: get("stack_kept", s.forward_shared())?,
            head_forward: get("head_forward", s.head_shared())?,
            head_kept: get("head_kept", s.head_shared())?,
            head_backward: get("head_backward", s.head_shared())?,
            stack_backward: get("stack_backward", s.back_shared())?,
            weights_backward: get("weights_backward", s.weights_shared())?,
            first_backward: get("first_backward", s.first_shared())?,
            mix_outer: get("mix_outer", s.mix_outer().1)?,
            hidden_outer: get("hidden_outer", s.hidden_outer().1)?,
            gather_times: get("gather_times", 0)?,
            embed_back: get("embed_back", 0)?,
            embed_gradient: get("embed_gradient", 0)?,
            add_rows: get("add_rows", 0)?,
            add_parts: get("add_parts", 0)?,
            collect: get("collect", 0)?,
        })
    }
}

fn source(matrix: bool) -> String {
    [if matrix { MATRIX } else { PLAIN }, GLOBAL_FEATURES, TIMES, ORDER].concat()
}

impl Hollow {
    /// The network on a GPU, with space for batches of `lanes`.
    pub(crate) fn on_gpu(
        &self,
        q: usize,
        gpu: &Arc<Gpu>,
        lanes: usize,
        precision: Precision,
    ) -> Result<Box<dyn CudaNetwork>> {
        Ok(Box::new(CudaHollow::new(self, q, gpu, lanes, precision)?))
    }

    /// Whether a GPU has tensor cores that the network fits.
    pub(crate) fn uses_tensor_cores(&self, q: usize, gpu: &Gpu) -> bool {
        Sizes::matrix(self, q, gpu).is_some()
    }
}

/// How counts become global features: factor and offset of values, of bonds, and the root of the sites.
fn scales(network: &Hollow) -> [f32; 5] {
    let Some(g) = &network.stack.global_features else { return [0.0; 5] };
    [g.q.0, g.q.1, g.bonds.0, g.bonds.1, g.root].map(|n| n as f32)
}

impl CudaHollow {
    fn new(
        network: &Hollow,
        q: usize,
        gpu: &Arc<Gpu>,
        lanes: usize,
        precision: Precision,
    ) -> Result<Self> {
        let plain = || Sizes::plain(network, q, gpu);
        let sizes = match precision {
            Precision::Float32 => plain(),
            // What does not fit is computed in float32.
            _ => Sizes::matrix(network, q, gpu).unwrap_or_else(plain),
        };
        let functions =
            Functions::new(&gpu.compile(&source(sizes.matrix), &sizes.defines())?, &sizes)?;
        let offsets = Offsets::new(network, &sizes);
        let orders = Orders::new(&sizes, &offsets);
        let collection = Collection::new(&sizes, &offsets, gpu.multiprocessors());
        let numbers = |entries: &[Entry], rounded: bool| WeightBuffer::new(gpu, entries, rounded);
        let matrix = sizes.matrix;
        let s = &sizes;
        let embeddings: Vec<u32> = (0..s.layers)
            .flat_map(|e| {
                let last = e + 1 == s.layers;
                let (real, padded) =
                    if last { (s.real_head, s.head) } else { (s.real_channels, s.channels) };
                let start = e * 2 * s.channels;
                [offsets.embeddings[e], real, padded, start].map(|n| n as u32)
            })
            .collect();
        let none = |list: &[u32]| -> Vec<u32> {
            list.iter().map(|&i| if i as usize == s.sites { u32::MAX } else { i }).collect()
        };
        let geometry = &network.geometry;
        let before: Vec<u32> = geometry.directions.iter().flat_map(|d| none(&d.before)).collect();
        let after: Vec<u32> = geometry.directions.iter().flat_map(|d| none(&d.after)).collect();
        let items = lanes * s.directions;
        Ok(CudaHollow {
            first: numbers(&orders.first, false)?,
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
            parameters: gpu.zeros(offsets.total)?,
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
            seen: gpu.zeros(items * s.sites * s.words(s.channels))?,
            global_features: gpu.zeros(lanes * s.sites * s.words(s.global_features))?,
            scales: scales(network),
            scratch: gpu.zeros(items * s.scratch())?,
            kept: None,
            collection,
            functions,
            lanes,
            sizes,
            gpu: gpu.clone(),
        })
    }

    fn room_for_times(&mut self, moments: usize) -> Result<()> {
        let s = &self.sizes;
        if self.times.len() < moments * s.time_row() {
            self.times = self.gpu.zeros(moments * s.time_row())?;
            self.hidden_units = self.gpu.zeros(moments * s.layers * 64)?;
        }
        Ok(())
    }

    fn embed(&mut self, batch: &CudaBatch<'_>) -> Result<()> {
        let moments = batch.table.len() / MOMENT;
        self.room_for_times(moments)?;
        let s = &self.sizes;
        let grid = (moments as u32, s.layers as u32, 1);
        launch!(
            self.gpu,
            self.functions.embed,
            (grid, 256, 0),
            &self.parameters,
            &self.embeddings,
            batch.table,
            &mut self.times,
            &mut self.hidden_units,
        )
    }

    fn tell(&mut self, batch: &CudaBatch<'_>) -> Result<()> {
        let Some(tell) = &self.functions.tell else { return Ok(()) };
        let [value_factor, value_offset, bond_factor, bond_offset, root] = &self.scales;
        launch!(
            self.gpu,
            tell,
            ((batch.lanes as u32, 1, 1), 128, 0),
            batch.states,
            batch.rows,
            &self.before,
            &mut self.global_features,
            value_factor,
            value_offset,
            bond_factor,
            bond_offset,
            root,
        )
    }
}

impl CudaNetwork for CudaHollow {
    fn refresh(&mut self, parameters: &CudaSlice<f32>) -> Result<()> {
        let total = self.parameters.len();
        self.gpu
            .stream
            .memcpy_dtod(&parameters.slice(..total), &mut self.parameters)
            .map_err(failed("memory of the GPU"))?;
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
            numbers.refresh(&self.gpu, &self.functions, &self.parameters)?;
        }
        Ok(())
    }

    fn forward(&mut self, batch: &CudaBatch<'_>, out: &mut CudaSlice<f32>) -> Result<()> {
        self.embed(batch)?;
        let s = &self.sizes;
        let stack = ((batch.lanes * s.directions) as u32, 1, 1);
        launch!(
            self.gpu,
            self.functions.stack_forward,
            (stack, s.forward_threads(), s.forward_shared()),
            batch.states,
            batch.rows,
            batch.moments,
            &self.times,
            &self.taps,
            &self.first.data,
            &self.biases.data,
            &self.weights.data,
            &mut self.seen,
            &mut self.scratch,
        )?;
        self.tell(batch)?;
        let s = &self.sizes;
        let head = (batch.lanes as u32, s.head_blocks() as u32, 1);
        launch!(
            self.gpu,
            self.functions.head_forward,
            (head, s.head_threads(), s.head_shared()),
            &self.seen,
            &self.global_features,
            &self.before,
            batch.moments,
            &self.times,
            &self.mix.data,
            &self.mix_bias.data,
            &self.hidden.data,
            &self.hidden_bias.data,
            &self.last.data,
            &self.last_bias.data,
            out,
        )
    }

    fn reserve(&mut self) -> Result<()> {
        if self.kept.is_none() {
            self.kept = Some(self.keep()?);
        }
        // Every configuration of a batch has a time of its own.
        self.room_for_times(self.lanes)
    }

    fn forward_train(&mut self, batch: &CudaBatch<'_>, out: &mut CudaSlice<f32>) -> Result<()> {
        let mut kept = match self.kept.take() {
            Some(kept) => kept,
            None => self.keep()?,
        };
        self.embed(batch)?;
        let s = &self.sizes;
        let stack = ((batch.lanes * s.directions) as u32, 1, 1);
        launch!(
            self.gpu,
            self.functions.stack_kept,
            (stack, s.forward_threads(), s.forward_shared()),
            batch.states,
            batch.rows,
            batch.moments,
            &self.times,
            &self.taps,
            &self.first.data,
            &self.biases.data,
            &self.weights.data,
            &mut self.seen,
            &mut kept.layers,
            &mut self.scratch,
        )?;
        self.tell(batch)?;
        let s = &self.sizes;
        let head = (batch.lanes as u32, s.head_blocks() as u32, 1);
        launch!(
            self.gpu,
            self.functions.head_kept,
            (head, s.head_threads(), s.head_shared()),
            &self.seen,
            &self.global_features,
            &self.before,
            batch.moments,
            &self.times,
            &self.mix.data,
            &self.mix_bias.data,
            &self.hidden.data,
            &self.hidden_bias.data,
            &self.last.data,
            &self.last_bias.data,
            out,
            &mut kept.u,
            &mut kept.v,
            &mut kept.w,
        )?;
        self.kept = Some(kept);
        Ok(())
    }

    fn backward(
        &mut self,
        batch: &CudaBatch<'_>,
        d_out: &CudaSlice<f32>,
        gradient: &mut CudaViewMut<'_, f32>,
    ) -> Result<()> {
        self.back(batch, d_out, gradient)
    }
}
