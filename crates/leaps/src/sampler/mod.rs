//! Drive an ensemble of weighted walkers along a path: mutate, weigh, resample.

mod weights;

pub use weights::LogWeights;
