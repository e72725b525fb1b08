//! Walk through all states so that neighbours in the walk differ in one site.

use crate::observe::{Order, OrderParameter};
use crate::target::{LatticeModel, Pairwise, Target};

/// The reflected Gray code in base `q`: each step moves one site by one value.
///
/// State number `N` has base-`q` digits $a_i$; site `i` holds $a_i$ if $\lfloor N/q^{i+1}\rfloor$ is even
/// and $q - 1 - a_i$ if it is odd, so that each site sweeps up and down in turn.
pub(super) struct Gray {
    x: Vec<u8>,
    up: Vec<bool>,
    last: u8,
}

/// One step of the walk.
pub(super) struct Step {
    pub site: usize,
    pub old: u8,
    pub new: u8,
}

impl Gray {
    /// Start at state number `index`.
    pub fn at(index: u64, sites: usize, q: usize) -> Self {
        let q = q as u64;
        let mut rest = index;
        let (mut x, mut up) = (Vec::with_capacity(sites), Vec::with_capacity(sites));
        for _ in 0..sites {
            let digit = (rest % q) as u8;
            rest /= q;
            let upwards = rest.is_multiple_of(2);
            up.push(upwards);
            x.push(if upwards { digit } else { (q - 1) as u8 - digit });
        }
        Gray { x, up, last: (q - 1) as u8 }
    }

    pub fn state(&self) -> &[u8] {
        &self.x
    }

    /// Move to the next state; `None` after the last.
    #[inline]
    pub fn step(&mut self) -> Option<Step> {
        for (site, (value, up)) in self.x.iter_mut().zip(&mut self.up).enumerate() {
            let old = *value;
            if *up && old < self.last {
                *value += 1;
            } else if !*up && old > 0 {
                *value -= 1;
            } else {
                *up = !*up;
                continue;
            }
            return Some(Step { site, old, new: *value });
        }
        None
    }
}

/// The order parameter of a walk, kept up to date in constant time.
pub(super) struct Tally {
    counts: Vec<usize>,
    /// How many values have a given count.
    having: Vec<usize>,
    largest: usize,
    squares: usize,
    /// Two values: the order parameter for each number of sites in value 1.
    pairs: Vec<Order>,
    /// More values: `m` for each largest count, `m^2` for each sum of squared counts.
    by_largest: Vec<f64>,
    by_squares: Vec<f64>,
    /// An order parameter that is a sum of vectors.
    vectors: Option<OrderParameter>,
}

impl Tally {
    pub fn of(target: &dyn Target, x: &[u8]) -> Self {
        let order = OrderParameter::of(target);
        let vectors = Some(order).filter(|order| order.vectors().is_some());
        Tally { vectors, ..Self::new(x, target.q()) }
    }

    fn new(x: &[u8], q: usize) -> Self {
        let (sites, n) = (x.len(), x.len() as f64);
        let mut tally = Tally {
            counts: vec![0; q],
            having: vec![0; sites + 1],
            largest: 0,
            squares: 0,
            pairs: Vec::new(),
            by_largest: Vec::new(),
            by_squares: Vec::new(),
            vectors: None,
        };
        if q == 2 {
            tally.pairs = (0..=sites).map(|up| Order::of_counts(&[sites - up, up])).collect();
        } else {
            let q = q as f64;
            let m = |fraction: f64| (q * fraction - 1.0) / (q - 1.0);
            tally.by_largest = (0..=sites).map(|c| m(c as f64 / n)).collect();
            tally.by_squares = (0..=sites * sites).map(|c| m(c as f64 / (n * n))).collect();
        }
        for &value in x {
            tally.counts[value as usize] += 1;
        }
        for &count in &tally.counts {
            tally.having[count] += 1;
            tally.squares += count * count;
            tally.largest = tally.largest.max(count);
        }
        tally
    }

    #[inline]
    pub fn replace(&mut self, old: u8, new: u8) {
        let lost = self.counts[old as usize];
        self.counts[old as usize] = lost - 1;
        let gained = self.counts[new as usize];
        self.counts[new as usize] = gained + 1;
        if self.pairs.is_empty() {
            self.squares = self.squares + 2 * (gained + 1) - 2 * lost;
            self.having[lost] -= 1;
            self.having[lost - 1] += 1;
            self.having[gained] -= 1;
            self.having[gained + 1] += 1;
            if self.having[self.largest] == 0 {
                self.largest -= 1;
            }
            self.largest = self.largest.max(gained + 1);
        }
    }

