//! Ladders on a GPU: exchanges of states between their rungs, and what their tables take in.

use std::sync::Arc;

use cudarc::driver::{CudaFunction, CudaSlice, CudaViewMut};

use crate::Result;
use crate::device::Purpose;
use crate::device::cuda::arguments::{Input, Output, arguments, join};
use crate::device::cuda::{Gpu, RANDOM, launch};
use crate::mcmc::tempering::End;
use crate::observe::{LadderTable, Order};
use crate::target::{Pairwise, Target};

arguments! {
    /// What kernels know of ladders.
    struct Ladders {
        /// `[place]`: the row of its state.
        rows: Output<u32>,
        /// `[ladder]`: the row of the state at the last rung.
        coldest: Output<u32>,
        /// `[row]`: the [`End`] of the ladder at which the state last was; 0 is neither.
        came_from: Output<u8>,
        /// `[ladder * rungs + rung]`: exchanges with the next rung.
        swaps: Output<u64>,
        /// `[ladder]`.
        round_trips: Output<u64>,
        /// `[rung * TERMS + term]`.
        lambda: Input<f64>,
        ladders: u32,
        rungs: u32,
        /// Ladders that lie together, rung by rung.
        tile: u32,
        /// Rungs of a ladder, with those that exchange nothing.
        period: u32,
    }
}

arguments! {
    /// What the tables of ladders are made of.
    struct Tabulation {
        /// `[row * TERMS + term]`.
        energies: Input<f64>,
        /// `[row * (Q - 1) + value - 1]`.
        counts: Input<u32>,
        states: Input<u8>,
        /// `[ladder]`: the lowest energy so far.
        lowest: Output<f64>,
        /// `[ladder * SITES + site]`: a state that has it.
        found: Output<u8>,
    }
}

/// Source of the kernels.
const LADDERS: &str =
    join!(Ladders::SOURCE, Tabulation::SOURCE, RANDOM, include_str!("ladders.cu"));

/// Threads of a block.
const CREW: usize = 64;

/// What the source has to know.
fn defines(pairs: &Pairwise) -> [(&'static str, usize); 6] {
    [
        ("SITES", pairs.sites()),
        ("Q", pairs.q()),
        ("TERMS", pairs.terms()),
        ("EXCHANGE", Purpose::Exchange as usize),
        ("FIRST", End::First as usize),
        ("LAST", End::Last as usize),
    ]
}

/// Where the rungs of ladders are among all places.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Layout {
    pub(super) ladders: usize,
    /// Rungs that exchange their states.
    pub(super) rungs: usize,
    /// Ladders that lie together, rung by rung.
    pub(super) tile: usize,
    /// Rungs of a ladder, with those that exchange nothing.
    pub(super) period: usize,
}

impl Layout {
    /// All places, with those that fill the last tile.
    pub(super) fn places(&self) -> usize {
        self.ladders.next_multiple_of(self.tile) * self.period
    }

    /// The place of a rung.
    pub(super) fn place(&self, ladder: usize, rung: usize) -> usize {
        (ladder / self.tile * self.period + rung) * self.tile + ladder % self.tile
    }
}

/// Ladders whose states are exchanged.
pub(super) struct CudaLadders {
    gpu: Arc<Gpu>,
    layout: Layout,
    arguments: Ladders,
    exchange: CudaFunction,
    tabulate: CudaFunction,
    /// `[ladder]`: the row of the state at the last rung.
    pub(super) coldest: CudaSlice<u32>,
    _came_from: CudaSlice<u8>,
    counts: [CudaSlice<u64>; 2],
    _lambda: CudaSlice<f64>,
}

impl CudaLadders {
    /// Bytes of a rung.
    pub(super) const BYTES: usize = 1 + 8 + 8 + 4;

    /// Ladders at these weights; `rows` say which state is at which place, that of the same number at first.
    pub(super) fn new(
        gpu: &Arc<Gpu>,
        pairs: &Pairwise,
        layout: Layout,
        weights: &[Vec<f64>],
        rows: &CudaSlice<u32>,
    ) -> Result<Self> {
        let Layout { ladders, rungs, tile, period } = layout;
        let kernels = gpu.compile(LADDERS, &defines(pairs))?;
        let coldest: Vec<u32> =
            (0..ladders).map(|ladder| layout.place(ladder, rungs - 1) as u32).collect();
        let coldest = gpu.upload(&coldest)?;
        let came_from = gpu.zeros(layout.places())?;
        let counts = [gpu.zeros(ladders * rungs)?, gpu.zeros(ladders)?];
        let lambda = gpu.upload(&weights.concat())?;
        Ok(CudaLadders {
            arguments: Ladders {
                rows: Output::of(gpu, rows),
                coldest: Output::of(gpu, &coldest),
                came_from: Output::of(gpu, &came_from),
                swaps: Output::of(gpu, &counts[0]),
                round_trips: Output::of(gpu, &counts[1]),
                lambda: Input::of(gpu, &lambda),
                ladders: ladders as u32,
                rungs: rungs as u32,
                tile: tile as u32,
                period: period as u32,
            },
            exchange: kernels.get("exchange", 0)?,
            tabulate: kernels.get("tabulate", 0)?,
            gpu: gpu.clone(),
            layout,
            coldest,
            _came_from: came_from,
            counts,
            _lambda: lambda,
        })
    }

