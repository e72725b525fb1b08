//! Exchange a cluster of sites between two states at one temperature.
//!
//! Houdayer, *A cluster Monte Carlo algorithm for 2-dimensional spin glasses*, EPJ B 22, 479 (2001); Zhu, Ochoa,
//! Katzgraber, PRL 115, 077201 (2015). Choose a site at which the two states differ, and the whole set of
//! differing sites connected to it by bonds; exchange the two states' values there. Outside the set's
//! boundary the states agree, so a boundary bond only changes hands, and so do fields: $E(x) + E(y)$ of every
//! term is conserved exactly, for any couplings, fields and number of values. The differing sites stay the same,
//! hence the way back has the same probability: the move is reversible for $\rho(x)\rho(y)$. It changes neither
//! energy, and is used between ordinary sweeps; it moves much where the differing sites do not percolate.

use crate::device::Draw;
use crate::target::Target;
use crate::{Error, Result};

/// Isoenergetic cluster moves. See the definition above.
#[derive(Clone, Debug)]
pub struct Houdayer {
    starts: Vec<u32>,
    ends: Vec<u32>,
    differing: Vec<u32>,
    members: Vec<u32>,
    marks: Vec<u32>,
    epoch: u32,
}

impl Houdayer {
    /// The move for a pairwise target.
    pub fn new(target: &dyn Target) -> Result<Self> {
        super::moves::check_target(target)?;
        let Some(pairwise) = target.pairwise() else {
            return Err(Error::not_applicable(
                "houdayer",
                "the target is no model of Ising or Potts pairs; use tempering alone",
            ));
        };
        let sites = target.sites();
        let mut starts = vec![0u32];
        let mut ends = Vec::new();
        for site in 0..sites {
            ends.extend_from_slice(pairwise.neighbours(site));
            starts.push(ends.len() as u32);
        }
        Ok(Houdayer {
            starts,
            ends,
            differing: Vec::with_capacity(sites),
            members: Vec::with_capacity(sites),
            marks: vec![0; sites],
            epoch: 0,
        })
    }

    /// Make one move; returns the number of sites exchanged, 0 if the states are equal.
    pub fn step<D: Draw>(&mut self, x: &mut [u8], y: &mut [u8], draw: &mut D) -> usize {
        self.differing.clear();
        self.differing.extend((0..x.len() as u32).filter(|&i| x[i as usize] != y[i as usize]));
        if self.differing.is_empty() {
            return 0;
        }
        let seed = self.differing[draw.below(self.differing.len())];
        if self.epoch == u32::MAX {
            self.marks.fill(0);
            self.epoch = 0;
        }
        self.epoch += 1;
        self.marks[seed as usize] = self.epoch;
        self.members.clear();
        self.members.push(seed);
        let mut head = 0;
        while let Some(&site) = self.members.get(head) {
            head += 1;
            let site = site as usize;
            for &end in &self.ends[self.starts[site] as usize..self.starts[site + 1] as usize] {
                let j = end as usize;
                if x[j] != y[j] && self.marks[j] != self.epoch {
                    self.marks[j] = self.epoch;
                    self.members.push(end);
                }
            }
        }
        for &site in &self.members {
            std::mem::swap(&mut x[site as usize], &mut y[site as usize]);
        }
        self.members.len()
    }
}
