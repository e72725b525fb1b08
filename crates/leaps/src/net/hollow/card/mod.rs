//! Run the hollow convolution on a card: in float32, or with bfloat16 products on matrix units.
//!
//! Both are the same kernels with the same arguments ([plain.cu](plain.cu), [matrix.cu](matrix.cu)), around which this module
//! lays out tables and memory. On matrix units channels are padded to a multiple of 8 with zeros.

mod sizes;
mod tables;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use cudarc::driver::{CudaFunction, CudaSlice, CudaViewMut};

use super::Hollow;
use crate::Result;
use crate::device::cuda::{Card, Kernels, Precision, failed, launch};
use crate::net::card::{CardBatch, CardNetwork, Entry, MOMENT, ORDER, Order};
use sizes::Sizes;
use tables::{Collection, Offsets, Orders, Section};

const PLAIN: &str = include_str!("plain.cu");
/// In this order: the forward stack and what all share, the head, the way back, the gradients of weights.
const MATRIX: &str = concat!(
    include_str!("matrix.cu"),
    include_str!("matrix_head.cu"),
    include_str!("matrix_back.cu"),
    include_str!("matrix_weights.cu")
);
const TOTALS: &str = include_str!("totals.cu");
const TIMES: &str = include_str!("times.cu");

/// Numbers of a kernel that are parameters in another order.
struct Numbers {
    order: Order,
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

/// What a backward pass needs beyond a forward pass.
struct Kept {
    layers: CudaSlice<u32>,
    d_layers: CudaSlice<u32>,
    u: CudaSlice<u32>,
    v: CudaSlice<u32>,
    w: CudaSlice<u32>,
    d_u: CudaSlice<u32>,
    d_w: CudaSlice<u32>,
    d_seen: CudaSlice<u32>,
    stack_sums: CudaSlice<f32>,
    head_sums: CudaSlice<f32>,
    d_times: CudaSlice<f32>,
    d_hidden: CudaSlice<f32>,
    parts: CudaSlice<f32>,
    sums: CudaSlice<f32>,
}

/// See the [module](self).
pub(super) struct CardHollow {
    card: Arc<Card>,
    sizes: Sizes,
    lanes: usize,
    functions: Functions,
    first: Numbers,
    biases: Numbers,
    weights: Numbers,
    weights_back: Numbers,
    mix: Numbers,
    mix_back: Numbers,
    mix_bias: Numbers,
    hidden: Numbers,
    hidden_back: Numbers,
    hidden_bias: Numbers,
    last: Numbers,
    last_bias: Numbers,
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
    totals: CudaSlice<u32>,
    scales: [f32; 5],
    scratch: CudaSlice<u32>,
    kept: Option<Kept>,
}

impl Numbers {
    fn new(card: &Card, entries: &[Entry], rounded: bool) -> Result<Self> {
        let words = if rounded { entries.len().div_ceil(2) } else { entries.len() };
        Ok(Numbers { order: Order::new(card, entries)?, data: card.zeros(words)?, rounded })
    }

