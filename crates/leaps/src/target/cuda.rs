//! Pairwise targets on a GPU: energies and sweeps of many walkers.
//!
//! One thread moves one walker, and draws the words that the kernels on the CPU draw
//! ([`HeatBath`](crate::mcmc::HeatBath), [`Metropolis`](crate::mcmc::Metropolis)): the states are the same, but for choices closer to even than the
//! rounding of an exponential.

#![cfg(feature = "cuda")]

use std::collections::HashMap;
use std::sync::Arc;

use cudarc::driver::{CudaFunction, CudaSlice, CudaView};

use super::{Pairwise, Target, pairwise_for_gpu};
use crate::Result;
use crate::device::Purpose;
use crate::device::cuda::arguments::{Input, arguments, join};
use crate::device::cuda::{Gpu, Kernels, RANDOM, address, launch};

arguments! {
    /// A pairwise target, as kernels read it.
    pub(crate) struct Pairs {
        /// `[SITES + 1]`.
        starts: Input<u32>,
        /// `[bond]`.
        ends: Input<u32>,
        /// `[term * bonds + bond]`.
        couplings: Input<f64>,
        /// `[(term * SITES + site) * Q + value]`.
        fields: Input<f64>,
        /// `[term]`.
        constants: Input<f64>,
        /// `[SITES]`.
        classes: Input<u8>,
        /// `[CLASSES]`: one site of every class.
        members: Input<u32>,
        bonds: u64,
    }
}

/// Source of a pairwise target's functions and kernels.
pub(crate) const PAIRWISE: &str = join!(Pairs::SOURCE, RANDOM, include_str!("pairwise.cu"));

/// Entries of a walker's table of thresholds: one bit each in a word of 64.
const ENTRIES: usize = 64;

/// Bytes of states and tables that a block may keep in shared memory, at most: beyond it too few blocks share a multiprocessor.
const STAGE: usize = 100 << 10;

/// Moves that leave the distribution invariant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sweep {
    HeatBath,
    Metropolis,
}

/// The weights of the energy terms by which walkers are swept.
#[derive(Clone, Copy)]
pub(crate) enum Weights<'a> {
    /// One set for all, `[term]`.
    Same(&'a CudaView<'a, f64>),
    /// A set for every one of them, `[place * terms + term]`.
    Each(&'a CudaSlice<f64>),
}

