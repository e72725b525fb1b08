//! Walkers on a GPU of a program that was built without them: no GPU exists to call these with.

use std::sync::Arc;

use crate::Result;
use crate::device::{Gpu, Precision};
use crate::sampler::moves::Means;
use crate::sampler::{NetworkWalk, Population, Walkers};
use crate::target::Target;

/// Walkers that follow a network.
pub(in crate::sampler) fn network_walkers(
    _: NetworkWalk<'_>,
    gpu: &Arc<Gpu>,
    _: Precision,
) -> Result<Box<dyn Walkers>> {
    match **gpu {}
}

/// Walkers that make sweeps.
pub(in crate::sampler) fn sweep_walkers(
    gpu: &Arc<Gpu>,
    _: &dyn Target,
    _: Means,
    _: Population,
) -> Result<Box<dyn Walkers>> {
    match **gpu {}
}
