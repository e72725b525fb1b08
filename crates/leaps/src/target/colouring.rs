//! Split the sites of any graph into sets without bonds inside, so that a set can be updated at once.

use super::{LatticeModel, Pairwise, Target};

/// A proper colouring: no two neighbours share a colour.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Colouring {
    sites: Vec<u32>,
    starts: Vec<usize>,
}

impl Colouring {
    /// Colour a model's graph: always pick the uncoloured site whose neighbours already wear the most
    /// colours (DSATUR), ties to the larger degree, then to the smaller number. Two colours for every
    /// bipartite graph; an odd torus needs three.
    pub fn new(model: &Pairwise) -> Self {
        Self::of(model.sites(), |site| model.neighbours(site).iter().copied())
    }

    /// The same for the sites of a lattice model: no two sites of a cluster share a colour.
    pub fn of_clusters(model: &LatticeModel) -> Self {
        Self::of(model.sites(), |site| model.neighbours(site))
    }

    fn of<I: Iterator<Item = u32>>(n: usize, neighbours: impl Fn(usize) -> I) -> Self {
        let degrees: Vec<usize> = (0..n).map(|site| neighbours(site).count()).collect();
        let mut colour = vec![usize::MAX; n];
        let mut worn: Vec<Vec<usize>> = vec![Vec::new(); n];
        // Buckets by saturation would be faster still; a heap with stale entries is simple and
        // O((sites + bonds) log).
        let mut heap: std::collections::BinaryHeap<(usize, usize, std::cmp::Reverse<usize>)> =
            (0..n).map(|i| (0, degrees[i], std::cmp::Reverse(i))).collect();
        let mut colours = 0;
        while let Some((saturation, _, std::cmp::Reverse(site))) = heap.pop() {
            if colour[site] != usize::MAX || saturation != worn[site].len() {
                continue;
            }
            let free = (0..).find(|c| !worn[site].contains(c)).unwrap_or(0);
            colour[site] = free;
            colours = colours.max(free + 1);
            for neighbour in neighbours(site) {
                let neighbour = neighbour as usize;
                if colour[neighbour] == usize::MAX && !worn[neighbour].contains(&free) {
                    worn[neighbour].push(free);
                    let degree = degrees[neighbour];
                    heap.push((worn[neighbour].len(), degree, std::cmp::Reverse(neighbour)));
                }
            }
        }
        let mut sites = Vec::with_capacity(n);
        let mut starts = vec![0];
        for c in 0..colours {
            sites.extend((0..n).filter(|&i| colour[i] == c).map(|i| i as u32));
            starts.push(sites.len());
        }
        Colouring { sites, starts }
    }

    /// Number of colours.
    pub fn colours(&self) -> usize {
        self.starts.len() - 1
    }

    /// The sites of one colour, in increasing order.
    pub fn sites(&self, colour: usize) -> &[u32] {
        &self.sites[self.starts[colour]..self.starts[colour + 1]]
    }

    /// All sites, colour after colour.
    pub fn order(&self) -> &[u32] {
        &self.sites
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Boundary, Disorder, Lattice};
    use super::*;

    fn check(model: &Pairwise) -> usize {
        let colouring = Colouring::new(model);
        let mut colour = vec![usize::MAX; model.sites()];
        for c in 0..colouring.colours() {
            for &site in colouring.sites(c) {
                assert_eq!(colour[site as usize], usize::MAX, "site coloured twice");
                colour[site as usize] = c;
            }
        }
        for site in 0..model.sites() {
            assert_ne!(colour[site], usize::MAX, "site {site} left out");
            assert!(model.neighbours(site).iter().all(|&j| colour[j as usize] != colour[site]));
        }
        colouring.colours()
    }

    #[test]
    fn every_graph_is_coloured_properly() {
        let torus = |shape: &[usize]| {
            let lattice = Lattice::new(shape, Boundary::Periodic).unwrap();
            Pairwise::ising(lattice, 1.0, 0.0).unwrap()
        };
        assert_eq!(check(&torus(&[8, 8])), 2);
        assert_eq!(check(&torus(&[4, 6, 2])), 2);
        assert!(check(&torus(&[15, 15])) <= 4);
        assert!(check(&torus(&[3, 3])) <= 4);
        assert!(check(&torus(&[5, 7, 3])) <= 5);
        let complete = Pairwise::sherrington_kirkpatrick(7, Disorder::Gaussian, 1).unwrap();
        assert_eq!(check(&complete), 7);
    }
}
