//! Training on a GPU of a program that was built without it: no GPU exists to call this with.

use std::sync::Arc;

use crate::Result;
use crate::device::{Gpu, Precision};
use crate::train::step::TrainStep;
use crate::train::{Objective, TrainSpec};

/// Training of an objective on a GPU.
pub(in crate::train) fn training(
    _: &Objective,
    _: &TrainSpec,
    gpu: &Arc<Gpu>,
    _: Precision,
) -> Result<Box<dyn TrainStep>> {
    match **gpu {}
}
