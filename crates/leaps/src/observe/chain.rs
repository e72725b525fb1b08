//! Record a Markov chain in bounded memory: block sums of everything, series of a few.

use super::{Layout, Measure, Recorder, Reduced};
use crate::device::{Draw, Purpose, Stream};
use crate::target::Target;

/// When a chain has this many blocks, neighbours are joined and blocks become twice as long.
const MAX_BLOCKS: usize = 512;

/// Measures the kept states of one chain.
///
/// Keeps three numbers per state, the energy per site, the order parameter and the distance
/// $\sum_i |x_i - x^0_i|$ to a random state that all chains share (the statistic of the DISCS benchmark), and sums of the
/// whole row of basic observables over 256 to 512 blocks of equal length, whatever the length of the
/// chain.
#[derive(Clone)]
pub struct ChainRecorder<'a> {
    pub(super) measure: Measure<'a>,
    /// The state that all chains share.
    pub(super) reference: Vec<u8>,
    row: Vec<f64>,
    pub(super) energy: Vec<f32>,
    pub(super) order: Vec<f32>,
    pub(super) distance: Vec<f32>,
    /// The first row, subtracted from all, so that constants have sums of exactly 0.
    pub(super) origin: Vec<f64>,
    /// Sums over blocks, `[block * width + column]`; the last block may be unfinished.
    sums: Vec<f64>,
    /// States per block.
    pub(super) length: usize,
}

impl<'a> ChainRecorder<'a> {
    /// A recorder for one chain of `rho(x) ~ exp(-sum_k lambda_k E_k(x))`. All chains of a run take the same seed.
    pub fn new(target: &'a dyn Target, lambda: &[f64], seed: u64) -> Self {
        Self::measured(Measure::new(target, lambda), seed)
    }

    /// The same by a measure that may have more columns than usual.
    pub fn measured(measure: Measure<'a>, seed: u64) -> Self {
        let target = measure.target();
        let mut stream = Stream::new(seed, Purpose::Statistic, 0, 0);
        let reference = (0..target.sites()).map(|_| stream.below(target.q()) as u8).collect();
        let width = measure.layout().width();
        ChainRecorder {
            measure,
            reference,
            row: vec![0.0; width],
            energy: Vec::new(),
            order: Vec::new(),
            distance: Vec::new(),
            origin: Vec::new(),
            sums: Vec::new(),
            length: 1,
        }
    }

    /// What the columns of a row are.
    pub fn layout(&self) -> &Layout {
        self.measure.layout()
    }

    /// Number of states recorded.
    pub fn len(&self) -> usize {
        self.energy.len()
    }

    /// Whether no state has been recorded.
    pub fn is_empty(&self) -> bool {
        self.energy.is_empty()
    }

    /// The energy of the last state.
    pub fn last_energy(&self) -> f64 {
        self.row[Layout::ENERGY]
    }

    /// Number of blocks that are complete.
    fn complete(&self) -> usize {
        self.len() / self.length
    }

    /// Number of blocks when `join` neighbours are joined and what is left over goes to the last one.
    pub(super) fn blocks(&self, join: usize) -> usize {
        (self.complete() / join).max(1)
    }

    /// The block of state `i` when `join` neighbours are joined.
    pub(super) fn block_of(&self, i: usize, join: usize) -> usize {
        (i / self.length.saturating_mul(join)).min(self.blocks(join) - 1)
    }

    /// Add numbers of states and sums about `origin` of every block, `join` neighbours joined, to the blocks from `first` on.
    pub(super) fn add_blocks(
        &self,
        first: usize,
        join: usize,
        origin: &[f64],
        weights: &mut Vec<f64>,
        sums: &mut Vec<f64>,
    ) {
        let width = origin.len();
        weights.resize(first + self.blocks(join), 0.0);
        sums.resize(weights.len() * width, 0.0);
        for (fine, part) in self.sums.chunks_exact(width).enumerate() {
            let start = fine * self.length;
            let count = self.length.min(self.len() - start) as f64;
            let block = first + self.block_of(start, join);
            weights[block] += count;
            let sum = &mut sums[block * width..][..width];
            for (column, sum) in sum.iter_mut().enumerate() {
                *sum += part[column] + count * (self.origin[column] - origin[column]);
            }
        }
    }

    /// Take in a state that was reduced elsewhere.
    pub fn record_reduced(&mut self, state: &Reduced<'_>) {
        self.measure.row_of(state, &mut self.row);
        self.push(state.distance);
    }

    /// Energies, order parameters and distances of all states.
    pub fn series(&self) -> [&[f32]; 3] {
        [&self.energy, &self.order, &self.distance]
    }

    /// The row of the last state, and its distance to the state that all chains share. Panics if there is none.
    pub fn last(&self) -> (&[f64], f32) {
        (&self.row, self.distance[self.len() - 1])
    }

    /// Take in the row that was measured last, at so large a distance to the shared state.
    fn push(&mut self, distance: u64) {
        let (width, sites) = (self.row.len(), self.reference.len());
        if self.is_empty() {
            self.origin = self.row.clone();
        }
        if self.len() == MAX_BLOCKS * self.length {
            self.join_neighbours();
        }
        if self.len().is_multiple_of(self.length) {
            self.sums.resize(self.sums.len() + width, 0.0);
        }
        let start = self.sums.len() - width;
        for ((sum, value), origin) in self.sums[start..].iter_mut().zip(&self.row).zip(&self.origin)
        {
            *sum += value - origin;
        }
        self.energy.push((self.row[Layout::ENERGY] / sites as f64) as f32);
        self.order.push(self.row[Layout::M] as f32);
        self.distance.push(distance as f32);
    }

    /// The distance to the state that all chains share.
    fn distance_to(&self, x: &[u8]) -> u64 {
        x.iter().zip(&self.reference).map(|(&a, &b)| u64::from(a.abs_diff(b))).sum()
    }

    fn join_neighbours(&mut self) {
        let width = self.origin.len();
        for block in 0..MAX_BLOCKS / 2 {
            for column in 0..width {
                let pair = 2 * block * width + column;
                self.sums[block * width + column] = self.sums[pair] + self.sums[pair + width];
            }
        }
        self.sums.truncate(MAX_BLOCKS / 2 * width);
        self.length *= 2;
    }
}

impl Recorder for ChainRecorder<'_> {
    fn record(&mut self, x: &[u8]) {
        self.measure.row(x, &mut self.row);
        self.push(self.distance_to(x));
    }

    fn record_with(&mut self, x: &[u8], energies: &[f64]) {
        self.measure.row_with(x, energies, &mut self.row);
        self.push(self.distance_to(x));
    }
}
