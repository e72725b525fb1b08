//! Table-driven sweeps on a GPU: the walks of [`Tile`](super::Tile), bit by bit, with a thread for every walker.
//!
//! Thresholds are computed there as well; a chance may differ from the CPU's by 2^-32 where two roundings of an
//! exponential fall to different sides.

#![cfg(feature = "cuda")]

use std::sync::Arc;

use cudarc::driver::{CudaFunction, CudaSlice};

use super::plan::{Class, Code, Plan, Rule};
use super::{FRESH, Tables, Tile, Updates};
use crate::Result;
use crate::device::Purpose;
use crate::device::cuda::arguments::{Input, Output, arguments, join};
use crate::device::cuda::{Gpu, launch};

arguments! {
    /// A plan, as kernels read it.
    struct Lanes {
        /// `[position]`: the site.
        order: Input<u32>,
        /// `[site * 2]`: class, start of its neighbours.
        sites: Input<u32>,
        /// `[bond]`.
        ends: Input<u32>,
        /// `[class * CLASS]`, see `Class` in the source.
        classes: Input<u32>,
        /// Of a class `[slot * Q + value]`.
        contributions: Input<u16>,
        /// Of a class `[(term * entries + index) * Q + value]`.
        local: Input<f64>,
        /// The same with half of each bond.
        share: Input<f64>,
        /// `[term]`.
        constants: Input<f64>,
    }
}

arguments! {
    /// What [`CudaPlan::carry`] hands over beside the plan.
    struct Carry {
        states: Output<u8>,
        energies: Output<f64>,
        log_weights: Output<f64>,
        /// Thresholds of the intervals.
        tables: Input<u32>,
        /// `[time * terms + term]`.
        lambda: Input<f64>,
        seed: u64,
        /// Updates made before.
        from: u64,
        /// Updates in every interval.
        updates: u64,
        /// Time at the end of the first interval.
        first: u32,
        count: u32,
        weigh: u32,
        walkers: u32,
    }
}

arguments! {
    /// What [`CudaPlan::sweep`] hands over beside the plan.
    struct Rungs {
        states: Output<u8>,
        /// `[walker]`: the row of its state.
        rows: Input<u32>,
        /// `[row * TERMS + term]`.
        energies: Output<f64>,
        /// `[row * (Q - 1) + value - 1]`.
        counts: Output<u32>,
        /// Thresholds of the rungs that are swept.
        tables: Input<u32>,
        seed: u64,
        /// Updates made before.
        from: u64,
        updates: u64,
        /// Tiles of a group of ladders.
        period: u32,
        /// The first of them that is swept.
        first: u32,
        /// How many are swept.
        width: u32,
        /// Walkers that are swept in all.
        count: u32,
        measured: u32,
        counted: u32,
    }
}

arguments! {
    /// What [`CudaPlan::walk`] hands over beside the plan.
    struct Walk {
        states: Output<u8>,
        /// Thresholds of all chains.
        table: Input<u32>,
        seed: u64,
        /// Updates made before.
        from: u64,
        updates: u64,
        chains: u32,
    }
}

/// Source of the kernels.
const LANES: &str = join!(
    Lanes::SOURCE,
    Carry::SOURCE,
    Rungs::SOURCE,
    Walk::SOURCE,
    include_str!("lanes.cu"),
    include_str!("chains.cu"),
    include_str!("rungs.cu"),
);

/// Bytes of states that a block may keep in shared memory, at most: beyond it too few blocks share a multiprocessor.
const STAGE: usize = 100 << 10;

/// Bytes of thresholds kept at once.
const TABLE_BYTES: usize = 64 << 20;

/// Numbers of a class, for 16-byte loads.
const CLASS: usize = 8;

/// A plan on a GPU.
pub(crate) struct CudaPlan {
    gpu: Arc<Gpu>,
    thresholds: usize,
    classes: usize,
    arguments: Lanes,
    threads: usize,
    shared: usize,
    set: CudaFunction,
    measure: CudaFunction,
    carry: CudaFunction,
    walk: CudaFunction,
    sweep: CudaFunction,
    /// Thresholds of [`room`](Self::room) times, or of those that walkers stay at.
    tables: CudaSlice<u32>,
    _lists: [CudaSlice<u32>; 4],
    _contributions: CudaSlice<u16>,
    _numbers: [CudaSlice<f64>; 3],
}

