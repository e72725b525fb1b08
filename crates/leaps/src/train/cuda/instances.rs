//! Random instances on a GPU: what every walker's own couplings are, for energies and for the network.

use std::sync::Arc;

use cudarc::driver::CudaSlice;
use rayon::prelude::*;

use crate::Result;
use crate::device::NoProgress;
use crate::device::cuda::Gpu;
use crate::net::cuda::Couplings;
use crate::target::cuda::{CudaTarget, Several};
use crate::target::{Pairwise, Target};
use crate::train::{Instances, Objective, Pool};

/// The instances of a training on a GPU.
pub(super) struct CudaInstances {
    instances: Instances,
    /// For energies and sweeps.
    pub(super) target: CudaTarget,
    /// For the network, which is shown so many numbers of each.
    numbers: CudaSlice<f32>,
    shown: usize,
}

/// Instances that are drawn and sent at a time.
const CHUNK: usize = 256;

impl CudaInstances {
    /// Space for the instances of an objective, if it has some.
    pub(super) fn of(gpu: &Arc<Gpu>, objective: &Objective) -> Result<Option<Self>> {
        let Some(instances) = objective.instances.clone() else { return Ok(None) };
        let (count, shown) = (instances.count, objective.net.couplings());
        let several = Several { instances: count, rows: instances.walkers };
        Ok(Some(CudaInstances {
            target: CudaTarget::several(gpu, &*objective.target, several)?,
            numbers: gpu.zeros(count * shown)?,
            instances,
            shown,
        }))
    }

    /// Bytes that the instances of an objective take.
    pub(super) fn bytes(objective: &Objective) -> usize {
        let (Some(instances), Some(pairs)) = (&objective.instances, objective.target.pairwise())
        else {
            return 0;
        };
        let bonds: usize = (0..pairs.sites()).map(|site| pairs.directed(site).len()).sum();
        let numbers = (bonds + 1) * pairs.terms() * size_of::<f64>();
        instances.count * (numbers + objective.net.couplings() * size_of::<f32>())
    }

    /// What the network is shown.
    pub(super) fn couplings(&self) -> Couplings<'_> {
        Couplings { numbers: &self.numbers, rows: self.instances.walkers as u32 }
    }

    /// Send all instances as gradient step `step` uses them.
    pub(super) fn load(&mut self, step: u64) -> Result<()> {
        let all: Vec<usize> = (0..self.instances.count).collect();
        all.chunks(CHUNK).try_for_each(|numbers| self.send(numbers, step))
    }

    /// Replace the instances that gradient step `step` begins with, and their walkers in `states`.
    pub(super) fn renew(
        &mut self,
        objective: &Objective,
        (pool, step): (&Pool, u64),
        states: &mut CudaSlice<u8>,
    ) -> Result<()> {
        let renewed = pool.renewed(objective, step, &NoProgress)?;
        let numbers: Vec<usize> = renewed.iter().map(|(number, _)| *number).collect();
        self.send(&numbers, step)?;
        let gpu = self.target.gpu.clone();
        renewed
            .into_iter()
            .try_for_each(|(number, own)| gpu.write_at(&own, states, number * own.len()))
    }

    fn send(&mut self, numbers: &[usize], step: u64) -> Result<()> {
        let (instances, shown) = (&self.instances, self.shown);
        let drawn = |&number: &usize| {
            let target = instances.target(number, step)?;
            let couplings = if shown == 0 { None } else { target.axis_couplings() };
            Ok((number, target, couplings.unwrap_or_default()))
        };
        let drawn: Result<Vec<(usize, Pairwise, Vec<f32>)>> =
            numbers.par_iter().map(drawn).collect();
        for (number, target, couplings) in drawn? {
            self.target.set_instance(number, &target)?;
            self.target.gpu.write_at(&couplings, &mut self.numbers, number * shown)?;
        }
        Ok(())
    }
}
