//! Passes after jumps on tensor cores: only what has changed is computed again ([matrix_changes.cu](matrix_changes.cu)).
//!
//! On squares, for networks of values with at least two layers whose blocks fit into shared memory. All other networks make whole passes.

use cudarc::driver::CudaSlice;

use super::arguments::{Axis, StackChanges, StackForward, source};
use super::sizes::Sizes;
use crate::Result;
use crate::device::cuda::arguments::{Input, Output};
use crate::device::cuda::{Gpu, launch};
use crate::net::cuda::{Base, MARKS, functions};
use crate::net::hollow::Hollow;
use crate::net::hollow::geometry::Frame;
use crate::target::{Boundary, Lattice};

pub(super) const KERNELS: &str =
    concat!(include_str!("matrix.cu"), include_str!("matrix_changes.cu"));

/// Rows of a tile of a product.
const TILE: usize = 16;
/// Tiles of a warp at a time, at most, and the numbers of its accumulators for a thread.
const TILES: usize = 3;
const ACCUMULATORS: usize = 72;
/// Registers of a thread besides them, and of a multiprocessor.
const REGISTERS: usize = 44;
const ALL_REGISTERS: usize = 1 << 16;
/// Columns of the values around a site that the second layer's cone goes back to.
const NEAR_COLUMNS: usize = 9;
/// Bytes of a block that the driver takes, and those of 8 weights that a thread reads at a time.
const RESERVED: usize = 1024;
const VECTOR: usize = 16;
/// How often a multiprocessor's blocks are filled with whole passes.
const ROUNDS: usize = 8;
/// A row of a cone costs more than one of a whole pass, of which nothing must be loaded again.
const MORE: usize = 2;

functions!(Functions, ""; split, stack_keep, stack_changes);

/// Cones of a network, and the blocks that compute them.
#[derive(Clone, Debug)]
pub(super) struct Cones {
    sites: usize,
    layers: usize,
    directions: usize,
    /// Planes that a layer sees before a site's own.
    behind: usize,
    periodic: bool,
    /// Of every direction: along it and across.
    axes: Vec<[Axis; 2]>,
    warps: usize,
    blocks: usize,
    tiles: usize,
    shared: usize,
}

/// The axes of a square along direction `k` and across.
fn axes(lattice: &Lattice, k: usize) -> [Axis; 2] {
    let frame = Frame::along(lattice, k);
    [0, 1].map(|j| {
        let (axis, backwards) = frame.axes()[j];
        Axis {
            side: lattice.shape()[axis] as u32,
            stride: lattice.stride(axis) as u32,
            backwards: u32::from(backwards),
        }
    })
}

/// Planes from a site's own on, and columns around it, in which a layer sees its value that looks so many planes behind.
fn extent(behind: usize, layer: usize) -> (usize, usize) {
    (behind * (layer + 1) + 1, 2 * layer + 3)
}

impl Cones {
    /// `None` if the network makes whole passes only. A block may ask for `most` bytes of shared memory.
    pub(super) fn new(network: &Hollow, sizes: &Sizes, most: usize) -> Option<Self> {
        let (geometry, s) = (&network.geometry, sizes);
        let lattice = &geometry.lattice;
        if !s.matrix || s.entering > 0 || s.layers < 2 || geometry.dimensions() != 2 {
            return None;
        }
        let tiles = (2 * ACCUMULATORS / s.channels).clamp(1, TILES);
        let mut cones = Cones {
            sites: s.sites,
            layers: s.layers,
            directions: s.directions,
            behind: geometry.behind,
            periodic: lattice.boundary() == Boundary::Periodic,
            axes: (0..s.directions).map(|k| axes(lattice, k)).collect(),
            warps: 8,
            blocks: 1,
            tiles,
            shared: 0,
        };
        cones.shared = cones.bytes(s);
        if cones.shared > most {
            return None;
        }
        let fit = most / (cones.shared + RESERVED);
        if fit < 2 {
            // One block alone needs more warps.
            cones.warps = 16;
        }
        let registers = REGISTERS + tiles * s.channels / 2;
        cones.blocks = fit.min(ALL_REGISTERS / (32 * cones.warps * registers)).clamp(1, 8);
        Some(cones)
    }

