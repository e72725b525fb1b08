//! Chains on a GPU as jobs ask for them.

use std::sync::Arc;

use super::chains::run_cuda_chains;
use super::ladder_plan;
use super::rungs::run_cuda_ladders;
use crate::Result;
use crate::device::Gpu;
use crate::mcmc::runner::{ChainRunner, Moves};
use crate::mcmc::{ChainOutcome, ChainSettings, TemperingOutcome, TemperingSettings};
use crate::observe::RemoteRecorder;
use crate::target::Density;

/// Chains there.
pub(crate) fn cuda_runner<R: RemoteRecorder>(gpu: &Arc<Gpu>) -> Box<dyn ChainRunner<R>> {
    Box::new(OnGpu(gpu.clone()))
}

struct OnGpu(Arc<Gpu>);

impl<R: RemoteRecorder> ChainRunner<R> for OnGpu {
    fn chains(&self, moves: Moves<'_, R>, how: &ChainSettings) -> Result<Vec<ChainOutcome<R>>> {
        let Moves { target, lambda, kernel, scan, fresh, progress } = moves;
        let model = Density::new(target, lambda);
        run_cuda_chains(&self.0, &model, (kernel, scan), how, |_| fresh(), progress)
    }

    fn ladders(
        &self,
        moves: Moves<'_, R>,
        how: &TemperingSettings,
    ) -> Result<Vec<TemperingOutcome<R>>> {
        let Moves { target, kernel, scan, fresh, progress, .. } = moves;
        let plan = ladder_plan(target, kernel, scan)?;
        run_cuda_ladders(&self.0, target, &plan, how, |_| fresh(), progress)
    }
}
