//! Backward pass of the hollow convolution on a GPU.

use cudarc::driver::{CudaSlice, CudaViewMut};

use super::CudaHollow;
use super::arguments::{
    EmbedGradient, FirstBackward, HeadBackward, StackBackward, WeightsBackward,
};
use super::tables::Section;
use crate::Result;
use crate::device::cuda::arguments::{Input, Output};
use crate::device::cuda::{Gpu, launch};
use crate::net::cuda::{Base, CudaBatch};
use crate::net::dense::TIME_UNITS;

/// What a backward pass needs beyond a forward pass.
pub(in crate::net) struct Saved {
    pub(super) layers: CudaSlice<u32>,
    d_layers: CudaSlice<u32>,
    pub(super) u: CudaSlice<u32>,
    pub(super) v: CudaSlice<u32>,
    pub(super) w: CudaSlice<u32>,
    d_u: CudaSlice<u32>,
    d_w: CudaSlice<u32>,
    d_context: CudaSlice<u32>,
    stack_sums: CudaSlice<f32>,
    head_sums: CudaSlice<f32>,
    d_times: CudaSlice<f32>,
    d_hidden: CudaSlice<f32>,
    parts: CudaSlice<f32>,
    sums: CudaSlice<f32>,
}

impl CudaHollow {
    /// Space for the way back.
    pub(super) fn saved(&self, base: &Base) -> Result<Saved> {
        let (gpu, s, slots) = (&base.gpu, &self.sizes, base.slots);
        let items = slots * s.directions;
        let stack = s.layers * items * s.sites * s.words(s.channels);
        let head = slots * s.sites * s.words(s.head);
        Ok(Saved {
            layers: gpu.zeros(stack)?,
            d_layers: gpu.zeros(stack)?,
            u: gpu.zeros(head)?,
            v: gpu.zeros(head)?,
            w: gpu.zeros(head)?,
            d_u: gpu.zeros(head)?,
            d_w: gpu.zeros(head)?,
            d_context: gpu.zeros(slots * s.sites * s.words(s.directions * s.channels))?,
            stack_sums: gpu.zeros(s.layers * items * s.back_sums())?,
            head_sums: gpu.zeros(slots * s.head_blocks() * s.head_sums())?,
            d_times: gpu.zeros(slots * s.time_row())?,
            d_hidden: gpu.zeros(slots * s.layers * TIME_UNITS)?,
            parts: gpu.zeros(self.collection.total)?,
            sums: gpu.zeros(self.collection.sums)?,
        })
    }

