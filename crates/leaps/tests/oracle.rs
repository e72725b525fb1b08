//! Propagate small systems exactly, as vectors over all states, and hold the schemes against them.

use leaps::device::NoProgress;
use leaps::exact::enumerate;
use leaps::net::{LeaSpec, MlpSpec, Net, NetSpec, Worker};
use leaps::path::{Path, Schedule};
use leaps::rates::{Parametrisation, Rates, flux};
use leaps::sampler::{Scheme, WalkPlan};
use leaps::target::{Boundary, Interaction, Lattice, Pairwise, Target, potential};

/// Six spins on a ring with fields of both signs, three values on a triangle, and an untrained network for each.
fn systems() -> Vec<(Pairwise, Net, Vec<f32>)> {
    let ring = Lattice::new(&[6], Boundary::Periodic).unwrap();
    let ising = Pairwise::uniform(Interaction::Ising, ring, 2, 0.7)
        .unwrap()
        .with_fields(&[0.3, -0.2, 0.5, 0.1, -0.4, 0.2])
        .unwrap();
    let triangle = Lattice::new(&[3], Boundary::Periodic).unwrap();
    let potts = Pairwise::potts(triangle, 3, 0.8, -0.4).unwrap();
    let specs = [
        NetSpec::Mlp(MlpSpec { hidden: 6 }),
        NetSpec::Lea(LeaSpec { heads: 2, width: 4, embedding: 8 }),
    ];
    [ising, potts]
        .into_iter()
        .zip(specs)
        .map(|(target, spec)| {
            let net = Net::new(&spec, &target).unwrap();
            let packed = net.pack(&net.initial(5).iter().map(|p| 1.5 * p).collect::<Vec<f32>>());
            (target, net, packed)
        })
        .collect()
}

fn states(target: &dyn Target) -> Vec<Vec<u8>> {
    let (d, q) = (target.sites(), target.q());
    (0..q.pow(d as u32))
        .map(|code| (0..d).map(|i| (code / q.pow(i as u32) % q) as u8).collect())
        .collect()
}

fn code(x: &[u8], q: usize) -> usize {
    x.iter().rev().fold(0, |code, &value| code * q + value as usize)
}

/// The network's outputs at every state.
fn outputs(net: &Net, packed: &[f32], states: &[Vec<u8>], t: f64) -> Vec<Vec<f32>> {
    let mut worker: Worker = net.worker();
    let count = states[0].len() * net.outputs();
    let mut all = Vec::new();
    for group in states.chunks(16) {
        for (lane, x) in group.iter().enumerate() {
            worker.set(lane, x, t);
        }
        net.forward(packed, &mut worker);
        for lane in 0..group.len() {
            all.push((0..count).map(|i| worker.output(lane, i)).collect());
        }
    }
    all
}

fn rates_at(
    target: &dyn Target,
    lambda: &[f64],
    x: &[u8],
    outputs: &[f32],
    parametrisation: Parametrisation,
) -> Rates {
    let q = target.q();
    let mut changes = vec![0.0; x.len() * q];
    target.changes(lambda, &mut x.to_vec(), &mut changes);
    let mut rates = Rates::default();
    rates.set(q, x, &changes, |i| outputs[i], |j, du| parametrisation.rates(j, du));
    rates
}

#[test]
fn the_operator_of_one_pass_is_the_sum_over_neighbours() {
    for (target, net, packed) in systems() {
        let (q, channels) = (target.q(), net.outputs());
        let all = states(&target);
        let (t, ends) = (0.6, vec![0.5; target.terms()]);
        let path = Path::new(&ends, Schedule::Trigonometric).unwrap();
        let lambda = path.lambda(t);
        let outputs = outputs(&net, &packed, &all, t);
        for parametrisation in Parametrisation::ALL {
            for (x, out) in all.iter().zip(&outputs) {
                let one_pass = rates_at(&target, &lambda, x, out, parametrisation).balance();
                // -sum_y Q(x, y) rho(y)/rho(x), every neighbour's rates from a pass of its own.
                let u = potential(&target, &lambda, x);
                let mut brute = 0.0;
                for site in 0..x.len() {
                    for value in (0..q as u8).filter(|&value| value != x[site]) {
                        let mut y = x.clone();
                        y[site] = value;
                        let du = potential(&target, &lambda, &y) - u;
                        let there = &outputs[code(&y, q)][site * channels..][..channels];
                        let here = &out[site * channels..][..channels];
                        let (leave, _) = parametrisation.rates(flux(here, x[site], value), du);
                        let (enter, _) = parametrisation.rates(flux(there, value, x[site]), -du);
                        brute += leave - enter * (-du).exp();
                    }
                }
                assert!((one_pass - brute).abs() < 1e-12 * (1.0 + brute.abs()));
            }
        }
    }
}

/// `exp(A t) v` by Taylor steps, for a map `A`.
fn propagate(apply: impl Fn(&[f64]) -> Vec<f64>, v: &mut [f64], t: f64) {
    let steps = 64;
    for _ in 0..steps {
        let mut term = v.to_vec();
        for order in 1..=12 {
            term = apply(&term).iter().map(|w| w * t / (steps as f64 * f64::from(order))).collect();
            for (v, w) in v.iter_mut().zip(&term) {
                *v += w;
            }
        }
    }
}

