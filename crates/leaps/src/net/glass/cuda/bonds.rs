//! Bonds of a spin glass on a GPU: tables, arguments and memory of the kernels that look at them.

use cudarc::driver::{CudaFunction, CudaSlice};

use crate::Result;
use crate::device::cuda::arguments::{Input, Output, arguments, join};
use crate::device::cuda::{Gpu, Kernels, launch};
use crate::net::cuda::CudaBatch;
use crate::net::glass::bonds::{Bonds, LEAST, MIDDLE, STEEPNESS, STEPS};
use crate::net::hollow::cuda::Word;

/// Source of the kernels, to follow that of the hollow convolution.
pub(in crate::net) const BONDS: &str = join!(EnterBonds::SOURCE, include_str!("bonds.cu"));

/// Threads of a block of `enter_bonds`.
const THREADS: usize = 128;

/// What the kernels are compiled with beside the convolution's.
pub(in crate::net) const fn defines() -> [(&'static str, usize); 1] {
    [("BOND_THREADS", THREADS)]
}

arguments! {
    /// Of the kernel that writes what is read of bonds.
    struct EnterBonds {
        /// `[row * SITES + site]`.
        states: Input<u8>,
        /// `[slot]`: the row of its state.
        rows: Input<u32>,
        /// `[instance][site * dimensions + axis]`.
        couplings: Input<f32>,
        /// `[site][direction]`: the neighbour, and the coupling to it.
        neighbours: Input<u32>,
        bonds: Input<u32>,
        /// `[direction]`: the directions of the bonds that enter.
        faces: Input<u32>,
        /// `[plaquette]`: four couplings.
        plaquettes: Input<u32>,
        /// `[slot][direction][site][ENTERING]`.
        entering: Output<Word>,
        /// `[slot][site][GLOBAL_FEATURES]`.
        global_features: Output<Word>,
        /// `[slot][site][direction]`.
        pulls: Output<f32>,
        /// Rows of an instance.
        rows_of_instance: u32,
        plaquette_count: u32,
        per_plaquette: f32,
        /// Steps of the energy, and the least sum of sizes.
        steps: f32,
        least: f32,
        /// Of the hyperbolic tangent.
        middle: f32,
        steepness: f32,
    }
}

/// See the [module](self).
pub(in crate::net) struct CudaBonds {
    enter: CudaFunction,
    pub(super) contract: CudaFunction,
    pub(super) expand: CudaFunction,
    dimensions: usize,
    neighbours: CudaSlice<u32>,
    bonds: CudaSlice<u32>,
    faces: CudaSlice<u32>,
    plaquettes: CudaSlice<u32>,
    /// What enters the stack: `[slot][direction][site]`.
    pub(in crate::net) entering: CudaSlice<u32>,
    /// The pulls on every site: `[slot][site][direction]`.
    pub(super) pulls: CudaSlice<f32>,
}

impl CudaBonds {
    /// With so many words of what enters for a site and direction.
    pub(in crate::net) fn new(
        bonds: &Bonds,
        gpu: &Gpu,
        kernels: &Kernels,
        slots: usize,
        words: usize,
    ) -> Result<Self> {
        let sides = slots * bonds.sites * bonds.directions();
        let faces: Vec<u32> = bonds.entering.iter().flatten().map(|&k| k as u32).collect();
        Ok(CudaBonds {
            enter: kernels.get("enter_bonds", 0)?,
            contract: kernels.get("contract", 0)?,
            expand: kernels.get("expand", 0)?,
            dimensions: bonds.dimensions,
            neighbours: gpu.upload(&bonds.neighbours)?,
            bonds: gpu.upload(&bonds.couplings)?,
            faces: gpu.upload(&faces)?,
            plaquettes: gpu.upload(bonds.plaquettes.as_flattened())?,
            entering: gpu.zeros(sides * words)?,
            pulls: gpu.zeros(sides)?,
        })
    }

    /// Write what enters, the pulls, and what the head reads beside the context.
    pub(in crate::net) fn enter(
        &mut self,
        gpu: &Gpu,
        batch: &CudaBatch<'_>,
        global_features: &mut CudaSlice<u32>,
    ) -> Result<()> {
        let plaquettes = self.plaquettes.len() / 4;
        let pass = EnterBonds {
            states: Input::of(gpu, batch.states),
            rows: Input::of(gpu, batch.rows),
            couplings: Input::of(gpu, batch.couplings.numbers),
            neighbours: Input::of(gpu, &self.neighbours),
            bonds: Input::of(gpu, &self.bonds),
            faces: Input::of(gpu, &self.faces),
            plaquettes: Input::of(gpu, &self.plaquettes),
            entering: Output::cast(gpu, &self.entering),
            global_features: Output::cast(gpu, &*global_features),
            pulls: Output::of(gpu, &self.pulls),
            rows_of_instance: batch.couplings.rows,
            plaquette_count: plaquettes as u32,
            per_plaquette: 1.0 / plaquettes.max(1) as f32,
            steps: STEPS as f32,
            least: LEAST as f32,
            middle: (MIDDLE * self.dimensions as f64) as f32,
            steepness: STEEPNESS as f32,
        };
        launch!(gpu, self.enter, ((batch.slots as u32, 1, 1), THREADS, 0), &pass)
    }
}
