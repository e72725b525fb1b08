//! All outputs of a network for given states.

use leaps::Result;
use leaps::device::Placement;
use leaps::net::Inputs;
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

/// States that the network is given at a time.
const BATCH: usize = 1024;

/// Evaluate the averaged network of `model`, conditioned on `condition`.
pub fn evaluate(
    model: &Model,
    problem: &Problem,
    condition: &[f64],
    input: &Input,
) -> Result<Evaluated> {
    let (net, free) = (model.net(&*problem.target)?, model.free(&*problem.target)?);
    let (sites, size) = (net.sites(), net.sites() * net.outputs());
    let conditions = condition.repeat(input.times.len());
    let x = Inputs { states: &input.states, times: &input.times, conditions: &conditions };
    let mut outputs = vec![0.0; input.times.len() * size];
    let mut evaluator = net.evaluator(&Placement::Cpu, BATCH)?;
    evaluator.load(&model.parameters(&net)?)?;
    evaluator.forward(x, &mut outputs)?;
    let state = State { outputs: net.outputs(), parametrisation: model.parametrisation, problem };
    let states: Vec<Evaluated> = input
        .states
        .par_chunks_exact(sites)
        .zip(&input.times)
        .zip(outputs.par_chunks_exact(size))
        .map(|((x, &t), outputs)| state.look(outputs, x, t))
        .collect();
    let mut all = Evaluated::default();
    for state in states {
        all.flux.extend(state.flux);
        all.out.extend(state.out);
        all.back.extend(state.back);
        all.changes.extend(state.changes);
        all.potential.extend(state.potential);
        all.slope.extend(state.slope);
        all.balance.extend(state.balance);
    }
    let parameters = model.free_parameters(&free)?;
    let rates = free.rates_at(&parameters, &input.times, |_| condition);
    all.free = rates.into_iter().map(f64::from).collect();
    all.residual = all.balance.iter().zip(&all.free).map(|(k, f)| k + f).collect();
    Ok(all)
}

/// What turns the outputs of a state into numbers about it.
struct State<'a> {
    outputs: usize,
    parametrisation: Parametrisation,
    problem: &'a Problem,
}

impl State<'_> {
    /// What the network says about a state, from its outputs there.
    fn look(&self, outputs: &[f32], x: &[u8], t: f64) -> Evaluated {
        let mut found = Evaluated::default();
        let (target, path) = (&*self.problem.target, &self.problem.path);
        let q = target.q();
        let (lambda, slope) = (path.lambda(t), path.slope(t));
        let mut changes = vec![0.0; x.len() * q];
        target.changes(&lambda, &mut x.to_vec(), &mut changes);
        let mut sum = 0.0;
        // Two values have one move; more have one for each value, the one in place being none.
        for value in if q == 2 { 0..1 } else { 0..q } {
            for (site, &own) in x.iter().enumerate() {
                let value = if q == 2 { 1 - own } else { value as u8 };
                let row = &outputs[site * self.outputs..][..self.outputs];
                let change = changes[site * q + value as usize];
                let (j, (out, back)) = match value == own {
                    true => (0.0, (0.0, 0.0)),
                    false => {
                        let j = flux(row, own, value);
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
        found
    }
}
