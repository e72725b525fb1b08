//! Backward pass of the LEC network on a GPU.

use cudarc::driver::{CudaSlice, CudaViewMut};

use super::{CudaLec, blocks};
use crate::Result;
use crate::device::cuda::launch;
use crate::net::cuda::{Base, CudaBatch};

/// Blocks that `back_weights` is cut into, about: a fixed number, so that all GPUs compute the same sums.
const BLOCKS: usize = 528;

/// Space for the backward pass.
pub(super) struct Back {
    /// Gradients of a layer's outputs and of its input, its input, what a site adds for every value.
    d: CudaSlice<f32>,
    d_h: CudaSlice<f32>,
    h: CudaSlice<f32>,
    by_context: CudaSlice<f32>,
    /// Of functions of time: their outputs' gradients, what they keep; of both scales.
    d_theta: CudaSlice<f32>,
    saved: CudaSlice<f32>,
    d_ends: CudaSlice<f32>,
    /// Sums over some positions: of a layer's weights, of values' channels, of outputs and of the first convolution.
    parts: CudaSlice<f32>,
    value_parts: CudaSlice<f32>,
    d_values: CudaSlice<f32>,
    slot_parts: CudaSlice<f32>,
    first_sums: CudaSlice<f32>,
}

impl CudaLec {
    /// How the positions of a batch are shared out to sum a layer's gradients: so many each, and shares.
    fn shares(&self, l: usize, slots: usize) -> (usize, usize) {
        let span = self.sizes.span;
        let spans = (slots * self.lec.sites).div_ceil(span);
        let share = spans.div_ceil(self.most_shares(l)) * span;
        (share, (slots * self.lec.sites).div_ceil(share))
    }

    fn most_shares(&self, l: usize) -> usize {
        (BLOCKS / (self.layers[l].taps.div_ceil(16) * self.across())).max(1)
    }

    /// Blocks that the output channels take.
    fn across(&self) -> usize {
        self.lec.channels.div_ceil(self.sizes.warps * self.sizes.items)
    }

    /// Space for the backward pass of a full batch.
    pub(super) fn back_space(&self, base: &Base) -> Result<Back> {
        let (gpu, c, slots) = (&base.gpu, self.lec.channels, base.slots);
        let (q, cells) = (self.lec.q(), slots * self.lec.sites);
        let (mut parts, mut value_parts) = (0, 0);
        for (l, layer) in self.layers.iter().enumerate() {
            let shares = self.most_shares(l).min(cells.div_ceil(self.sizes.span));
            parts = parts.max(shares * c * layer.taps * (c + 2));
            value_parts = value_parts.max(shares * layer.taps.div_ceil(16) * c * q);
        }
        let first = c * self.lec.first.taps() * if self.lec.inputs == 1 { 1 } else { q };
        let units = self.lec.layers[0].time.units;
        Ok(Back {
            d: gpu.zeros(cells * c)?,
            d_h: gpu.zeros(cells * c)?,
            h: gpu.zeros(cells * ((c + 8) / 8 * 8))?,
            by_context: gpu.zeros(cells * (q + 1))?,
            d_theta: gpu.zeros(slots * self.thetas)?,
            saved: gpu.zeros(slots * self.layers.len() * 4 * units)?,
            d_ends: gpu.zeros(slots * 2)?,
            parts: gpu.zeros(parts)?,
            value_parts: gpu.zeros(value_parts)?,
            d_values: gpu.zeros(self.layers.len() * c * q)?,
            slot_parts: gpu.zeros(slots * first.max(self.lec.inputs * c))?,
            first_sums: gpu.zeros(first)?,
        })
    }

