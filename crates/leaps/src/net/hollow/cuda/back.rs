//! The way back through the hollow convolution on a GPU: from slopes of the outputs to those of the parameters.

use cudarc::driver::{CudaSlice, CudaViewMut};

use super::CudaHollow;
use super::tables::Section;
use crate::Result;
use crate::device::cuda::launch;
use crate::net::cuda::CudaBatch;

/// What a backward pass needs beyond a forward pass.
pub(super) struct Kept {
    pub(super) layers: CudaSlice<u32>,
    d_layers: CudaSlice<u32>,
    pub(super) u: CudaSlice<u32>,
    pub(super) v: CudaSlice<u32>,
    pub(super) w: CudaSlice<u32>,
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

impl CudaHollow {
    /// Space for the way back.
    pub(super) fn keep(&self) -> Result<Kept> {
        let (gpu, s) = (&self.gpu, &self.sizes);
        let items = self.lanes * s.directions;
        let stack = s.layers * items * s.sites * s.words(s.channels);
        let head = self.lanes * s.sites * s.words(s.head);
        Ok(Kept {
            layers: gpu.zeros(stack)?,
            d_layers: gpu.zeros(stack)?,
            u: gpu.zeros(head)?,
            v: gpu.zeros(head)?,
            w: gpu.zeros(head)?,
            d_u: gpu.zeros(head)?,
            d_w: gpu.zeros(head)?,
            d_seen: gpu.zeros(self.lanes * s.sites * s.words(s.directions * s.channels))?,
            stack_sums: gpu.zeros(s.layers * items * s.back_sums())?,
            head_sums: gpu.zeros(self.lanes * s.head_blocks() * s.head_sums())?,
            d_times: gpu.zeros(self.lanes * s.time_row())?,
            d_hidden: gpu.zeros(self.lanes * s.layers * 32)?,
            parts: gpu.zeros(self.collection.total)?,
            sums: gpu.zeros(self.collection.sums)?,
        })
    }

    /// Write the gradient of a batch whose forward pass was kept.
    pub(super) fn back(
        &mut self,
        batch: &CudaBatch<'_>,
        d_out: &CudaSlice<f32>,
        gradient: &mut CudaViewMut<'_, f32>,
    ) -> Result<()> {
        let Some(mut kept) = self.kept.take() else {
            unreachable!("backward follows forward_train")
        };
        let (s, f, c) = (&self.sizes, &self.functions, &self.collection);
        let (lanes, items) = (batch.lanes as u32, (batch.lanes * s.directions) as u32);
        let blocks = s.head_blocks() as u32;
        launch!(
            self.gpu,
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
            self.gpu,
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
                self.gpu,
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
            self.gpu,
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
            self.gpu,
            f.mix_outer,
            ((c.mix.parts as u32, 1, 1), threads, shared),
            &self.seen,
            &self.global_features,
            &self.before,
            &kept.d_u,
            &mut to,
            &lanes,
        )?;
        let (threads, shared) = s.hidden_outer();
        let mut to = kept.parts.slice_mut(c.hidden.start..);
        launch!(
            self.gpu,
            f.hidden_outer,
            ((c.hidden.parts as u32, 1, 1), threads, shared),
            &kept.v,
            &kept.d_w,
            &mut to,
            &lanes,
        )?;
        launch!(
            self.gpu,
            f.gather_times,
            ((lanes, 1, 1), 256, 0),
            &kept.stack_sums,
            &kept.head_sums,
            &mut kept.d_times,
            &lanes,
            &blocks,
        )?;
        launch!(
            self.gpu,
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
            self.gpu,
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
            self.gpu,
            f.add_parts,
            ((2 * self.gpu.multiprocessors() as u32, sections, 1), 256, 0),
            &kept.parts,
            &self.sections,
            &mut kept.sums,
        )?;
        let n = self.parameters.len() as u32;
        launch!(
            self.gpu,
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
            self.gpu,
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
