//! Exchange states between neighbouring temperatures: parallel tempering.
//!
//! Swendsen and Wang 1986; Hukushima and Nemoto 1996. Rung $a$ of a ladder carries its own state $x_a$ at weights
//! $\lambda_a$, moved by its own kernel. Neighbouring rungs exchange their states with probability
//! $$\min\bigl(1, \exp\bigl[(\lambda_a - \lambda_b) \cdot (E(x_a) - E(x_b))\bigr]\bigr),$$
//! the pairs (0,1), (2,3), ... and (1,2), (3,4), ... in turn. Each exchange satisfies detailed balance for the
//! product $\prod_a \rho_a(x_a)$, so that the whole leaves it invariant. With two copies of every rung,
//! [`Houdayer`] moves between the copies can be added.
//!
//! Where tables serve the target, 64 ladders move at once ([`lanes`](super::lanes)); log Z of all rungs is that of [`Mbar`](crate::observe::Mbar).

use super::{Houdayer, Info, Kernel};
use crate::device::Draw;
use crate::target::{Density, Target};
use crate::{Error, Result};

/// Parallel tempering with kernel `K` on every rung. States are numbered `copy * rungs + rung`.
#[derive(Clone, Debug)]
pub struct Tempering<K> {
    ladder: Vec<Vec<f64>>,
    copies: usize,
    kernels: Vec<K>,
    houdayer: Option<Houdayer>,
    /// Energy terms of every state, for the exchanges.
    energies: Vec<f64>,
    exchanges: Exchanges,
}

/// Which states of a ladder, or of several copies of it, change places, and what came of it.
#[derive(Clone, Debug)]
pub(super) struct Exchanges {
    rungs: usize,
    odd: bool,
    attempts: Vec<u64>,
    swaps: Vec<u64>,
    /// The walker in each state, and for each walker whether it last saw the first rung, the last,
    /// or neither.
    walkers: Vec<u32>,
    came_from: Vec<End>,
    round_trips: u64,
}

/// The end of the ladder at which a walker last was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    Neither,
    First,
    Last,
}

impl<K: Kernel> Tempering<K> {
    /// A ladder of weights, by custom from hot to cold, the last rung being the distribution that is
    /// wanted. With `houdayer` there are two copies of the ladder and Houdayer moves between them.
    pub fn new(
        target: &dyn Target,
        ladder: Vec<Vec<f64>>,
        kernel: &K,
        houdayer: bool,
    ) -> Result<Self> {
        let rungs = ladder.len();
        let fits = ladder
            .iter()
            .all(|lambda| lambda.len() == target.terms() && lambda.iter().all(|l| l.is_finite()));
        if rungs == 0 || !fits {
            return Err(Error::invalid(
                "ladder",
                format!("{ladder:?}"),
                format!("at least one rung of {} finite weights", target.terms()),
                "give one weight per energy term, for example beta",
            ));
        }
        let copies = if houdayer { 2 } else { 1 };
        let states = copies * rungs;
        Ok(Tempering {
            copies,
            kernels: vec![kernel.clone(); states],
            houdayer: if houdayer { Some(Houdayer::new(target)?) } else { None },
            energies: vec![0.0; states * target.terms()],
            exchanges: Exchanges::new(rungs, copies),
            ladder,
        })
    }

    /// Number of rungs.
    pub fn rungs(&self) -> usize {
        self.ladder.len()
    }

    /// Number of copies of the ladder.
    pub fn copies(&self) -> usize {
        self.copies
    }

    /// Number of states, `copies * rungs`.
    pub fn states(&self) -> usize {
        self.kernels.len()
    }

    /// The weights of each rung.
    pub fn ladder(&self) -> &[Vec<f64>] {
        &self.ladder
    }

    /// The kernels of the states and the ladder, for moving the states in parallel.
    pub(super) fn parts(&mut self) -> (&[Vec<f64>], &mut [K]) {
        (&self.ladder, &mut self.kernels)
    }

    /// Fraction of accepted exchanges of each rung with the next.
    pub fn swap_rates(&self) -> Vec<f64> {
        self.exchanges.swap_rates()
    }

    /// How often a walker went from the first rung to the last and back.
    pub fn round_trips(&self) -> u64 {
        self.exchanges.round_trips
    }

    /// Forget the counts of exchanges and round trips, as after burn-in.
    pub fn reset_counts(&mut self) {
        self.exchanges.reset_counts();
    }

    /// Whether the next exchanges are those of the odd pairs (1,2), (3,4), ...
    pub fn at_odd_pairs(&self) -> bool {
        self.exchanges.odd
    }

    /// Move state number `state` with its own kernel.
    pub fn step_state<D: Draw>(
        &mut self,
        target: &dyn Target,
        state: usize,
        x: &mut [u8],
        draw: &mut D,
    ) -> Info {
        let lambda = &self.ladder[state % self.ladder.len()];
        self.kernels[state].step(&Density::new(target, lambda), x, draw)
    }

