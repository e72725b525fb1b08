//! States on a GPU, reduced there to what [rows of observables](super::Layout) are made of.
//!
//! Energies, counts and equal pairs are those of the CPU bit by bit; structure factors are sums in another order.

#![cfg(feature = "cuda")]

use std::sync::Arc;

use cudarc::driver::{CudaFunction, CudaSlice, CudaViewMut};

use super::{ChainRecorder, Reduced, RemoteRecorder};
use crate::Result;
use crate::device::cuda::arguments::{Input, Output, arguments, join};
use crate::device::cuda::{Gpu, launch};
use crate::target::cuda::CudaTarget;
use crate::target::{Pairwise, Target};

arguments! {
    /// What is measured, as the kernel reads it.
    struct Reduction {
        /// `[SITES]`: the state that all chains share.
        reference: Input<u8>,
        /// Of every axis `[coordinate * 2]`: cosine and sine.
        waves: Input<f64>,
        /// `[term]`: what the term has.
        kinds: Input<u32>,
        /// `[term]`: the coupling of all bonds of the term, if they are alike.
        couplings: Input<f64>,
        /// Tiles that do not fit shared memory.
        scratch: Output<u32>,
    }
}

arguments! {
    /// States that are measured, and where their rows go.
    struct States {
        states: Input<u8>,
        /// Rows of the states; none if they are the first ones.
        rows: Input<u32>,
        /// `[state * ROW]`.
        out: Output<u64>,
        /// Where to copy the states, if anywhere.
        kept: Output<u8>,
        count: u32,
    }
}

/// Source of the kernel, behind that of the target and the shape of the lattice.
const REDUCE: &str = join!(Reduction::SOURCE, States::SOURCE, include_str!("reduce.cu"));

/// Threads of a block.
const CREW: usize = 128;

/// Bytes of states that a block may keep in shared memory: many blocks should share a multiprocessor, but with less than eight states
/// in each they are worth little.
const STAGES: [(usize, usize); 3] = [(38 << 10, 8), (72 << 10, 8), (usize::MAX, 4)];

/// Bytes of shared memory that the kernel has beside the states.
const FIXED: usize = 10 << 10;

/// Bits of a term's kind.
const HAS_FIELDS: u32 = 1;
const HAS_BONDS: u32 = 2;
const ALIKE: u32 = 4;

/// How rows look and how the kernel is compiled.
#[derive(Clone, Debug)]
struct Form {
    sites: usize,
    q: usize,
    terms: usize,
    distances: usize,
    waves: usize,
    /// States of a block.
    tile: usize,
    /// Bytes of shared memory; 0 if tiles do not fit there.
    shared: usize,
    source: String,
    defines: Vec<(&'static str, usize)>,
    kinds: Vec<u32>,
    couplings: Vec<f64>,
}

/// A text that looks up a number by an axis.
fn look_up(name: &str, numbers: &[usize]) -> String {
    let cases = numbers.iter().enumerate().map(|(axis, n)| format!("axis == {axis} ? {n} : "));
    let cases: String = cases.collect();
    format!("__device__ __forceinline__ u32 {name}(u32 axis) {{ return {cases}1; }}\n")
}

/// Whether so many times a number, added one by one, is exact.
fn adds_exactly(number: f64, times: usize) -> bool {
    let fraction = number.to_bits() & ((1 << 52) - 1) | 1 << 52;
    let odd = fraction >> fraction.trailing_zeros();
    number == 0.0 || number.is_normal() && odd.saturating_mul(times as u64) < 1 << 53
}

impl Form {
    fn new(recorder: &ChainRecorder<'_>, pairs: &Pairwise, available: usize) -> Self {
        let (measure, layout) = (&recorder.measure, recorder.layout());
        let (sites, q, terms) = (pairs.sites(), pairs.q(), pairs.terms());
        let degree = pairs.max_degree();
        let (mut kinds, mut couplings) = (Vec::new(), Vec::new());
        for term in pairs.energy_terms() {
            let bonds = &term.couplings;
            let first = bonds.first().copied().unwrap_or(0.0);
            let alike = degree <= 255
                && bonds.iter().all(|coupling| *coupling == first)
                && adds_exactly(first, bonds.len());
            let has = |what: bool, bit: u32| if what { bit } else { 0 };
            kinds.push(
                has(!term.fields.is_empty(), HAS_FIELDS)
                    | has(!bonds.is_empty(), HAS_BONDS)
                    | has(!bonds.is_empty() && alike, ALIKE),
            );
            couplings.push(first);
        }
        // A row ends 4 bytes late, so that a warp that copies one state to its column meets all banks.
        let need = |tile: usize| sites * (tile + 4);
        let room = available.saturating_sub(FIXED);
        let fits = |(stage, least): (usize, usize)| {
            let tiles = [128, 64, 32, 16, 8, 4].into_iter().filter(|&tile| tile >= least);
            tiles.into_iter().find(|&tile| need(tile) <= room.min(stage))
        };
        let staged = STAGES.into_iter().find_map(fits);
        let tile = staged.unwrap_or(4);
        let shared = if staged.is_some() { need(tile) } else { 0 };
        let axes = &measure.axes;
        let waves = layout.sides.len();
        let mut form = Form {
            sites,
            q,
            terms,
            distances: layout.distances,
            waves,
            tile,
            shared,
            source: String::new(),
            defines: Vec::new(),
            kinds,
            couplings,
        };
        form.source = look_up("side_of", &axes.iter().map(|axis| axis.side).collect::<Vec<_>>())
            + &look_up("stride_of", &axes.iter().map(|axis| axis.stride).collect::<Vec<_>>())
            + REDUCE;
        form.defines = vec![
            ("TILE", tile),
            ("TILE_PITCH", if staged.is_some() { tile + 4 } else { tile }),
            ("IN_SHARED", usize::from(staged.is_some())),
            ("AXES", axes.len()),
            ("PERIODIC", usize::from(measure.periodic)),
            ("DISTANCES", layout.distances),
            ("ALL_ALIKE", usize::from(form.kinds.iter().any(|kind| kind & ALIKE != 0))),
            ("ROW", form.words()),
            ("CREW", CREW),
            ("HAS_FIELDS", HAS_FIELDS as usize),
            ("HAS_BONDS", HAS_BONDS as usize),
            ("ALIKE", ALIKE as usize),
        ];
        form
    }

