//! An order of the sites of a pairwise model in which bonds are short.

use crate::target::{Boundary, LatticeModel, Pairwise, Target};

/// An order of the sites for the transfer matrix, and what it costs.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Plan {
    /// Sites whose values are fixed, all configurations in turn: they cut a ring open.
    pub fixed: Vec<usize>,
    /// The other sites, in order.
    pub order: Vec<usize>,
    /// The longest bond in this order, at least 1.
    pub width: usize,
    /// Whether the values are equivalent, so that the first fixed site may stay at value 0.
    pub symmetric: bool,
    /// Number of values.
    pub q: usize,
}

/// What plans are made for.
pub(super) trait Strips: Target {
    /// The sites that share an energy with one.
    fn partners(&self, site: usize) -> impl Iterator<Item = u32>;
    /// Whether all values are equivalent.
    fn equivalent_values(&self) -> bool;
}

impl Strips for Pairwise {
    fn partners(&self, site: usize) -> impl Iterator<Item = u32> {
        self.neighbours(site).iter().copied()
    }

    fn equivalent_values(&self) -> bool {
        let uniform = |fields: &[f64]| fields.iter().all(|&field| field == 0.0);
        self.energy_terms().iter().all(|term| uniform(&term.fields))
    }
}

impl Strips for LatticeModel {
    fn partners(&self, site: usize) -> impl Iterator<Item = u32> {
        self.neighbours(site)
    }

    fn equivalent_values(&self) -> bool {
        self.equivalent()
    }
}

impl Plan {
    /// The cheapest of a few orders: along each axis of a lattice, cut open or not, else as numbered.
    /// `None` if every one of them has more than $2^{60}$ configurations across.
    pub fn new(model: &impl Strips) -> Option<Plan> {
        let (sites, q) = (model.sites(), model.q());
        let mut plans = Vec::new();
        if let Some(lattice) = model.lattice() {
            for (axis, &length) in lattice.shape().iter().enumerate() {
                let section = sites / length;
                if section as f64 * (q as f64).log2() > 60.0 {
                    continue;
                }
                let mut order: Vec<usize> = (0..sites).collect();
                order.sort_by_key(|&site| lattice.coordinate(site, axis));
                if lattice.boundary() == Boundary::Periodic {
                    // Only a cut as thick as the longest bond opens the ring.
                    let steps = (0..sites).flat_map(|site| {
                        let here = lattice.coordinate(site, axis);
                        let apart =
                            move |end| here.abs_diff(lattice.coordinate(end as usize, axis));
                        model.partners(site).map(apart)
                    });
                    let longest = steps.map(|steps| steps.min(length - steps)).max();
                    let cut = longest.unwrap_or(1).max(1) * section;
                    plans.extend(Self::along(model, order.clone(), cut));
                }
                plans.extend(Self::along(model, order, 0));
            }
        } else {
            plans.extend(Self::along(model, (0..sites).collect(), 0));
            plans.extend(Self::along(model, (0..sites).collect(), 1));
        }
        plans.into_iter().min_by(|a, b| a.work().total_cmp(&b.work()))
    }

    /// The order `order` with its first `cut` sites fixed; `None` if that is hopeless.
    fn along(model: &impl Strips, order: Vec<usize>, cut: usize) -> Option<Plan> {
        if cut >= order.len() {
            return None;
        }
        let mut rank = vec![usize::MAX; model.sites()];
        for (i, &site) in order[cut..].iter().enumerate() {
            rank[site] = i;
        }
        let mut width = 1;
        for &site in &order[cut..] {
            for end in model.partners(site) {
                let end = rank[end as usize];
                if end < rank[site] {
                    width = width.max(rank[site] - end);
                }
            }
        }
        let plan = Plan {
            fixed: order[..cut].to_vec(),
            order: order[cut..].to_vec(),
            width,
            symmetric: cut > 0 && model.equivalent_values(),
            q: model.q(),
        };
        (width as f64 * (plan.q as f64).log2() <= 60.0).then_some(plan)
    }

    /// Number of configurations of the fixed sites that must be summed over.
    pub fn conditions(&self) -> f64 {
        (self.q as f64).powf((self.fixed.len() - usize::from(self.symmetric)) as f64)
    }

    /// Configurations of the band.
    pub fn states(&self) -> f64 {
        (self.q as f64).powf(self.width as f64)
    }

    /// Elementary operations: terms of sums over one value.
    pub fn work(&self) -> f64 {
        self.conditions() * self.order.len() as f64 * self.states() * self.q as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::target::Lattice;

    fn plan(shape: &[usize], boundary: Boundary, field: f64) -> Plan {
        let lattice = Lattice::new(shape, boundary).unwrap();
        Plan::new(&Pairwise::ising(lattice, 1.0, field).unwrap()).unwrap()
    }

    #[test]
    fn runs_along_the_longest_side_and_cuts_tori_open() {
        for shape in [[4, 9], [9, 4]] {
            let free = plan(&shape, Boundary::Free, 0.1);
            assert_eq!((free.width, free.fixed.len(), free.work()), (4, 0, 36.0 * 16.0 * 2.0));
            let torus = plan(&shape, Boundary::Periodic, 0.1);
            assert_eq!((torus.width, torus.fixed.len()), (4, 4));
            assert_eq!(torus.work(), 16.0 * 32.0 * 16.0 * 2.0);
        }
        assert_eq!(plan(&[4, 4], Boundary::Periodic, 0.0).conditions(), 8.0);
        assert_eq!(plan(&[3, 5, 2], Boundary::Free, 0.0).width, 6);
        let ring = plan(&[1000], Boundary::Periodic, 0.0);
        assert_eq!((ring.width, ring.fixed.len()), (1, 1));
    }

    #[test]
    fn wide_lattices_have_no_plan() {
        let lattice = Lattice::new(&[100, 200], Boundary::Free).unwrap();
        assert!(Plan::new(&Pairwise::ising(lattice, 1.0, 0.0).unwrap()).is_none());
    }
}
