//! States on a GPU that stand at places, chains or rungs of ladders, and are swept site by site as scalar kernels on the CPU do.

use std::sync::Arc;

use cudarc::driver::{CudaFunction, CudaSlice, CudaViewMut};

use crate::Result;
use crate::device::Purpose;
use crate::device::cuda::arguments::{Input, Output, arguments, join};
use crate::device::cuda::{Kernels, launch};
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

arguments! {
    /// What kernels know of ladders of places.
    struct Ladders {
        /// `[ladder * rungs + rung]`: the row of its state.
        rows: Output<u32>,
        /// `[row]`: the end of the ladder at which the state last was.
        came_from: Output<u8>,
        /// `[ladder * rungs + rung]`: exchanges with the next rung.
        swaps: Output<u64>,
        /// `[ladder]`.
        round_trips: Output<u64>,
        ladders: u32,
        rungs: u32,
    }
}

/// Source of the kernels, behind that of the target.
pub(super) const PLACES: &str = join!(Places::SOURCE, Ladders::SOURCE, include_str!("places.cu"));

/// What the source has to know beside the target.
pub(super) fn defines() -> [(&'static str, usize); 2] {
    [("MOVE", Purpose::Move as usize), ("EXCHANGE", Purpose::Exchange as usize)]
}

/// States at places.
pub(super) struct CudaPlaces {
    target: Arc<CudaTarget>,
    pub(super) kernels: Kernels,
    sweep: CudaFunction,
    counted: Option<CudaFunction>,
    arguments: Places,
    /// `[place]`: the row of its state.
    pub(super) rows: CudaSlice<u32>,
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
            kernels,
            sweep,
            counted,
            arguments,
            rows,
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

/// Ladders of places, whose states are exchanged.
pub(super) struct CudaLadders {
    target: Arc<CudaTarget>,
    places: Places,
    arguments: Ladders,
    exchange: CudaFunction,
    by_place: CudaFunction,
    _came_from: CudaSlice<u8>,
    counts: [CudaSlice<u64>; 2],
}

impl CudaLadders {
    /// Bytes of a rung.
    pub(super) const BYTES: usize = 1 + 8 + 8;

    /// Ladders of `rungs` consecutive places.
    pub(super) fn new(places: &CudaPlaces, rungs: usize) -> Result<Self> {
        let (target, count) = (&places.target, places.arguments.count as usize);
        let gpu = &target.gpu;
        let came_from = gpu.zeros(count)?;
        let counts = [gpu.zeros(count)?, gpu.zeros(count / rungs)?];
        Ok(CudaLadders {
            places: places.arguments,
            arguments: Ladders {
                rows: Output::of(gpu, &places.rows),
                came_from: Output::of(gpu, &came_from),
                swaps: Output::of(gpu, &counts[0]),
                round_trips: Output::of(gpu, &counts[1]),
                ladders: (count / rungs) as u32,
                rungs: rungs as u32,
            },
            exchange: places.kernels.get("exchange", 0)?,
            by_place: places.kernels.get("by_place", 0)?,
            target: target.clone(),
            _came_from: came_from,
            counts,
        })
    }

    /// Exchange states between neighbouring rungs: even and odd pairs in turn. If `counted`, note exchanges and round trips.
    pub(super) fn exchange(
        &mut self,
        energies: &CudaSlice<f64>,
        seed: u64,
        step: u64,
        counted: bool,
    ) -> Result<()> {
        let grid = (self.arguments.ladders.div_ceil(64), 1, 1);
        let counted = u32::from(counted);
        launch!(
            self.target.gpu,
            self.exchange,
            (grid, 64, 0),
            &self.places,
            &self.arguments,
            energies,
            &seed,
            &step,
            &counted,
        )
    }

    /// Write the energies of the rows `[row * terms + term]` in the order of the places.
    pub(super) fn by_place(
        &self,
        energies: &CudaSlice<f64>,
        out: &mut CudaViewMut<'_, f64>,
    ) -> Result<()> {
        let grid = (self.places.count.div_ceil(128), 1, 1);
        launch!(self.target.gpu, self.by_place, (grid, 128, 0), &self.places, energies, out)
    }

    /// Exchanges of every rung with the next, `[ladder * rungs + rung]`, and round trips of every ladder.
    pub(super) fn counts(&self) -> Result<[Vec<u64>; 2]> {
        let gpu = &self.target.gpu;
        let ladders = self.arguments.ladders as usize;
        let swaps = self.counts[0].slice(..ladders * self.arguments.rungs as usize);
        Ok([gpu.download(&swaps)?, gpu.download(&self.counts[1].slice(..ladders))?])
    }
}
