//! Rate models: a network with its parameters, and walkers that follow it.

use std::sync::Arc;

use super::walkers::{Population, Walkers, cuda};
use super::{NetworkWalkers, WalkPlan};
use crate::Result;
use crate::device::Placement;
use crate::net::Net;
use crate::path::Path;
use crate::rates::Parametrisation;
use crate::target::Target;

/// The rates of a trained, or untrained, network. Cheap to clone.
#[derive(Clone, Debug)]
pub struct RateModel {
    /// The network.
    pub net: Arc<Net>,
    parameters: Arc<[f32]>,
    /// The same, packed by [`Net::pack`].
    pub(super) packed: Arc<[f32]>,
    /// What the network is conditioned on beside the time.
    pub(super) condition: Vec<f64>,
    /// Couplings of the instance that the network is shown; none for most.
    pub(super) couplings: Arc<[f32]>,
    /// How fluxes become rates.
    pub parametrisation: Parametrisation,
    /// Whether walkers go back in time, by the rates of the time reversal.
    pub(super) reversed: bool,
}

impl RateModel {
    /// The network with these parameters, in the order of [`Net::tensors`].
    pub fn new(net: &Arc<Net>, parameters: &[f32], parametrisation: Parametrisation) -> Self {
        RateModel {
            net: net.clone(),
            parameters: parameters.into(),
            packed: net.pack(parameters).into(),
            condition: vec![0.0; net.conditions()],
            couplings: net.instance().clone(),
            parametrisation,
            reversed: false,
        }
    }

    /// The rates of the time reversal, for walkers that go back along the path.
    pub fn reversed(mut self) -> Self {
        self.reversed = !self.reversed;
        self
    }

    /// The parameters of the network.
    pub fn parameters(&self) -> &[f32] {
        &self.parameters
    }

    /// The member of its family that the network is conditioned on: [`Ranges::condition`](crate::path::Ranges::condition).
    ///
    /// # Panics
    /// If these are not [as many numbers](Net::conditions) as the network is conditioned on.
    pub fn conditioned_on(mut self, condition: &[f64]) -> Self {
        self.condition.copy_from_slice(condition);
        self
    }

    /// The same on another instance of the disorder: its [couplings](crate::target::Pairwise::axis_couplings) instead of
    /// [those](Net::instance) of the target that the network was built for.
    ///
    /// # Panics
    /// If these are not [as many](Net::couplings) as the network is shown.
    pub fn on_instance(mut self, couplings: &[f32]) -> Self {
        assert_eq!(couplings.len(), self.net.couplings(), "couplings of a network");
        self.couplings = couplings.into();
        self
    }
}

/// Walkers that are to follow a network.
#[derive(Clone, Copy)]
pub struct NetworkWalk<'a> {
    /// What they sample.
    pub target: &'a Arc<dyn Target>,
    /// The path to it.
    pub path: &'a Path,
    /// The network.
    pub rates: &'a RateModel,
    /// How they follow it.
    pub plan: &'a WalkPlan,
    /// Which walkers they are.
    pub population: Population,
}

impl NetworkWalk<'_> {
    /// The walkers, in uniformly random states, on a device.
    pub fn on(self, placement: &Placement) -> Result<Box<dyn Walkers>> {
        match placement {
            Placement::Cpu => Ok(Box::new(NetworkWalkers::new(self)?)),
            Placement::Cuda(gpu, precision) => cuda::network_walkers(self, gpu, *precision),
        }
    }
}
