//! Tables of a grid of times on a GPU.

use cudarc::driver::CudaSlice;

use crate::Result;
use crate::device::cuda::Gpu;
use crate::net::cuda::time_features;
use crate::path::Path;
use crate::sampler::{Grid, WalkPlan};

/// See the [module](self).
pub(super) struct Tables {
    pub(super) grid: Grid,
    /// `[time index * terms + term]`: weights of the energy terms, and their derivatives in time.
    pub(super) lambda: CudaSlice<f64>,
    pub(super) slopes: CudaSlice<f64>,
    /// `[interval]`.
    pub(super) durations: CudaSlice<f64>,
    /// `[interval]`: the number of the network call that serves it.
    pub(super) calls: CudaSlice<u32>,
    /// Time features of the network's calls, by time index.
    pub(super) features: CudaSlice<f32>,
}

impl Tables {
    /// Of a grid that a plan goes along on a path, for a network that is conditioned on `condition`.
    pub(super) fn new(
        gpu: &Gpu,
        path: &Path,
        (grid, plan): (&Grid, &WalkPlan),
        condition: &[f64],
    ) -> Result<Self> {
        let (mut lambda, mut slopes, mut features) = (Vec::new(), Vec::new(), Vec::new());
        let mut calls: Vec<u32> = vec![0];
        for (k, &t) in grid.times().iter().enumerate() {
            lambda.extend_from_slice(grid.lambda(k));
            slopes.extend(path.slope(t));
            // Substeps keep the outputs of their interval; of other intervals every one has its own.
            let call = plan.calls.get(k).copied();
            features.extend(time_features(call.unwrap_or(t), condition));
            if k > 0 {
                let anew = call.is_none() || call != plan.calls.get(k - 1).copied();
                calls.push(calls[k - 1] + u32::from(anew));
            }
        }
        Ok(Tables {
            grid: grid.clone(),
            lambda: gpu.upload(&lambda)?,
            slopes: gpu.upload(&slopes)?,
            durations: gpu.upload(&plan.durations)?,
            calls: gpu.upload(&calls)?,
            features: gpu.upload(&features)?,
        })
    }
}
