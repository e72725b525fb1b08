//! The multilayer perceptron on a GPU, in float32.

#![cfg(feature = "cuda")]

use cudarc::driver::{CudaFunction, CudaSlice, CudaViewMut};

use super::{Mlp, Parameters};
use crate::device::cuda::arguments::join;
use crate::device::cuda::{Gpu, Kernels, launch};
use crate::net::cuda::{
    Base, Compiled, CudaBatch, CudaPasses, CudaTime, DENSE, SumRows, time_defines,
};
use crate::{Error, Result};

const SOURCE: &str = join!(DENSE, include_str!("mlp.cu"));

/// Most sites: what shared memory holds of one slot.
const MOST_SITES: usize = 40_000;

/// See the [module](self).
struct CudaMlp {
    mlp: Mlp,
    together: usize,
    sums_of: CudaFunction,
    out_of: CudaFunction,
    back: CudaFunction,
    weights: CudaFunction,
    rows: SumRows,
    time: CudaTime,
    /// Sums before the time's scale and shift, or their gradients: `[slot][unit][site]`.
    sums: CudaSlice<f32>,
    /// What every slot adds to the gradient of the output weights.
    slot_parts: CudaSlice<f32>,
}

impl Mlp {
    fn together(&self) -> usize {
        (MOST_SITES / self.sites).clamp(1, 8)
    }
}

impl Compiled for Mlp {
    const SOURCE: &'static str = SOURCE;

    fn defines(&self) -> Vec<(&'static str, usize)> {
        [
            ("SITES", self.sites),
            ("INPUTS", self.inputs),
            ("HIDDEN", self.hidden),
            ("OUTPUTS", self.outputs),
            ("TOGETHER", self.together()),
            ("TIMES", self.time.outputs),
        ]
        .into_iter()
        .chain(time_defines(self.time.features))
        .collect()
    }

    fn check(&self) -> Result<()> {
        if self.sites > MOST_SITES {
            let reason = format!("it has more than {MOST_SITES} sites; use the device cpu");
            return Err(Error::not_applicable("the network mlp on a GPU", reason));
        }
        Ok(())
    }

    fn passes(
        &self,
        gpu: &Gpu,
        kernels: &Kernels,
        slots: usize,
    ) -> Result<impl CudaPasses + 'static> {
        let rest = Parameters::len(self) - self.time.parameters();
        Ok(CudaMlp {
            sums_of: kernels.get("mlp_sums", 0)?,
            out_of: kernels.get("mlp_out", 0)?,
            back: kernels.get("mlp_back", 0)?,
            weights: kernels.get("mlp_weights", 0)?,
            rows: SumRows::new(kernels)?,
            time: CudaTime::new(gpu, kernels, self.time, slots, rest)?,
            sums: gpu.zeros(slots * self.hidden * self.sites)?,
            slot_parts: gpu.zeros(slots * self.outputs * self.hidden)?,
            together: self.together(),
            mlp: self.clone(),
        })
    }
}

impl CudaMlp {
    /// Where biases and output weights are among the parameters.
    fn places(&self) -> (usize, usize) {
        let lengths = Parameters::lengths(&self.mlp);
        (lengths.weight, lengths.weight + lengths.bias)
    }
}

impl CudaPasses for CudaMlp {
    type Saved = ();

    fn reserve(&mut self, _base: &Base) -> Result<()> {
        Ok(())
    }

    fn forward(
        &mut self,
        base: &Base,
        batch: &CudaBatch<'_>,
        _saved: Option<&mut ()>,
        out: &mut CudaSlice<f32>,
    ) -> Result<()> {
        let (gpu, p, n) = (&base.gpu, &base.parameters, batch.slots as u32);
        let rows = self.mlp.hidden * self.mlp.sites;
        self.time.forward(base, batch)?;
        let across = rows.div_ceil(32).min(1024) as u32;
        let grid = (batch.slots.div_ceil(self.together) as u32, across, 1);
        let sums = &mut self.sums;
        launch!(gpu, self.sums_of, (grid, 256, 0), p, batch.states, batch.rows, &mut *sums, &n)?;
        let weight = p.slice(self.places().1..);
        let grid = ((batch.slots * self.mlp.sites).div_ceil(256) as u32, 1, 1);
        launch!(gpu, self.out_of, (grid, 256, 0), &self.sums, &self.time.times, &weight, out, &n)
    }

    fn backward(
        &mut self,
        base: &Base,
        batch: &CudaBatch<'_>,
        _saved: &mut (),
        d_out: &CudaSlice<f32>,
        gradient: &mut CudaViewMut<'_, f32>,
    ) -> Result<()> {
        let (gpu, n) = (&base.gpu, batch.slots as u32);
        let (rows, fan, (bias, out)) =
            (self.mlp.hidden * self.mlp.sites, self.mlp.fan(), self.places());
        let weight = base.parameters.slice(out..);
        launch!(
            gpu,
            self.back,
            ((n, 1, 1), 256, 0),
            &mut self.sums,
            &self.time.times,
            &weight,
            d_out,
            &mut self.time.d_times,
            &mut self.slot_parts
        )?;
        let outputs = self.mlp.outputs * self.mlp.hidden;
        self.rows.sum(gpu, &self.slot_parts, gradient, out, outputs, batch.slots)?;
        self.rows.sum(gpu, &self.sums, gradient, bias, rows, batch.slots)?;
        if fan > 0 {
            let grid = (rows as u32, fan.div_ceil(256) as u32, 1);
            launch!(
                gpu,
                self.weights,
                (grid, 256, 0),
                &self.sums,
                batch.states,
                batch.rows,
                &mut *gradient,
                &n
            )?;
        }
        self.time.backward(base, batch, gradient)
    }
}
