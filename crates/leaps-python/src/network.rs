//! Outputs and gradients of a trained network as arrays.

use leaps::job::evaluate;
use leaps::net::Inputs;
use leaps::problem::Problem;
use numpy::{IntoPyArray, PyArray1, PyReadonlyArray1};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::errors::OrRaise;
use crate::model::Model;
use crate::problem;

/// States and times that belong together.
struct Given<'a> {
    problem: &'a Problem,
    states: &'a [u8],
    times: &'a [f64],
}

impl Model {
    fn given<'a>(&'a self, states: &'a [u8], times: &'a [f64]) -> PyResult<Given<'a>> {
        let Some(problem) = &self.problem else {
            return Err(PyValueError::new_err("the model needs its energy: load(name, target)"));
        };
        problem::check_states(problem, states)?;
        if states.len() != times.len() * problem.target.sites() {
            return Err(PyValueError::new_err("t: must have one time for every state"));
        }
        if let Some(time) = times.iter().find(|time| !(0.0..=1.0).contains(*time)) {
            let words = format!("t: must be from 0 to 1, times along the path, not {time}");
            return Err(PyValueError::new_err(words));
        }
        Ok(Given { problem, states, times })
    }
}

/// Names, shapes and values of the network's averaged parameters: the values of all, one after the other.
#[expect(clippy::type_complexity, reason = "a tuple for Python")]
#[pyfunction]
pub fn parameters<'py>(
    py: Python<'py>,
    model: &Model,
) -> PyResult<(Vec<(String, Vec<usize>)>, Bound<'py, PyArray1<f32>>)> {
    let given = model.given(&[], &[])?;
    let net = model.inner.net(&*given.problem.target).or_raise()?;
    let values = model.inner.parameters(&net).or_raise()?;
    let named = net.tensors().into_iter().map(|tensor| (tensor.name, tensor.shape));
    Ok((named.collect(), values.into_pyarray(py)))
}

/// Outputs at every site, one after the other, and how many a site has.
#[pyfunction]
pub fn forward<'py>(
    py: Python<'py>,
    model: &Model,
    states: PyReadonlyArray1<'_, u8>,
    times: PyReadonlyArray1<'_, f64>,
) -> PyResult<(usize, Bound<'py, PyArray1<f32>>)> {
    let Given { problem, states, times } = model.given(states.as_slice()?, times.as_slice()?)?;
    let done = py.detach(|| {
        let (net, mut evaluator, conditions) = model.inner.evaluator(problem, times.len())?;
        let mut outputs = vec![0.0; states.len() * net.outputs()];
        let inputs = Inputs { states, times, conditions: &conditions, ..Inputs::default() };
        evaluator.forward(inputs, &mut outputs)?;
        Ok((net.outputs(), outputs))
    });
    let (each, outputs) = done.or_raise()?;
    Ok((each, outputs.into_pyarray(py)))
}

/// The gradient of `sum d_out * out` with respect to all parameters.
#[pyfunction]
pub fn gradient<'py>(
    py: Python<'py>,
    model: &Model,
    states: PyReadonlyArray1<'_, u8>,
    times: PyReadonlyArray1<'_, f64>,
    d_out: PyReadonlyArray1<'_, f32>,
) -> PyResult<Bound<'py, PyArray1<f32>>> {
    let Given { problem, states, times } = model.given(states.as_slice()?, times.as_slice()?)?;
    let d_out = d_out.as_slice()?;
    let made = py.detach(|| model.inner.evaluator(problem, times.len()));
    let (net, mut evaluator, conditions) = made.or_raise()?;
    if d_out.len() != states.len() * net.outputs() {
        let words = "d_out: must have the shape of forward(x, t)";
        return Err(PyValueError::new_err(words));
    }
    let mut gradient = vec![0.0; net.parameters()];
    let inputs = Inputs { states, times, conditions: &conditions, ..Inputs::default() };
    py.detach(|| evaluator.gradient(inputs, d_out, &mut gradient)).or_raise()?;
    Ok(gradient.into_pyarray(py))
}

/// What `leaps rates` writes, by its names; values of moves before values of states.
#[pyfunction]
pub fn rates<'py>(
    py: Python<'py>,
    model: &Model,
    states: PyReadonlyArray1<'_, u8>,
    times: PyReadonlyArray1<'_, f64>,
) -> PyResult<Bound<'py, PyDict>> {
    let Given { problem, states, times } = model.given(states.as_slice()?, times.as_slice()?)?;
    let done = py.detach(|| evaluate(&model.inner, problem, states, times));
    if let Some(raised) = model.failure.as_ref().and_then(|failure| failure.take()) {
        return Err(raised);
    }
    let found = done.or_raise()?;
    let all = PyDict::new(py);
    all.set_item("G", found.flux.into_pyarray(py))?;
    all.set_item("out_rates", found.out.into_pyarray(py))?;
    all.set_item("back_rates", found.back.into_pyarray(py))?;
    all.set_item("delta_U", found.changes.into_pyarray(py))?;
    all.set_item("U", found.potential.into_pyarray(py))?;
    all.set_item("dU_dt", found.slope.into_pyarray(py))?;
    all.set_item("dF_dt", found.free.into_pyarray(py))?;
    all.set_item("K", found.balance.into_pyarray(py))?;
    all.set_item("residual", found.residual.into_pyarray(py))?;
    Ok(all)
}
