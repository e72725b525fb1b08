//! Evaluate a network on a GPU, with everything that goes in and out.

use std::sync::Arc;

use cudarc::driver::CudaSlice;

use super::Net;
use super::cuda::{CudaBatch, CudaNetwork, check_lanes, moment};
use crate::device::cuda::{Gpu, Precision};
use crate::{Error, Result};

/// A [`Net`] on a GPU, for batches of up to some number of configurations.
///
/// ```no_run
/// # use leaps::device::{Gpu, Precision};
/// # use leaps::net::{CudaNet, LecSpec, Net, NetSpec};
/// # use leaps::target::{Boundary, Lattice, Pairwise};
/// # fn main() -> leaps::Result<()> {
/// let lattice = Lattice::new(&[15, 15], Boundary::Periodic)?;
/// let net = Net::new(&NetSpec::Lec(LecSpec::default()), &Pairwise::ising(lattice, 1.0, 0.0)?)?;
/// let mut on_gpu = CudaNet::new(&net, &Gpu::open(0)?, 64, Precision::Float32)?;
/// on_gpu.load(&net.initial(1))?;
/// let outputs = on_gpu.forward(&[0; 2 * 225], &[0.25, 0.75])?;
/// assert_eq!(outputs.len(), 2 * 225);
/// # Ok(())
/// # }
/// ```
pub struct CudaNet {
    gpu: Arc<Gpu>,
    network: Box<dyn CudaNetwork>,
    sites: usize,
    outputs: usize,
    /// Most configurations, and how many are placed.
    most: usize,
    lanes: usize,
    states: CudaSlice<u8>,
    rows: CudaSlice<u32>,
    table: CudaSlice<f32>,
    parameters: CudaSlice<f32>,
    out: CudaSlice<f32>,
    d_out: CudaSlice<f32>,
    gradient: CudaSlice<f32>,
}

impl CudaNet {
    /// The network on a GPU, for batches of up to `lanes` configurations. Its parameters are 0 until
    /// [`load`](Self::load)ed.
    pub fn new(net: &Net, gpu: &Arc<Gpu>, lanes: usize, precision: Precision) -> Result<Self> {
        let (sites, outputs) = (net.sites(), net.outputs());
        let rows: Vec<u32> = (0..lanes as u32).collect();
        let mut out = CudaNet {
            network: net.on_gpu(gpu, lanes, precision)?,
            sites,
            outputs,
            most: lanes,
            lanes: 0,
            states: gpu.zeros(lanes * sites)?,
            rows: gpu.upload(&rows)?,
            table: gpu.zeros(lanes * moment(0.0).len())?,
            parameters: gpu.zeros(net.parameters())?,
            out: gpu.zeros(lanes * sites * outputs)?,
            d_out: gpu.zeros(lanes * sites * outputs)?,
            gradient: gpu.zeros(net.parameters())?,
            gpu: Arc::clone(gpu),
        };
        out.network.refresh(&out.parameters)?;
        Ok(out)
    }

    /// Take over parameters, in the order of [`Net::tensors`].
    pub fn load(&mut self, parameters: &[f32]) -> Result<()> {
        check("parameters", parameters.len(), self.gradient.len())?;
        self.gpu.write(parameters, &mut self.parameters)?;
        self.network.refresh(&self.parameters)
    }

    /// Put configurations, `states[k * sites + site]`, and their times on the GPU.
    pub fn place(&mut self, states: &[u8], times: &[f64]) -> Result<()> {
        check_lanes(times.len(), self.most)?;
        check("states", states.len(), times.len() * self.sites)?;
        let table: Vec<f32> = times.iter().flat_map(|&t| moment(t)).collect();
        self.gpu.write(&table, &mut self.table)?;
        self.gpu.write(states, &mut self.states)?;
        self.lanes = times.len();
        Ok(())
    }

    /// Start computing the outputs of the placed configurations; does not [`wait`](Self::wait).
    pub fn start_forward(&mut self) -> Result<()> {
        let CudaNet { network, lanes, states, rows, table, out, .. } = self;
        // Every configuration has a moment of its own: rows and moments are the same numbers.
        let batch = CudaBatch { lanes: *lanes, states, rows, moments: rows, table };
        network.forward(&batch, out)
    }

    /// Start computing outputs and then the gradient of `sum d_out * out`; does not [`wait`](Self::wait).
    pub fn start_gradient(&mut self) -> Result<()> {
        let CudaNet { network, lanes, states, rows, table, out, d_out, gradient, .. } = self;
        let batch = CudaBatch { lanes: *lanes, states, rows, moments: rows, table };
        network.forward_train(&batch, out)?;
        network.backward(&batch, d_out, &mut gradient.slice_mut(..))
    }

    /// Wait for all that was started.
    pub fn wait(&self) -> Result<()> {
        self.gpu.wait()
    }

    /// Outputs `[(k * sites + site) * outputs + s]` of configurations at their times.
    pub fn forward(&mut self, states: &[u8], times: &[f64]) -> Result<Vec<f32>> {
        self.place(states, times)?;
        self.start_forward()?;
        self.gpu.download(&self.out.slice(..times.len() * self.sites * self.outputs))
    }

    /// The gradient of `sum d_out * out` with respect to the parameters, in their order.
    pub fn gradient(&mut self, states: &[u8], times: &[f64], d_out: &[f32]) -> Result<Vec<f32>> {
        self.place(states, times)?;
        check("d_out", d_out.len(), states.len() * self.outputs)?;
        self.gpu.write(d_out, &mut self.d_out)?;
        self.start_gradient()?;
        self.gpu.download(&self.gradient)
    }
}

fn check(what: &str, got: usize, want: usize) -> Result<()> {
    if got == want {
        return Ok(());
    }
    Err(Error::invalid(what, got, format!("{want} numbers"), "give as many as the network has"))
}
