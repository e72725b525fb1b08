//! The network on a GPU, in float32.

#![cfg(feature = "cuda")]

use std::sync::Arc;

use cudarc::driver::{CudaFunction, CudaSlice, CudaViewMut};

use super::Mlp;
use crate::device::cuda::{Gpu, Precision, failed, launch};
use crate::net::cuda::{CudaBatch, CudaNetwork, CudaTime, MOMENT, SumRows, check_lanes};
use crate::net::layout::total;
use crate::net::network::Network;
use crate::{Error, Result};

const SOURCE: &str = concat!(
    include_str!("../cuda/sums.cu"),
    include_str!("../cuda/dense.cu"),
    include_str!("mlp.cu")
);

/// Most sites: what shared memory holds of one lane.
const MOST_SITES: usize = 40_000;

/// See the [module](self).
struct CudaMlp {
    gpu: Arc<Gpu>,
    mlp: Mlp,
    lanes: usize,
    together: usize,
    sums_of: CudaFunction,
    out_of: CudaFunction,
    back: CudaFunction,
    weights: CudaFunction,
    rows: SumRows,
    time: CudaTime,
    parameters: CudaSlice<f32>,
    /// Sums before the time's scale and shift, or their gradients: `[lane][unit][site]`.
    sums: CudaSlice<f32>,
    /// What every lane adds to the gradient of the output weights.
    lane_parts: CudaSlice<f32>,
}

impl Mlp {
    fn together(&self) -> usize {
        (MOST_SITES / self.sites).clamp(1, 8)
    }

    fn defines(&self) -> Vec<(&'static str, usize)> {
        vec![
            ("SITES", self.sites),
            ("INPUTS", self.inputs),
            ("HIDDEN", self.hidden),
            ("OUTPUTS", self.outputs),
            ("TOGETHER", self.together()),
            ("TIMES", self.time.outputs),
            ("MOMENT", MOMENT),
        ]
    }

    /// Compile the kernels, where there is a compiler.
    #[cfg(test)]
    pub(crate) fn compiles(&self) {
        crate::device::cuda::testing::compiles(SOURCE, &self.defines());
    }

    /// The network on a GPU, for batches of up to `lanes`; always in float32.
    pub(crate) fn on_gpu(
        &self,
        gpu: &Arc<Gpu>,
        lanes: usize,
        _: Precision,
    ) -> Result<Box<dyn CudaNetwork>> {
        if self.sites > MOST_SITES {
            let reason = format!("it has more than {MOST_SITES} sites; use the device cpu");
            return Err(Error::not_applicable("the network mlp on a GPU", reason));
        }
        let kernels = gpu.compile(SOURCE, &self.defines())?;
        let rest = self.hidden * self.sites * (self.fan() + 1) + self.outputs * self.hidden;
        Ok(Box::new(CudaMlp {
            sums_of: kernels.get("mlp_sums", 0)?,
            out_of: kernels.get("mlp_out", 0)?,
            back: kernels.get("mlp_back", 0)?,
            weights: kernels.get("mlp_weights", 0)?,
            rows: SumRows::new(&kernels)?,
            time: CudaTime::new(gpu, &kernels, self.time, lanes, rest)?,
            parameters: gpu.zeros(total(&self.tensors()))?,
            sums: gpu.zeros(lanes * self.hidden * self.sites)?,
            lane_parts: gpu.zeros(lanes * self.outputs * self.hidden)?,
            together: self.together(),
            gpu: Arc::clone(gpu),
            mlp: self.clone(),
            lanes,
        }))
    }
}

impl CudaMlp {
    /// Where biases and output weights are among the parameters.
    fn places(&self) -> (usize, usize) {
        let rows = self.mlp.hidden * self.mlp.sites;
        (rows * self.mlp.fan(), rows * (self.mlp.fan() + 1))
    }
}

impl CudaNetwork for CudaMlp {
    fn refresh(&mut self, parameters: &CudaSlice<f32>) -> Result<()> {
        let given = parameters.slice(..self.parameters.len());
        let stream = &self.gpu.stream;
        stream.memcpy_dtod(&given, &mut self.parameters).map_err(failed("memory of the GPU"))
    }

    fn forward(&mut self, batch: &CudaBatch<'_>, out: &mut CudaSlice<f32>) -> Result<()> {
        check_lanes(batch.lanes, self.lanes)?;
        if batch.lanes == 0 {
            return Ok(());
        }
        let (gpu, n, rows) = (&self.gpu, batch.lanes as u32, self.mlp.hidden * self.mlp.sites);
        self.time.forward(gpu, &self.parameters, batch)?;
        let across = rows.div_ceil(32).min(1024) as u32;
        let grid = (batch.lanes.div_ceil(self.together) as u32, across, 1);
        let sums = &mut self.sums;
        launch!(
            gpu,
            self.sums_of,
            (grid, 256, 0),
            &self.parameters,
            batch.states,
            batch.rows,
            &mut *sums,
            &n
        )?;
        let weight = self.parameters.slice(self.places().1..);
        let grid = ((batch.lanes * self.mlp.sites).div_ceil(256) as u32, 1, 1);
        launch!(gpu, self.out_of, (grid, 256, 0), &self.sums, &self.time.times, &weight, out, &n)
    }

    fn forward_train(&mut self, batch: &CudaBatch<'_>, out: &mut CudaSlice<f32>) -> Result<()> {
        self.forward(batch, out)
    }

    fn backward(
        &mut self,
        batch: &CudaBatch<'_>,
        d_out: &CudaSlice<f32>,
        gradient: &mut CudaViewMut<'_, f32>,
    ) -> Result<()> {
        let (gpu, n) = (&self.gpu, batch.lanes as u32);
        let (rows, fan, (bias, out)) =
            (self.mlp.hidden * self.mlp.sites, self.mlp.fan(), self.places());
        let weight = self.parameters.slice(out..);
        launch!(
            gpu,
            self.back,
            ((n, 1, 1), 256, 0),
            &mut self.sums,
            &self.time.times,
            &weight,
            d_out,
            &mut self.time.d_times,
            &mut self.lane_parts
        )?;
        let outputs = self.mlp.outputs * self.mlp.hidden;
        self.rows.sum(gpu, &self.lane_parts, gradient, out, outputs, batch.lanes)?;
        self.rows.sum(gpu, &self.sums, gradient, bias, rows, batch.lanes)?;
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
        self.time.backward(gpu, &self.parameters, batch, gradient)
    }
}
