//! Evaluation of a network on a GPU.

use std::sync::Arc;

use cudarc::driver::CudaSlice;

use super::{Couplings, CudaBatch, CudaNetwork, time_features, time_width};
use crate::Result;
use crate::device::cuda::{Gpu, Precision};
use crate::net::evaluator::Shape;
use crate::net::{Evaluator, Inputs, Net};

/// A [`Net`] on a GPU. As an [`Evaluator`] it waits for its results; benches place a batch and start passes
/// without waiting.
pub struct CudaEvaluator {
    gpu: Arc<Gpu>,
    network: Box<dyn CudaNetwork>,
    shape: Shape,
    /// Most configurations at a time, and how many are placed.
    most: usize,
    placed: usize,
    states: CudaSlice<u8>,
    rows: CudaSlice<u32>,
    table: CudaSlice<f32>,
    /// Couplings that were given, and those of the target that the network was built for.
    couplings: CudaSlice<f32>,
    instance: CudaSlice<f32>,
    given: bool,
    parameters: CudaSlice<f32>,
    out: CudaSlice<f32>,
    d_out: CudaSlice<f32>,
    gradient: CudaSlice<f32>,
}

impl CudaEvaluator {
    /// The network on a GPU, which computes up to `batch` configurations at a time.
    pub fn new(net: &Net, gpu: &Arc<Gpu>, batch: usize, precision: Precision) -> Result<Self> {
        let shape = Shape::new(net);
        let rows: Vec<u32> = (0..batch as u32).collect();
        let mut made = CudaEvaluator {
            network: net.on_gpu(gpu, batch, precision)?,
            shape,
            most: batch,
            placed: 0,
            states: gpu.zeros(batch * shape.sites)?,
            rows: gpu.upload(&rows)?,
            table: gpu.zeros(batch * time_width(shape.conditions))?,
            couplings: gpu.zeros(batch * shape.couplings)?,
            instance: gpu.upload(net.instance())?,
            given: false,
            parameters: gpu.zeros(shape.parameters)?,
            out: gpu.zeros(batch * shape.outputs)?,
            d_out: gpu.zeros(batch * shape.outputs)?,
            gradient: gpu.zeros(shape.parameters)?,
            gpu: Arc::clone(gpu),
        };
        made.network.refresh(&made.parameters)?;
        Ok(made)
    }

    /// Put configurations on the GPU, at most as many as it computes at a time.
    ///
    /// # Panics
    /// If they are more.
    pub fn place(&mut self, x: Inputs<'_>) -> Result<()> {
        assert!(x.times.len() <= self.most, "more configurations than a batch holds");
        let zeros = vec![0.0; self.shape.conditions];
        let table: Vec<f32> = self
            .shape
            .chunks(x, 1)
            .flat_map(|one| {
                let condition = if one.conditions.is_empty() { &zeros } else { one.conditions };
                time_features(one.times[0], condition)
            })
            .collect();
        self.gpu.write(&table, &mut self.table)?;
        self.gpu.write(x.states, &mut self.states)?;
        self.gpu.write(x.couplings, &mut self.couplings)?;
        self.given = !x.couplings.is_empty();
        self.placed = x.times.len();
        Ok(())
    }

    /// Start computing the outputs of the placed configurations.
    pub fn start_forward(&mut self) -> Result<()> {
        let (network, batch, out, _, _) = self.parts();
        network.forward(&batch, out)
    }

    /// Start computing outputs and then the gradient of `sum d_out * out`.
    pub fn start_gradient(&mut self) -> Result<()> {
        let (network, batch, out, d_out, gradient) = self.parts();
        network.forward_train(&batch, out)?;
        network.backward(&batch, d_out, &mut gradient.slice_mut(..))
    }

    /// The network, the batch that is placed, outputs, their gradient and the parameters' gradient.
    #[allow(clippy::type_complexity)] // borrowed apart in one place
    fn parts(
        &mut self,
    ) -> (
        &mut dyn CudaNetwork,
        CudaBatch<'_>,
        &mut CudaSlice<f32>,
        &CudaSlice<f32>,
        &mut CudaSlice<f32>,
    ) {
        // Every configuration has a time, and couplings, of its own: rows, time indices and instances are the same numbers.
        let couplings = match self.given {
            true => Couplings { numbers: &self.couplings, rows: 1 },
            false => Couplings::of_one(&self.instance),
        };
        let batch = CudaBatch {
            slots: self.placed,
            states: &self.states,
            rows: &self.rows,
            time_indices: &self.rows,
            table: &self.table,
            couplings,
        };
        (&mut *self.network, batch, &mut self.out, &self.d_out, &mut self.gradient)
    }

    /// Wait for all that was started.
    pub fn wait(&self) -> Result<()> {
        self.gpu.wait()
    }
}

impl Evaluator for CudaEvaluator {
    fn load(&mut self, parameters: &[f32]) -> Result<()> {
        self.shape.check_parameters(parameters)?;
        self.gpu.write(parameters, &mut self.parameters)?;
        self.network.refresh(&self.parameters)
    }

    fn forward(&mut self, x: Inputs<'_>, out: &mut [f32]) -> Result<()> {
        self.shape.check(&x, out)?;
        let out = out.chunks_mut(self.most * self.shape.outputs);
        for (x, out) in self.shape.chunks(x, self.most).zip(out) {
            self.place(x)?;
            self.start_forward()?;
            out.copy_from_slice(&self.gpu.download(&self.out.slice(..out.len()))?);
        }
        Ok(())
    }

    fn gradient(&mut self, x: Inputs<'_>, d_out: &[f32], grad: &mut [f32]) -> Result<()> {
        self.shape.check(&x, d_out)?;
        self.shape.check_parameters(grad)?;
        grad.fill(0.0);
        let d_out = d_out.chunks(self.most * self.shape.outputs);
        for (x, d_out) in self.shape.chunks(x, self.most).zip(d_out) {
            self.place(x)?;
            self.gpu.write(d_out, &mut self.d_out)?;
            self.start_gradient()?;
            for (sum, part) in grad.iter_mut().zip(self.gpu.download(&self.gradient)?) {
                *sum += part;
            }
        }
        Ok(())
    }
}