    /// Bytes of shared memory, in the order in which matrix_changes.cu has it.
    fn bytes(&self, s: &Sizes) -> usize {
        let (c, layers, behind) = (s.channels, s.layers, self.behind);
        let cells = self.directions * (behind * (layers + 1) + 1) * (2 * layers + 3);
        let steps = (s.taps * c / 8).div_ceil(2);
        let weights = steps * c.div_ceil(16) * 32 * VECTOR;
        let numbers =
            cells + s.taps * (s.q + 1) * c + (layers - 1) * 2 * c + layers * c + 2 * steps;
        cells * s.stride()
            + weights
            + 4 * numbers
            + self.directions * (4 * behind + 1) * NEAR_COLUMNS
    }

    /// Whether jumps change so little that less is done after them.
    pub(super) fn pay(&self) -> bool {
        let rows = |layer: usize| {
            let (planes, columns) = extent(self.behind, layer);
            (self.directions * planes * columns).next_multiple_of(TILE)
        };
        let changed: usize = (1..self.layers).map(rows).sum();
        MORE * changed < (self.layers - 1) * self.directions * self.sites
    }

    /// `#define`s beside those of the network.
    fn defines(&self) -> Vec<(&'static str, usize)> {
        let own = [
            ("CHANGES", 1),
            ("BEHIND", self.behind),
            ("PERIODIC", usize::from(self.periodic)),
            ("CHANGE_WARPS", self.warps),
            ("CHANGE_BLOCKS", self.blocks),
            ("CHANGE_TILES", self.tiles),
            ("NEAR_COLUMNS", NEAR_COLUMNS),
        ];
        own.into_iter().chain(MARKS).collect()
    }
}

/// Kept activations, and the kernels that bring them up to date.
pub(super) struct Changes {
    functions: Functions,
    axes: CudaSlice<Axis>,
    kept: CudaSlice<f32>,
    /// Slots that need a whole pass, those in which a site has changed, and how many they are.
    whole: CudaSlice<u32>,
    local: CudaSlice<u32>,
    counts: CudaSlice<u32>,
    /// Most blocks of whole passes.
    blocks: usize,
}

impl Changes {
    pub(super) fn new(base: &Base, cones: &Cones, sizes: &Sizes) -> Result<Self> {
        let (gpu, s) = (&base.gpu, sizes);
        let defines = [s.defines(), cones.defines()].concat();
        let kernels = gpu.compile(&[&source(true), KERNELS].concat(), &defines)?;
        let shared = |name: &str| match name {
            "stack_keep" => s.forward_shared(),
            "stack_changes" => cones.shared,
            _ => 0,
        };
        let layers = s.layers - 2;
        Ok(Changes {
            functions: Functions::new(&kernels, shared)?,
            axes: gpu.upload(&cones.axes.concat())?,
            kept: gpu.zeros(base.slots * layers * s.directions * s.sites * s.channels)?,
            whole: gpu.zeros(base.slots)?,
            local: gpu.zeros(base.slots)?,
            counts: gpu.zeros(2)?,
            blocks: ROUNDS * gpu.multiprocessors() * s.forward_blocks(),
        })
    }

