//! Where chains run: one trait, and an implementation per device.

use super::Kernel;
use super::chains::{
    ChainOutcome, ChainSettings, TemperingOutcome, TemperingSettings, run_chains, run_tempering,
};
use super::cuda::cuda_runner;
use super::kernel_name::{AnyKernel, KernelName};
use super::lanes::{LadderPlan, Plan, Scan, run_lane_chains, run_lane_tempering};
use super::lockstep::run_lockstep_chains;
use crate::Result;
use crate::device::{Placement, Progress};
use crate::observe::RemoteRecorder;
use crate::target::{Density, Target};

/// How the states of chains, or of the rungs of ladders, move and are recorded.
pub(crate) struct Moves<'a, R> {
    pub(crate) target: &'a dyn Target,
    /// Weights of the energy terms: those of chains, or of the last rung.
    pub(crate) lambda: &'a [f64],
    pub(crate) kernel: KernelName,
    pub(crate) scan: Scan,
    /// Makes the recorder of a chain.
    pub(crate) fresh: &'a (dyn Fn() -> R + Sync),
    pub(crate) progress: &'a dyn Progress,
}

/// Chains on a device: the same ones on all of them.
pub(crate) trait ChainRunner<R: RemoteRecorder> {
    /// Independent chains, see [`run_chains`].
    fn chains(&self, moves: Moves<'_, R>, how: &ChainSettings) -> Result<Vec<ChainOutcome<R>>>;

    /// Ladders of temperatures that exchange states, see [`run_tempering`].
    fn ladders(
        &self,
        moves: Moves<'_, R>,
        how: &TemperingSettings,
    ) -> Result<Vec<TemperingOutcome<R>>>;
}

/// Chains where they are placed.
pub(crate) fn runner<R: RemoteRecorder>(placement: &Placement) -> Box<dyn ChainRunner<R>> {
    match placement {
        Placement::Cpu => Box::new(OnCpu),
        Placement::Cuda(gpu, _) => cuda_runner(gpu),
    }
}

/// Tables move 64 chains at once; targets that they do not serve are moved one by one.
struct OnCpu;

impl<R: RemoteRecorder> ChainRunner<R> for OnCpu {
    fn chains(&self, moves: Moves<'_, R>, how: &ChainSettings) -> Result<Vec<ChainOutcome<R>>> {
        let Moves { target, lambda, kernel, scan, fresh, progress } = moves;
        let model = Density::new(target, lambda);
        if let Some(plan) = kernel.rule().and_then(|rule| Plan::of(target, rule, scan).ok()) {
            return run_lane_chains(&model, &plan, how, |_| fresh(), progress);
        }
        let any = AnyKernel::new(kernel, target, lambda)?;
        match kernel.rule() {
            Some(rule) if target.prefers_batches() => {
                let moves = (rule, any.energy_calls(target.q()));
                run_lockstep_chains(&model, moves, how, |_| fresh(), progress)
            }
            _ => run_chains(&model, &any, how, |_| fresh(), progress),
        }
    }

    fn ladders(
        &self,
        moves: Moves<'_, R>,
        how: &TemperingSettings,
    ) -> Result<Vec<TemperingOutcome<R>>> {
        let Moves { target, lambda, kernel, scan, fresh, progress } = moves;
        let rule = kernel.rule().filter(|_| !how.houdayer);
        if let Some(plan) = rule.and_then(|rule| LadderPlan::of(target, rule, scan).ok()) {
            return run_lane_tempering(target, &plan, how, |_| fresh(), progress);
        }
        let any = AnyKernel::new(kernel, target, lambda)?;
        run_tempering(target, &any, how, |_, _| fresh(), progress)
    }
}
