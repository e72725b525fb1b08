//! Masses of modes: they are those of the law, and a warning comes where a symmetry is broken and only there.

use leaps::observe::LogWeights;
use leaps::observe::{Families, WeightedSamples};
use leaps::sampler::WalkerWarning;
use leaps::target::{Boundary, Lattice, Pairwise, Target, potential};

use super::stream;

fn torus(side: usize, states: usize, field: f64) -> Pairwise {
    let lattice = Lattice::new(&[side, side], Boundary::Periodic).unwrap();
    match states {
        2 => Pairwise::ising(lattice, 1.0, field).unwrap(),
        _ => Pairwise::potts(lattice, states, 1.0, field).unwrap(),
    }
}

/// All states of a small model, with their weights in the law at `beta`.
struct Law {
    model: Pairwise,
    states: Vec<Vec<u8>>,
    beta: f64,
}

impl Law {
    fn new(model: Pairwise, beta: f64) -> Self {
        let (n, q) = (model.sites(), model.q());
        let state = |code: usize| (0..n).map(|i| (code / q.pow(i as u32) % q) as u8).collect();
        Law { states: (0..q.pow(n as u32)).map(state).collect(), model, beta }
    }

    /// Walkers drawn from the law at `hot`, where `reached` states are, and weighed for the law at `beta`; `copies` of each make a family.
    fn draw(
        &self,
        run: usize,
        walkers: usize,
        hot: f64,
        copies: usize,
        reached: impl Fn(&[u8]) -> f64,
    ) -> WeightedSamples {
        let terms = self.model.terms();
        let energy = |x: &[u8]| potential(&self.model, &vec![1.0; terms], x);
        let mut total = 0.0;
        let cumulative: Vec<f64> = self
            .states
            .iter()
            .map(|x| {
                total += reached(x) * (-hot * energy(x)).exp();
                total
            })
            .collect();
        let mut stream = stream(run as u32);
        let (mut states, mut log, mut family) = (Vec::new(), Vec::new(), Vec::new());
        for walker in 0..walkers {
            let at = stream.uniform() * total;
            let x = &self.states[cumulative.partition_point(|sum| *sum <= at)];
            for _ in 0..copies {
                states.extend_from_slice(x);
                log.push((hot - self.beta) * energy(x));
                family.push(walker as u32);
            }
        }
        let weights = LogWeights::new(log).unwrap();
        let lambda = vec![self.beta; terms];
        WeightedSamples::new(&self.model, &lambda, &states, &weights, &Families::new(&family))
            .unwrap()
    }
}

fn most_frequent(x: &[u8], value: u8) -> bool {
    let count = |s: u8| x.iter().filter(|&&t| t == s).count();
    (0..8).all(|s| s == value || count(s) < count(value))
}

/// 2,000 runs from the exact law at a higher temperature, weights and all, with down to a dozen effective walkers. At 1e-5, more than two
/// alarms have a probability below 1e-4; 5 % may be up to 8 % with so few walkers.
#[test]
fn equal_modes_raise_no_alarm() {
    // Two modes, three modes; few walkers and many; families of one and of four.
    for (states, walkers, copies) in [(2, 60, 1), (2, 400, 4), (3, 60, 1), (3, 400, 4)] {
        let side = if states == 2 { 3 } else { 2 };
        let law = Law::new(torus(side, states, 0.0), 0.8);
        let runs = 2000;
        let (mut five, mut alarms) = (0, 0);
        for run in 0..runs {
            let samples = law.draw(run, walkers, 0.3, copies, |_| 1.0);
            let p = samples.mode_equality().unwrap();
            five += usize::from(p < 0.05);
            alarms += usize::from(WalkerWarning::of_modes(&samples).is_some());
        }
        let found = format!("{states} states, {walkers} walkers: {five}, {alarms} of {runs}");
        assert!(alarms <= 2 && five < 8 * runs / 100, "{found}");
        // The test is no decoration either: it says 5 % about as often as it should.
        assert!(five > 3 * runs / 100, "{found}");
    }
}

#[test]
fn modes_that_are_hardly_reached_are_noticed() {
    for (states, part) in [(2, 0.3), (3, 0.3), (3, 0.0), (2, 0.0)] {
        let law = Law::new(torus(3, states, 0.0), 0.8);
        let reached = |x: &[u8]| if most_frequent(x, 1) { part } else { 1.0 };
        let samples = law.draw(1, 1000, 0.5, 1, reached);
        // The weights know nothing of it.
        assert!(samples.ess().mean > 0.2, "{:?}", samples.ess());
        let warning = WalkerWarning::of_modes(&samples).expect("a warning");
        let masses = samples.observables().mode_masses;
        let equal = 1.0 / states as f64;
        assert!(masses[1].mass.mean < 0.6 * equal && masses[1].value == 1, "{masses:?}");
        assert_eq!(masses[0].mass.exact, Some(equal));
        let text = warning.to_string();
        assert!(text.contains("symmetric") && text.contains(&format!("{equal:.3}")), "{text}");
    }
}

#[test]
fn masses_are_those_of_the_law_in_a_field_too() {
    // All states with their own weights: the mass of m > 0 is a sum over them. Spins prefer -1 in a positive field.
    let law = Law::new(torus(3, 2, 0.4), 0.5);
    let weight = |x: &[u8]| (-potential(&law.model, &[0.5; 2], x)).exp();
    let all: f64 = law.states.iter().map(|x| weight(x)).sum();
    let up: f64 = law.states.iter().filter(|x| most_frequent(x, 1)).map(|x| weight(x)).sum();
    let samples = law.draw(3, 20_000, 0.4, 1, |_| 1.0);
    let masses = samples.observables().mode_masses;
    let [down, found] = [masses[0].mass, masses[1].mass];
    assert!(up / all < 0.4, "{}", up / all);
    // 5 standard errors: a false alarm in 1e6.
    assert!((found.mean - up / all).abs() < 5.0 * found.error, "{found:?} {}", up / all);
    assert!((found.mean + down.mean - 1.0).abs() < 1e-12);
    assert!(found.error > 0.0 && found.error < 0.02 && found.exact.is_none());
    // Nothing says that they should be equal.
    assert!(samples.mode_equality().is_none() && WalkerWarning::of_modes(&samples).is_none());
}
