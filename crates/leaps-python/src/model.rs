//! Trained networks.

use std::path::PathBuf;
use std::sync::Arc;

use leaps::job::{Sampling, Trained, Training};
use leaps::net::NetSpec;
use leaps::problem;
use leaps::results::WalkerResult;
use leaps::spec::RunSpec;
use leaps::store::{self, Found, model_names, unknown_model};
use leaps::target::{Kind, TargetSpec};
use leaps::{Error, file};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use serde_json::json;
use toml::{Table, Value};

use crate::energy::Failure;
use crate::errors::{OrRaise, exception};
use crate::problem::Problem;
use crate::run::Run;
use crate::running::Place;
use crate::settings::table;

/// A network, with what it was trained for.
#[pyclass(frozen, module = "leaps._leaps")]
pub struct Model {
    pub inner: store::Model,
    /// As the user knows it.
    #[pyo3(get)]
    pub name: String,
    /// The settings it stands for: those of its run, where it has one.
    base: RunSpec,
    /// What it was trained on; nothing for a custom energy that nobody has given yet.
    pub problem: Option<problem::Problem>,
    pub failure: Option<Arc<Failure>>,
}

/// The settings of a run, with the target and the path of its model.
fn settings_of(found: &Found, problem: Option<&problem::Problem>) -> leaps::Result<RunSpec> {
    let mut base = RunSpec::default();
    let config = found.directory.as_ref().map(|directory| directory.join("config.toml"));
    if let Some(config) = config
        && let Some(text) = file::if_any(file::read_text(&config))?
    {
        base = RunSpec::parse(&text, &config)?;
    }
    if let Some(problem) = problem {
        base.target = problem.spec.clone().unwrap_or_default();
        base.path = problem.path_spec.clone();
    }
    Ok(base)
}

impl Model {
    /// The model with its name, for jobs.
    pub fn named(&self) -> (store::Model, String) {
        (self.inner.clone(), self.name.clone())
    }

    /// The settings of a sample. A file of an instance takes the place of the whole target but for its temperature, as `--target-file` does.
    fn sampling(&self, settings: &Table) -> leaps::Result<RunSpec> {
        let mut base = self.base.clone();
        let mut settings = settings.clone();
        if settings.contains_key("path") && !settings.contains_key("kind") {
            settings.insert("kind".to_owned(), Kind::File.name().into());
        }
        if settings.get("kind").and_then(Value::as_str) == Some(Kind::File.name()) {
            base.target = TargetSpec { beta: base.target.beta, ..TargetSpec::default() };
        }
        base.with_job("sample", &settings)
    }

    /// What to sample: `given`, else what the model was trained for, with some settings of the target changed.
    fn problem_at(
        &self,
        spec: &RunSpec,
        given: Option<&Problem>,
    ) -> leaps::Result<problem::Problem> {
        let same = spec.target == self.base.target;
        let changed = |advice: &str| {
            let reason = format!("settings of the target cannot be changed here; {advice}");
            Err(Error::not_applicable("the target", reason))
        };
        match (given, &self.problem) {
            (Some(_), _) if !same => changed("give them to the target itself"),
            (Some(given), _) => self.bound_to(given)?.along(&spec.path),
            (None, Some(own)) if same => Ok(own.clone()),
            (None, Some(own)) if own.spec.is_none() => changed(
                "it is an energy of Python, leaps.load(name, target.at(beta)) binds another",
            ),
            (None, Some(_)) => problem::Problem::of(&spec.target.filled()?, &spec.path),
            (None, None) => self.inner.problem(),
        }
    }

    /// A target that is given in place of the model's own. A network that is shown the couplings takes any on a lattice.
    fn bound_to(&self, given: &Problem) -> leaps::Result<problem::Problem> {
        let shown = matches!(self.inner.network, NetSpec::Glass(_));
        if shown && given.inner.target.lattice().is_none() {
            let reason = "they are on no lattice; give leaps.Couplings(J, shape=(8, 8))";
            return Err(Error::not_applicable("a network that is shown couplings", reason));
        }
        Ok(given.inner.clone())
    }
}

