//! Chains on a GPU of a program that was built without them: no GPU exists to call this with.

use std::sync::Arc;

use crate::device::Gpu;
use crate::mcmc::runner::ChainRunner;

/// Chains there.
pub(crate) fn cuda_runner<R>(gpu: &Arc<Gpu>) -> Box<dyn ChainRunner<R>> {
    match **gpu {}
}