    fn grid(&self) -> (u32, u32, u32) {
        (self.layout.ladders.div_ceil(CREW) as u32, 1, 1)
    }

    /// Exchange states between neighbouring rungs: even and odd pairs in turn. If `counted`, note exchanges and round trips.
    pub(super) fn exchange(
        &mut self,
        energies: &CudaSlice<f64>,
        seed: u64,
        step: u64,
        counted: bool,
    ) -> Result<()> {
        let counted = u32::from(counted);
        launch!(
            self.gpu,
            self.exchange,
            (self.grid(), CREW, 0),
            &self.arguments,
            energies,
            &seed,
            &step,
            &counted,
        )
    }

    /// Write what the tables of all ladders take in, and keep the states of the lowest energies.
    pub(super) fn tabulate(
        &self,
        (states, energies, counts): (&CudaSlice<u8>, &CudaSlice<f64>, &CudaSlice<u32>),
        lowest: &mut LowestStates,
        out: &mut CudaViewMut<'_, f64>,
    ) -> Result<()> {
        let gpu = &self.gpu;
        let tabulation = Tabulation {
            energies: Input::of(gpu, energies),
            counts: Input::of(gpu, counts),
            states: Input::of(gpu, states),
            lowest: Output::of(gpu, &lowest.energies),
            found: Output::of(gpu, &lowest.states),
        };
        launch!(gpu, self.tabulate, (self.grid(), CREW, 0), &self.arguments, &tabulation, out)
    }

    /// Fraction of accepted exchanges of every rung with the next in so many steps after burn-in, and round trips, ladder by ladder.
    pub(super) fn outcomes(&self, burn_in: u64, steps: u64) -> Result<Vec<(Vec<f64>, u64)>> {
        let Layout { ladders, rungs, .. } = self.layout;
        let swaps = self.gpu.download(&self.counts[0].slice(..ladders * rungs))?;
        let round_trips = self.gpu.download(&self.counts[1].slice(..ladders))?;
        let rate = |(rung, &swaps): (usize, &u64)| {
            swaps as f64 / attempts(burn_in, steps, rung).max(1) as f64
        };
        let rates = |own: &[u64]| own[..rungs - 1].iter().enumerate().map(rate).collect();
        Ok(swaps.chunks_exact(rungs).map(rates).zip(round_trips).collect())
    }
}

/// How often a rung tried to exchange its state with the next in so many steps after burn-in: in every other step.
fn attempts(burn_in: u64, steps: u64, rung: usize) -> u64 {
    let offset = (burn_in + rung as u64) % 2;
    (steps + 1 - offset) / 2
}

/// The lowest energies that ladders met, and states that have them.
pub(super) struct LowestStates {
    energies: CudaSlice<f64>,
    pub(super) states: CudaSlice<u8>,
}

impl LowestStates {
    /// Of ladders that have met none.
    pub(super) fn new(gpu: &Gpu, ladders: usize, sites: usize) -> Result<Self> {
        let energies = gpu.upload(&vec![f64::INFINITY; ladders])?;
        Ok(LowestStates { energies, states: gpu.zeros(ladders * sites)? })
    }
}

/// The table of a ladder, and how to read what was [written](CudaLadders::tabulate) for it.
pub(super) struct RungTable {
    pub(super) table: LadderTable,
    pub(super) sites: usize,
    pub(super) q: usize,
}

impl RungTable {
    /// Take in the states of all rungs. Infinite temperature comes last among them and first in the table.
    pub(super) fn record(&mut self, rungs: &[f64]) {
        let (q, last) = (self.q, rungs.len() / self.q - 1);
        for (number, rung) in rungs.chunks_exact(q).enumerate() {
            let mut counts = [0; 256];
            for (count, &own) in counts[1..q].iter_mut().zip(&rung[1..]) {
                *count = own as usize;
            }
            counts[0] = self.sites - counts[1..q].iter().sum::<usize>();
            let place = if number == last { 0 } else { number + 1 };
            // The GPU has the state.
            self.table.record(place, rung[0], Order::of_counts(&counts[..q]), Vec::new);
        }
    }
}

#[cfg(test)]
mod unit {
    use super::*;
    use crate::device::cuda::testing::compiles;
    use crate::target::{Boundary, Lattice};

    #[test]
    #[cfg_attr(not(has_nvrtc), ignore = "needs NVRTC: set LEAPS_NVRTC to its folder")]
    fn kernels_compile_for_ladders() {
        let lattice = || Lattice::new(&[5, 7], Boundary::Free).unwrap();
        for pairs in [
            Pairwise::ising(lattice(), 1.0, 0.1).unwrap(),
            Pairwise::potts(lattice(), 3, 1.0, 0.0).unwrap(),
        ] {
            compiles(LADDERS, &defines(&pairs));
        }
    }

    #[test]
    fn attempts_are_counted() {
        for burn_in in 0..4 {
            for steps in 0..7 {
                for rung in 0..3 {
                    let made = (burn_in..burn_in + steps).filter(|step| step % 2 == rung % 2);
                    assert_eq!(attempts(burn_in, steps, rung as usize), made.count() as u64);
                }
            }
        }
    }
}