    fn refresh(&mut self, card: &Card, f: &Functions, parameters: &CudaSlice<f32>) -> Result<()> {
        let kernel = if self.rounded { &f.reorder_bf16 } else { &f.reorder };
        self.order.apply(card, kernel, parameters, &mut self.data)
    }
}

impl Functions {
    fn new(kernels: &Kernels, s: &Sizes) -> Result<Self> {
        let get = |name: &str, shared: usize| kernels.get(name, shared);
        Ok(Functions {
            reorder: get("reorder", 0)?,
            reorder_bf16: get("reorder_bf16", 0)?,
            embed: get("embed", 0)?,
            tell: (s.totals > 0).then(|| get("tell", 0)).transpose()?,
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
    [if matrix { MATRIX } else { PLAIN }, TOTALS, TIMES, ORDER].concat()
}

impl CardHollow {
    pub(super) fn new(
        network: &Hollow,
        tokens: usize,
        card: &Arc<Card>,
        lanes: usize,
        precision: Precision,
    ) -> Result<Self> {
        let plain = || Sizes::plain(network, tokens, card);
        let sizes = match precision {
            Precision::Float32 => plain(),
            // What does not fit is computed in float32.
            _ => Sizes::matrix(network, tokens, card).unwrap_or_else(plain),
        };
        let functions =
            Functions::new(&card.compile(&source(sizes.matrix), &sizes.defines())?, &sizes)?;
        let offsets = Offsets::new(network, &sizes);
        let orders = Orders::new(&sizes, &offsets);
        let collection = Collection::new(&sizes, &offsets, card.multiprocessors());
        let numbers = |entries: &[Entry], rounded: bool| Numbers::new(card, entries, rounded);
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
        Ok(CardHollow {
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
            parameters: card.zeros(offsets.total)?,
            embeddings: card.upload(&embeddings)?,
            taps: card.upload(&tables::taps(network, s))?,
            taps_back: card.upload(&tables::taps_back(network, s))?,
            before: card.upload(&before)?,
            after: card.upload(&after)?,
            sections: card.upload(&collection.sections())?,
            plus: card.upload(&collection.plus)?,
            minus: card.upload(&collection.minus)?,
            starts: card.upload(&collection.starts)?,
            times: card.zeros(0)?,
            hidden_units: card.zeros(0)?,
            seen: card.zeros(items * s.sites * s.words(s.channels))?,
            totals: card.zeros(lanes * s.sites * s.words(s.totals))?,
            scales: network.stack.total_scales(),
            scratch: card.zeros(items * s.scratch())?,
            kept: None,
            collection,
            functions,
            lanes,
            sizes,
            card: card.clone(),
        })
    }

    fn keep(&self) -> Result<Kept> {
        let (card, s) = (&self.card, &self.sizes);
        let items = self.lanes * s.directions;
        let stack = s.layers * items * s.sites * s.words(s.channels);
        let head = self.lanes * s.sites * s.words(s.head);
        Ok(Kept {
            layers: card.zeros(stack)?,
            d_layers: card.zeros(stack)?,
            u: card.zeros(head)?,
            v: card.zeros(head)?,
            w: card.zeros(head)?,
            d_u: card.zeros(head)?,
            d_w: card.zeros(head)?,
            d_seen: card.zeros(self.lanes * s.sites * s.words(s.directions * s.channels))?,
            stack_sums: card.zeros(s.layers * items * s.back_sums())?,
            head_sums: card.zeros(self.lanes * s.head_blocks() * s.head_sums())?,
            d_times: card.zeros(self.lanes * s.time_row())?,
            d_hidden: card.zeros(self.lanes * s.layers * 32)?,
            parts: card.zeros(self.collection.total)?,
            sums: card.zeros(self.collection.sums)?,
        })
    }

    fn room_for_times(&mut self, moments: usize) -> Result<()> {
        let s = &self.sizes;
        if self.times.len() < moments * s.time_row() {
            self.times = self.card.zeros(moments * s.time_row())?;
            self.hidden_units = self.card.zeros(moments * s.layers * 64)?;
        }
        Ok(())
    }

    fn embed(&mut self, batch: &CardBatch<'_>) -> Result<()> {
        let moments = batch.table.len() / MOMENT;
        self.room_for_times(moments)?;
        let s = &self.sizes;
        let grid = (moments as u32, s.layers as u32, 1);
        launch!(
            self.card,
            self.functions.embed,
            (grid, 256, 0),
            &self.parameters,
            &self.embeddings,
            batch.table,
            &mut self.times,
            &mut self.hidden_units,
        )
    }

    fn tell(&mut self, batch: &CardBatch<'_>) -> Result<()> {
        let Some(tell) = &self.functions.tell else { return Ok(()) };
        let [token_factor, token_offset, bond_factor, bond_offset, root] = &self.scales;
        launch!(
            self.card,
            tell,
            ((batch.lanes as u32, 1, 1), 128, 0),
            batch.states,
            batch.rows,
            &self.before,
            &mut self.totals,
            token_factor,
            token_offset,
            bond_factor,
            bond_offset,
            root,
        )
    }

    /// Add up the rows of `blocks` blocks of sums over lanes into the parts of a section.
    fn add_rows(
        &self,
        from: &CudaSlice<f32>,
        (blocks, rows, width): (usize, usize, usize),
        section: Section,
        parts: &mut CudaSlice<f32>,
    ) -> Result<()> {
        let mut to = parts.slice_mut(section.start..);
        let grid = (width.div_ceil(128) as u32, section.parts as u32, blocks as u32);
        let (rows, width, stride) = (rows as u32, width as u32, section.len as u32);
        launch!(
            self.card,
            self.functions.add_rows,
            (grid, 128, 0),
            from,
            &mut to,
            &rows,
            &width,
            &stride,
        )
    }
}

impl CardNetwork for CardHollow {
    fn refresh(&mut self, parameters: &CudaSlice<f32>) -> Result<()> {
        let total = self.parameters.len();
        self.card
            .stream
            .memcpy_dtod(&parameters.slice(..total), &mut self.parameters)
            .map_err(failed("memory of the card"))?;
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
            numbers.refresh(&self.card, &self.functions, &self.parameters)?;
        }
        Ok(())
    }

    fn forward(&mut self, batch: &CardBatch<'_>, out: &mut CudaSlice<f32>) -> Result<()> {
        self.embed(batch)?;
        let s = &self.sizes;
        let stack = ((batch.lanes * s.directions) as u32, 1, 1);
        launch!(
            self.card,
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
            self.card,
            self.functions.head_forward,
            (head, s.head_threads(), s.head_shared()),
            &self.seen,
            &self.totals,
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

    fn forward_kept(&mut self, batch: &CardBatch<'_>, out: &mut CudaSlice<f32>) -> Result<()> {
        let mut kept = match self.kept.take() {
            Some(kept) => kept,
            None => self.keep()?,
        };
        self.embed(batch)?;
        let s = &self.sizes;
        let stack = ((batch.lanes * s.directions) as u32, 1, 1);
        launch!(
            self.card,
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
            self.card,
            self.functions.head_kept,
            (head, s.head_threads(), s.head_shared()),
            &self.seen,
            &self.totals,
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
        batch: &CardBatch<'_>,
        d_out: &CudaSlice<f32>,
        gradient: &mut CudaViewMut<'_, f32>,
    ) -> Result<()> {
        let Some(mut kept) = self.kept.take() else {
            unreachable!("backward follows forward_kept")
        };
        let (s, f, c) = (&self.sizes, &self.functions, &self.collection);
        let (lanes, items) = (batch.lanes as u32, (batch.lanes * s.directions) as u32);
        let blocks = s.head_blocks() as u32;
        launch!(
            self.card,
            f.head_backward,
            ((lanes, blocks, 1), s.head_threads(), s.head_shared()),
            batch.moments,
            &self.times,
            &self.mix_back.data,
            &self.hidden_back.data,
            &self.last.data,
            d_out,
            &kept.u,
            &kept.w,
            &mut kept.d_u,
            &mut kept.d_w,
            &mut kept.d_seen,
            &mut kept.head_sums,
        )?;
        launch!(
            self.card,
            f.stack_backward,
            ((items, 1, 1), s.back_threads(), s.back_shared()),
            batch.moments,
            &self.times,
            &self.taps_back,
            &self.after,
            &self.weights_back.data,
            &kept.layers,
            &kept.d_seen,
            &mut kept.d_layers,
            &mut kept.stack_sums,
            &mut self.scratch,
        )?;
        let residual = (s.layers - 1) as u32;
        if residual > 0 {
            let groups = s.taps.div_ceil(s.outer_taps()) as u32;
            let mut to = kept.parts.slice_mut(c.weights.start..);
            launch!(
                self.card,
                f.weights_backward,
                (
                    (c.weights.parts as u32, residual, groups),
                    s.weights_threads(),
                    s.weights_shared()
                ),
                batch.moments,
                &self.times,
                &self.taps,
                &kept.layers,
                &kept.d_layers,
                &mut to,
                &items,
            )?;
        }
        let mut to = kept.parts.slice_mut(c.first.start..);
        launch!(
            self.card,
            f.first_backward,
            (
                (c.first.parts as u32, s.first_blocks() as u32, 1),
                s.first_threads(),
                s.first_shared()
            ),
            batch.states,
            batch.rows,
            &self.taps,
            &kept.d_layers,
            &mut to,
            &items,
        )?;
        let (threads, shared) = s.mix_outer();
        let mut to = kept.parts.slice_mut(c.mix.start..);
        launch!(
            self.card,
            f.mix_outer,
            ((c.mix.parts as u32, 1, 1), threads, shared),
            &self.seen,
            &self.totals,
            &self.before,
            &kept.d_u,
            &mut to,
            &lanes,
        )?;
        let (threads, shared) = s.hidden_outer();
        let mut to = kept.parts.slice_mut(c.hidden.start..);
        launch!(
            self.card,
            f.hidden_outer,
            ((c.hidden.parts as u32, 1, 1), threads, shared),
            &kept.v,
            &kept.d_w,
            &mut to,
            &lanes,
        )?;
        launch!(
            self.card,
            f.gather_times,
            ((lanes, 1, 1), 256, 0),
            &kept.stack_sums,
            &kept.head_sums,
            &mut kept.d_times,
            &lanes,
            &blocks,
        )?;
        launch!(
            self.card,
            f.embed_back,
            ((lanes, 1, 1), 128, 0),
            &self.parameters,
            &self.embeddings,
            batch.moments,
            &self.hidden_units,
            &kept.d_times,
            &mut kept.d_hidden,
        )?;
        let rows = 1 + (2 * s.real_channels.max(s.real_head)).div_ceil(8) as u32;
        let mut to = kept.parts.slice_mut(c.embeddings.start..);
        launch!(
            self.card,
            f.embed_gradient,
            ((s.layers as u32, rows, 1), 1024, 0),
            &self.embeddings,
            &self.starts,
            batch.moments,
            batch.table,
            &self.hidden_units,
            &kept.d_times,
            &kept.d_hidden,
            &mut to,
            &lanes,
        )?;
        let rows = (s.layers, items as usize, s.back_sums());
        self.add_rows(&kept.stack_sums, rows, c.stack, &mut kept.parts)?;
        let rows = (1, (lanes * blocks) as usize, s.head_sums());
        self.add_rows(&kept.head_sums, rows, c.head, &mut kept.parts)?;
        let sections = self.sections.len() as u32 / 4;
        launch!(
            self.card,
            f.add_parts,
            ((2 * self.card.multiprocessors() as u32, sections, 1), 256, 0),
            &kept.parts,
            &self.sections,
            &mut kept.sums,
        )?;
        let n = self.parameters.len() as u32;
        launch!(
            self.card,
            f.collect,
            ((n.div_ceil(256), 1, 1), 256, 0),
            &kept.sums,
            &self.plus,
            &self.minus,
            gradient,
            &n,
        )?;
        self.kept = Some(kept);
        Ok(())
    }
}
