//! Evaluation of a network on any device: host arrays in and out.

mod cpu;
#[cfg(test)]
pub(super) mod tests;

use super::Net;
use crate::device::Placement;
use crate::{Error, Result};
use cpu::CpuEvaluator;

/// Configurations for a network.
#[derive(Clone, Copy, Debug, Default)]
pub struct Inputs<'a> {
    /// States, `[k * sites + site]`.
    pub states: &'a [u8],
    /// Their times, `[k]`.
    pub times: &'a [f64],
    /// What the network is conditioned on beside the time, `[k * conditions + c]`; empty for zeros.
    pub conditions: &'a [f64],
    /// Couplings of their instances, `[k * couplings + c]`; empty for [those](Net::instance) of the target that the network was built for.
    pub couplings: &'a [f32],
}

/// A [`Net`] with its parameters on a device, made by [`Net::evaluator`].
///
/// ```
/// use leaps::device::Placement;
/// use leaps::net::{Inputs, MlpSpec, Net, NetSpec};
/// use leaps::target::{Boundary, Lattice, Pairwise};
///
/// # fn main() -> leaps::Result<()> {
/// let lattice = Lattice::new(&[4, 4], Boundary::Periodic)?;
/// let net = Net::new(&NetSpec::Mlp(MlpSpec::default()), &Pairwise::ising(lattice, 1.0, 0.0)?)?;
/// let mut evaluator = net.evaluator(&Placement::Cpu, 64)?;
/// evaluator.load(&net.initial(1))?;
/// let inputs = Inputs { states: &[0; 2 * 16], times: &[0.25, 0.75], ..Inputs::default() };
/// let mut outputs = vec![0.0; 2 * 16];
/// evaluator.forward(inputs, &mut outputs)?;
/// # Ok(())
/// # }
/// ```
pub trait Evaluator: Send {
    /// Take over parameters, in the order of [`Net::tensors`]. They are 0 before.
    fn load(&mut self, parameters: &[f32]) -> Result<()>;

    /// Write the outputs, `out[(k * sites + site) * outputs + s]`.
    fn forward(&mut self, x: Inputs<'_>, out: &mut [f32]) -> Result<()>;

    /// Write the gradient of `sum d_out * out` with respect to the parameters, in their order.
    fn gradient(&mut self, x: Inputs<'_>, d_out: &[f32], grad: &mut [f32]) -> Result<()>;
}

impl Net {
    /// The network on a device, which computes up to `batch` configurations at a time.
    pub fn evaluator(&self, placement: &Placement, batch: usize) -> Result<Box<dyn Evaluator>> {
        if batch == 0 {
            return Err(Error::invalid("batch", 0, "at least 1", "1024 is usual"));
        }
        match placement {
            Placement::Cpu => Ok(Box::new(CpuEvaluator::new(self, batch))),
            Placement::Cuda(gpu, precision) => {
                self.gpu_has()?;
                self.cuda_evaluator(gpu, batch, *precision)
            }
        }
    }
}

/// Numbers of everything that goes into a network and comes out.
#[derive(Clone, Copy, Debug)]
pub(super) struct Shape {
    pub(super) sites: usize,
    pub(super) conditions: usize,
    pub(super) couplings: usize,
    /// Outputs of a configuration.
    pub(super) outputs: usize,
    pub(super) parameters: usize,
}

impl Shape {
    pub(super) fn new(net: &Net) -> Self {
        Shape {
            sites: net.sites(),
            conditions: net.conditions(),
            couplings: net.couplings(),
            outputs: net.sites() * net.outputs(),
            parameters: net.parameters(),
        }
    }

    pub(super) fn check_parameters(&self, parameters: &[f32]) -> Result<()> {
        check("parameters", parameters.len(), self.parameters)
    }

    /// Refuse arrays of the wrong length; `out` are outputs or their gradients.
    pub(super) fn check(&self, x: &Inputs<'_>, out: &[f32]) -> Result<()> {
        let n = x.times.len();
        check("states", x.states.len(), n * self.sites)?;
        check("outputs", out.len(), n * self.outputs)?;
        let conditions = if x.conditions.is_empty() { 0 } else { n * self.conditions };
        check("conditions", x.conditions.len(), conditions)?;
        let couplings = if x.couplings.is_empty() { 0 } else { n * self.couplings };
        check("couplings", x.couplings.len(), couplings)
    }

    /// The inputs, up to `n` configurations at a time.
    pub(super) fn chunks<'a>(
        self,
        x: Inputs<'a>,
        n: usize,
    ) -> impl Iterator<Item = Inputs<'a>> + 'a {
        x.times.chunks(n).enumerate().map(move |(k, times)| {
            let range = |width: usize| k * n * width..(k * n + times.len()) * width;
            let conditions = x.conditions.get(range(self.conditions)).unwrap_or_default();
            let couplings = x.couplings.get(range(self.couplings)).unwrap_or_default();
            Inputs { states: &x.states[range(self.sites)], times, conditions, couplings }
        })
    }
}

fn check(what: &str, got: usize, want: usize) -> Result<()> {
    if got == want {
        return Ok(());
    }
    Err(Error::invalid(what, got, format!("{want} numbers"), "give as many as the network has"))
}
