//! Backward pass of the LEC network on a GPU.

use cudarc::driver::{CudaSlice, CudaViewMut};

use super::arguments::{EmbedBack, InputsBack, ReadBack, ThetaBack, WeightsBack};
use super::{CudaLec, ROWS, blocks};
use crate::Result;
use crate::device::cuda::arguments::{Input, Output};
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
            h: gpu.zeros(cells * self.sizes.h_row())?,
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

        let pass = ReadBack {
            u: Input::of(gpu, &self.u[depth]),
            weight: Input::of(gpu, &base.parameters.slice(out_weight..)),
            ends: Input::of(gpu, &self.ends),
            d_out: Input::of(gpu, d_out),
            d: Output::of(gpu, &space.d),
            d_weight: Output::of(gpu, &space.slot_parts),
            d_ends: Output::of(gpu, &space.d_ends),
        };
        launch!(gpu, f.read_back, (each_slot, 256, 0), &pass)?;
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
            let pass = ThetaBack {
                d: Input::of(gpu, &space.d),
                x: Input::cast(gpu, &self.x),
                near: Input::cast(gpu, &layer.near),
                values: Input::of(gpu, &self.values),
                by_context: Output::of(gpu, &space.by_context),
                d_theta: Output::of(gpu, &space.d_theta.slice(layer.theta..)),
                taps,
            };
            launch!(gpu, f.theta_back, (each_slot, 256, 0), &pass)?;

            let (share, shares) = self.shares(l, slots);
            let tiles = layer.taps.div_ceil(16);
            let grid = (shares as u32, tiles as u32, self.across() as u32);
            let outer = layer.weight + c * layer.taps * (c + 1);
            let pass = WeightsBack {
                h: Input::of(gpu, &space.h),
                d: Input::of(gpu, &space.d),
                x: Input::cast(gpu, &self.x),
                theta: Input::of(gpu, &self.theta.slice(layer.theta..)),
                high: Input::cast(gpu, &layer.left[0]),
                low: Input::cast(gpu, &layer.left[1]),
                outer: Input::of(gpu, &base.parameters.slice(outer..)),
                near: Input::cast(gpu, &layer.near),
                values: Input::of(gpu, &self.values),
                parts: Output::of(gpu, &space.parts),
                d_values: Output::of(gpu, &space.value_parts),
                slots: n,
                taps,
                share: share as u32,
            };
            launch!(gpu, f.back_weights, (grid, self.sizes.warps * 32, 0), &pass)?;
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

            let pass = InputsBack {
                h: Input::of(gpu, &space.h),
                d: Input::of(gpu, &space.d),
                x: Input::cast(gpu, &self.x),
                high: Input::cast(gpu, &layer.right[0]),
                low: Input::cast(gpu, &layer.right[1]),
                near: Input::cast(gpu, &layer.near),
                values: Input::of(gpu, &self.values),
                d_h: Output::of(gpu, &space.d_h),
                slots: n,
                taps,
            };
            let grid = ((slots * sites).div_ceil(ROWS) as u32, 1, 1);
            launch!(gpu, f.back_inputs, (grid, ROWS, 0), &pass)?;
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
        let (times, d_theta) = (self.times(base, batch), &mut space.d_theta);
        let (d_ends, saved) = (&space.d_ends, &mut space.saved);
        launch!(gpu, f.time_back, (grid, 128, 0), &times, d_ends, d_theta, saved)?;
        let most = self.lec.layers.iter().map(|layer| layer.time.parameters()).max().unwrap_or(1);
        let grid = (most.div_ceil(128) as u32, depth as u32, 1);
        let (saved, d_theta) = (&space.saved, &space.d_theta);
        launch!(gpu, f.time_sum, (grid, 128, 0), &times, saved, d_theta, &mut *gradient, &n)?;

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
        let pass = EmbedBack {
            embedding: Input::of(gpu, &base.parameters),
            weight: Input::of(gpu, &base.parameters.slice(self.first_weight..)),
            total: Input::of(gpu, &space.first_sums),
            d_values: Input::of(gpu, &space.d_values),
            gradient: Output::of(gpu, &*gradient),
            taps: taps as u32,
            layers: depth as u32,
        };
        launch!(gpu, f.embed_back, ((q as u32, 1, 1), 64, 0), &pass)
    }
}