    /// Doubles of a row.
    fn doubles(&self) -> usize {
        self.terms + self.waves
    }

    /// 64-bit words of a row.
    fn words(&self) -> usize {
        self.doubles() + (self.q + self.distances.saturating_sub(1)).div_ceil(2)
    }
}

/// Measures states on a GPU.
pub(crate) struct CudaMeasure {
    gpu: Arc<Gpu>,
    target: Arc<CudaTarget>,
    form: Form,
    /// All pairs at distance 0, which are equal.
    pairs: usize,
    arguments: Reduction,
    kernel: CudaFunction,
    _bytes: CudaSlice<u8>,
    _numbers: [CudaSlice<f64>; 2],
    _words: [CudaSlice<u32>; 2],
}

/// Where the states to be measured lie: in the rows `rows[0]`, `rows[1]`, ..., or in the first ones.
#[derive(Clone, Copy)]
pub(crate) struct Found<'a> {
    pub(crate) states: &'a CudaSlice<u8>,
    pub(crate) rows: Option<&'a CudaSlice<u32>>,
}

impl CudaMeasure {
    /// Measure on a GPU what `recorder` measures on the CPU, at most `most` states at once.
    pub(crate) fn new(
        target: &Arc<CudaTarget>,
        pairs: &Pairwise,
        recorder: &ChainRecorder<'_>,
        most: usize,
    ) -> Result<Self> {
        let gpu = &target.gpu;
        let form = Form::new(recorder, pairs, gpu.shared());
        let kernels = target.compile(&form.source, &form.defines)?;
        let reference = gpu.upload(&recorder.reference)?;
        let waves = recorder.measure.axes.iter().flat_map(|axis| &axis.wave);
        let mut waves: Vec<f64> = waves.flat_map(|&(cos, sin)| [cos, sin]).collect();
        waves.push(0.0); // no array is empty
        let numbers = [gpu.upload(&waves)?, gpu.upload(&form.couplings)?];
        let scratch = match form.shared {
            0 => most.next_multiple_of(4) * form.sites / 4,
            _ => 1,
        };
        let words = [gpu.upload(&form.kinds)?, gpu.zeros(scratch)?];
        Ok(CudaMeasure {
            arguments: Reduction {
                reference: Input::of(gpu, &reference),
                waves: Input::of(gpu, &numbers[0]),
                kinds: Input::of(gpu, &words[0]),
                couplings: Input::of(gpu, &numbers[1]),
                scratch: Output::of(gpu, &words[1]),
            },
            kernel: kernels.get("reduce_states", form.shared)?,
            pairs: recorder.measure.pairs(0),
            form,
            gpu: gpu.clone(),
            target: target.clone(),
            _bytes: reference,
            _numbers: numbers,
            _words: words,
        })
    }

    /// 64-bit words of a row.
    pub(crate) fn words(&self) -> usize {
        self.form.words()
    }

    /// Bytes of a state.
    pub(crate) fn sites(&self) -> usize {
        self.form.sites
    }

    /// Bytes of a GPU that a measured state takes beside itself, with two rows on their way.
    pub(crate) fn bytes(recorder: &impl RemoteRecorder, pairs: &Pairwise, gpu: &Gpu) -> usize {
        let form = Form::new(recorder.measures(), pairs, gpu.shared());
        let scratch = if form.shared == 0 { form.sites } else { 0 };
        let kept = if recorder.keeps_states() { form.sites } else { 0 };
        scratch + 2 * (8 * form.words() + kept)
    }

