//! Chains on a GPU: heat bath, Metropolis, and ladders of temperatures that exchange states.
//!
//! Chains take the same way as on the CPU. Their states stay on the GPU, which reduces those that are kept to what
//! [recorders](crate::observe::RemoteRecorder) ask for.

#[cfg(not(feature = "cuda"))]
mod absent;
#[cfg(feature = "cuda")]
mod batches;
#[cfg(feature = "cuda")]
mod chains;
#[cfg(feature = "cuda")]
mod ladders;
#[cfg(feature = "cuda")]
mod places;
#[cfg(feature = "cuda")]
mod rungs;
#[cfg(feature = "cuda")]
mod runner;
#[cfg(all(test, feature = "cuda"))]
mod tests;

#[cfg(not(feature = "cuda"))]
pub(crate) use absent::cuda_runner;
#[cfg(feature = "cuda")]
pub(crate) use runner::cuda_runner;

use super::KernelName;
use super::lanes::{LadderPlan, Scan};
use crate::target::{Target, pairwise_for_gpu};
use crate::{Error, Result};

/// Refuse a kernel, chosen by the setting `key`, or a target that GPUs do not have.
pub(crate) fn check_gpu(key: &str, kernel: KernelName, target: &dyn Target) -> Result<()> {
    if kernel.rule().is_none() {
        let kernels = KernelName::ON_GPU.map(|kernel| kernel.to_string()).join(" and ");
        let condition = format!("one that GPUs have: {kernels}");
        let advice = "choose one of them, or use the device cpu";
        return Err(Error::invalid(key, kernel, condition, advice));
    }
    pairwise_for_gpu(target).map(drop)
}

/// Tables for the rungs of a ladder, where they serve the kernel and the target.
pub(crate) fn ladder_plan(
    target: &dyn Target,
    kernel: KernelName,
    scan: Scan,
) -> Result<LadderPlan> {
    let plan = |rule| LadderPlan::new(target.pairwise()?, rule, scan).ok();
    kernel.rule().and_then(plan).ok_or_else(|| {
        let reason =
            "ladders run there where tables serve the target, and this one has too many neighbours";
        Error::not_applicable("a GPU", reason)
    })
}

/// Refuse a target whose chains cannot be measured where they are.
pub(crate) fn check_measured(target: &dyn Target) -> Result<()> {
    if target.lattice_model().is_some_and(|model| model.vectors().is_some()) {
        let reason =
            "chains are measured there, its order parameter on the CPU alone; use the device cpu";
        return Err(Error::not_applicable("a GPU", reason));
    }
    Ok(())
}