/// Walkers on a GPU, their energies `[walker * terms + term]` and their log-weights.
pub(crate) struct Carried<'a> {
    pub(crate) walkers: usize,
    pub(crate) states: &'a mut CudaSlice<u8>,
    pub(crate) energies: &'a mut CudaSlice<f64>,
    pub(crate) log_weights: &'a mut CudaSlice<f64>,
}

/// Ladders on a GPU, 64 to a group: the walkers of a group are those of its rungs, one rung after the other.
pub(crate) struct Climbers<'a> {
    /// Groups of ladders.
    pub(crate) groups: usize,
    /// Rungs of a ladder, with those that are not swept.
    pub(crate) period: usize,
    pub(crate) states: &'a mut CudaSlice<u8>,
    /// `[walker]`: the row of its state.
    pub(crate) rows: &'a CudaSlice<u32>,
    /// `[row * terms + term]`.
    pub(crate) energies: &'a mut CudaSlice<f64>,
    /// `[row * (q - 1) + value - 1]`: sites in every value but 0.
    pub(crate) counts: &'a mut CudaSlice<u32>,
}

/// What a sweep of rungs leaves behind beside the states.
#[derive(Clone, Copy)]
pub(crate) struct Measured {
    pub(crate) energies: bool,
    pub(crate) counts: bool,
}

/// What a class adds to the index of the surroundings, `[slot * q + value]`.
fn contributions(class: &Class, q: usize, degree: usize) -> Vec<u16> {
    match &class.code {
        Code::Sum => [0, 1].repeat(degree),
        Code::Bits => (0..degree).flat_map(|slot| [0, 1 << slot]).collect(),
        Code::General(all) => all[..degree * q].to_vec(),
    }
}