    /// Write the rows of `count` states to `out`, and the states to `kept` if it is there.
    pub(crate) fn reduce(
        &self,
        found: Found<'_>,
        count: usize,
        out: &mut CudaViewMut<'_, u64>,
        kept: Option<&mut CudaViewMut<'_, u8>>,
    ) -> Result<()> {
        let Found { states, rows } = found;
        let gpu = &self.gpu;
        let given = States {
            states: Input::of(gpu, states),
            rows: rows.map_or(Input::none(), |rows| Input::of(gpu, rows)),
            out: Output::of(gpu, &*out),
            kept: kept.map_or(Output::none(), |kept| Output::of(gpu, &*kept)),
            count: count as u32,
        };
        let grid = (count.div_ceil(self.form.tile) as u32, 1, 1);
        let pairs = self.target.arguments();
        let shared = self.form.shared;
        launch!(gpu, self.kernel, (grid, CREW, shared), pairs, &self.arguments, &given)
    }

    /// Give a row to a recorder, with its state if that was kept.
    pub(crate) fn record(
        &self,
        words: &[u64],
        x: Option<&[u8]>,
        space: &mut Unpacked,
        recorder: &mut impl RemoteRecorder,
    ) {
        let form = &self.form;
        let (doubles, whole) = words.split_at(form.doubles());
        let whole = |at: usize| (whole[at / 2] >> (32 * (at % 2))) as u32 as usize;
        let Unpacked { numbers, counts, equal_pairs } = space;
        numbers.clear();
        numbers.extend(doubles.iter().map(|&bits| f64::from_bits(bits)));
        counts.clear();
        counts.push(0);
        counts.extend((1..form.q).map(|value| whole(value - 1)));
        counts[0] = form.sites - counts.iter().sum::<usize>();
        equal_pairs.clear();
        if form.distances > 0 {
            equal_pairs.push(self.pairs);
            equal_pairs.extend((1..form.distances).map(|r| whole(form.q - 1 + r)));
        }
        let (energies, structure) = numbers.split_at(form.terms);
        let distance = whole(form.q - 1) as u64;
        recorder.record_reduced(&Reduced { energies, counts, equal_pairs, structure, distance }, x);
    }
}

/// Space for the numbers of a row.
#[derive(Clone, Debug, Default)]
pub(crate) struct Unpacked {
    numbers: Vec<f64>,
    counts: Vec<usize>,
    equal_pairs: Vec<usize>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::target::cuda::testing::compiles_behind;
    use crate::target::{Boundary, Bravais, Disorder, Interaction, Lattice, on_shells};

    #[test]
    #[cfg_attr(not(has_nvrtc), ignore = "needs NVRTC: set LEAPS_NVRTC to its folder")]
    fn kernels_compile_for_all_lattices() {
        let lattice = |shape: &[usize], boundary| Lattice::new(shape, boundary).unwrap();
        let torus = |shape: &[usize]| lattice(shape, Boundary::Periodic);
        let glass = Pairwise::edwards_anderson(torus(&[6, 6]), Disorder::Gaussian, 2).unwrap();
        let edges: Vec<(u32, u32, f64)> = (0..9).map(|i| (i, i + 1, 0.3)).collect();
        for target in [
            Pairwise::ising(torus(&[15, 15]), 1.0, 0.3).unwrap(),
            Pairwise::ising(lattice(&[5, 7], Boundary::Free), -1.0, 0.0).unwrap(),
            Pairwise::ising(torus(&[4, 5, 6]), 0.7, 0.0).unwrap(),
            glass.with_uniform_field(-0.2).unwrap(),
            Pairwise::potts(torus(&[6, 6]), 3, 1.0, 0.2).unwrap(),
            Pairwise::potts(torus(&[3, 4]), 200, 2.0, 0.5).unwrap(),
            Pairwise::from_edges(Interaction::Ising, 10, 2, &edges).unwrap(),
            Pairwise::ising(torus(&[90, 91]), 1.0, 0.1).unwrap(),
            Pairwise::ising(torus(&[300, 300]), 1.0, 0.1).unwrap(),
            on_shells(&[6, 8], None, &[1.0, -0.6]),
            on_shells(&[4, 4, 4], Some(Bravais::Fcc), &[-1.0]),
        ] {
            let recorder = ChainRecorder::new(&target, &vec![0.3; target.terms()], 1);
            let form = Form::new(&recorder, &target, 227 << 10);
            compiles_behind(&target, &form.source, &form.defines);
        }
    }

    #[test]
    fn sums_of_numbers_with_few_digits_are_exact() {
        for (number, exact) in
            [(1.0, true), (-0.5, true), (0.0, true), (3.0, true), (0.3, false), (f64::NAN, false)]
        {
            assert_eq!(adds_exactly(number, 1000), exact, "{number}");
        }
        assert!(!adds_exactly(1.0, 1 << 53) && adds_exactly(1.0, (1 << 53) - 1));
        assert!(!adds_exactly(1.0 + f64::EPSILON, 2));
    }
}