    /// The stacks of a batch of so many slots, of which `changed` says what has changed.
    pub(super) fn forward(
        &self,
        gpu: &Gpu,
        (cones, sizes): (&Cones, &Sizes),
        pass: &StackForward,
        (changed, slots): (&CudaSlice<u32>, usize),
    ) -> Result<()> {
        let f = &self.functions;
        let (Changes { whole, local, counts, kept, .. }, n) = (self, slots as u32);
        launch!(gpu, f.split, ((1, 1, 1), 1024, 0), changed, whole, local, counts, &n)?;
        let blocks = (slots * sizes.directions).min(self.blocks);
        let block = (sizes.forward_threads(), sizes.forward_shared());
        let grid = (blocks as u32, 1, 1);
        launch!(gpu, f.stack_keep, (grid, block.0, block.1), pass, whole, counts, kept)?;
        let changes = StackChanges {
            states: pass.states,
            rows: pass.rows,
            time_indices: pass.time_indices,
            times: pass.times,
            first: pass.first,
            biases: pass.biases,
            weights: pass.weights,
            axes: Input::of(gpu, &self.axes),
            changed: Input::of(gpu, changed),
            local: Input::of(gpu, local),
            counts: Input::of(gpu, counts),
            kept: Output::of(gpu, kept),
            context: pass.context,
        };
        launch!(gpu, f.stack_changes, ((n, 1, 1), 32 * cones.warps, cones.shared), &changes)
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::net::hollow::cuda::taps::sites_read;
    use crate::net::hollow::geometry::Geometry;

    /// `site_at` of matrix_changes.cu.
    fn site_at(
        lattice: &Lattice,
        k: usize,
        site: usize,
        (planes, columns): (i32, i32),
    ) -> Option<usize> {
        let moved = |axis: Axis, steps: i32| {
            let (side, at) = (axis.side as i32, (site as u32 / axis.stride % axis.side) as i32);
            let at = if axis.backwards == 1 { at - steps } else { at + steps };
            match lattice.boundary() {
                Boundary::Periodic => Some((at % side + side) % side),
                Boundary::Free => (0..side).contains(&at).then_some(at),
            }
        };
        let [along, across] = axes(lattice, k);
        let (x, y) = (moved(along, planes)?, moved(across, columns)?);
        Some(x as usize * along.stride as usize + y as usize * across.stride as usize)
    }

    fn lattices() -> Vec<(Lattice, usize, usize)> {
        use Boundary::{Free, Periodic};
        [
            ([8, 8], Periodic, 2, 3),
            ([15, 15], Periodic, 2, 6),
            ([16, 16], Periodic, 2, 6),
            ([32, 32], Periodic, 2, 6),
            ([9, 20], Periodic, 2, 4),
            ([7, 12], Periodic, 1, 6),
            ([4, 5], Periodic, 0, 3),
            ([9, 11], Free, 2, 4),
            ([4, 7], Free, 1, 5),
        ]
        .map(|(shape, boundary, behind, layers)| {
            (Lattice::new(&shape, boundary).unwrap(), behind, layers)
        })
        .into()
    }

    #[test]
    fn cells_of_a_box_are_what_taps_read() {
        for (lattice, behind, layers) in lattices() {
            let geometry = Geometry::new(&lattice, behind);
            let (sites, ahead, aside) = (lattice.sites(), behind * layers, layers as i32 + 1);
            for k in 0..4 {
                let read = sites_read(&geometry, k);
                for site in [0, 1, sites / 2, sites - 1] {
                    for plane in -(behind as i32)..=ahead as i32 {
                        for column in -aside..=aside {
                            let cell = |plane, column| site_at(&lattice, k, site, (plane, column));
                            let Some(at) = cell(plane, column) else { continue };
                            for tap in 0..3 * (behind + 1) {
                                let (i, j) = (tap as i32 / 3, tap as i32 % 3);
                                let seen = cell(plane + i - behind as i32, column + j - 1);
                                assert_eq!(read[tap * sites + at], seen.unwrap_or(sites));
                            }
                        }
                    }
                }
            }
        }
    }

    #[test]
    fn cones_hold_all_that_changes() {
        for (lattice, behind, layers) in lattices() {
            let geometry = Geometry::new(&lattice, behind);
            let sites = lattice.sites();
            for k in 0..4 {
                let read = sites_read(&geometry, k);
                for site in 0..sites {
                    let mut changed = vec![false; sites];
                    changed[site] = true;
                    for layer in 0..layers {
                        let sees = |at: usize| {
                            let taps = read.chunks(sites).map(|tap| tap[at]);
                            taps.filter(|&from| from < sites).any(|from| changed[from])
                        };
                        // From the second layer on the site's own channels stay.
                        changed =
                            (0..sites).map(|at| sees(at) || layer > 0 && changed[at]).collect();
                        let (planes, columns) = extent(behind, layer);
                        let mut inside = vec![false; sites];
                        for plane in 0..planes as i32 {
                            let aside = columns as i32 / 2;
                            for column in -aside..=aside {
                                if let Some(at) = site_at(&lattice, k, site, (plane, column)) {
                                    inside[at] = true;
                                }
                            }
                        }
                        assert_eq!(changed, inside, "{lattice:?}, direction {k}, layer {layer}");
                    }
                }
            }
        }
    }

    fn cones(side: usize, layers: usize) -> Cones {
        Cones {
            sites: side * side,
            layers,
            directions: 4,
            behind: 2,
            periodic: true,
            axes: Vec::new(),
            warps: 8,
            blocks: 1,
            tiles: 3,
            shared: 0,
        }
    }

    /// `#define`s of some blocks.
    pub(in crate::net::hollow::cuda) fn defines(
        warps: usize,
        tiles: usize,
    ) -> Vec<(&'static str, usize)> {
        Cones { warps, tiles, ..cones(8, 3) }.defines()
    }

    #[test]
    fn large_lattices_pay() {
        for (side, layers, pays) in
            [(8, 3, false), (10, 4, false), (15, 6, true), (16, 6, true), (32, 6, true)]
        {
            assert_eq!(cones(side, layers).pay(), pays, "{side}");
        }
    }
}