/// How the kernels are compiled: defines, threads of a block, bytes of shared memory.
fn compilation(plan: &Plan, available: usize) -> (Vec<(&'static str, usize)>, usize, usize) {
    // A row ends 4 bytes late, so that a warp that copies one state to its column meets all banks.
    let need = |threads: usize| plan.sites * (threads + 4);
    let fits = |room: usize| [128, 64, 32].into_iter().find(|&threads| need(threads) <= room);
    let staged = fits(available.min(STAGE)).or_else(|| fits(available));
    let threads = staged.unwrap_or(128);
    let defines = vec![
        ("SITES", plan.sites),
        ("Q", plan.q),
        ("TERMS", plan.terms),
        ("METROPOLIS", usize::from(plan.rule == Rule::Metropolis)),
        ("THRESHOLDS", plan.thresholds),
        ("CLASS", CLASS),
        ("TILE", Tile::WALKERS),
        ("FRESH", FRESH as usize),
        ("MOVE", Purpose::Move as usize),
        ("THREADS", threads),
        ("PITCH", threads + 4),
        ("STAGED", usize::from(staged.is_some())),
    ];
    (defines, threads, if staged.is_some() { need(threads) } else { 0 })
}

impl CudaPlan {
    /// Put a plan on a GPU, for walkers at many times.
    pub(crate) fn new(gpu: &Arc<Gpu>, plan: &Plan) -> Result<Self> {
        let room = (TABLE_BYTES / plan.table_bytes().max(1)).clamp(1, 1 << 15);
        Self::with(gpu, plan, gpu.zeros(room * plan.thresholds)?)
    }

    /// Put a plan on a GPU, for walkers that stay at these thresholds of the CPU: they are the same bit by bit.
    pub(crate) fn staying(gpu: &Arc<Gpu>, plan: &Plan, tables: &[Tables]) -> Result<Self> {
        let words = tables.iter().flat_map(|tables| tables.high.iter().zip(&tables.low));
        let words: Vec<u32> =
            words.map(|(&high, &low)| u32::from(high) << 16 | u32::from(low)).collect();
        Self::with(gpu, plan, gpu.upload(&words)?)
    }

    fn with(gpu: &Arc<Gpu>, plan: &Plan, tables: CudaSlice<u32>) -> Result<Self> {
        let (defines, threads, shared) = compilation(plan, gpu.shared());
        let kernels = gpu.compile(LANES, &defines)?;
        let sites: Vec<u32> =
            (0..plan.sites).flat_map(|site| [plan.class_of[site], plan.starts[site]]).collect();
        let mut degrees = vec![0; plan.classes.len()];
        for (site, &class) in plan.class_of.iter().enumerate() {
            degrees[class as usize] = plan.ends(site).len();
        }
        let (mut classes, mut adds) = (Vec::new(), Vec::new());
        let (mut local, mut share) = (Vec::new(), Vec::new());
        for (class, &degree) in plan.classes.iter().zip(&degrees) {
            let length = class.table_len(plan.q, plan.rule);
            let numbers =
                [class.entries, class.offset, length, adds.len(), local.len(), degree, 0, 0];
            classes.extend(numbers.map(|n| n as u32));
            adds.extend(contributions(class, plan.q, degree));
            local.extend_from_slice(&class.local);
            share.extend_from_slice(&class.share);
        }
        debug_assert_eq!(classes.len(), CLASS * plan.classes.len());
        // No array is empty.
        adds.push(0);
        let ends = [&plan.ends[..], &[0]].concat();
        let lists = [
            gpu.upload(&plan.order)?,
            gpu.upload(&sites)?,
            gpu.upload(&ends)?,
            gpu.upload(&classes)?,
        ];
        let contributions = gpu.upload(&adds)?;
        let numbers = [gpu.upload(&local)?, gpu.upload(&share)?, gpu.upload(&plan.constants)?];
        Ok(CudaPlan {
            thresholds: plan.thresholds,
            classes: plan.classes.len(),
            arguments: Lanes {
                order: Input::of(gpu, &lists[0]),
                sites: Input::of(gpu, &lists[1]),
                ends: Input::of(gpu, &lists[2]),
                classes: Input::of(gpu, &lists[3]),
                contributions: Input::of(gpu, &contributions),
                local: Input::of(gpu, &numbers[0]),
                share: Input::of(gpu, &numbers[1]),
                constants: Input::of(gpu, &numbers[2]),
            },
            threads,
            shared,
            set: kernels.get("thresholds", 0)?,
            measure: kernels.get("measure_all", 0)?,
            carry: kernels.get("carry", shared)?,
            walk: kernels.get("walk", shared)?,
            sweep: kernels.get("sweep_rungs", shared)?,
            tables,
            gpu: gpu.clone(),
            _lists: lists,
            _contributions: contributions,
            _numbers: numbers,
        })
    }

    /// Most intervals that [`carry`](Self::carry) takes at once.
    pub(crate) fn room(&self) -> usize {
        self.tables.len() / self.thresholds.max(1)
    }

    /// Make some updates of chains `0..chains` at the thresholds that they [stay at](Self::staying).
    pub(crate) fn walk(
        &self,
        states: &mut CudaSlice<u8>,
        chains: usize,
        seed: u64,
        Updates { from, count }: Updates,
    ) -> Result<()> {
        let gpu = &self.gpu;
        let walk = Walk {
            states: Output::of(gpu, &*states),
            table: Input::of(gpu, &self.tables),
            seed,
            from,
            updates: count,
            chains: chains as u32,
        };
        let grid = (chains.div_ceil(self.threads) as u32, 1, 1);
        launch!(gpu, self.walk, (grid, self.threads, self.shared), &self.arguments, &walk)
    }

    /// Make some updates of the rungs `first..` of all ladders, as many as the plan has thresholds that they [stay at](Self::staying).
    pub(crate) fn sweep(
        &self,
        climbers: &mut Climbers<'_>,
        first: usize,
        seed: u64,
        Updates { from, count }: Updates,
        measured: Measured,
    ) -> Result<()> {
        let (gpu, width) = (&self.gpu, self.room());
        let walkers = climbers.groups * width * Tile::WALKERS;
        let rungs = Rungs {
            states: Output::of(gpu, climbers.states),
            rows: Input::of(gpu, climbers.rows),
            energies: Output::of(gpu, climbers.energies),
            counts: Output::of(gpu, climbers.counts),
            tables: Input::of(gpu, &self.tables),
            seed,
            from,
            updates: count,
            period: climbers.period as u32,
            first: first as u32,
            width: width as u32,
            count: walkers as u32,
            measured: u32::from(measured.energies),
            counted: u32::from(measured.counts),
        };
        let grid = (walkers.div_ceil(self.threads) as u32, 1, 1);
        launch!(gpu, self.sweep, (grid, self.threads, self.shared), &self.arguments, &rungs)
    }

    /// Compile the kernels for a plan, where there is a compiler.
    #[cfg(test)]
    fn compiles(plan: &Plan) {
        crate::device::cuda::testing::compiles(LANES, &compilation(plan, 227 << 10).0);
    }

    /// Write the energies of all walkers.
    pub(crate) fn measure(&self, walkers: &mut Carried<'_>) -> Result<()> {
        let grid = (walkers.walkers.div_ceil(self.threads) as u32, 1, 1);
        let (states, energies, n) =
            (&*walkers.states, &mut *walkers.energies, walkers.walkers as u32);
        launch!(
            self.gpu,
            self.measure,
            (grid, self.threads, 0),
            &self.arguments,
            states,
            energies,
            &n
        )
    }

    /// Carry walkers through the intervals that end at `times` of the grid whose weights `lambda[time * terms + term]` are
    /// given, at most [`room`](Self::room) of them: weigh if `weigh`, then make `updates` updates; `from` were made before.
    pub(crate) fn carry(
        &mut self,
        walkers: &mut Carried<'_>,
        lambda: &CudaSlice<f64>,
        times: std::ops::Range<usize>,
        seed: u64,
        (from, updates): (u64, u64),
        weigh: bool,
    ) -> Result<()> {
        debug_assert!(times.len() <= self.room());
        let (first, count) = (times.start as u32, times.len() as u32);
        let grid = (self.classes as u32, count, 1);
        let tables = &mut self.tables;
        launch!(self.gpu, self.set, (grid, 64, 0), &self.arguments, &mut *tables, lambda, &first)?;
        let grid = (walkers.walkers.div_ceil(self.threads) as u32, 1, 1);
        let gpu = &self.gpu;
        let carry = Carry {
            states: Output::of(gpu, walkers.states),
            energies: Output::of(gpu, walkers.energies),
            log_weights: Output::of(gpu, walkers.log_weights),
            tables: Input::of(gpu, tables),
            lambda: Input::of(gpu, lambda),
            seed,
            from,
            updates,
            first,
            count,
            weigh: u32::from(weigh),
            walkers: walkers.walkers as u32,
        };
        launch!(gpu, self.carry, (grid, self.threads, self.shared), &self.arguments, &carry)
    }
}

#[cfg(test)]
mod tests {
    use super::super::Scan;
    use super::*;
    use crate::target::{Boundary, Bravais, Disorder, Lattice, Pairwise, on_shells};

    #[test]
    #[cfg_attr(not(has_nvrtc), ignore = "needs NVRTC: set LEAPS_NVRTC to its folder")]
    fn kernels_compile_for_all_codes_and_rules() {
        let torus = |side| Lattice::new(&[side, side], Boundary::Periodic).unwrap();
        let glass = Pairwise::edwards_anderson(torus(6), Disorder::Gaussian, 2).unwrap();
        for target in [
            Pairwise::ising(torus(8), 1.0, 0.3).unwrap(),
            glass.with_uniform_field(-0.2).unwrap(),
            Pairwise::potts(torus(6), 3, 1.0, 0.2).unwrap(),
            Pairwise::potts(torus(5), 5, 1.0, 0.0).unwrap(),
            Pairwise::ising(torus(90), 1.0, 0.1).unwrap(),
            on_shells(&[6, 8], None, &[1.0, -0.6]),
            on_shells(&[4, 4, 4], Some(Bravais::Fcc), &[-1.0]),
        ] {
            for rule in [Rule::HeatBath, Rule::Metropolis] {
                CudaPlan::compiles(&Plan::new(&target, rule, Scan::Coloured).unwrap());
            }
        }
    }
}