/// A pairwise target on a GPU.
pub(crate) struct CudaTarget {
    pub(crate) gpu: Arc<Gpu>,
    pub(crate) sites: usize,
    pub(crate) q: usize,
    pub(crate) terms: usize,
    defines: Vec<(&'static str, usize)>,
    arguments: Pairs,
    threads: usize,
    shared: usize,
    heat_bath: CudaFunction,
    metropolis: CudaFunction,
    energies: CudaFunction,
    initial: CudaFunction,
    gather: CudaFunction,
    weigh: CudaFunction,
    _tables: Tables,
}

/// What [`CudaTarget::arguments`] points to.
struct Tables {
    _words: [CudaSlice<u32>; 3],
    _numbers: [CudaSlice<f64>; 3],
    _classes: CudaSlice<u8>,
}

/// Sites by degree, couplings and fields: the class of every site and one member of each. None if the bonds of a site
/// differ, or if a table over the classes would be too long.
fn classes(target: &Pairwise) -> Option<(Vec<u8>, Vec<u32>)> {
    if target.q() != 2 {
        return None;
    }
    let rows = 2 * (target.max_degree() + 1);
    let (mut known, mut members) = (HashMap::new(), Vec::new());
    let mut classes = Vec::with_capacity(target.sites());
    for site in 0..target.sites() {
        let range = target.directed(site);
        let mut key = vec![range.len() as u64];
        for term in target.energy_terms() {
            let couplings = term.couplings.get(range.clone()).unwrap_or(&[]);
            if couplings.iter().any(|c| *c != couplings[0]) {
                return None;
            }
            key.push(couplings.first().map_or(0, |c| c.to_bits()));
            let fields = term.fields.get(2 * site..2 * site + 2).unwrap_or(&[0.0; 2]);
            key.extend(fields.iter().map(|f| f.to_bits()));
        }
        let class = *known.entry(key).or_insert_with(|| {
            members.push(site as u32);
            members.len() - 1
        });
        if members.len() * rows > ENTRIES {
            return None;
        }
        classes.push(class as u8);
    }
    Some((classes, members))
}

/// How the sweeps of a target are compiled: defines, threads of a block, bytes of shared memory.
fn plan(
    target: &Pairwise,
    classes: usize,
    available: usize,
) -> (Vec<(&'static str, usize)>, usize, usize) {
    let (sites, degree) = (target.sites(), target.max_degree());
    let regular = (0..sites).all(|site| target.directed(site).len() == degree);
    let entries = classes * 2 * (degree + 1);
    // A row ends 4 bytes late, so that a warp that copies one state to its column meets all banks.
    let need = |threads: usize| 4 * entries * threads + sites * (threads + 4);
    let fits = |room: usize| [128, 64, 32].into_iter().find(|&threads| need(threads) <= room);
    let staged = fits(available.min(STAGE)).or_else(|| fits(available));
    let threads = staged.unwrap_or(128);
    let shared = if staged.is_some() { need(threads) } else { 4 * entries * threads };
    let defines = vec![
        ("SITES", sites),
        ("Q", target.q()),
        ("TERMS", target.terms()),
        ("CLASSES", classes),
        ("DEGREE", degree),
        ("REGULAR", usize::from(regular)),
        ("THREADS", threads),
        ("PITCH", threads + 4),
        ("STAGED", usize::from(staged.is_some())),
    ];
    (defines, threads, shared)
}

impl CudaTarget {
    /// Put `target` on a GPU; it must be pairwise.
    pub(crate) fn new(gpu: &Arc<Gpu>, target: &dyn Target) -> Result<Self> {
        let pairs = pairwise_for_gpu(target)?;
        let (sites, q, terms) = (pairs.sites(), pairs.q(), pairs.terms());
        let found = classes(pairs);
        let (class, members) = found.unwrap_or_default();
        let (defines, threads, shared) = plan(pairs, members.len(), gpu.shared());
        let kernels = gpu.compile(PAIRWISE, &defines)?;

        let directed = |site: usize| pairs.directed(site);
        let mut starts: Vec<u32> = (0..sites).map(|site| directed(site).start as u32).collect();
        starts.push(directed(sites - 1).end as u32);
        let ends: Vec<u32> = (0..sites).flat_map(|site| pairs.neighbours(site)).copied().collect();
        let (mut couplings, mut fields, mut constants) = (Vec::new(), Vec::new(), Vec::new());
        for term in pairs.energy_terms() {
            let full = |part: &[f64], n: usize| match part {
                [] => vec![0.0; n],
                _ => part.to_vec(),
            };
            couplings.extend(full(&term.couplings, ends.len()));
            fields.extend(full(&term.fields, sites * q));
            constants.push(term.constant);
        }
        let some = |mut words: Vec<u32>| {
            words.push(0); // no array is empty
            gpu.upload(&words)
        };
        let some_numbers = |mut numbers: Vec<f64>| {
            numbers.push(0.0);
            gpu.upload(&numbers)
        };
        let bonds = ends.len() as u64;
        let words = [some(starts)?, some(ends)?, some(members)?];
        let numbers = [some_numbers(couplings)?, some_numbers(fields)?, some_numbers(constants)?];
        let class = gpu.upload(&[class, vec![0]].concat())?;
        let arguments = Pairs {
            starts: Input::of(gpu, &words[0]),
            ends: Input::of(gpu, &words[1]),
            couplings: Input::of(gpu, &numbers[0]),
            fields: Input::of(gpu, &numbers[1]),
            constants: Input::of(gpu, &numbers[2]),
            classes: Input::of(gpu, &class),
            members: Input::of(gpu, &words[2]),
            bonds,
        };
        Ok(CudaTarget {
            sites,
            q,
            terms,
            arguments,
            threads,
            shared,
            heat_bath: kernels.get("heat_bath", shared)?,
            metropolis: kernels.get("metropolis", shared)?,
            energies: kernels.get("energies", 0)?,
            initial: kernels.get("initial", 0)?,
            gather: kernels.get("gather", 0)?,
            weigh: kernels.get("weigh_walkers", 0)?,
            defines,
            gpu: gpu.clone(),
            _tables: Tables { _words: words, _numbers: numbers, _classes: class },
        })
    }

    /// Compile `source` behind the functions of this target.
    pub(crate) fn compile(&self, source: &str, defines: &[(&str, usize)]) -> Result<Kernels> {
        let mut all: Vec<(&str, usize)> = self.defines.clone();
        all.extend(defines);
        self.gpu.compile(&[PAIRWISE, source].concat(), &all)
    }

    /// Threads and bytes of shared memory of a block that sweeps.
    pub(crate) fn block(&self) -> (usize, usize) {
        (self.threads, self.shared)
    }

    /// What kernels read of the target.
    pub(crate) fn arguments(&self) -> &Pairs {
        &self.arguments
    }

    /// The states of `walkers` walkers in which [`initial_state`](super::initial_state) puts them.
    pub(crate) fn initial_states(&self, walkers: usize, seed: u64) -> Result<CudaSlice<u8>> {
        let states = self.gpu.zeros::<u8>(walkers * self.sites)?;
        let (grid, n) = ((walkers.div_ceil(128) as u32, 1, 1), walkers as u32);
        launch!(self.gpu, self.initial, (grid, 128, 0), &states, &seed, &n)?;
        Ok(states)
    }

    /// Write the energy terms of all walkers, `[walker * terms + term]`.
    pub(crate) fn energies(
        &self,
        states: &CudaSlice<u8>,
        walkers: usize,
        out: &mut CudaSlice<f64>,
    ) -> Result<()> {
        let (grid, n) = ((walkers.div_ceil(4) as u32, 1, 1), walkers as u32);
        launch!(self.gpu, self.energies, (grid, 128, 0), &self.arguments, states, out, &n)
    }

    /// Add `U_{t_{k-1}}(x) - U_{t_k}(x)` to every log-weight, given the weights `lambda[time * terms + term]` of all times.
    pub(crate) fn weigh(
        &self,
        log_weights: &mut CudaSlice<f64>,
        energies: &CudaSlice<f64>,
        (lambda, k): (&CudaSlice<f64>, usize),
        walkers: usize,
    ) -> Result<()> {
        let lambda = lambda.slice((k - 1) * self.terms..(k + 1) * self.terms);
        let (grid, n) = ((walkers.div_ceil(128) as u32, 1, 1), walkers as u32);
        launch!(self.gpu, self.weigh, (grid, 128, 0), log_weights, energies, &lambda, &n)
    }

    /// Sweep the walkers `rows[..count]`, all different, in place. Sweep `s` of a walker draws from the stream at
    /// (seed, purpose, walker, step + s).
    pub(crate) fn sweep(
        &self,
        kind: Sweep,
        states: &mut CudaSlice<u8>,
        (rows, count): (&CudaSlice<u32>, usize),
        weights: Weights<'_>,
        (seed, purpose): (u64, Purpose),
        (step, sweeps): (u64, u64),
    ) -> Result<()> {
        let (lambda, stride) = match weights {
            Weights::Same(lambda) => (address(&self.gpu, lambda), 0u32),
            Weights::Each(lambda) => (address(&self.gpu, lambda), self.terms as u32),
        };
        let kernel = match kind {
            Sweep::HeatBath => &self.heat_bath,
            Sweep::Metropolis => &self.metropolis,
        };
        if count == 0 || sweeps == 0 {
            return Ok(());
        }
        let grid = (count.div_ceil(self.threads) as u32, 1, 1);
        let (purpose, sweeps, count) = (purpose as u32, sweeps as u32, count as u32);
        launch!(
            self.gpu,
            kernel,
            (grid, self.threads, self.shared),
            &self.arguments,
            states,
            rows,
            &lambda,
            &stride,
            &seed,
            &purpose,
            &step,
            &sweeps,
            &count,
        )
    }

    /// The rows `from[..rows]` of an array with `row` numbers a row.
    pub(crate) fn gathered<T>(
        &self,
        old: &CudaSlice<T>,
        row: usize,
        from: &CudaSlice<u32>,
        rows: usize,
    ) -> Result<CudaSlice<T>>
    where
        T: cudarc::driver::DeviceRepr + cudarc::driver::ValidAsZeroBits,
    {
        let out = self.gpu.zeros::<T>(rows * row)?;
        let (bytes, n) = ((row * size_of::<T>()) as u32, rows as u32);
        let threads = bytes.next_multiple_of(32).min(128);
        launch!(self.gpu, self.gather, ((n, 1, 1), threads, 0), old, &out, from, &bytes, &n)?;
        Ok(out)
    }
}

#[cfg(test)]
pub(crate) mod testing {
    use super::*;

    /// Compile `source` behind the functions of `target` for a usual GPU.
    pub(crate) fn compiles_behind(target: &Pairwise, source: &str, defines: &[(&str, usize)]) {
        let class = classes(target).map_or(0, |found| found.1.len());
        let mut all: Vec<(&str, usize)> = plan(target, class, 227 << 10).0;
        all.extend(defines);
        crate::device::cuda::testing::compiles(&[PAIRWISE, source].concat(), &all);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::cuda::testing::compiles;
    use crate::device::{Draw, Stream};
    use crate::mcmc::{HeatBath, Kernel, Metropolis};
    use crate::target::{Boundary, Density, Disorder, Lattice, initial_state};

    fn lattice(shape: &[usize], boundary: Boundary) -> Lattice {
        Lattice::new(shape, boundary).unwrap()
    }

    /// Targets that go every way through the kernels: tables with one and several classes, none, large states, many values.
    fn targets() -> Vec<(&'static str, Pairwise)> {
        let torus = |shape: &[usize]| lattice(shape, Boundary::Periodic);
        let glass = Pairwise::edwards_anderson(torus(&[6, 6]), Disorder::Gaussian, 2).unwrap();
        let mut stream = Stream::new(1, Purpose::Disorder, 0, 0);
        let edges: Vec<(u32, u32, f64)> = (0..60)
            .map(|_| {
                let i = stream.below(19) as u32;
                (i, (i + 1 + stream.below(18) as u32) % 19, stream.normal())
            })
            .collect();
        vec![
            ("torus", Pairwise::ising(torus(&[8, 8]), 1.0, 0.3).unwrap()),
            ("free ends", Pairwise::ising(lattice(&[5, 7], Boundary::Free), -1.0, 0.0).unwrap()),
            ("glass", glass.with_uniform_field(-0.2).unwrap()),
            ("3 values", Pairwise::potts(torus(&[6, 6]), 3, 1.0, 0.2).unwrap()),
            ("5 values", Pairwise::potts(torus(&[5, 5]), 5, 1.0, 0.0).unwrap()),
            ("20 values", Pairwise::potts(torus(&[3, 4]), 20, 2.0, 0.5).unwrap()),
            (
                "graph",
                Pairwise::from_edges(super::super::Interaction::Ising, 20, 2, &edges).unwrap(),
            ),
            ("beyond shared memory", Pairwise::ising(torus(&[90, 91]), 1.0, 0.1).unwrap()),
        ]
    }

    #[test]
    #[cfg_attr(not(has_nvrtc), ignore = "needs NVRTC: set LEAPS_NVRTC to its folder")]
    fn kernels_compile_for_all_kinds_of_targets() {
        for (name, target) in targets() {
            let class = classes(&target).map_or(0, |found| found.1.len());
            let (defines, ..) = plan(&target, class, 227 << 10);
            assert_eq!(class > 0, ["torus", "free ends", "beyond shared memory"].contains(&name));
            compiles(PAIRWISE, &defines);
        }
    }

    #[test]
    #[ignore = "needs a GPU: cargo test -p leaps --lib cuda -- --ignored --skip speed"]
    fn initial_states_and_energies_are_the_cpus() {
        let gpu = Gpu::open(0).unwrap();
        for (name, target) in targets() {
            let on_gpu = CudaTarget::new(&gpu, &target).unwrap();
            let walkers = 101;
            let states = on_gpu.initial_states(walkers, 7).unwrap();
            let mut energies = gpu.zeros(walkers * target.terms()).unwrap();
            on_gpu.energies(&states, walkers, &mut energies).unwrap();
            let (states, energies) =
                (gpu.download(&states).unwrap(), gpu.download(&energies).unwrap());
            for walker in 0..walkers {
                let x = initial_state(&target, 7, walker as u32);
                assert_eq!(&states[walker * x.len()..][..x.len()], &x, "{name}, walker {walker}");
                for term in 0..target.terms() {
                    let (got, want) =
                        (energies[walker * target.terms() + term], target.energy(term, &x));
                    // Sums of small integers are exact in any order.
                    let whole = term == 0 && !["glass", "graph"].contains(&name);
                    let bound = if whole { 0.0 } else { 1e-12 * (1.0 + want.abs()) };
                    assert!((got - want).abs() <= bound, "{name}: {got} {want}");
                }
            }
        }
    }

    #[test]
    #[ignore = "needs a GPU: cargo test -p leaps --lib cuda -- --ignored --skip speed"]
    fn sweeps_draw_what_the_cpu_draws() {
        let gpu = Gpu::open(0).unwrap();
        for (name, target) in targets() {
            let on_gpu = CudaTarget::new(&gpu, &target).unwrap();
            let (walkers, sweeps) = if target.sites() > 1000 { (70, 3) } else { (1000, 20) };
            let terms = target.terms();
            // Every walker at its own temperature, some of them negative.
            let each: Vec<f64> = (0..walkers * terms)
                .map(|i| {
                    1.1 * (i / terms) as f64 / walkers as f64 - 0.1 + 0.01 * (i % terms) as f64
                })
                .collect();
            let same = vec![0.4; terms];
            for kind in [Sweep::HeatBath, Sweep::Metropolis] {
                for (own, lambda) in [(true, &each), (false, &same)] {
                    // Every third walker is left out, the others go backwards.
                    let rows: Vec<u32> =
                        (0..walkers as u32).rev().filter(|row| row % 3 != 1).collect();
                    let mut states = on_gpu.initial_states(walkers, 5).unwrap();
                    let numbers = gpu.upload(lambda).unwrap();
                    let first = numbers.slice(..terms);
                    let weights = if own { Weights::Each(&numbers) } else { Weights::Same(&first) };
                    let list = gpu.upload(&rows).unwrap();
                    for (step, sweeps) in [(1 << 33, sweeps - 1), ((1 << 33) + sweeps - 1, 1)] {
                        let (address, times) = ((11, Purpose::Reference), (step, sweeps));
                        on_gpu
                            .sweep(kind, &mut states, (&list, rows.len()), weights, address, times)
                            .unwrap();
                    }
                    let states = gpu.download(&states).unwrap();
                    let mut place = vec![None; walkers];
                    for (i, &row) in rows.iter().enumerate() {
                        place[row as usize] = Some(i);
                    }
                    let mut differ = 0;
                    for walker in 0..walkers {
                        let mut x = initial_state(&target, 5, walker as u32);
                        if let Some(i) = place[walker] {
                            let lambda =
                                if own { &lambda[i * terms..][..terms] } else { &lambda[..] };
                            let model = Density::new(&target, lambda);
                            for sweep in 0..sweeps {
                                let mut stream = Stream::new(
                                    11,
                                    Purpose::Reference,
                                    walker as u32,
                                    (1 << 33) + sweep,
                                );
                                match kind {
                                    Sweep::HeatBath => HeatBath::new(&target).unwrap().step(
                                        &model,
                                        &mut x,
                                        &mut stream,
                                    ),
                                    Sweep::Metropolis => Metropolis::new(&target).unwrap().step(
                                        &model,
                                        &mut x,
                                        &mut stream,
                                    ),
                                };
                            }
                        }
                        let got = &states[walker * x.len()..][..x.len()];
                        differ += usize::from(got != x);
                        assert!(
                            place[walker].is_some() || got == x,
                            "{name}: a walker left out moved"
                        );
                    }
                    println!("{name} {kind:?}: {differ} of {walkers} walkers differ");
                    assert!(differ * 100 <= walkers, "{name} {kind:?}: {differ}");
                }
            }
        }
    }

    /// Heat-bath updates per second on a 15x15 torus; run it in release mode.
    #[test]
    #[ignore = "a measurement"]
    fn speed_of_sweeps() {
        let gpu = Gpu::open(0).unwrap();
        let torus = lattice(&[15, 15], Boundary::Periodic);
        for (name, target) in [
            ("ising", Pairwise::ising(torus.clone(), 1.0, 0.0).unwrap()),
            ("glass", Pairwise::edwards_anderson(torus.clone(), Disorder::Gaussian, 2).unwrap()),
            ("potts 3", Pairwise::potts(torus, 3, 1.0, 0.0).unwrap()),
        ] {
            let on_gpu = CudaTarget::new(&gpu, &target).unwrap();
            let walkers = 1 << 18;
            let mut states = on_gpu.initial_states(walkers, 5).unwrap();
            let rows = gpu.upload(&(0..walkers as u32).collect::<Vec<u32>>()).unwrap();
            let lambda = gpu.upload(&[0.4407]).unwrap();
            let lambda = lambda.slice(..);
            for kind in [Sweep::HeatBath, Sweep::Metropolis] {
                for sweeps in [1, 10] {
                    let mut seconds = 0.0;
                    for turn in 0..10 {
                        gpu.wait().unwrap();
                        let start = std::time::Instant::now();
                        let weights = Weights::Same(&lambda);
                        let address = (1, Purpose::Move);
                        on_gpu
                            .sweep(
                                kind,
                                &mut states,
                                (&rows, walkers),
                                weights,
                                address,
                                (10 * turn, sweeps),
                            )
                            .unwrap();
                        gpu.wait().unwrap();
                        if turn > 0 {
                            seconds += start.elapsed().as_secs_f64();
                        }
                    }
                    let updates = 9.0 * (walkers * target.sites()) as f64 * sweeps as f64;
                    println!(
                        "{name} {kind:?}, {sweeps} sweeps a launch: {:.1} G updates/s",
                        1e-9 * updates / seconds
                    );
                }
            }
        }
    }
}
