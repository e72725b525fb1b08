//! Global features on a GPU: what the kernel that counts needs of the lattice.

use std::sync::Arc;

use cudarc::driver::{CudaFunction, CudaSlice};

use super::arguments::{BondRows, Counting};
use crate::Result;
use crate::device::cuda::arguments::{Input, Output};
use crate::device::cuda::{Gpu, Kernels, launch};
use crate::net::cuda::CudaBatch;
use crate::net::hollow::global_features::GlobalFeatures;

/// The kernel and its tables.
pub(super) struct CudaGlobalFeatures {
    kernel: CudaFunction,
    ends: CudaSlice<u32>,
    classes: CudaSlice<BondRows>,
    signs: CudaSlice<u8>,
    values: (f32, f32),
    order_factor: f32,
    root: f32,
}

impl CudaGlobalFeatures {
    pub(super) fn new(
        features: &GlobalFeatures,
        gpu: &Arc<Gpu>,
        kernels: &Kernels,
    ) -> Result<Self> {
        let sites = features.classes[0].ends[0].len();
        let (mut ends, mut classes) = (Vec::new(), Vec::new());
        for class in &features.classes {
            let first = (ends.len() / sites) as u32;
            let all = class.ends.iter().flatten();
            ends.extend(all.map(|&end| if end as usize == sites { u32::MAX } else { end }));
            let (factor, offset) = (class.scale.0 as f32, class.scale.1 as f32);
            classes.push(BondRows { first, end: (ends.len() / sites) as u32, factor, offset });
        }
        let bits = |site: usize| {
            let negative = |(k, signs): (usize, &Vec<i8>)| u8::from(signs[site] < 0) << k;
            features.orders.iter().enumerate().map(negative).sum()
        };
        let signs: Vec<u8> = (0..sites).map(bits).collect();
        Ok(CudaGlobalFeatures {
            kernel: kernels.get("write_global_features", 0)?,
            ends: gpu.upload(&ends)?,
            classes: gpu.upload(&classes)?,
            signs: gpu.upload(&signs)?,
            values: (features.values.0 as f32, features.values.1 as f32),
            order_factor: features.order_factor as f32,
            root: features.root as f32,
        })
    }

    /// Write the features of the sites of a batch.
    pub(super) fn write(
        &self,
        gpu: &Gpu,
        batch: &CudaBatch<'_>,
        out: &mut CudaSlice<u32>,
    ) -> Result<()> {
        let pass = Counting {
            states: Input::of(gpu, batch.states),
            rows: Input::of(gpu, batch.rows),
            ends: Input::of(gpu, &self.ends),
            classes: Input::of(gpu, &self.classes),
            signs: Input::of(gpu, &self.signs),
            global_features: Output::cast(gpu, out),
            value_factor: self.values.0,
            value_offset: self.values.1,
            order_factor: self.order_factor,
            root: self.root,
        };
        launch!(gpu, self.kernel, ((batch.slots as u32, 1, 1), 128, 0), &pass)
    }
}
