//! Chains on a GPU of a program that was built without them: no GPU exists to call this with.

use std::sync::Arc;

use crate::device::Gpu;
use crate::mcmc::runner::ChainRunner;
use crate::observe::RemoteRecorder;

/// Chains there.
pub(crate) fn cuda_runner<R: RemoteRecorder>(gpu: &Arc<Gpu>) -> Box<dyn ChainRunner<R>> {
    match **gpu {}
}