    #[inline]
    pub fn order(&self) -> Order {
        if let Some(vectors) = &self.vectors {
            vectors.of_counts(&self.counts)
        } else if self.pairs.is_empty() {
            let (m, squared) = (self.by_largest[self.largest], self.by_squares[self.squares]);
            Order { m, abs: m.abs(), squared, fourth: squared * squared }
        } else {
            self.pairs[self.counts[1]]
        }
    }
}

/// How the energy terms follow a walk.
pub(super) trait Follow {
    /// `E_k` of the state from scratch.
    fn fresh(&self, x: &[u8], energies: &mut [f64]);

    /// `E_k` of `x`, which a step has just led to, from those before it.
    fn follow(&self, x: &[u8], step: &Step, energies: &mut [f64]);
}

/// Any target: every energy from scratch.
pub(super) struct Plain<'a>(pub &'a dyn Target);

impl Follow for Plain<'_> {
    fn fresh(&self, x: &[u8], energies: &mut [f64]) {
        for (term, energy) in energies.iter_mut().enumerate() {
            *energy = self.0.energy(term, x);
        }
    }

    fn follow(&self, x: &[u8], _: &Step, energies: &mut [f64]) {
        self.fresh(x, energies);
    }
}

impl Follow for &Pairwise {
    fn fresh(&self, x: &[u8], energies: &mut [f64]) {
        Plain(*self).fresh(x, energies);
    }

    #[inline]
    fn follow(&self, x: &[u8], step: &Step, energies: &mut [f64]) {
        let &Step { site, old, new } = step;
        for (term, energy) in self.energy_terms().iter().zip(energies) {
            if !term.fields.is_empty() {
                let fields = &term.fields[site * self.q()..][..self.q()];
                *energy += fields[new as usize] - fields[old as usize];
            }
            if !term.couplings.is_empty() {
                let mut change = 0.0;
                let bonds = &term.couplings[self.directed(site)];
                for (&end, coupling) in self.neighbours(site).iter().zip(bonds) {
                    let value = x[end as usize];
                    change += coupling * (f64::from(value == old) - f64::from(value == new));
                }
                *energy += change;
            }
        }
    }
}

impl Follow for &LatticeModel {
    fn fresh(&self, x: &[u8], energies: &mut [f64]) {
        Plain(*self).fresh(x, energies);
    }

    #[inline]
    fn follow(&self, x: &[u8], step: &Step, energies: &mut [f64]) {
        self.add_changes(x, step.site, [step.old, step.new], energies);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_state_comes_once_and_neighbours_differ_in_one_site() {
        for (sites, q) in [(1, 2), (7, 2), (5, 3), (4, 4), (3, 5)] {
            let states = (q as u64).pow(sites as u32);
            let mut seen = std::collections::BTreeSet::new();
            let mut walk = Gray::at(0, sites, q);
            let mut tally = Tally::new(walk.state(), q);
            for index in 0..states {
                assert!(seen.insert(walk.state().to_vec()));
                assert_eq!(walk.state(), Gray::at(index, sites, q).state());
                let (kept, fresh) = (tally.order(), Order::of(walk.state(), q));
                for (a, b) in [(kept.m, fresh.m), (kept.fourth, fresh.fourth)] {
                    assert!((a - b).abs() < 1e-14, "{:?}", walk.state());
                }
                assert!((kept.abs - fresh.abs).abs() < 1e-14);
                assert!((kept.squared - fresh.squared).abs() < 1e-14);
                let before = walk.state().to_vec();
                let Some(step) = walk.step() else {
                    assert_eq!(index, states - 1);
                    break;
                };
                let differing = (0..sites).filter(|&i| before[i] != walk.state()[i]).count();
                assert_eq!((differing, before[step.site]), (1, step.old));
                assert_eq!(walk.state()[step.site], step.new);
                tally.replace(step.old, step.new);
            }
            assert_eq!(seen.len() as u64, states);
        }
    }
}
