//! Obtain exact transition matrices from the code of a kernel.

use leaps::device::Draw;
use leaps::mcmc::Kernel;
use leaps::target::Density;

/// Answers every choice with every possibility in turn, depth first, and knows its probability.
#[derive(Default)]
pub struct Enumerator {
    nodes: Vec<Node>,
    depth: usize,
}

struct Node {
    /// Possible answers with their probabilities; impossible ones are left out.
    answers: Vec<(usize, f64)>,
    at: usize,
}

impl Enumerator {
    fn answer(&mut self, answers: impl Iterator<Item = (usize, f64)>) -> usize {
        if self.depth == self.nodes.len() {
            let answers: Vec<_> = answers.filter(|&(_, p)| p > 0.0).collect();
            self.nodes.push(Node { answers, at: 0 });
        }
        let node = &self.nodes[self.depth];
        self.depth += 1;
        node.answers[node.at].0
    }

    /// The probability of the branch just taken.
    pub fn probability(&self) -> f64 {
        assert_eq!(self.depth, self.nodes.len(), "a kernel must be a function of its choices");
        self.nodes.iter().map(|node| node.answers[node.at].1).product()
    }

    /// Go on to the next branch; false after the last.
    pub fn advance(&mut self) -> bool {
        self.depth = 0;
        while let Some(node) = self.nodes.last_mut() {
            node.at += 1;
            if node.at < node.answers.len() {
                return true;
            }
            self.nodes.pop();
        }
        false
    }
}

impl Draw for Enumerator {
    fn below(&mut self, n: usize) -> usize {
        self.answer((0..n).map(|i| (i, 1.0 / n as f64)))
    }

    fn chance(&mut self, p: f64) -> bool {
        assert!(!p.is_nan());
        let p = p.clamp(0.0, 1.0);
        self.answer([(0, 1.0 - p), (1, p)].into_iter()) == 1
    }

    fn pick(&mut self, weights: &[f64]) -> usize {
        let total: f64 = weights.iter().sum();
        assert!(total > 0.0 && total.is_finite() && weights.iter().all(|&w| w >= 0.0));
        self.answer(weights.iter().map(|w| w / total).enumerate())
    }
}

/// Every branch of `step` from `x`: calls `found(end, probability)`.
pub fn branches(mut step: impl FnMut(&mut Enumerator) -> usize, mut found: impl FnMut(usize, f64)) {
    let mut draw = Enumerator::default();
    loop {
        let end = step(&mut draw);
        found(end, draw.probability());
        if !draw.advance() {
            return;
        }
    }
}

/// State number `code` of `sites` values, the first site varying fastest.
pub fn decode(mut code: usize, sites: usize, q: usize) -> Vec<u8> {
    (0..sites)
        .map(|_| {
            let value = (code % q) as u8;
            code /= q;
            value
        })
        .collect()
}

/// The number of a state.
pub fn encode(x: &[u8], q: usize) -> usize {
    x.iter().rev().fold(0, |code, &value| code * q + value as usize)
}

/// Number of states of a model.
pub fn count(model: &Density<'_>) -> usize {
    model.q().pow(model.sites() as u32)
}

/// The probabilities of all states.
pub fn law(model: &Density<'_>) -> Vec<f64> {
    let potentials: Vec<f64> = (0..count(model))
        .map(|code| model.potential(&decode(code, model.sites(), model.q())))
        .collect();
    let lowest = potentials.iter().copied().fold(f64::INFINITY, f64::min);
    let mut law: Vec<f64> = potentials.iter().map(|u| (lowest - u).exp()).collect();
    let sum: f64 = law.iter().sum();
    law.iter_mut().for_each(|p| *p /= sum);
    law
}

/// The exact transition matrix `[from * states + to]` of one step of `kernel` as it stands.
pub fn matrix<K: Kernel>(model: &Density<'_>, kernel: &K) -> Vec<f64> {
    let (states, sites, q) = (count(model), model.sites(), model.q());
    let mut matrix = vec![0.0; states * states];
    let mut x = vec![0; sites];
    // A row is the sum of up to a million branches: carry the rounding errors along (Kahan).
    let mut lost = vec![0.0; states];
    for from in 0..states {
        let start = decode(from, sites, q);
        let row = &mut matrix[from * states..][..states];
        lost.fill(0.0);
        branches(
            |draw| {
                x.copy_from_slice(&start);
                kernel.clone().step(model, &mut x, draw);
                encode(&x, q)
            },
            |to, p| {
                let p = p - lost[to];
                let sum = row[to] + p;
                lost[to] = (sum - row[to]) - p;
                row[to] = sum;
            },
        );
    }
    matrix
}

/// `max |rho P - rho|`.
pub fn invariance_error(law: &[f64], matrix: &[f64]) -> f64 {
    let mut moved = vec![0.0; law.len()];
    for (row, p) in matrix.chunks_exact(law.len()).zip(law) {
        for (moved, transition) in moved.iter_mut().zip(row) {
            *moved += p * transition;
        }
    }
    moved.iter().zip(law).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max)
}

/// `max |sum of a row - 1|`.
pub fn row_error(matrix: &[f64], states: usize) -> f64 {
    let sums = matrix.chunks_exact(states).map(|row| row.iter().sum::<f64>());
    sums.map(|sum| (sum - 1.0).abs()).fold(0.0, f64::max)
}

/// `max |rho(x) P(x, y) - rho(y) P(y, x)|`.
pub fn balance_error(law: &[f64], matrix: &[f64]) -> f64 {
    let n = law.len();
    let mut worst = 0f64;
    for x in 0..n {
        for y in 0..x {
            let flow = law[x] * matrix[x * n + y] - law[y] * matrix[y * n + x];
            worst = worst.max(flow.abs());
        }
    }
    worst
}
