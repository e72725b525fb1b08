//! Chains on a GPU of a program that was built without them: no GPU exists to call these with.

use std::sync::Arc;

use crate::Result;
use crate::device::{Gpu, Progress};
use crate::mcmc::lanes::{LadderPlan, Scan};
use crate::mcmc::{ChainOutcome, ChainSettings, KernelName, TemperingOutcome, TemperingSettings};
use crate::observe::RemoteRecorder;
use crate::target::{Density, Target};

/// Independent chains.
pub(crate) fn run_cuda_chains<R: RemoteRecorder>(
    gpu: &Arc<Gpu>,
    _: &Density<'_>,
    _: (KernelName, Scan),
    _: &ChainSettings,
    _: impl Fn(usize) -> R + Sync,
    _: &dyn Progress,
) -> Result<Vec<ChainOutcome<R>>> {
    match **gpu {}
}

/// Ladders of temperatures that tables move.
pub(crate) fn run_cuda_ladders<R: RemoteRecorder>(
    gpu: &Arc<Gpu>,
    _: &dyn Target,
    _: &LadderPlan,
    _: &TemperingSettings,
    _: impl Fn(usize) -> R + Sync,
    _: &dyn Progress,
) -> Result<Vec<TemperingOutcome<R>>> {
    match **gpu {}
}
