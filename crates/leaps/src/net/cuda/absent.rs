//! Networks on a GPU in a program that was built without the feature `cuda`: there are none.

use crate::Result;
use crate::device::{Gpu, Precision};
use crate::net::{Evaluator, Net};

impl Net {
    /// See [`Net::evaluator`].
    pub(in crate::net) fn cuda_evaluator(
        &self,
        gpu: &Gpu,
        _batch: usize,
        _precision: Precision,
    ) -> Result<Box<dyn Evaluator>> {
        match *gpu {}
    }

    /// How exactly the network is computed on a GPU.
    pub(in crate::net) fn cuda_precision(&self, gpu: &Gpu, _asked: Precision) -> Precision {
        match *gpu {}
    }
}