    /// See [`backward`](crate::net::cuda::CudaNetwork::backward).
    pub(super) fn go_back(
        &self,
        base: &Base,
        space: &mut Back,
        batch: &CudaBatch<'_>,
        d_out: &CudaSlice<f32>,
        gradient: &mut CudaViewMut<'_, f32>,
    ) -> Result<()> {
        let (gpu, f, slots) = (&base.gpu, &self.functions, batch.slots);
        let out_weight = self.out_weight(base);
        let (c, sites, depth) = (self.lec.channels, self.lec.sites, self.layers.len());
        let (spins, q) = (self.lec.inputs == 1, self.lec.q());
        let n = slots as u32;
        let each_slot = (n, 1, 1);
        let rows = |n: usize| blocks(n * 32);

        let weight = base.parameters.slice(out_weight..);
        launch!(
            gpu,
            f.read_back,
            (each_slot, 256, 0),
            &self.u[depth],
            &weight,
            &self.ends,
            d_out,
            &mut space.d,
            &mut space.slot_parts,
            &mut space.d_ends
        )?;
        let (offset, count) = (out_weight as u32, (self.lec.inputs * c) as u32);
        launch!(
            gpu,
            f.sum_rows,
            (rows(count as usize), 256, 0),
            &space.slot_parts,
            &mut *gradient,
            &offset,
            &count,
            &n
        )?;

        for (l, layer) in self.layers.iter().enumerate().rev() {
            let (taps, first) = (layer.taps as u32, u32::from(l == 0));
            let u = &self.u[l];
            launch!(
                gpu,
                f.spread,
                (blocks(slots * sites), 256, 0),
                u,
                &self.ends,
                &mut space.h,
                &n,
                &first
            )?;
            let mut d_theta = space.d_theta.slice_mut(layer.theta..);
            launch!(
                gpu,
                f.theta_back,
                (each_slot, 256, 0),
                &space.d,
                &self.x,
                &layer.near,
                &self.values,
                &mut space.by_context,
                &mut d_theta,
                &taps
            )?;

            let (share, shares) = self.shares(l, slots);
            let tiles = layer.taps.div_ceil(16);
            let grid = (shares as u32, tiles as u32, self.across() as u32);
            let theta = self.theta.slice(layer.theta..);
            let outer = base.parameters.slice(layer.weight + c * layer.taps * (c + 1)..);
            let [left, left_low] = &layer.left;
            let share = share as u32;
            launch!(
                gpu,
                f.back_weights,
                (grid, self.sizes.warps * 32, 0),
                &space.h,
                &space.d,
                &self.x,
                &theta,
                left,
                left_low,
                &outer,
                &layer.near,
                &self.values,
                &mut space.parts,
                &mut space.value_parts,
                &n,
                &taps,
                &share
            )?;
            let (offset, shares) = (layer.weight as u32, shares as u32);
            let grid = blocks(c * layer.taps * (c + 2));
            launch!(
                gpu,
                f.sum_weights,
                (grid, 256, 0),
                &space.parts,
                &mut *gradient,
                &offset,
                &taps,
                &shares
            )?;
            if !spins {
                let (offset, count) = ((l * c * q) as u32, (c * q) as u32);
                let all = shares * tiles as u32;
                launch!(
                    gpu,
                    f.sum_rows,
                    (rows(c * q), 256, 0),
                    &space.value_parts,
                    &mut space.d_values,
                    &offset,
                    &count,
                    &all
                )?;
            }

            let [right, right_low] = &layer.right;
            let grid = ((slots * sites).div_ceil(128) as u32, 1, 1);
            launch!(
                gpu,
                f.back_inputs,
                (grid, 128, 0),
                &space.h,
                &space.d,
                &self.x,
                right,
                right_low,
                &layer.near,
                &self.values,
                &mut space.d_h,
                &n,
                &taps
            )?;
            launch!(
                gpu,
                f.activate_back,
                (each_slot, 256, 0),
                u,
                &self.ends,
                &mut space.d_h,
                &mut space.d_ends,
                &first
            )?;
            std::mem::swap(&mut space.d, &mut space.d_h);
        }

        let grid = (n, depth as u32, 1);
        launch!(
            gpu,
            f.time_back,
            (grid, 128, 0),
            &base.parameters,
            &self.turned,
            &self.times,
            batch.time_indices,
            batch.table,
            &space.d_ends,
            &mut space.d_theta,
            &mut space.saved
        )?;
        let most = self.lec.layers.iter().map(|layer| layer.time.parameters()).max().unwrap_or(1);
        let grid = (most.div_ceil(128) as u32, depth as u32, 1);
        launch!(
            gpu,
            f.time_sum,
            (grid, 128, 0),
            &space.saved,
            &space.d_theta,
            &self.times,
            batch.time_indices,
            batch.table,
            &mut *gradient,
            &n
        )?;

        let taps = self.lec.first.taps();
        let (offset, taps_given) = (self.first_weight as u32, taps as u32);
        launch!(
            gpu,
            f.first_back,
            (each_slot, 256, 0),
            &space.d,
            &self.x,
            &self.first_near,
            &mut space.slot_parts,
            &taps_given
        )?;
        if spins {
            let count = (c * taps) as u32;
            return launch!(
                gpu,
                f.sum_rows,
                (rows(c * taps), 256, 0),
                &space.slot_parts,
                &mut *gradient,
                &offset,
                &count,
                &n
            );
        }
        let (start, count) = (0u32, (c * taps * q) as u32);
        launch!(
            gpu,
            f.sum_rows,
            (rows(c * taps * q), 256, 0),
            &space.slot_parts,
            &mut space.first_sums,
            &start,
            &count,
            &n
        )?;
        launch!(
            gpu,
            f.first_weights,
            (blocks(c * c * taps), 256, 0),
            &space.first_sums,
            &self.values,
            &mut *gradient,
            &offset,
            &taps_given
        )?;
        let weight = base.parameters.slice(self.first_weight..);
        let layers = depth as u32;
        launch!(
            gpu,
            f.embed_back,
            ((q as u32, 1, 1), 64, 0),
            &base.parameters,
            &weight,
            &space.first_sums,
            &space.d_values,
            &mut *gradient,
            &taps_given,
            &layers
        )
    }
}
