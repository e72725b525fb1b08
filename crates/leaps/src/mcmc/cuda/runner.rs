//! Chains on a GPU as jobs ask for them.

use std::sync::Arc;

use super::chains::run_cuda_chains;
use super::ladder_plan;
use super::rungs::run_cuda_ladders;
use crate::Result;
use crate::device::{Gpu, Progress};
use crate::mcmc::runner::{ChainRunner, Fresh, Moves};
use crate::mcmc::{ChainOutcome, ChainSettings, TemperingOutcome, TemperingSettings};
use crate::observe::RemoteRecorder;
use crate::target::Density;

/// Chains there.
pub(crate) fn cuda_runner<R: RemoteRecorder>(gpu: &Arc<Gpu>) -> Box<dyn ChainRunner<R>> {
    Box::new(OnGpu(gpu.clone()))
}

struct OnGpu(Arc<Gpu>);

impl<R: RemoteRecorder> ChainRunner<R> for OnGpu {
    fn chains(
        &self,
        moves: Moves<'_>,
        settings: &ChainSettings,
        fresh: Fresh<'_, R>,
        progress: &dyn Progress,
    ) -> Result<Vec<ChainOutcome<R>>> {
        let model = Density::new(moves.target, moves.lambda);
        let how = (moves.kernel, moves.scan);
        run_cuda_chains(&self.0, &model, how, settings, |_| fresh(), progress)
    }

    fn ladders(
        &self,
        moves: Moves<'_>,
        settings: &TemperingSettings,
        fresh: Fresh<'_, R>,
        progress: &dyn Progress,
    ) -> Result<Vec<TemperingOutcome<R>>> {
        let plan = ladder_plan(moves.target, moves.kernel, moves.scan)?;
        run_cuda_ladders(&self.0, moves.target, &plan, settings, |_| fresh(), progress)
    }
}