/// The vector of `E[exp(A); X = x]` at the end, by exact propagation.
fn exact_run(
    (target, net, packed): &(Pairwise, Net, Vec<f32>),
    parametrisation: Parametrisation,
    scheme: Scheme,
    intervals: usize,
) -> Vec<f64> {
    let (d, q) = (target.sites(), target.q());
    let all = states(target);
    let path = Path::new(&vec![0.5; target.terms()], Schedule::Linear).unwrap();
    let cuts: Vec<f64> = (0..=intervals).map(|k| k as f64 / intervals as f64).collect();
    let WalkPlan { grid, durations, .. } = WalkPlan::new(&path, scheme, &cuts).unwrap();
    let mut v = vec![1.0 / all.len() as f64; all.len()];
    for k in 1..=grid.intervals() {
        let at = if scheme == Scheme::Events { k } else { k - 1 };
        let (t, lambda, h) = (grid.time(at), grid.lambda(at), durations[k]);
        if scheme == Scheme::Events {
            for (v, x) in v.iter_mut().zip(&all) {
                let drop = potential(target, grid.lambda(k - 1), x) - potential(target, lambda, x);
                *v *= drop.exp();
            }
        }
        if h == 0.0 {
            continue;
        }
        let outputs = outputs(net, packed, &all, t);
        let rates: Vec<Rates> = all
            .iter()
            .zip(&outputs)
            .map(|(x, out)| rates_at(target, lambda, x, out, parametrisation))
            .collect();
        if scheme == Scheme::Events {
            // d v / d tau = Q v + (out - back) v.
            let apply = |v: &[f64]| {
                let mut w: Vec<f64> =
                    v.iter().zip(&rates).map(|(v, r)| v * (r.balance() - r.total_out)).collect();
                for (i, x) in all.iter().enumerate() {
                    for site in 0..d {
                        for value in 0..q {
                            let rate = rates[i].out[site * q + value];
                            let to = i + value * q.pow(site as u32)
                                - x[site] as usize * q.pow(site as u32);
                            w[to] += rate * v[i];
                        }
                    }
                }
                w
            };
            propagate(apply, &mut v, h);
        } else {
            let slope = path.slope(t);
            let mut next = vec![0.0; all.len()];
            for (i, x) in all.iter().enumerate() {
                let k_value = rates[i].balance() - potential(target, &slope, x);
                // Every site moves on its own; build the law of the next state site by site.
                let mut law = vec![(0usize, v[i] * (h * k_value).exp())];
                for site in 0..d {
                    let row = &rates[i].out[site * q..(site + 1) * q];
                    let total: f64 = row.iter().sum();
                    let leave = (h * total).min(1.0);
                    let place = q.pow(site as u32);
                    law = law
                        .iter()
                        .flat_map(|&(y, w)| {
                            (0..q).map(move |value| {
                                let p = if value == x[site] as usize {
                                    1.0 - leave
                                } else if total > 0.0 {
                                    leave * row[value] / total
                                } else {
                                    0.0
                                };
                                (y + value * place, w * p)
                            })
                        })
                        .filter(|&(_, w)| w != 0.0)
                        .collect();
                }
                for (y, w) in law {
                    next[y] += w;
                }
            }
            v = next;
        }
    }
    v
}

#[test]
fn events_is_exact_at_every_number_of_intervals() {
    for system in systems() {
        let lambda = vec![0.5; system.0.terms()];
        let law = enumerate::law(&system.0, &lambda).unwrap();
        let log_z = enumerate::solve(&system.0, &lambda, &NoProgress).unwrap().log_z;
        for parametrisation in Parametrisation::ALL {
            for intervals in [1, 2, 5] {
                let v = exact_run(&system, parametrisation, Scheme::Events, intervals);
                let z: f64 = v.iter().sum();
                let log_states = (v.len() as f64).ln();
                assert!(
                    (z.ln() + log_states - log_z).abs() < 1e-10,
                    "{parametrisation:?} {intervals}"
                );
                for (v, p) in v.iter().zip(&law) {
                    assert!((v / z - p).abs() < 1e-10);
                }
            }
        }
    }
}

#[test]
fn the_bias_of_euler_halves_with_the_step() {
    for system in systems() {
        let lambda = vec![0.5; system.0.terms()];
        let log_z = enumerate::solve(&system.0, &lambda, &NoProgress).unwrap().log_z;
        let bias = |intervals: usize| {
            let v = exact_run(&system, Parametrisation::Barker, Scheme::Euler, intervals);
            v.iter().sum::<f64>().ln() + (v.len() as f64).ln() - log_z
        };
        let (coarse, fine) = (bias(128), bias(256));
        assert!(coarse.abs() > 1e-4, "a bias to speak of: {coarse}");
        assert!((coarse / fine - 2.0).abs() < 0.15, "{coarse} {fine}");
    }
}
