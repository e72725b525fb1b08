//! A job's run: the result as the program prints it, and states with their weights as arrays.

use leaps::job::{self, Samples};
use leaps::results::{
    ChainResult, ExactResult, FreeEnergyResult, MinimumResult, Origin, SamplerResult, WalkerResult,
};
use leaps_report::{free_energy, run as report};
use numpy::{IntoPyArray, PyArray1, PyArrayDyn, PyArrayMethods};
use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use serde::{Deserialize, Serialize};

use crate::problem::Problem;

/// A finished job.
#[pyclass(frozen, module = "leaps._leaps")]
pub struct Run {
    /// The result with its origin, as JSON.
    #[pyo3(get)]
    record: String,
    /// Reasons to doubt the result, in words.
    #[pyo3(get)]
    doubts: Vec<String>,
    /// States, shaped `[walker, *lattice]` or `[chain, draw, *lattice]`.
    #[pyo3(get)]
    states: Option<Py<PyArrayDyn<u8>>>,
    /// Log-weights, `[walker]` or `[chain, draw]`.
    #[pyo3(get)]
    log_weights: Option<Py<PyArrayDyn<f64>>>,
    /// Energies, `[walker]` or `[chain, draw]`.
    #[pyo3(get)]
    energies: Option<Py<PyArrayDyn<f64>>>,
    /// Values of a site.
    #[pyo3(get)]
    q: usize,
    found: Found,
}

/// The result, for figures.
#[derive(Serialize, Deserialize)]
enum Found {
    /// Of what has no figures.
    Plain,
    Sampler(SamplerResult),
    FreeEnergies(String, FreeEnergyResult),
    Minimum(Box<MinimumResult>),
}

fn record<T: Serialize>(problem: &Problem, run: &job::Run<T>) -> PyResult<String> {
    let record = serde_json::to_string(&run.record(&problem.inner));
    record.map_err(|error| PyRuntimeError::new_err(error.to_string()))
}

impl Run {
    fn new(
        py: Python<'_>,
        problem: &Problem,
        (record, doubts, found): (String, Vec<String>, Found),
        samples: Samples,
        rows: &[usize],
    ) -> PyResult<Self> {
        let (mut states, mut log_weights, mut energies) = (None, None, None);
        if !samples.states.is_empty() {
            // A vector becomes the memory of its array; reshaping makes a view of it.
            let shape = [rows, &problem.sides()].concat();
            states = Some(samples.states.into_pyarray(py).reshape(shape)?.unbind());
            let numbers = |numbers: Vec<f64>| -> PyResult<_> {
                let array: Bound<'_, PyArray1<f64>> = numbers.into_pyarray(py);
                Ok(Some(array.reshape(rows.to_vec())?.unbind()))
            };
            log_weights = numbers(samples.log_weights)?;
            energies = numbers(samples.energies)?;
        }
        let q = problem.inner.target.q();
        Ok(Run { record, doubts, states, log_weights, energies, q, found })
    }

    /// Of weighted walkers.
    pub fn walkers(
        py: Python<'_>,
        problem: &Problem,
        run: job::Run<WalkerResult>,
    ) -> PyResult<Self> {
        let record = record(problem, &run)?;
        let rows = [run.samples.log_weights.len()];
        let result = SamplerResult::Walkers(Box::new(run.result));
        let found = (record, result.doubts(), Found::Sampler(result));
        Self::new(py, problem, found, run.samples, &rows)
    }

    /// Of Markov chains.
    pub fn chains(py: Python<'_>, problem: &Problem, run: job::Run<ChainResult>) -> PyResult<Self> {
        let record = record(problem, &run)?;
        let draws = (run.steps / run.thin).max(1);
        let rows = [run.samples.log_weights.len() / draws, draws];
        let result = SamplerResult::Chains(Box::new(run.result));
        let found = (record, result.doubts(), Found::Sampler(result));
        Self::new(py, problem, found, run.samples, &rows)
    }

    /// Of an exact answer.
    pub fn exact(py: Python<'_>, problem: &Problem, run: job::Run<ExactResult>) -> PyResult<Self> {
        let found = (record(problem, &run)?, Vec::new(), Found::Plain);
        let rows = [run.samples.log_weights.len()];
        Self::new(py, problem, found, run.samples, &rows)
    }

    /// Of the lowest energy, with the state that every restart found.
    pub fn minimum(
        py: Python<'_>,
        problem: &Problem,
        run: job::Run<MinimumResult>,
    ) -> PyResult<Self> {
        let record = record(problem, &run)?;
        let rows = [run.samples.log_weights.len()];
        let found = (record, Vec::new(), Found::Minimum(Box::new(run.result)));
        Self::new(py, problem, found, run.samples, &rows)
    }

    /// Of free energies over a grid.
    pub fn free_energies(
        py: Python<'_>,
        problem: &Problem,
        run: job::Run<FreeEnergyResult>,
    ) -> PyResult<Self> {
        let record = record(problem, &run)?;
        let doubts = run.result.warnings.clone();
        let found = Found::FreeEnergies(problem.inner.description.clone(), run.result);
        Self::new(py, problem, (record, doubts, found), run.samples, &[0])
    }
}

/// What a pickle holds: arrays stay arrays.
type Pickled = (
    String,
    Vec<String>,
    Option<Py<PyArrayDyn<u8>>>,
    Option<Py<PyArrayDyn<f64>>>,
    Option<Py<PyArrayDyn<f64>>>,
    usize,
    String,
);

#[pymethods]
impl Run {
    /// A job that was pickled.
    #[new]
    fn unpickled(parts: Pickled) -> PyResult<Self> {
        let (record, doubts, states, log_weights, energies, q, found) = parts;
        let found = serde_json::from_str(&found).map_err(|error| {
            PyValueError::new_err(format!("the pickle is of another version of leaps: {error}"))
        })?;
        Ok(Run { record, doubts, states, log_weights, energies, q, found })
    }

    /// What a pickle holds.
    fn __getnewargs__(&self, py: Python<'_>) -> PyResult<(Pickled,)> {
        let found = serde_json::to_string(&self.found)
            .map_err(|error| PyRuntimeError::new_err(error.to_string()))?;
        let numbers = |array: &Option<Py<PyArrayDyn<f64>>>| array.as_ref().map(|a| a.clone_ref(py));
        let states = self.states.as_ref().map(|array| array.clone_ref(py));
        let (log_weights, energies) = (numbers(&self.log_weights), numbers(&self.energies));
        let (record, doubts) = (self.record.clone(), self.doubts.clone());
        Ok(((record, doubts, states, log_weights, energies, self.q, found),))
    }

    /// Figures of the result, as SVG text.
    fn figures(&self) -> Vec<String> {
        match &self.found {
            Found::Plain => Vec::new(),
            Found::Sampler(result) => {
                report::result_figures(result).into_iter().map(|figure| figure.element).collect()
            }
            Found::FreeEnergies(title, result) => vec![free_energy::figure(title, result)],
            Found::Minimum(search) => {
                let origin = serde_json::from_str::<Origin>(&self.record).ok();
                let target = origin.and_then(|origin| origin.spec());
                let figures = report::minimum_figures(search, target.as_ref());
                figures.into_iter().map(|figure| figure.element).collect()
            }
        }
    }
}