    /// Write the gradient of a batch whose activations were saved.
    pub(super) fn back(
        &mut self,
        base: &Base,
        batch: &CudaBatch<'_>,
        saved: &mut Saved,
        d_out: &CudaSlice<f32>,
        gradient: &mut CudaViewMut<'_, f32>,
    ) -> Result<()> {
        let gpu = &base.gpu;
        let (s, f, c) = (&self.sizes, &self.functions, &self.collection);
        let (slots, items) = (batch.slots as u32, (batch.slots * s.directions) as u32);
        let blocks = s.head_blocks() as u32;
        let pass = HeadBackward {
            time_indices: Input::of(gpu, batch.time_indices),
            times: Input::of(gpu, &self.times),
            mix_back: Input::cast(gpu, &self.mix_back.data),
            hidden_back: Input::cast(gpu, &self.hidden_back.data),
            last: Input::cast(gpu, &self.last.data),
            d_out: Input::of(gpu, d_out),
            u: Input::cast(gpu, &saved.u),
            w: Input::cast(gpu, &saved.w),
            d_u: Output::cast(gpu, &saved.d_u),
            d_w: Output::cast(gpu, &saved.d_w),
            d_context: Output::cast(gpu, &saved.d_context),
            sums: Output::of(gpu, &saved.head_sums),
        };
        let grid = (slots, blocks, 1);
        launch!(gpu, f.head_backward, (grid, s.head_threads(), s.head_back_shared()), &pass)?;
        let pass = StackBackward {
            time_indices: Input::of(gpu, batch.time_indices),
            times: Input::of(gpu, &self.times),
            taps_back: Input::of(gpu, &self.taps_back),
            after: Input::of(gpu, &self.after),
            weights_back: Input::cast(gpu, &self.weights_back.data),
            saved: Input::cast(gpu, &saved.layers),
            d_context: Input::cast(gpu, &saved.d_context),
            d_saved: Output::cast(gpu, &saved.d_layers),
            sums: Output::of(gpu, &saved.stack_sums),
            scratch: Output::cast(gpu, &self.scratch),
        };
        let grid = (items, 1, 1);
        launch!(gpu, f.stack_backward, (grid, s.back_threads(), s.back_shared()), &pass)?;
        let residual = (s.layers - 1) as u32;
        if residual > 0 {
            let pass = WeightsBackward {
                time_indices: Input::of(gpu, batch.time_indices),
                times: Input::of(gpu, &self.times),
                taps: Input::of(gpu, &self.taps),
                saved: Input::cast(gpu, &saved.layers),
                d_saved: Input::cast(gpu, &saved.d_layers),
                parts: Output::of(gpu, &saved.parts.slice(c.weights.start..)),
                items,
            };
            let grid = (c.weights.parts as u32, residual, s.taps.div_ceil(s.outer_taps()) as u32);
            let (threads, shared) = (s.weights_threads(), s.weights_shared());
            launch!(gpu, f.weights_backward, (grid, threads, shared), &pass)?;
        }
        let pass = FirstBackward {
            states: Input::of(gpu, batch.states),
            rows: Input::of(gpu, batch.rows),
            entering: Input::cast(gpu, self.entering()),
            taps: Input::of(gpu, &self.taps),
            d_saved: Input::cast(gpu, &saved.d_layers),
            parts: Output::of(gpu, &saved.parts.slice(c.first.start..)),
            items,
        };
        let (across, groups) = s.first_blocks();
        let grid = (c.first.parts as u32, across as u32, groups as u32);
        launch!(gpu, f.first_backward, (grid, s.first_threads(), s.first_shared()), &pass)?;
        let (threads, shared) = s.mix_outer();
        let mut to = saved.parts.slice_mut(c.mix.start..);
        launch!(
            gpu,
            f.mix_outer,
            ((c.mix.parts as u32, 1, 1), threads, shared),
            &self.context,
            &self.global_features,
            &self.before,
            &saved.d_u,
            &mut to,
            &slots,
        )?;
        let (threads, shared) = s.hidden_outer();
        let mut to = saved.parts.slice_mut(c.hidden.start..);
        launch!(
            gpu,
            f.hidden_outer,
            ((c.hidden.parts as u32, 1, 1), threads, shared),
            &saved.v,
            &saved.d_w,
            &mut to,
            &slots,
        )?;
        launch!(
            gpu,
            f.gather_times,
            ((slots, 1, 1), 256, 0),
            &saved.stack_sums,
            &saved.head_sums,
            &mut saved.d_times,
            &slots,
            &blocks,
        )?;
        launch!(
            gpu,
            f.embed_back,
            ((slots, 1, 1), 128, 0),
            &base.parameters,
            &self.embeddings,
            batch.time_indices,
            &self.hidden_units,
            &saved.d_times,
            &mut saved.d_hidden,
        )?;
        let pass = EmbedGradient {
            embeddings: Input::of(gpu, &self.embeddings),
            starts: Input::of(gpu, &self.starts),
            time_indices: Input::of(gpu, batch.time_indices),
            table: Input::of(gpu, batch.table),
            hidden: Input::of(gpu, &self.hidden_units),
            d_times: Input::of(gpu, &saved.d_times),
            d_hidden: Input::of(gpu, &saved.d_hidden),
            gradient: Output::of(gpu, &saved.parts.slice(c.embeddings.start..)),
            slots,
        };
        let grid = (s.layers as u32, s.embed_blocks() as u32, 1);
        launch!(gpu, f.embed_gradient, (grid, s.embed_threads(), 0), &pass)?;
        let rows = (s.layers, items as usize, s.back_sums());
        self.add_rows(gpu, &saved.stack_sums, rows, c.stack, &mut saved.parts)?;
        let rows = (1, (slots * blocks) as usize, s.head_sums());
        self.add_rows(gpu, &saved.head_sums, rows, c.head, &mut saved.parts)?;
        let sections = self.sections.len() as u32 / 4;
        launch!(
            gpu,
            f.add_parts,
            ((2 * gpu.multiprocessors() as u32, sections, 1), 256, 0),
            &saved.parts,
            &self.sections,
            &mut saved.sums,
        )?;
        let n = base.parameters.len() as u32;
        launch!(
            gpu,
            f.collect,
            ((n.div_ceil(256), 1, 1), 256, 0),
            &saved.sums,
            &self.plus,
            &self.minus,
            gradient,
            &n,
        )
    }

    /// Add up the rows of `blocks` blocks of sums over slots into the parts of a section.
    fn add_rows(
        &self,
        gpu: &Gpu,
        from: &CudaSlice<f32>,
        (blocks, rows, width): (usize, usize, usize),
        section: Section,
        parts: &mut CudaSlice<f32>,
    ) -> Result<()> {
        let mut to = parts.slice_mut(section.start..);
        let grid = (width.div_ceil(128) as u32, section.parts as u32, blocks as u32);
        let (rows, width, stride) = (rows as u32, width as u32, section.len as u32);
        launch!(gpu, self.functions.add_rows, (grid, 128, 0), from, &mut to, &rows, &width, &stride,)
    }
}
