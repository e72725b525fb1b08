//! Walkers that follow a network, wherever it is computed.

use crate::Result;
use crate::device::Placement;
use crate::path::Path;
use crate::sampler::walkers::Population;
use crate::sampler::walkers::network::{NetworkWalkers, RateModel, Scheme};
use crate::target::Target;

/// Walkers that follow a network.
pub trait Followers: Population {
    /// Network passes per walker so far.
    fn passes(&self) -> Result<f64>;
}

impl Followers for NetworkWalkers<'_> {
    fn passes(&self) -> Result<f64> {
        Ok(NetworkWalkers::passes(self))
    }
}

#[cfg(feature = "cuda")]
impl Followers for crate::sampler::walkers::cuda::network::CudaWalkers<'_> {
    fn passes(&self) -> Result<f64> {
        crate::sampler::walkers::cuda::network::CudaWalkers::passes(self)
    }
}

/// `walkers` walkers in uniformly random states, on `placement`; `durations` from [`scheme_grid`](crate::sampler::scheme_grid).
pub fn followers<'a>(
    placement: &Placement,
    target: &'a dyn Target,
    path: &'a Path,
    flow: &'a RateModel<'a>,
    scheme: Scheme,
    durations: Vec<f64>,
    sweeps: u64,
    walkers: usize,
    seed: u64,
) -> Result<Box<dyn Followers + 'a>> {
    match placement {
        Placement::Cpu => Ok(Box::new(NetworkWalkers::new(
            target, path, flow, scheme, durations, sweeps, walkers, seed,
        )?)),
        #[cfg(not(feature = "cuda"))]
        Placement::Cuda(gpu, _) => match **gpu {},
        #[cfg(feature = "cuda")]
        Placement::Cuda(gpu, precision) => {
            use crate::device::cuda::memory::fitting;
            use crate::sampler::walkers::cuda::network::{
                CudaRates, CudaWalkers, FEWEST_LANES, LANES,
            };
            use crate::sampler::walkers::cuda::sweeps::KEY;
            use crate::target::cuda::CudaTarget;
            let (fixed, each) = flow.net.cuda_bytes(gpu, *precision, false)?;
            let lane = each + CudaWalkers::bytes_per_lane(target);
            let walker = CudaWalkers::bytes_per_walker(target);
            let few = fixed + walkers.min(FEWEST_LANES) * lane;
            gpu.with_room(KEY, walkers, (few, walker), || {
                // With less memory, fewer at a time.
                let room = fitting(fixed + walkers * walker, lane, gpu.free_memory()?);
                let lanes = walkers.min(LANES).min(room.max(FEWEST_LANES));
                let mut network = flow.net.on_gpu(gpu, lanes, *precision)?;
                network.refresh(&gpu.upload(&flow.parameters)?)?;
                let on_gpu = std::sync::Arc::new(CudaTarget::new(gpu, target)?);
                let there = CudaRates { network, lanes, parametrisation: flow.parametrisation };
                let made: Box<dyn Followers> = Box::new(CudaWalkers::new(
                    target, &on_gpu, path, there, scheme, durations, sweeps, walkers, seed,
                )?);
                Ok(made)
            })
        }
    }
}
