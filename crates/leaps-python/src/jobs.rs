//! The jobs that sample a target or solve it.

use std::time::Duration;

use leaps::exact::Method;
use leaps::job::{Annealing, Chains, FreeEnergies, MinimizeSpec, Minimizing, Solving};
use leaps::path::Strength;
use leaps::problem;
use leaps::results::{ChainResult, FreeEnergyResult, MinimumResult, WalkerResult};
use leaps::spec::RunSpec;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use toml::Table;

use crate::errors::OrRaise;
use crate::model::Model;
use crate::problem::Problem;
use crate::run::Run;
use crate::running::Place;
use crate::settings::table;

/// The settings of a job, and the problem along their path.
fn configured(
    job: &str,
    problem: &Problem,
    settings: &Bound<'_, PyDict>,
) -> PyResult<(RunSpec, problem::Problem)> {
    let problem = problem.inner.clone();
    let target = problem.spec.clone().unwrap_or_default();
    let base = RunSpec { target, path: problem.path_spec.clone(), ..RunSpec::default() };
    let spec = base.with_job(job, &table(settings)?).or_raise()?;
    spec.path.check().or_raise()?;
    let problem = problem.along(&spec.path).or_raise()?;
    Ok((spec, problem))
}

/// How a target is solved, and how many samples are drawn.
#[derive(FromPyObject)]
pub struct Question {
    #[pyo3(item)]
    method: Option<String>,
    #[pyo3(item)]
    samples: usize,
}

/// Solve a target exactly, and draw samples.
#[pyfunction]
pub fn exact(
    py: Python<'_>,
    problem: &Problem,
    question: Question,
    settings: &Bound<'_, PyDict>,
    place: Place,
) -> PyResult<Run> {
    let (spec, inner) = configured("exact", problem, settings)?;
    let Question { method, samples } = question;
    let method: Option<Method> = method.as_deref().map(str::parse).transpose().or_raise()?;
    let job = Solving { method, samples, seed: spec.seed, ..Solving::new(inner) };
    let failure = problem.failure.as_ref();
    let run = place.run(py, failure, |_| false, |context, _| job.run_in(context))?;
    Run::exact(py, problem, run)
}

fn annealed(
    py: Python<'_>,
    problem: &Problem,
    settings: &Bound<'_, PyDict>,
    place: &Place,
    resample: bool,
) -> PyResult<Run> {
    let (spec, inner) = configured(if resample { "smc" } else { "ais" }, problem, settings)?;
    let job = Annealing::of(&spec, inner, resample);
    let failure = problem.failure.as_ref();
    let says = |run: &leaps::job::Run<WalkerResult>| run.interrupted;
    let run = place.run(py, failure, says, |context, _| job.run_in(context))?;
    Run::walkers(py, problem, run)
}

/// Annealed importance sampling.
#[pyfunction]
pub fn ais(
    py: Python<'_>,
    problem: &Problem,
    settings: &Bound<'_, PyDict>,
    place: Place,
) -> PyResult<Run> {
    annealed(py, problem, settings, &place, false)
}

/// Sequential Monte Carlo.
#[pyfunction]
pub fn smc(
    py: Python<'_>,
    problem: &Problem,
    settings: &Bound<'_, PyDict>,
    place: Place,
) -> PyResult<Run> {
    annealed(py, problem, settings, &place, true)
}

/// Markov chains.
#[pyfunction]
pub fn mcmc(
    py: Python<'_>,
    problem: &Problem,
    keep: bool,
    settings: &Bound<'_, PyDict>,
    place: Place,
) -> PyResult<Run> {
    let (spec, inner) = configured("mcmc", problem, settings)?;
    let job = Chains { keep, ..Chains::of(&spec, inner) };
    let failure = problem.failure.as_ref();
    let says = |run: &leaps::job::Run<ChainResult>| run.interrupted;
    let run = place.run(py, failure, says, |context, _| job.run_in(context))?;
    Run::chains(py, problem, run)
}

/// Where free energies are wanted, and how.
#[derive(FromPyObject)]
pub struct Wanted {
    #[pyo3(item)]
    betas: Vec<f64>,
    #[pyo3(item)]
    fields: Vec<f64>,
    /// The key of a target that `fields` are values of.
    #[pyo3(item)]
    of: String,
    #[pyo3(item)]
    method: String,
    #[pyo3(item)]
    model: Option<Py<Model>>,
}

/// Free energies over a grid of temperatures and fields, with a network or without.
#[pyfunction]
pub fn free_energy(
    py: Python<'_>,
    problem: &Problem,
    wanted: Wanted,
    settings: &Bound<'_, PyDict>,
    place: Place,
) -> PyResult<Run> {
    let (spec, inner) = configured("free-energy", problem, settings)?;
    let given: Table = table(settings)?;
    let job = FreeEnergies {
        betas: wanted.betas,
        fields: wanted.fields,
        of: Strength::ALL
            .into_iter()
            .find(|strength| strength.name() == wanted.of)
            .unwrap_or_default(),
        method: wanted.method.parse().or_raise()?,
        model: wanted.model.as_ref().map(|model| model.get().named()),
        fit_ladder: !given.contains_key("temperatures") && !given.contains_key("betas"),
        spec,
        ..FreeEnergies::new(inner)
    };
    job.check().or_raise()?;
    let failure = problem.failure.as_ref();
    let says = |run: &leaps::job::Run<FreeEnergyResult>| run.interrupted;
    let run = place.run(py, failure, says, |context, watch| job.run_in(context, watch))?;
    Run::free_energies(py, problem, run)
}

/// How the lowest energy is looked for; what is left out is as the library has it.
#[derive(FromPyObject)]
pub struct Search {
    #[pyo3(item)]
    method: String,
    #[pyo3(item)]
    walkers: Option<usize>,
    #[pyo3(item)]
    sweeps: Option<usize>,
    #[pyo3(item)]
    temperatures: Option<usize>,
    #[pyo3(item)]
    beta: Option<f64>,
    #[pyo3(item)]
    restarts: Option<usize>,
    #[pyo3(item)]
    time_limit: Option<f64>,
    #[pyo3(item)]
    target_energy: Option<f64>,
    #[pyo3(item)]
    model: Option<Py<Model>>,
}

/// The lowest energy and its state.
#[pyfunction]
pub fn minimize(
    py: Python<'_>,
    problem: &Problem,
    search: Search,
    settings: &Bound<'_, PyDict>,
    place: Place,
) -> PyResult<Run> {
    let (spec, inner) = configured("minimize", problem, settings)?;
    let plain = MinimizeSpec::default();
    let time_limit = search.time_limit.map(Duration::try_from_secs_f64).transpose();
    let job = Minimizing {
        settings: MinimizeSpec {
            method: search.method.parse().or_raise()?,
            restarts: search.restarts,
            target_energy: search.target_energy,
            walkers: search.walkers.unwrap_or(plain.walkers),
            sweeps: search.sweeps.unwrap_or(plain.sweeps),
            temperatures: search.temperatures.unwrap_or(plain.temperatures),
        },
        model: search.model.as_ref().map(|model| model.get().named()),
        beta: search.beta,
        time_limit: time_limit
            .map_err(|error| PyValueError::new_err(format!("time_limit: {error}")))?,
        seed: spec.seed,
        ..Minimizing::new(inner)
    };
    let failure = problem.failure.as_ref();
    let says = |run: &leaps::job::Run<MinimumResult>| run.interrupted();
    let run = place.run(py, failure, says, |context, watch| job.run_in(context, watch))?;
    Run::minimum(py, problem, run)
}
