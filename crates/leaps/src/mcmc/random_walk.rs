//! Flip a few random sites blindly.
//!
//! Choose $n$ different sites uniformly and another value uniformly at each; the proposal is symmetric, so it
//! is accepted with probability $\min(1, e^{-\Delta U})$. With a real radius $R$, $n$ is one of the two integers next to
//! $R - h$ or to $R + h$, $h = \min(\frac12, R - 1, N - R)$, so that its mean is $R$: the choice does not look at the state, hence the step
//! is reversible. From $R = \frac32$ on, $n$ is even as often as odd. With the integers next to $R$ alone, a radius close to an even one would
//! hardly ever change the parity of the number of flipped sites, and chains would remember it for thousands of steps.
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
                .learn_below((sites / 2) as f64 - 0.5),
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
        let radius = self.radius();
        let apart = (radius - 1.0).min(sites as f64 - radius).clamp(0.0, 0.5);
        let apart = if draw.chance(0.5) { apart } else { -apart };
        round_randomly(radius + apart, draw).clamp(1, sites)
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
    use crate::target::{Boundary, Lattice, Pairwise, initial_state};

    /// 10,000 draws for each radius: |z| < 5 would show a mean that is off by 0.04 and a share by 0.025.
    #[test]
    fn even_and_odd_numbers_of_flips_are_equally_frequent() {
        let lattice = Lattice::new(&[4, 4], Boundary::Periodic).unwrap();
        let target = Pairwise::ising(lattice, 1.0, 0.0).unwrap();
        for (k, radius) in [1.5, 2.0, 2.3, 4.0, 4.02, 7.5, 8.0, 12.9, 14.5].into_iter().enumerate()
        {
            let kernel = RandomWalk::new(&target, radius).unwrap();
            let mut stream = Stream::new(1, Purpose::Move, k as u32, 0);
            let flips: Vec<usize> = (0..10_000).map(|_| kernel.flips(16, &mut stream)).collect();
            let odd = flips.iter().filter(|&n| n % 2 == 1).count();
            let mean = flips.iter().sum::<usize>() as f64 / 10_000.0;
            assert!(
                odd.abs_diff(5000) < 250 && (mean - radius).abs() < 0.04,
                "{radius}: {odd} {mean}"
            );
        }
        let mut stream = Stream::new(1, Purpose::Move, 9, 0);
        for radius in [1.0, 16.0] {
            let kernel = RandomWalk::new(&target, radius).unwrap();
            assert!((0..100).all(|_| kernel.flips(16, &mut stream) == radius as usize));
        }
    }
    /// Acceptance hardly tells large radii apart, and chains with those forget their start last: few of 200 chains may end there
    /// (a gain that follows the states of the moment leaves 21 above 5.5, the radius of the aim being 3).
    #[test]
    fn radii_do_not_follow_the_states_of_the_moment() {
        let lattice = Lattice::new(&[4, 4], Boundary::Periodic).unwrap();
        let target = Pairwise::ising(lattice, 1.0, 0.2).unwrap();
        let lambda = [0.3, 0.3];
        let model = Density::new(&target, &lambda);
        let large = |chain: &u32| {
            let mut kernel = RandomWalk::new(&target, 1.0).unwrap();
            let mut x = initial_state(&target, 1, *chain);
            for step in 0..2000 {
                let mut stream = Stream::new(1, Purpose::Move, *chain, step);
                let info = kernel.step(&model, &mut x, &mut stream);
                kernel.adapt(&info);
            }
            kernel.radius() > 5.5
        };
        let large = (0..200).filter(large).count();
        assert!(large <= 12, "{large} of 200 chains have a large radius");
    }
}
