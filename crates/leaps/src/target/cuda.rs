//! Pairwise targets on a GPU: energies and sweeps of many walkers.
//!
//! One thread moves one walker, and draws the words that the kernels on the CPU draw
//! ([`HeatBath`](crate::mcmc::HeatBath), [`Metropolis`](crate::mcmc::Metropolis)): the states are the same, but for choices closer to even than the
//! rounding of an exponential.

#![cfg(feature = "cuda")]

mod classes;

use std::sync::Arc;

use cudarc::driver::{CudaFunction, CudaSlice, CudaView};

use super::{Pairwise, Target, pairwise_for_gpu};
use crate::Result;
use crate::device::Purpose;
use crate::device::cuda::arguments::{Input, Output, arguments, join};
use crate::device::cuda::{Gpu, Kernels, RANDOM, launch};
use classes::Classes;

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
        /// `[(class * GROUPS + group) * 2]`: one bond of the site of the class with the coupling of the group, and how many there are.
        groups: Input<u32>,
        /// `[bond]`: what an equal neighbour adds to the index of the surroundings.
        adds: Input<u8>,
        bonds: u64,
        /// Rows of states that belong to one instance, where there are several.
        rows: u64,
    }
}

arguments! {
    /// Sweeps of some walkers.
    struct Sweeps {
        /// `[row * SITES + site]`.
        states: Output<u8>,
        /// Rows of the walkers.
        rows: Input<u32>,
        /// `[term]`, or `[walker * stride + term]`.
        lambda: Input<f64>,
        stride: u32,
        seed: u64,
        purpose: u32,
        /// Of the first sweep.
        step: u64,
        sweeps: u32,
        /// Walkers.
        count: u32,
    }
}

/// Source of a pairwise target's functions and kernels.
pub(crate) const PAIRWISE: &str =
    join!(Pairs::SOURCE, Sweeps::SOURCE, RANDOM, include_str!("pairwise.cu"));

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
    tables: Tables,
}

/// What [`CudaTarget::arguments`] points to.
struct Tables {
    _words: [CudaSlice<u32>; 4],
    couplings: CudaSlice<f64>,
    _fields: CudaSlice<f64>,
    constants: CudaSlice<f64>,
    _bytes: [CudaSlice<u8>; 2],
}

/// Instances of a disorder on one graph, to whose walkers the rows of states belong in order.
#[derive(Clone, Copy)]
pub(crate) struct Several {
    pub(crate) instances: usize,
    /// Rows of states of each.
    pub(crate) rows: usize,
}

/// How the sweeps of a target are compiled: defines, threads of a block, bytes of shared memory.
fn plan(
    target: &Pairwise,
    classes: &Classes,
    available: usize,
) -> (Vec<(&'static str, usize)>, usize, usize) {
    let (sites, degree) = (target.sites(), target.max_degree());
    let regular = (0..sites).all(|site| target.directed(site).len() == degree);
    let entries = classes.entries();
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
        ("CLASSES", classes.members.len()),
        ("GROUPS", classes.groups),
        ("SURROUNDINGS", classes.surroundings),
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
        Self::of(gpu, target, None)
    }

    /// Put targets on a GPU that differ from `target` in couplings and constants, which are 0 until they are [set](Self::set_instance).
    pub(crate) fn several(gpu: &Arc<Gpu>, target: &dyn Target, several: Several) -> Result<Self> {
        Self::of(gpu, target, Some(several))
    }

    fn of(gpu: &Arc<Gpu>, target: &dyn Target, several: Option<Several>) -> Result<Self> {
        let pairs = pairwise_for_gpu(target)?;
        let (sites, q, terms) = (pairs.sites(), pairs.q(), pairs.terms());
        // Sites that are alike in one instance are not in another.
        let classes = if several.is_some() { Classes::default() } else { Classes::new(pairs) };
        let (mut defines, threads, shared) = plan(pairs, &classes, gpu.shared());
        defines.extend(several.map(|_| ("INSTANCES", 1)));
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
        let words = [some(starts)?, some(ends)?, some(classes.members)?, some(classes.bonds)?];
        let (couplings, constants) = match several {
            None => (some_numbers(couplings)?, some_numbers(constants)?),
            Some(Several { instances, .. }) => {
                (gpu.zeros(instances * couplings.len())?, gpu.zeros(instances * terms)?)
            }
        };
        let fields = some_numbers(fields)?;
        let some_bytes = |bytes: Vec<u8>| gpu.upload(&[bytes, vec![0]].concat());
        let bytes = [some_bytes(classes.of_site)?, some_bytes(classes.adds)?];
        let arguments = Pairs {
            starts: Input::of(gpu, &words[0]),
            ends: Input::of(gpu, &words[1]),
            couplings: Input::of(gpu, &couplings),
            fields: Input::of(gpu, &fields),
            constants: Input::of(gpu, &constants),
            classes: Input::of(gpu, &bytes[0]),
            members: Input::of(gpu, &words[2]),
            groups: Input::of(gpu, &words[3]),
            adds: Input::of(gpu, &bytes[1]),
            bonds,
            rows: several.map_or(0, |several| several.rows as u64),
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
            tables: Tables { _words: words, couplings, _fields: fields, constants, _bytes: bytes },
        })
    }

    /// Give instance number `instance` of [several](Self::several) the couplings and constants of a target on the same graph.
    pub(crate) fn set_instance(&mut self, instance: usize, target: &Pairwise) -> Result<()> {
        let (gpu, terms) = (self.gpu.clone(), target.energy_terms());
        let couplings: Vec<f64> =
            terms.iter().flat_map(|term| term.couplings.iter().copied()).collect();
        let constants: Vec<f64> = terms.iter().map(|term| term.constant).collect();
        for (numbers, to) in
            [(couplings, &mut self.tables.couplings), (constants, &mut self.tables.constants)]
        {
            gpu.write_at(&numbers, to, instance * numbers.len())?;
        }
        Ok(())
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
            Weights::Same(lambda) => (Input::of(&self.gpu, lambda), 0),
            Weights::Each(lambda) => (Input::of(&self.gpu, lambda), self.terms as u32),
        };
        let kernel = match kind {
            Sweep::HeatBath => &self.heat_bath,
            Sweep::Metropolis => &self.metropolis,
        };
        if count == 0 || sweeps == 0 {
            return Ok(());
        }
        let grid = (count.div_ceil(self.threads) as u32, 1, 1);
        let given = Sweeps {
            states: Output::of(&self.gpu, &*states),
            rows: Input::of(&self.gpu, rows),
            lambda,
            stride,
            seed,
            purpose: purpose as u32,
            step,
            sweeps: sweeps as u32,
            count: count as u32,
        };
        launch!(self.gpu, kernel, (grid, self.threads, self.shared), &self.arguments, &given)
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
        let mut all: Vec<(&str, usize)> = plan(target, &Classes::new(target), 227 << 10).0;
        all.extend(defines);
        crate::device::cuda::testing::compiles(&[PAIRWISE, source].concat(), &all);
    }
}

#[cfg(test)]
mod tests;