    /// Houdayer moves between the copies at every rung, if there are any.
    pub fn exchange_clusters<D: Draw>(&mut self, states: &mut [Vec<u8>], draw: &mut D) {
        let rungs = self.ladder.len();
        if let Some(houdayer) = &mut self.houdayer {
            let (first, second) = states.split_at_mut(rungs);
            for (x, y) in first.iter_mut().zip(second) {
                houdayer.step(x, y, draw);
            }
        }
    }

    /// Compute the energies of the states.
    pub fn measure(&mut self, target: &dyn Target, states: &[Vec<u8>]) {
        for (x, energies) in states.iter().zip(self.energies.chunks_exact_mut(target.terms())) {
            for (term, energy) in energies.iter_mut().enumerate() {
                *energy = target.energy(term, x);
            }
        }
    }

    /// Energy terms of the states, `[state * terms + term]`, as they were measured or exchanged last.
    pub fn energies(&self) -> &[f64] {
        &self.energies
    }

    /// Exchange states between neighbouring rungs of every copy: even and odd pairs in turn.
    pub fn exchange<D: Draw>(&mut self, target: &dyn Target, states: &mut [Vec<u8>], draw: &mut D) {
        self.measure(target, states);
        self.exchanges.step(&self.ladder, &mut self.energies, draw, |a, b| states.swap(a, b));
    }

    /// One full step: every state by its kernel, then clusters, then exchanges.
    pub fn step<D: Draw>(&mut self, target: &dyn Target, states: &mut [Vec<u8>], draw: &mut D) {
        for (state, x) in states.iter_mut().enumerate() {
            self.step_state(target, state, x, draw);
        }
        self.exchange_clusters(states, draw);
        self.exchange(target, states, draw);
    }

    /// Energy evaluations charged for a step: those of the kernels, and one per state for the exchange.
    pub fn energy_calls(&self, q: usize) -> f64 {
        self.kernels.iter().map(|kernel| kernel.energy_calls(q) + 1.0).sum()
    }
}

impl Exchanges {
    /// So many copies of a ladder of so many rungs.
    pub(super) fn new(rungs: usize, copies: usize) -> Self {
        let states = rungs * copies;
        Exchanges {
            rungs,
            odd: false,
            attempts: vec![0; rungs - 1],
            swaps: vec![0; rungs - 1],
            walkers: (0..states as u32).collect(),
            came_from: vec![End::Neither; states],
            round_trips: 0,
        }
    }

    /// Exchange states between neighbouring rungs of every copy, even and odd pairs in turn: `swap` is called for those that change places, whose
    /// `energies[state * terms + term]` do so here.
    pub(super) fn step<D: Draw>(
        &mut self,
        ladder: &[Vec<f64>],
        energies: &mut [f64],
        draw: &mut D,
        mut swap: impl FnMut(usize, usize),
    ) {
        let (rungs, terms) = (self.rungs, ladder[0].len());
        let first = usize::from(self.odd);
        self.odd = !self.odd;
        for start in (0..self.walkers.len()).step_by(rungs) {
            for rung in (first..rungs - 1).step_by(2) {
                let a = start + rung;
                let b = a + 1;
                let mut log_ratio = 0.0;
                for term in 0..terms {
                    let weight = ladder[rung][term] - ladder[rung + 1][term];
                    log_ratio += weight * (energies[a * terms + term] - energies[b * terms + term]);
                }
                self.attempts[rung] += 1;
                if super::moves::accept(log_ratio, draw).0 {
                    self.swaps[rung] += 1;
                    swap(a, b);
                    self.walkers.swap(a, b);
                    (0..terms).for_each(|term| energies.swap(a * terms + term, b * terms + term));
                }
            }
            self.count_round_trips(start);
        }
    }

    fn count_round_trips(&mut self, start: usize) {
        let first = &mut self.came_from[self.walkers[start] as usize];
        self.round_trips += u64::from(*first == End::Last);
        *first = End::First;
        let last = &mut self.came_from[self.walkers[start + self.rungs - 1] as usize];
        if self.rungs > 1 && *last == End::First {
            *last = End::Last;
        }
    }

    /// Fraction of accepted exchanges of each rung with the next.
    pub(super) fn swap_rates(&self) -> Vec<f64> {
        let pairs = self.swaps.iter().zip(&self.attempts);
        pairs.map(|(&swaps, &attempts)| swaps as f64 / attempts.max(1) as f64).collect()
    }

    /// How often a walker went from the first rung to the last and back.
    pub(super) fn round_trips(&self) -> u64 {
        self.round_trips
    }

    /// Forget the counts, as after burn-in.
    pub(super) fn reset_counts(&mut self) {
        self.attempts.fill(0);
        self.swaps.fill(0);
        self.round_trips = 0;
    }
}
