//! Half-spaces of a lattice, in tiles that a convolution is computed on.
//!
//! A *direction* is an axis and a sense along it. In the frame of a direction, axis 0 points along it and the
//! other axes follow cyclically; frames are turned into each other by rotations, so that all directions can share
//! one set of weights. Tiles are two sites wide along every axis.

use super::strips::Strips;
use crate::target::{Boundary, Lattice};

/// Sites along each axis of a tile's output.
pub(super) const TILE: usize = 2;
/// Sites along a transverse axis of a tile's input: one more on each side.
pub(super) const ACROSS: usize = TILE + 2;

/// The sites that one direction's tiles read and write. Where there is no site, tables hold the number of sites:
/// arrays carry a row for it at their end.
#[derive(Clone, Debug)]
pub(in crate::net) struct Direction {
    /// Sites read: `[tile * points + point]`.
    pub(super) inputs: Vec<u32>,
    /// Sites written: `[tile * TILE^dimensions + place]`.
    pub(super) outputs: Vec<u32>,
    /// The site one plane before each site.
    pub(in crate::net) before: Vec<u32>,
    /// The site one plane after each site.
    pub(super) after: Vec<u32>,
    /// Its planes, taken two at a time.
    pub(super) strips: Strips,
}

/// Directions of a lattice, for convolutions that look at their own plane and `behind` planes before it.
#[derive(Clone, Debug)]
pub(in crate::net) struct Geometry {
    pub(in crate::net) lattice: Lattice,
    pub(in crate::net) sites: usize,
    pub(super) behind: usize,
    pub(super) tiles: usize,
    pub(in crate::net) directions: Vec<Direction>,
}

/// The axes of a lattice as seen along a direction.
pub(in crate::net) struct Frame<'a> {
    lattice: &'a Lattice,
    /// For each axis of the frame: the lattice's axis, and whether it runs the other way.
    axes: Vec<(usize, bool)>,
}

impl<'a> Frame<'a> {
    pub(super) fn new(lattice: &'a Lattice, axis: usize, backwards: bool) -> Self {
        let d = lattice.shape().len();
        let mut axes: Vec<(usize, bool)> = (0..d).map(|j| ((axis + j) % d, false)).collect();
        axes[0].1 = backwards;
        if d > 1 {
            // A cyclic shift of an even number of axes is odd: reflect once more to get a rotation.
            axes[1].1 = backwards != (d.is_multiple_of(2) && axis % 2 == 1);
        }
        Frame { lattice, axes }
    }

    /// The frame of direction `k`: two senses of every axis.
    pub(in crate::net) fn along(lattice: &'a Lattice, k: usize) -> Self {
        Self::new(lattice, k / 2, k % 2 == 1)
    }

    /// For each axis of the frame: the lattice's axis, and whether it runs the other way.
    pub(in crate::net) fn axes(&self) -> &[(usize, bool)] {
        &self.axes
    }

    pub(super) fn side(&self, axis: usize) -> usize {
        self.lattice.shape()[self.axes[axis].0]
    }

    /// The site at a position in the frame, if there is one.
    pub(in crate::net) fn site(&self, position: &[isize]) -> Option<usize> {
        let mut site = 0;
        for (j, &(axis, reversed)) in self.axes.iter().enumerate() {
            let side = self.side(j) as isize;
            let inside = (0..side).contains(&position[j]);
            if !inside && self.lattice.boundary() == Boundary::Free {
                return None;
            }
            let along = position[j].rem_euclid(side);
            let along = if reversed { side - 1 - along } else { along };
            site += along as usize * self.lattice.stride(axis);
        }
        Some(site)
    }
}

/// Count through a box with the given sides, last axis fastest.
pub(super) fn odometer(sides: &[usize]) -> Vec<Vec<usize>> {
    let n: usize = sides.iter().product();
    (0..n)
        .map(|mut index| {
            let mut position = vec![0; sides.len()];
            for (value, &side) in position.iter_mut().zip(sides).rev() {
                *value = index % side;
                index /= side;
            }
            position
        })
        .collect()
}

impl Geometry {
    pub(in crate::net) fn new(lattice: &Lattice, behind: usize) -> Self {
        let d = lattice.shape().len();
        let directions: Vec<Direction> =
            (0..2 * d).map(|k| Self::direction(&Frame::along(lattice, k), behind)).collect();
        let tiles = directions[0].outputs.len() / TILE.pow(d as u32);
        Geometry { lattice: lattice.clone(), sites: lattice.sites(), behind, tiles, directions }
    }

    /// Axes of the lattice.
    pub(in crate::net) fn dimensions(&self) -> usize {
        self.lattice.shape().len()
    }

    /// Points of a tile's input.
    pub(super) fn points(&self) -> usize {
        (self.behind + TILE) * ACROSS.pow(self.dimensions() as u32 - 1)
    }

    /// Taps of a convolution.
    pub(super) fn taps(&self) -> usize {
        (self.behind + 1) * 3usize.pow(self.dimensions() as u32 - 1)
    }

    fn direction(frame: &Frame<'_>, behind: usize) -> Direction {
        let d = frame.axes.len();
        let none = frame.lattice.sites();
        let at = |position: &[isize]| frame.site(position).unwrap_or(none) as u32;
        let sides: Vec<usize> = (0..d).map(|j| frame.side(j)).collect();
        let counts: Vec<usize> = sides.iter().map(|side| side.div_ceil(TILE)).collect();
        let mut points = vec![ACROSS; d];
        points[0] = behind + TILE;
        let (mut inputs, mut outputs) = (Vec::new(), Vec::new());
        for tile in odometer(&counts) {
            for point in odometer(&points) {
                let position: Vec<isize> = (0..d)
                    .map(|j| {
                        let back = if j == 0 { behind } else { 1 };
                        (TILE * tile[j] + point[j]) as isize - back as isize
                    })
                    .collect();
                inputs.push(at(&position));
            }
            for place in odometer(&vec![TILE; d]) {
                let position: Vec<usize> = (0..d).map(|j| TILE * tile[j] + place[j]).collect();
                let inside = position.iter().zip(&sides).all(|(p, side)| p < side);
                let position: Vec<isize> = position.iter().map(|&p| p as isize).collect();
                outputs.push(if inside { at(&position) } else { none as u32 });
            }
        }
        let (mut before, mut after) = (vec![0; none], vec![0; none]);
        for position in odometer(&sides) {
            let mut position: Vec<isize> = position.iter().map(|&p| p as isize).collect();
            let site = at(&position) as usize;
            position[0] -= 1;
            before[site] = at(&position);
            position[0] += 2;
            after[site] = at(&position);
        }
        let sites: Vec<u32> = odometer(&sides)
            .into_iter()
            .map(|position| at(&position.iter().map(|&p| p as isize).collect::<Vec<_>>()))
            .collect();
        let strips = Strips::new(&sides, frame.lattice.boundary(), &sites, &before, &after);
        Direction { strips, inputs, outputs, before, after }
    }
}
