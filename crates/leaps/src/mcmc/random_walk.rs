//! Flip a few random sites blindly.
//!
//! Choose $n$ different sites uniformly and another value uniformly at each; the proposal is symmetric, so it
//! is accepted with probability $\min(1, e^{-\Delta U})$. With a real radius $R$, $n$ is uniform from 1 to $2R - 1$ ($N$ at most; an integer
//! next to it if it is none), so that its mean is $R$: the choice does not look at the state, hence the step is reversible. With a fixed
//! $n$ states of low energy would be traps: 0.1 % of the flips of 3 spins are accepted where all are aligned, and 8 % of those of one.
//! Burn-in moves $R$ towards the acceptance 0.237.

use super::adapt::StepSize;
use super::moves::{accept, check_target, move_to, other_value};
use super::{Info, Kernel};
use crate::Result;
use crate::device::Draw;
use crate::target::{Density, Target};

/// Draw an integer of mean `real`: one of its two neighbours.
pub(super) fn round_randomly<D: Draw>(real: f64, draw: &mut D) -> usize {
    let whole = real.floor();
    let rest = real - whole;
    whole as usize + usize::from(rest > 1e-9 && draw.chance(rest))
}

/// Blind flips of a few sites. See the definition above.
#[derive(Clone, Debug)]
pub struct RandomWalk {
    radius: StepSize,
    /// A permutation of the sites: the first entries of a shuffle are a uniform choice whatever
    /// permutation it starts from.
    order: Vec<u32>,
    proposal: Vec<u8>,
    old: Vec<u8>,
}

impl RandomWalk {
    /// Flip `radius` sites on average, from 1 to all of them; 1 is usual before burn-in.
    pub fn new(target: &dyn Target, radius: f64) -> Result<Self> {
        check_target(target)?;
        let sites = target.sites();
        Ok(RandomWalk {
            // Beyond half of the sites acceptance may rise again: without a field, flipping all
            // spins costs nothing and moves nowhere.
            radius: StepSize::new("radius", radius, (1.0, sites as f64), 0.237)?
                .learn_below(0.25 * sites as f64 + 0.5),
            order: (0..sites as u32).collect(),
            proposal: vec![0; sites],
            old: vec![0; sites],
        })
    }

    /// The mean number of sites in a proposal.
    pub fn radius(&self) -> f64 {
        self.radius.value()
    }

    /// The number of sites in a proposal.
    fn flips<D: Draw>(&self, sites: usize, draw: &mut D) -> usize {
        let most = round_randomly(2.0 * self.radius() - 1.0, draw).clamp(1, sites);
        // Single flips need no draw.
        1 + if most > 1 { draw.below(most) } else { 0 }
    }
}

impl Kernel for RandomWalk {
    fn step<D: Draw>(&mut self, model: &Density<'_>, x: &mut [u8], draw: &mut D) -> Info {
        let sites = x.len();
        let flips = self.flips(sites, draw);
        self.old.copy_from_slice(x);
        self.proposal.copy_from_slice(x);
        for k in 0..flips {
            let other = k + draw.below(sites - k);
            self.order.swap(k, other);
            let site = self.order[k] as usize;
            self.proposal[site] = other_value(x[site], model.q(), draw);
        }
        let change = move_to(model, x, &self.proposal);
        let (accepted, acceptance) = accept(-change, draw);
        if !accepted {
            x.copy_from_slice(&self.old);
        }
        Info { acceptance, changed: if accepted { flips } else { 0 } }
    }

    fn step_size(&mut self) -> Option<&mut StepSize> {
        Some(&mut self.radius)
    }

    fn energy_calls(&self, _values: usize) -> f64 {
        2.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::{Purpose, Stream};
    use crate::target::{Boundary, Lattice, Pairwise};

    /// 10,000 draws for each radius: |z| < 5 would show a mean that is off by 0.02 to 0.25 and a share of single flips by 0.025.
    #[test]
    fn numbers_of_flips_are_uniform() {
        let target = square();
        for (k, radius) in [1.0, 1.3, 1.5, 2.0, 2.3, 4.5, 8.5].into_iter().enumerate() {
            let kernel = RandomWalk::new(&target, radius).unwrap();
            let mut stream = Stream::new(1, Purpose::Move, k as u32, 0);
            let flips: Vec<usize> = (0..10_000).map(|_| kernel.flips(16, &mut stream)).collect();
            let ones = flips.iter().filter(|&&n| n == 1).count() as f64 / 10_000.0;
            let mean = flips.iter().sum::<usize>() as f64 / 10_000.0;
            assert!((mean - radius).abs() <= 0.05 * (radius - 1.0), "{radius}: {mean}");
            let (whole, rest) = ((2.0 * radius - 1.0).floor(), (2.0 * radius).fract());
            let share = (1.0 - rest) / whole + rest / (whole + 1.0);
            assert!((ones - share).abs() < 0.025, "{radius}: {ones} {share}");
        }
        let kernel = RandomWalk::new(&target, 16.0).unwrap();
        let mut stream = Stream::new(1, Purpose::Move, 9, 0);
        assert!((0..100).all(|_| (1..=16).contains(&kernel.flips(16, &mut stream))));
    }

    /// However large the radius has become, chains leave the state of lowest energy: after 90 steps here, 5000 if always four or five
    /// sites are flipped. The mean of 100 is known to 10 %.
    #[test]
    fn states_of_low_energy_are_no_traps() {
        let target = square();
        let lambda = [0.3, 0.3];
        let model = Density::new(&target, &lambda);
        let mut kernel = RandomWalk::new(&target, 1.0).unwrap();
        for _ in 0..10_000 {
            kernel.adapt(&Info { acceptance: 1.0, changed: 1 });
        }
        assert!((kernel.radius() - 4.5).abs() < 1e-9, "{}", kernel.radius());
        let mut steps = 0;
        for chain in 0..100 {
            let mut x = [1; 16];
            while x == [1; 16] {
                let mut stream = Stream::new(1, Purpose::Move, chain, steps);
                kernel.step(&model, &mut x, &mut stream);
                steps += 1;
            }
        }
        assert!(steps < 15_000, "{steps} steps");
    }

    fn square() -> Pairwise {
        let lattice = Lattice::new(&[4, 4], Boundary::Periodic).unwrap();
        Pairwise::ising(lattice, 1.0, 0.2).unwrap()
    }
}
