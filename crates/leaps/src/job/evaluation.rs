//! All outputs of a trained network at given states and times, to examine it from outside.

use rayon::prelude::*;

use crate::Result;
use crate::device::Placement;
use crate::net::{Evaluator, Inputs, Net};
use crate::problem::Problem;
use crate::rates::{Parametrisation, flux};
use crate::store::Model;
use crate::target::potential;

/// What the network says, one number for each state, or for each move: `[state][value][site]`, for two values
/// `[state][site]`.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Evaluated {
    /// The flux of every move.
    pub flux: Vec<f32>,
    /// The rate of every move.
    pub out: Vec<f64>,
    /// The rate of every move in the time reversal.
    pub back: Vec<f64>,
    /// The change of $U_t$ by every move.
    pub changes: Vec<f64>,
    /// $U_t$ of every state.
    pub potential: Vec<f64>,
    /// $\partial_t U_t$ of every state.
    pub slope: Vec<f64>,
    /// $\partial_t F_t$ as the model knows it.
    pub free: Vec<f64>,
    /// The rate of the log-weight, $K$.
    pub balance: Vec<f64>,
    /// $K + \partial_t F_t$.
    pub residual: Vec<f64>,
}

/// States that the network is given at a time.
const BATCH: usize = 1024;

impl Model {
    /// What the network is conditioned on for a problem beside the time; nothing unless it was trained for a family.
    pub fn condition(&self, problem: &Problem) -> Result<Vec<f64>> {
        match (&self.family, &problem.spec) {
            (Some(ranges), Some(spec)) => spec.condition(ranges),
            (Some(ranges), None) => ranges.condition(problem.beta, 0.0),
            (None, _) => Ok(Vec::new()),
        }
    }

    /// The averaged network for a problem with its parameters on the CPU, and what it is conditioned on at every one of `states` states.
    pub fn evaluator(
        &self,
        problem: &Problem,
        states: usize,
    ) -> Result<(Net, Box<dyn Evaluator>, Vec<f64>)> {
        let net = self.net(&*problem.target)?;
        let mut evaluator = net.evaluator(&Placement::Cpu, BATCH)?;
        evaluator.load(&self.parameters(&net)?)?;
        Ok((net, evaluator, self.condition(problem)?.repeat(states)))
    }
}

/// Evaluate the averaged network of `model` at states `[state * sites + site]` of a problem, each at its time.
///
/// ```
/// # #[cfg(feature = "models")] {
/// use leaps::job::evaluate;
/// use leaps::store::Model;
///
/// let model = Model::open("ising-8-critical")?;
/// let found = evaluate(&model, &model.problem()?, &[0; 64], &[0.5])?;
/// assert_eq!((found.out.len(), found.residual.len()), (64, 1));
/// # }
/// # Ok::<(), leaps::Error>(())
/// ```
pub fn evaluate(
    model: &Model,
    problem: &Problem,
    states: &[u8],
    times: &[f64],
) -> Result<Evaluated> {
    let (net, mut evaluator, conditions) = model.evaluator(problem, times.len())?;
    let free = model.free(&*problem.target)?;
    let (sites, size) = (net.sites(), net.sites() * net.outputs());
    let mut outputs = vec![0.0; times.len() * size];
    let inputs = Inputs { states, times, conditions: &conditions, ..Inputs::default() };
    evaluator.forward(inputs, &mut outputs)?;
    let state = State { outputs: net.outputs(), parametrisation: model.parametrisation, problem };
    let looked: Vec<Evaluated> = states
        .par_chunks_exact(sites)
        .zip(times)
        .zip(outputs.par_chunks_exact(size))
        .map(|((x, &t), outputs)| state.look(outputs, x, t))
        .collect();
    let mut all = Evaluated::default();
    for state in looked {
        all.flux.extend(state.flux);
        all.out.extend(state.out);
        all.back.extend(state.back);
        all.changes.extend(state.changes);
        all.potential.extend(state.potential);
        all.slope.extend(state.slope);
        all.balance.extend(state.balance);
    }
    let parameters = model.free_parameters(&free)?;
    let condition = model.condition(problem)?;
    let rates = free.rates_at(&parameters, times, |_| &condition);
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
