//! Orders of the sites of a graph along which messages travel.

use std::collections::VecDeque;

use crate::device::{Draw, Purpose, Stream};
use crate::target::Target;

/// Sites and their neighbours.
#[derive(Clone, Debug)]
pub(super) struct Graph {
    neighbours: Vec<Vec<u32>>,
}

/// A message that a site collects.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Message {
    /// The step at which its sender stands in the order.
    pub(super) from: u32,
    /// The directed bond it travels along.
    pub(super) bond: u32,
}

/// An order of the sites.
#[derive(Clone, Debug)]
pub(super) struct Order {
    /// The site of every step.
    pub(super) sites: Vec<u32>,
    /// The messages of every step: all come from earlier steps.
    starts: Vec<u32>,
    messages: Vec<Message>,
}

impl Order {
    /// The messages that step `step` collects.
    #[inline(always)]
    pub(super) fn messages(&self, step: usize) -> &[Message] {
        &self.messages[self.starts[step] as usize..self.starts[step + 1] as usize]
    }
}

impl Graph {
    /// The bonds of a pairwise target, and between the sites of clusters; of any other, one between every two sites.
    pub(super) fn new(target: &dyn Target) -> Self {
        let sites = target.sites();
        let neighbours = match (target.pairwise(), target.lattice_model()) {
            (Some(model), _) => (0..sites).map(|i| model.neighbours(i).to_vec()).collect(),
            (None, Some(model)) => (0..sites).map(|i| model.neighbours(i).collect()).collect(),
            (None, None) => {
                (0..sites as u32).map(|i| (0..sites as u32).filter(|&j| j != i).collect()).collect()
            }
        };
        Self::from_neighbours(neighbours)
    }

    pub(super) fn from_neighbours(mut neighbours: Vec<Vec<u32>>) -> Self {
        for list in &mut neighbours {
            list.sort_unstable();
            list.dedup();
        }
        Graph { neighbours }
    }

    pub(super) fn sites(&self) -> usize {
        self.neighbours.len()
    }

    /// Number of directed bonds.
    pub(super) fn bonds(&self) -> usize {
        self.neighbours.iter().map(Vec::len).sum()
    }

    /// `n` breadth-first orders, each followed by its reverse. The first starts at site 0, the others at sites
    /// drawn once and for all.
    pub(super) fn orders(&self, n: usize) -> Vec<Order> {
        let mut stream = Stream::new(0, Purpose::Parameters, u32::MAX - 1, 0);
        let mut all = Vec::with_capacity(2 * n);
        for k in 0..n {
            let root = if k == 0 { 0 } else { stream.below(self.sites()) };
            let mut sites = self.breadth_first(root);
            all.push(self.order(&sites));
            sites.reverse();
            all.push(self.order(&sites));
        }
        all
    }

    /// All sites, nearest to `root` first; parts that it does not reach follow, each from its first site.
    fn breadth_first(&self, root: usize) -> Vec<u32> {
        let mut met = vec![false; self.sites()];
        let mut order = Vec::with_capacity(self.sites());
        for start in std::iter::once(root).chain(0..self.sites()) {
            if met[start] {
                continue;
            }
            met[start] = true;
            let mut waiting = VecDeque::from([start as u32]);
            while let Some(site) = waiting.pop_front() {
                order.push(site);
                for &next in &self.neighbours[site as usize] {
                    if !std::mem::replace(&mut met[next as usize], true) {
                        waiting.push_back(next);
                    }
                }
            }
        }
        order
    }

    fn order(&self, sites: &[u32]) -> Order {
        let mut step = vec![0u32; self.sites()];
        for (k, &site) in sites.iter().enumerate() {
            step[site as usize] = k as u32;
        }
        let mut first = Vec::with_capacity(self.sites());
        let mut bonds = 0;
        for list in &self.neighbours {
            first.push(bonds);
            bonds += list.len() as u32;
        }
        let (mut starts, mut messages) = (vec![0], Vec::new());
        for (k, &site) in sites.iter().enumerate() {
            for (bond, &from) in (first[site as usize]..).zip(&self.neighbours[site as usize]) {
                let from = step[from as usize];
                if from < k as u32 {
                    messages.push(Message { from, bond });
                }
            }
            starts.push(messages.len() as u32);
        }
        Order { sites: sites.to_vec(), starts, messages }
    }
}
