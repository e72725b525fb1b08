//! What a job found: the result as the program prints it, and states with their weights as arrays.

use leaps::job::{self, Samples};
use leaps::results::{
    ChainResult, ExactResult, FreeEnergyResult, MinimumResult, SamplerResult, WalkerResult,
};
use leaps_report::{free_energy, run as report};
use numpy::{IntoPyArray, PyArray1, PyArrayDyn, PyArrayMethods};
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use serde::Serialize;

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
enum Found {
    Exact,
    Sampler(SamplerResult),
    FreeEnergies(String, FreeEnergyResult),
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
        let found = (record(problem, &run)?, Vec::new(), Found::Exact);
        let rows = [run.samples.log_weights.len()];
        Self::new(py, problem, found, run.samples, &rows)
    }

    /// Of the lowest energy, with the state that every restart found.
    pub fn minimum(
        py: Python<'_>,
        problem: &Problem,
        run: job::Run<MinimumResult>,
    ) -> PyResult<Self> {
        let found = (record(problem, &run)?, Vec::new(), Found::Exact);
        let rows = [run.samples.log_weights.len()];
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

#[pymethods]
impl Run {
    /// Figures of the result, as SVG text.
    fn figures(&self) -> Vec<String> {
        match &self.found {
            Found::Exact => Vec::new(),
            Found::Sampler(result) => {
                report::result_figures(result).into_iter().map(|figure| figure.element).collect()
            }
            Found::FreeEnergies(title, result) => vec![free_energy::figure(title, result)],
        }
    }
}
