//! The sites that a convolution reads around every site.

use crate::target::Lattice;

/// Taps that are computed together. A square or cubic kernel without its centre is a multiple of it.
pub(super) const BLOCK: usize = 8;

/// The neighbours within a cube of odd width, without the centre.
#[derive(Clone, Debug)]
pub(super) struct Stencil {
    taps: usize,
    /// `[site][tap]`, taps filled up to whole blocks. What lies outside the lattice, and what fills up,
    /// is the number of sites: a place that holds zeros.
    neighbours: Vec<u32>,
}

impl Stencil {
    /// Taps run over offsets like sites over coordinates, the last axis fastest.
    pub(super) fn new(lattice: &Lattice, width: usize, wraps: bool) -> Self {
        let shape = lattice.shape();
        let all = width.pow(shape.len() as u32);
        let taps = all - 1;
        let outside = lattice.sites() as u32;
        let mut neighbours = Vec::with_capacity(lattice.sites() * taps.next_multiple_of(BLOCK));
        for site in 0..lattice.sites() {
            for tap in (0..all).filter(|&tap| tap != all / 2) {
                let (mut rest, mut place) = (tap, Some(0));
                for axis in (0..shape.len()).rev() {
                    let offset = (rest % width) as isize - (width / 2) as isize;
                    rest /= width;
                    let side = shape[axis] as isize;
                    let to = lattice.coordinate(site, axis) as isize + offset;
                    let inside = wraps || (0..side).contains(&to);
                    place = place
                        .filter(|_| inside)
                        .map(|p| p + to.rem_euclid(side) as usize * lattice.stride(axis));
                }
                neighbours.push(place.map_or(outside, |p| p as u32));
            }
            neighbours.resize(neighbours.len().next_multiple_of(BLOCK), outside);
        }
        Stencil { taps, neighbours }
    }

    /// Number of taps.
    pub(super) fn taps(&self) -> usize {
        self.taps
    }

    /// Number of blocks of taps.
    pub(super) fn blocks(&self) -> usize {
        self.taps.div_ceil(BLOCK)
    }

    /// The neighbours of a site.
    #[inline(always)]
    pub(super) fn of(&self, site: usize) -> &[u32] {
        let n = self.taps.next_multiple_of(BLOCK);
        &self.neighbours[site * n..][..n]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::target::Boundary;

    #[test]
    fn every_other_site_of_an_odd_torus_is_seen_once_by_the_widest_kernel() {
        let lattice = Lattice::new(&[5, 5], Boundary::Periodic).unwrap();
        let stencil = Stencil::new(&lattice, 5, true);
        for site in 0..25 {
            let mut context = stencil.of(site).to_vec();
            context.push(site as u32);
            context.sort_unstable();
            assert_eq!(context, (0..25).collect::<Vec<_>>());
        }
    }

    #[test]
    fn edges_end_or_wrap() {
        let lattice = Lattice::new(&[3, 4], Boundary::Periodic).unwrap();
        assert_eq!(Stencil::new(&lattice, 3, true).of(0), [11, 8, 9, 3, 1, 7, 4, 5]);
        assert_eq!(Stencil::new(&lattice, 3, false).of(0), [12, 12, 12, 12, 1, 12, 4, 5]);
        let chain = Lattice::new(&[6], Boundary::Periodic).unwrap();
        let stencil = Stencil::new(&chain, 5, true);
        assert_eq!((stencil.taps(), stencil.blocks()), (4, 1));
        assert_eq!(stencil.of(5), [3, 4, 0, 1, 6, 6, 6, 6]);
    }
}
