//! Number the sites of a hypercubic lattice and find their neighbours.

use crate::{Error, Result};

/// What happens at the edge of a lattice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
#[serde(rename_all = "lowercase")]
pub enum Boundary {
    /// The last site of a row is a neighbour of the first: a torus.
    Periodic,
    /// Rows end.
    Free,
}

/// A hypercubic lattice of one to four dimensions; the last axis varies fastest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lattice {
    shape: Vec<usize>,
    boundary: Boundary,
}

/// More sites than this would fill the memory with neighbour lists alone.
const MAX_SITES: usize = 1 << 24;

impl Lattice {
    /// A lattice with `shape[a] >= 2` sites along axis `a`.
    pub fn new(shape: &[usize], boundary: Boundary) -> Result<Self> {
        if shape.is_empty() || shape.len() > 4 {
            return Err(Error::invalid(
                "dimensions",
                shape.len(),
                "from 1 to 4",
                "use an edge list for other graphs",
            ));
        }
        if let Some(&side) = shape.iter().find(|&&side| side < 2) {
            return Err(Error::invalid(
                "size",
                side,
                "at least 2 along every axis",
                "leave an axis of length 1 out",
            ));
        }
        let sites = shape.iter().try_fold(1usize, |n, &side| n.checked_mul(side));
        if sites.is_none_or(|n| n > MAX_SITES) {
            return Err(Error::invalid(
                "size",
                format!("{shape:?}"),
                format!("at most {MAX_SITES} sites in all"),
                "use a smaller lattice",
            ));
        }
        Ok(Lattice { shape: shape.to_vec(), boundary })
    }

    /// Sites along each axis.
    pub fn shape(&self) -> &[usize] {
        &self.shape
    }

    /// The boundary condition.
    pub fn boundary(&self) -> Boundary {
        self.boundary
    }

    /// Number of sites.
    pub fn sites(&self) -> usize {
        self.shape.iter().product()
    }

    /// Distance in site numbers between neighbours along `axis`.
    pub fn stride(&self, axis: usize) -> usize {
        self.shape[axis + 1..].iter().product()
    }

    /// The coordinate of `site` along `axis`.
    pub fn coordinate(&self, site: usize, axis: usize) -> usize {
        site / self.stride(axis) % self.shape[axis]
    }

    /// The site `distance` steps ahead of `site` along `axis`, if it exists.
    pub fn ahead(&self, site: usize, axis: usize, distance: usize) -> Option<usize> {
        let (side, stride) = (self.shape[axis], self.stride(axis));
        let from = self.coordinate(site, axis);
        let to = from + distance;
        match self.boundary {
            Boundary::Periodic => Some(site + (to % side) * stride - from * stride),
            Boundary::Free => (to < side).then(|| site + distance * stride),
        }
    }

    /// Every bond once, as (site, next site along an axis). A periodic axis of length 2 has two
    /// bonds between the same sites, as in the usual sum over "right neighbours".
    pub fn bonds(&self) -> Vec<(u32, u32)> {
        let mut bonds = Vec::with_capacity(self.sites() * self.shape.len());
        for site in 0..self.sites() {
            for axis in 0..self.shape.len() {
                if let Some(next) = self.ahead(site, axis, 1) {
                    bonds.push((site as u32, next as u32));
                }
            }
        }
        bonds
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_torus_has_one_bond_per_site_and_axis() {
        for shape in [vec![5], vec![3, 4], vec![2, 3, 4], vec![2, 2, 3, 3]] {
            let torus = Lattice::new(&shape, Boundary::Periodic).unwrap();
            assert_eq!(torus.bonds().len(), torus.sites() * shape.len());
            let free = Lattice::new(&shape, Boundary::Free).unwrap();
            let expected: usize = shape.iter().map(|&side| free.sites() / side * (side - 1)).sum();
            assert_eq!(free.bonds().len(), expected);
        }
    }

    #[test]
    fn ahead_wraps_or_ends() {
        let torus = Lattice::new(&[3, 4], Boundary::Periodic).unwrap();
        assert_eq!(torus.ahead(3, 1, 1), Some(0));
        assert_eq!(torus.ahead(8, 0, 1), Some(0));
        assert_eq!(torus.ahead(5, 1, 4), Some(5));
        let free = Lattice::new(&[3, 4], Boundary::Free).unwrap();
        assert_eq!(free.ahead(3, 1, 1), None);
        assert_eq!(free.ahead(0, 0, 2), Some(8));
    }

    #[test]
    fn impossible_shapes_are_refused() {
        for shape in [&[][..], &[1, 4], &[2; 5], &[1 << 20, 1 << 20], &[usize::MAX, 3]] {
            assert!(Lattice::new(shape, Boundary::Periodic).is_err());
        }
    }
}
