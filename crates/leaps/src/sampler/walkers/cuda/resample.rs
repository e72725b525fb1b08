//! Resampling of walkers on a GPU, so that no step waits for the CPU.
//!
//! Everything is launched without knowing whether walkers will be resampled: the kernels that copy them look at the verdict
//! of the one that judges their weights. Ancestors are those of [`Resampler::ancestors`](crate::sampler::Resampler::ancestors), but for
//! points closer to a running sum than the rounding of the sums.

use std::sync::Arc;

use cudarc::driver::{CudaFunction, CudaSlice};

use crate::device::Purpose;
use crate::device::cuda::arguments::{Input, Output, arguments, join};
use crate::device::cuda::{Gpu, failed, launch};
use crate::sampler::walkers::Lineage;
use crate::sampler::{Interval, Resampler, Resampling};
use crate::{Error, Result};

arguments! {
    /// What came of an interval.
    struct Record {
        /// As a fraction; the bad log-weight if it failed.
        ess: f64,
        /// Effective sample size of the step alone; the bad walker if it failed.
        conditional: f64,
        /// Of the weights.
        log_mean: f64,
        /// One of the outcomes below.
        outcome: f64,
    }
}

arguments! {
    /// Log-weights before and after an interval, and how they are judged.
    struct Judgement {
        before: Input<f64>,
        after: Input<f64>,
        /// `[walker]`: space for running sums.
        sums: Output<f64>,
        ancestors: Output<u32>,
        record: Output<Record>,
        /// Effective sample size, as a fraction, below which walkers are resampled.
        threshold: f64,
        seed: u64,
        /// The interval.
        k: u64,
        /// 1 draws a number for every walker, 0 one for all.
        stratified: u32,
        walkers: u32,
    }
}

arguments! {
    /// Arrays whose rows go with the walkers; unused ones have rows of no bytes.
    struct Carried {
        arrays: [Output<u8>; 4],
        bytes: [u64; 4],
    }
}

/// Source of the kernels.
const RESAMPLE: &str =
    join!(Record::SOURCE, Judgement::SOURCE, Carried::SOURCE, include_str!("resample.cu"));

/// Threads that judge the weights.
const BLOCK: usize = 1024;

/// Outcomes: nothing happened, or walkers were resampled; failures are a log-weight that is none, and weights that are all zero.
const WENT_ON: usize = 0;
const RESAMPLED: usize = 1;
const NOT_A_WEIGHT: usize = 2;
const NO_WEIGHTS: usize = 3;

/// Numbers that the kernels share with this file.
const DEFINES: [(&str, usize); 6] = [
    ("RESAMPLE", Purpose::Resample as usize),
    ("BLOCK", BLOCK),
    ("WENT_ON", WENT_ON),
    ("RESAMPLED", RESAMPLED),
    ("NOT_A_WEIGHT", NOT_A_WEIGHT),
    ("NO_WEIGHTS", NO_WEIGHTS),
];

/// Numbers of a record.
const RECORD: usize = size_of::<Record>() / size_of::<f64>();

/// Most blocks that copy rows.
const COPIERS: usize = 4096;

/// What resampling needs on a GPU, for some number of walkers.
pub(crate) struct CudaResampler {
    gpu: Arc<Gpu>,
    walkers: usize,
    decide: CudaFunction,
    spread: CudaFunction,
    settle: CudaFunction,
    before: CudaSlice<f64>,
    sums: CudaSlice<f64>,
    ancestors: CudaSlice<u32>,
    ancestry: CudaSlice<u32>,
    spare: CudaSlice<u8>,
    records: CudaSlice<f64>,
}

/// Arrays that go with the walkers: where they lie, and the bytes of a row.
pub(crate) type Rows = [(Output<u8>, usize); 3];

/// A decision whether to resample.
#[derive(Clone, Copy)]
pub(crate) struct Judged<'a> {
    pub(crate) rule: &'a Resampling,
    /// The interval after which it is made.
    pub(crate) at: Interval<'a>,
    /// Its place in the stretch of intervals.
    pub(crate) place: usize,
    /// The seed of resampling.
    pub(crate) seed: u64,
}

impl CudaResampler {
    /// Whether ancestors are drawn on the GPU. Other schemes need sorted numbers, which the CPU draws.
    pub(crate) fn serves(scheme: Resampler) -> bool {
        matches!(scheme, Resampler::Systematic | Resampler::Stratified)
    }

