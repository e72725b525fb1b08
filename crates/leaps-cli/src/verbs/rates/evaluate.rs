//! All outputs of a network for given states.

use leaps::Result;
use leaps::net::{Net, Worker};
use leaps::rates::{Parametrisation, flux};
use leaps::store::Model;
use leaps::target::potential;
use rayon::prelude::*;

use super::input::Input;
use leaps::problem::Problem;

/// What the network says, one number for each state, or for each move: `[state][value][site]`, for two values
/// `[state][site]`.
#[derive(Debug, Default)]
pub struct Evaluated {
    pub flux: Vec<f32>,
    pub out: Vec<f64>,
    pub back: Vec<f64>,
    pub changes: Vec<f64>,
    pub potential: Vec<f64>,
    pub slope: Vec<f64>,
    pub free: Vec<f64>,
    pub balance: Vec<f64>,
    pub residual: Vec<f64>,
}

/// States that share a network pass.
const LANES: usize = 16;

/// Evaluate the averaged network of `model`, conditioned on `condition`.
pub fn evaluate(
    model: &Model,
    problem: &Problem,
    condition: &[f64],
    input: &Input,
) -> Result<Evaluated> {
    let (net, free) = (model.net(&*problem.target)?, model.free(&*problem.target)?);
    let packed = net.pack(&model.parameters(&net)?);
    let sites = problem.target.sites();
    let groups: Vec<Evaluated> = input
        .states
        .par_chunks(LANES * sites)
        .zip(input.times.par_chunks(LANES))
        .map_init(
            || net.forward_worker(),
            |worker, (states, times)| {
                let group = Group { net: &net, parametrisation: model.parametrisation, problem };
                for (lane, (x, &t)) in states.chunks_exact(sites).zip(times).enumerate() {
                    worker.set_condition(lane, condition);
                    worker.set(lane, x, t);
                }
                net.forward(&packed, worker);
                let mut found = Evaluated::default();
                for (lane, (x, &t)) in states.chunks_exact(sites).zip(times).enumerate() {
                    group.look(worker, lane, x, t, &mut found);
                }
                found
            },
        )
        .collect();
    let mut all = Evaluated::default();
    for group in groups {
        all.flux.extend(group.flux);
        all.out.extend(group.out);
        all.back.extend(group.back);
        all.changes.extend(group.changes);
        all.potential.extend(group.potential);
        all.slope.extend(group.slope);
        all.balance.extend(group.balance);
    }
    let parameters = model.free_parameters(&free)?;
    let rates = free.rates_at(&parameters, &input.times, |_| condition);
    all.free = rates.into_iter().map(f64::from).collect();
    all.residual = all.balance.iter().zip(&all.free).map(|(k, f)| k + f).collect();
    Ok(all)
}

struct Group<'a> {
    net: &'a Net,
    parametrisation: Parametrisation,
    problem: &'a Problem,
}

impl Group<'_> {
    /// Add what the network says about the state in a lane.
    fn look(&self, worker: &Worker, lane: usize, x: &[u8], t: f64, found: &mut Evaluated) {
        let (target, path) = (&*self.problem.target, &self.problem.path);
        let (q, outputs) = (target.q(), self.net.outputs());
        let (lambda, slope) = (path.lambda(t), path.slope(t));
        let mut changes = vec![0.0; x.len() * q];
        target.changes(&lambda, &mut x.to_vec(), &mut changes);
        let mut sum = 0.0;
        // Two values have one move; more have one for each value, the one in place being none.
        for value in if q == 2 { 0..1 } else { 0..q } {
            for (site, &own) in x.iter().enumerate() {
                let value = if q == 2 { 1 - own } else { value as u8 };
                let row: Vec<f32> =
                    (0..outputs).map(|s| worker.output(lane, site * outputs + s)).collect();
                let change = changes[site * q + value as usize];
                let (j, (out, back)) = match value == own {
                    true => (0.0, (0.0, 0.0)),
                    false => {
                        let j = flux(&row, own, value);
                        (j, self.parametrisation.rates(j, change))
                    }
                };
                found.flux.push(j as f32);
                found.out.push(out);
                found.back.push(back);
                found.changes.push(change);
                sum += out - back;
            }
        }
        let du_dt = potential(target, &slope, x);
        found.potential.push(potential(target, &lambda, x));
        found.slope.push(du_dt);
        found.balance.push(sum - du_dt);
    }
}
