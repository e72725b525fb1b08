//! States on a GPU that stand at places, chains or rungs of ladders, and are swept site by site as scalar kernels on the CPU do.

use std::sync::Arc;

use cudarc::driver::{CudaFunction, CudaSlice};

use crate::Result;
use crate::device::Purpose;
use crate::device::cuda::arguments::{Input, Output, arguments, join};
use crate::device::cuda::launch;
use crate::mcmc::lanes::Rule;
use crate::target::cuda::CudaTarget;

arguments! {
    /// What kernels know of all places.
    struct Places {
        /// `[place]`: the row of its state.
        rows: Input<u32>,
        /// `[place * stride + term]`.
        lambda: Input<f64>,
        /// `[place]`: sums of mean acceptances.
        acceptance: Output<f64>,
        stride: u32,
        count: u32,
    }
}

/// Source of the kernels, behind that of the target.
pub(super) const PLACES: &str = join!(Places::SOURCE, include_str!("places.cu"));

/// What the source has to know beside the target.
pub(super) fn defines() -> [(&'static str, usize); 1] {
    [("MOVE", Purpose::Move as usize)]
}

/// States at places.
pub(super) struct CudaPlaces {
    target: Arc<CudaTarget>,
    sweep: CudaFunction,
    counted: Option<CudaFunction>,
    arguments: Places,
    /// `[place]`: the row of its state.
    _rows: CudaSlice<u32>,
    acceptance: CudaSlice<f64>,
    _lambda: CudaSlice<f64>,
}

impl CudaPlaces {
    /// Bytes of a place with so many energy terms.
    pub(super) fn bytes(terms: usize) -> usize {
        4 + 8 * (terms + 1)
    }

    /// The state of row `i` at place `i`, at the weights of the rungs of a ladder, over and over; one rung is a chain.
    pub(super) fn new(
        target: &Arc<CudaTarget>,
        rule: Rule,
        count: usize,
        ladder: &[Vec<f64>],
    ) -> Result<Self> {
        let gpu = &target.gpu;
        let kernels = target.compile(PLACES, &defines())?;
        let (_, shared) = target.block();
        let rows = gpu.upload(&(0..count as u32).collect::<Vec<u32>>())?;
        let (lambda, stride) = match ladder {
            [one] => (one.clone(), 0),
            all => ((0..count).flat_map(|i| all[i % all.len()].clone()).collect(), target.terms),
        };
        let lambda = gpu.upload(&lambda)?;
        let acceptance = gpu.zeros(count)?;
        let arguments = Places {
            rows: Input::of(gpu, &rows),
            lambda: Input::of(gpu, &lambda),
            acceptance: Output::of(gpu, &acceptance),
            stride: stride as u32,
            count: count as u32,
        };
        let (sweep, counted) = match rule {
            Rule::HeatBath => (kernels.get("heat_bath_places", shared)?, None),
            Rule::Metropolis => (
                kernels.get("metropolis_places", shared)?,
                Some(kernels.get("metropolis_counted", shared)?),
            ),
        };
        Ok(CudaPlaces {
            target: target.clone(),
            sweep,
            counted,
            arguments,
            _rows: rows,
            acceptance,
            _lambda: lambda,
        })
    }

    /// Sweep all places; sweep `s` draws from the stream of (seed, move, place, step + s). If `counted`, note the acceptance.
    pub(super) fn sweep(
        &mut self,
        states: &mut CudaSlice<u8>,
        seed: u64,
        (step, sweeps): (u64, u64),
        counted: bool,
    ) -> Result<()> {
        let kernel = self.counted.as_ref().filter(|_| counted).unwrap_or(&self.sweep);
        let (threads, shared) = self.target.block();
        let grid = (self.arguments.count.div_ceil(threads as u32), 1, 1);
        let sweeps = sweeps as u32;
        launch!(
            self.target.gpu,
            kernel,
            (grid, threads, shared),
            self.target.arguments(),
            &self.arguments,
            states,
            &seed,
            &step,
            &sweeps,
        )
    }

    /// Mean acceptance of every place over so many counted sweeps.
    pub(super) fn acceptance(&self, sweeps: u64) -> Result<Vec<f64>> {
        let count = self.arguments.count as usize;
        if self.counted.is_none() {
            return Ok(vec![1.0; count]);
        }
        let sums = self.target.gpu.download(&self.acceptance.slice(..count))?;
        Ok(sums.into_iter().map(|sum| sum / sweeps.max(1) as f64).collect())
    }
}