#[pymethods]
impl Model {
    /// The model of a directory or of this name.
    #[staticmethod]
    fn load(name: PathBuf, target: Option<&Problem>) -> PyResult<Self> {
        let found = Found::look_up(&name).or_raise()?;
        let found = found.ok_or_else(|| exception(unknown_model("model", &name)))?;
        let problem = match target {
            Some(target) => {
                target
                    .inner
                    .check_same(&found.model.target, &name.display().to_string())
                    .or_raise()?;
                Some(target.inner.clone())
            }
            None if found.model.target["kind"] == "custom" => None,
            None => Some(found.model.problem().or_raise()?),
        };
        let base = settings_of(&found, problem.as_ref()).or_raise()?;
        let failure = target.and_then(|target| target.failure.clone());
        let name = name.display().to_string();
        Ok(Model { inner: found.model, name, base, problem, failure })
    }

    /// Train a network.
    #[staticmethod]
    fn train(
        py: Python<'_>,
        problem: &Problem,
        directory: Option<PathBuf>,
        settings: &Bound<'_, PyDict>,
        place: Place,
    ) -> PyResult<Self> {
        let target = problem.inner.spec.clone().unwrap_or_default();
        let path = problem.inner.path_spec.clone();
        let plain = RunSpec { target, path, ..RunSpec::default() };
        let spec = plain.with_job("train", &table(settings)?).or_raise()?;
        spec.path.check().or_raise()?;
        let inner = problem.inner.clone().along(&spec.path).or_raise()?;
        let mut job = Training::of(spec.clone(), inner.clone());
        job.directory = directory.clone();
        if let Some(from) = &spec.start.from {
            job = job.from(store::Model::open(from).or_raise()?);
        }
        let failure = problem.failure.clone();
        // A network in memory may come back as it was when it was stopped.
        let says = |trained: &Trained| trained.model.training.steps < spec.train.steps;
        let trained =
            place.run(py, failure.as_ref(), says, |context, watch| job.run_in(context, watch))?;
        let name = directory.as_ref().map_or_else(String::new, |d| d.display().to_string());
        // The settings it is sampled with are those that loading it would find.
        let found = Found { model: trained.model, directory };
        let base = settings_of(&found, Some(&inner)).or_raise()?;
        Ok(Model { inner: found.model, name, base, problem: Some(inner), failure })
    }

    /// Let walkers follow the network.
    fn sample(
        &self,
        py: Python<'_>,
        target: Option<&Problem>,
        settings: &Bound<'_, PyDict>,
        place: Place,
    ) -> PyResult<Run> {
        let spec = self.sampling(&table(settings)?).or_raise()?;
        let inner = self.problem_at(&spec, target).or_raise()?;
        let failure = target.map_or(&self.failure, |target| &target.failure).clone();
        let problem = Problem { inner, failure };
        let job = Sampling::of(&spec, problem.inner.clone(), self.inner.clone(), &self.name);
        let failure = problem.failure.as_ref();
        let says = |run: &leaps::job::Run<WalkerResult>| run.interrupted;
        let run = place.run(py, failure, says, |context, _| job.run_in(context))?;
        Run::walkers(py, &problem, run)
    }

    /// Write the model to a directory.
    fn save(&self, directory: PathBuf) -> PyResult<()> {
        self.inner.save(&directory).or_raise()
    }

    /// What the model was trained on.
    #[getter]
    fn target(&self) -> PyResult<Problem> {
        match &self.problem {
            Some(inner) => Ok(Problem { inner: inner.clone(), failure: self.failure.clone() }),
            None => Err(exception(self.inner.problem().err().unwrap_or(Error::Interrupted))),
        }
    }

    /// Network, target, path and training, as JSON.
    #[getter]
    fn description(&self) -> String {
        let model = &self.inner;
        json!({
            "network": model.network,
            "parametrisation": model.parametrisation,
            "target": model.target,
            "path": model.path,
            "family": model.family,
            "training": model.training,
        })
        .to_string()
    }
}

/// The names of all models that have one.
#[pyfunction]
pub fn models() -> Vec<String> {
    model_names()
}