    /// Bytes for a walker whose rows have `row` bytes.
    pub(crate) fn bytes(row: usize) -> usize {
        2 * size_of::<f64>() + 2 * size_of::<u32>() + row + size_of::<u32>()
    }

    /// For walkers whose rows have `row` bytes in all.
    pub(crate) fn new(gpu: &Arc<Gpu>, walkers: usize, row: usize) -> Result<Self> {
        let kernels = gpu.compile(RESAMPLE, &DEFINES)?;
        Ok(CudaResampler {
            walkers,
            decide: kernels.get("decide", 0)?,
            spread: kernels.get("spread", 0)?,
            settle: kernels.get("settle", 0)?,
            before: gpu.zeros(walkers)?,
            sums: gpu.zeros(walkers)?,
            ancestors: gpu.zeros(walkers)?,
            ancestry: gpu.zeros(walkers)?,
            spare: gpu.zeros(walkers * (row + size_of::<u32>()))?,
            records: gpu.zeros(RECORD)?,
            gpu: gpu.clone(),
        })
    }

    /// A stretch of `intervals` begins.
    pub(crate) fn begin(&mut self, lineage: &Lineage, intervals: usize) -> Result<()> {
        self.gpu.write(&lineage.ancestry, &mut self.ancestry)?;
        if self.records.len() < intervals * RECORD {
            self.records = self.gpu.zeros(intervals * RECORD)?;
        }
        Ok(())
    }

    /// Copy the log-weights before an interval.
    pub(crate) fn remember(&mut self, log_weights: &CudaSlice<f64>) -> Result<()> {
        let (from, mut to) =
            (log_weights.slice(..self.walkers), self.before.slice_mut(..self.walkers));
        self.gpu.stream.memcpy_dtod(&from, &mut to).map_err(failed("memory of the GPU"))
    }

    /// After an interval: resample if the effective sample size asks for it.
    pub(crate) fn resample(
        &mut self,
        log_weights: &mut CudaSlice<f64>,
        rows: Rows,
        judged: Judged<'_>,
    ) -> Result<()> {
        let Judged { rule, at, place, seed } = judged;
        let gpu = &self.gpu;
        let n = self.walkers as u32;
        let record = self.records.slice(place * RECORD..(place + 1) * RECORD);
        let judgement = Judgement {
            before: Input::of(gpu, &self.before),
            after: Input::of(gpu, &*log_weights),
            sums: Output::of(gpu, &self.sums),
            ancestors: Output::of(gpu, &self.ancestors),
            record: Output::cast(gpu, &record),
            threshold: rule.threshold_at(at),
            seed,
            k: at.k as u64,
            stratified: u32::from(rule.resampler == Resampler::Stratified),
            walkers: n,
        };
        launch!(gpu, self.decide, ((1, 1, 1), BLOCK, 0), &judgement)?;
        let ancestry = (Output::cast(gpu, &self.ancestry), size_of::<u32>());
        let [first, second, third] = rows;
        let all = [first, second, third, ancestry];
        let carried = Carried {
            arrays: all.map(|(array, _)| array),
            bytes: all.map(|(_, bytes)| bytes as u64),
        };
        let grid = (self.walkers.min(COPIERS) as u32, 1, 1);
        launch!(
            gpu,
            self.spread,
            (grid, 128, 0),
            &record,
            &carried,
            &self.spare,
            &self.ancestors,
            &n
        )?;
        launch!(gpu, self.settle, (grid, 128, 0), &record, &carried, &self.spare, log_weights, &n)
    }

    /// A stretch of `intervals` ends: write to the lineage what came of it.
    pub(crate) fn end(&self, lineage: &mut Lineage, intervals: usize) -> Result<()> {
        let records = self.gpu.download(&self.records.slice(..intervals * RECORD))?;
        for record in records.chunks_exact(RECORD) {
            let &[ess, conditional, log_mean, outcome] = record else { continue };
            match outcome as usize {
                WENT_ON => lineage.went_on(ess, conditional),
                RESAMPLED => lineage.resampled(ess, conditional, log_mean),
                NOT_A_WEIGHT => {
                    let text = format!("walker {conditional} has log-weight {ess}");
                    return Err(Error::Weights(text));
                }
                _ => return Err(Error::Weights("every walker has weight zero".into())),
            }
        }
        lineage.ancestry = self.gpu.download(&self.ancestry.slice(..self.walkers))?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg_attr(not(has_nvrtc), ignore = "needs NVRTC: set LEAPS_NVRTC to its folder")]
    fn kernels_compile() {
        crate::device::cuda::testing::compiles(RESAMPLE, &DEFINES);
    }
}
