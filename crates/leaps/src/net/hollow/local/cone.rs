//! The cone ahead of a site: where a stack of convolutions sees it.

use crate::net::hollow::geometry::{Frame, TILE};
use crate::target::{Boundary, Lattice};

/// The cone along one direction.
#[derive(Clone, Debug)]
pub(super) struct Cone {
    /// Of every axis of the frame: the lattice's axis, and whether it runs the other way.
    axes: Vec<(usize, bool)>,
}

impl Cone {
    /// Along direction `k`.
    pub(super) fn new(lattice: &Lattice, k: usize) -> Self {
        Cone { axes: Frame::along(lattice, k).axes().to_vec() }
    }

    /// Add the tiles with sites from the plane of `site` to `ahead` planes further on, up to `across` to its sides.
    pub(super) fn tiles(
        &self,
        lattice: &Lattice,
        site: usize,
        (ahead, across): (usize, usize),
        tiles: &mut Vec<u32>,
    ) {
        tiles.push(0);
        for (j, &(axis, reversed)) in self.axes.iter().enumerate() {
            let side = lattice.shape()[axis];
            let along = lattice.coordinate(site, axis);
            let along = if reversed { side - 1 - along } else { along } as isize;
            let (back, on) = if j == 0 { (0, ahead) } else { (across, across) };
            let (first, last) = (along - back as isize, along + on as isize);
            // Tiles so far are those of the axes before.
            let before = tiles.len();
            let count = side.div_ceil(TILE) as u32;
            for tile in covering(first, last, side, lattice.boundary()) {
                for at in 0..before {
                    let number = tiles[at] * count + tile;
                    tiles.push(number);
                }
            }
            tiles.drain(..before);
        }
    }
}

/// The tiles of an axis that hold places from `first` to `last`, each once.
fn covering(first: isize, last: isize, side: usize, boundary: Boundary) -> Vec<u32> {
    let side = side as isize;
    let places = match boundary {
        Boundary::Periodic => first..(last + 1).min(first + side),
        Boundary::Free => first.max(0)..(last + 1).min(side),
    };
    let mut tiles = Vec::new();
    for place in places {
        let tile = (place.rem_euclid(side) / TILE as isize) as u32;
        // Places follow one another, at most once round: no tile but the last and the first is met again.
        if tiles.last() != Some(&tile) && tiles.first() != Some(&tile) {
            tiles.push(tile);
        }
    }
    tiles
}
