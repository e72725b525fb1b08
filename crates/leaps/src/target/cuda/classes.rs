//! Sites of a pairwise target whose flips have the same changes, for tables on a GPU.

use std::collections::{BTreeMap, HashMap};

use crate::target::{Pairwise, Target};

/// Entries of a walker's table of thresholds: one bit each in a word of 64.
const ENTRIES: usize = 64;

/// Sites by couplings and fields, for tables of the changes of flips.
#[derive(Default)]
pub(super) struct Classes {
    /// The class of every site.
    pub(super) of_site: Vec<u8>,
    /// One site of every class.
    pub(super) members: Vec<u32>,
    /// Most different couplings of a site.
    pub(super) groups: usize,
    /// Numbers of a table for one value of a class: ways in which neighbours can be equal, counted by coupling.
    pub(super) surroundings: usize,
    /// `[(class * groups + group) * 2]`: a bond, and how many have its coupling.
    pub(super) bonds: Vec<u32>,
    /// What an equal neighbour adds to the index of the surroundings, for every directed bond.
    pub(super) adds: Vec<u8>,
}

impl Classes {
    /// The classes of a target; none if a table over them would be too long.
    pub(super) fn new(target: &Pairwise) -> Self {
        Self::find(target).unwrap_or_default()
    }

    fn find(target: &Pairwise) -> Option<Self> {
        if target.q() != 2 {
            return None;
        }
        let mut classes = Classes { groups: 1, ..Classes::default() };
        let (mut known, mut bonds) = (HashMap::new(), Vec::new());
        for site in 0..target.sites() {
            // On large lattices almost every site is like the one before.
            if site > 0 && alike(target, site - 1, site) {
                classes.adds.extend_from_within(target.directed(site - 1));
                classes.of_site.extend_from_within(site - 1..site);
                continue;
            }
            // Bonds by coupling: one of them, and how many there are.
            let mut groups: BTreeMap<Vec<u64>, (u32, u32)> = BTreeMap::new();
            let coupling = |bond: usize| -> Vec<u64> {
                let terms = target.energy_terms().iter();
                terms.map(|t| t.couplings.get(bond).map_or(0, |c| c.to_bits())).collect()
            };
            for bond in target.directed(site) {
                groups.entry(coupling(bond)).or_insert((bond as u32, 0)).1 += 1;
            }
            let mut surroundings = 1;
            let mut steps: BTreeMap<Vec<u64>, usize> = BTreeMap::new();
            for (coupling, (_, count)) in &groups {
                steps.insert(coupling.clone(), surroundings);
                surroundings *= *count as usize + 1;
                if 2 * surroundings > ENTRIES {
                    return None;
                }
            }
            classes.adds.extend(target.directed(site).map(|bond| steps[&coupling(bond)] as u8));
            classes.groups = classes.groups.max(groups.len());
            classes.surroundings = classes.surroundings.max(surroundings);
            let mut key: Vec<u64> = Vec::new();
            for term in target.energy_terms() {
                let fields = term.fields.get(2 * site..2 * site + 2).unwrap_or(&[0.0; 2]);
                key.extend(fields.iter().map(|f| f.to_bits()));
            }
            key.extend(
                groups
                    .iter()
                    .flat_map(|(c, (_, count))| c.iter().copied().chain([u64::from(*count)])),
            );
            let class = *known.entry(key).or_insert_with(|| {
                bonds.push(groups.into_values().collect::<Vec<_>>());
                classes.members.push(site as u32);
                classes.members.len() - 1
            });
            if classes.entries() > ENTRIES {
                return None;
            }
            classes.of_site.push(class as u8);
        }
        for mut groups in bonds {
            groups.resize(classes.groups, (0, 0));
            classes.bonds.extend(groups.into_iter().flat_map(|(bond, count)| [bond, count]));
        }
        Some(classes)
    }

    /// Entries of a walker's table.
    pub(super) fn entries(&self) -> usize {
        self.members.len() * 2 * self.surroundings
    }
}

/// Whether two sites have the same couplings, in the same order, and the same fields.
fn alike(target: &Pairwise, a: usize, b: usize) -> bool {
    target.energy_terms().iter().all(|term| {
        let couplings = |site: usize| term.couplings.get(target.directed(site));
        let fields = |site: usize| term.fields.get(2 * site..2 * site + 2);
        couplings(a) == couplings(b) && fields(a) == fields(b)
    }) && target.directed(a).len() == target.directed(b).len()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::{Draw, Purpose, Stream};
    use crate::target::{Boundary, Bravais, Lattice, on_shells};

    /// What the kernel looks up, from class and index alone, is the change of the flip.
    #[test]
    fn changes_follow_from_class_and_surroundings() {
        let free = Lattice::new(&[4, 5], Boundary::Free).unwrap();
        for (target, groups, entries) in [
            (Pairwise::ising(free, 0.7, 0.3).unwrap(), 1, 30),
            (on_shells(&[6, 4], None, &[1.0, -0.6]).with_uniform_field(0.2).unwrap(), 2, 50),
            (on_shells(&[4, 4, 4], Some(Bravais::Fcc), &[-1.0]), 1, 26),
        ] {
            let classes = Classes::new(&target);
            assert_eq!((classes.groups, classes.entries()), (groups, entries));
            let lambda = vec![0.8; target.terms()];
            let mut stream = Stream::new(1, Purpose::Statistic, 0, 0);
            for _ in 0..50 {
                let mut x: Vec<u8> = (0..target.sites()).map(|_| stream.below(2) as u8).collect();
                for site in 0..target.sites() {
                    let (class, old) = (classes.of_site[site] as usize, x[site] as usize);
                    let bonds = target.directed(site).zip(target.neighbours(site));
                    let equal = bonds.filter(|(_, end)| x[**end as usize] == x[site]);
                    let mut rest: usize = equal.map(|(bond, _)| classes.adds[bond] as usize).sum();
                    assert!(rest < classes.surroundings);
                    let of_class = &classes.bonds[2 * class * groups..][..2 * groups];
                    let member = classes.members[class] as usize;
                    let mut change = 0.0;
                    for group in of_class.chunks_exact(2) {
                        let (bond, count) = (group[0] as usize, group[1] as usize);
                        let equal = (rest % (count + 1)) as f64;
                        rest /= count + 1;
                        let coupling = target.total_couplings(&lambda)[bond];
                        change += coupling * (2.0 * equal - count as f64);
                    }
                    let fields = target.total_fields(&lambda);
                    change += fields[2 * member + 1 - old] - fields[2 * member + old];
                    let wanted = target.change(&lambda, &mut x, site, 1 - old as u8);
                    assert!((change - wanted).abs() < 1e-12, "{site}: {change} {wanted}");
                }
            }
        }
    }
}
