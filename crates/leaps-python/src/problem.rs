//! Targets with their temperatures: built-in ones, couplings from arrays, and Python functions.

use std::collections::HashSet;
use std::sync::Arc;

use leaps::problem;
use leaps::spec::RunSpec;
use leaps::target::{Boundary, Instance, Interaction, Lattice, Pairwise, Variables};
use leaps::{Error, path::PathSpec};
use numpy::{IntoPyArray, PyArray1, PyReadonlyArray1};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use toml::{Table, Value};

use crate::energy::{Failure, Parts};
use crate::errors::{OrRaise, exception};
use crate::settings::table;

/// What to sample, and the path to it.
#[pyclass(frozen, module = "leaps._leaps")]
pub struct Problem {
    pub inner: problem::Problem,
    /// Where exceptions of a Python energy go.
    pub failure: Option<Arc<Failure>>,
}

impl From<problem::Problem> for Problem {
    fn from(inner: problem::Problem) -> Self {
        Problem { inner, failure: None }
    }
}

impl Problem {
    /// Sides of the lattice, or the number of sites.
    pub fn sides(&self) -> Vec<usize> {
        let target = &self.inner.target;
        target.lattice().map_or_else(|| vec![target.sites()], |lattice| lattice.shape().to_vec())
    }
}

/// The energy of couplings on a lattice.
fn instance(lattice: Lattice, edges: Vec<(u32, u32, f64)>) -> Instance {
    Instance {
        variables: Variables::Spins,
        sites: lattice.sites(),
        pairs: edges.into_iter().map(|(i, j, coupling)| (i, j, -coupling)).collect(),
        clusters: Vec::new(),
        fields: Vec::new(),
        constant: 0.0,
        lattice: Some(lattice),
    }
}

/// The target of an instance whose pairs are to be neighbours on its lattice.
fn placed(instance: Instance) -> leaps::Result<Pairwise> {
    let sorted = |i: u32, j: u32| (i.min(j), i.max(j));
    let bonds = instance.lattice.iter().flat_map(Lattice::bonds);
    let bonds: HashSet<(u32, u32)> = bonds.map(|(i, j)| sorted(i, j)).collect();
    let other = instance.pairs.iter().any(|&(i, j, _)| !bonds.contains(&sorted(i, j)));
    if other || instance.recognised().is_none() {
        let condition =
            "the lattice on which all couplings join nearest neighbours, sites numbered row by row";
        let shape =
            instance.lattice.map_or_else(String::new, |lattice| format!("{:?}", lattice.shape()));
        return Err(Error::invalid("shape", shape, condition, "leave it out for another graph"));
    }
    instance.model()
}

/// Refuse what are no states of a problem, one after the other.
pub fn check_states(problem: &problem::Problem, states: &[u8]) -> PyResult<()> {
    let (sites, q) = (problem.target.sites(), problem.target.q());
    if !states.len().is_multiple_of(sites) {
        let words = format!("x: must be states of {sites} sites, not {} values", states.len());
        return Err(PyValueError::new_err(words));
    }
    match states.iter().find(|&&value| value as usize >= q) {
        Some(value) => {
            let words = format!("x: must hold values below {q}, not {value}");
            Err(PyValueError::new_err(words))
        }
        None => Ok(()),
    }
}

#[pymethods]
impl Problem {
    /// A target of the library's own, by the keys of the section `[target]`.
    #[staticmethod]
    fn built_in(settings: &Bound<'_, PyDict>) -> PyResult<Self> {
        let section = Table::from_iter([("target".to_owned(), Value::Table(table(settings)?))]);
        let spec = RunSpec::from_table(&section).or_raise()?;
        let spec = spec.target.filled().or_raise()?;
        problem::Problem::of(&spec, &PathSpec::default()).or_raise().map(Self::from)
    }

    /// Couplings `(i, j, J)` and fields from arrays, on a lattice if there is one.
    #[staticmethod]
    fn couplings(
        graph: Graph,
        edges: (PyReadonlyArray1<'_, u32>, PyReadonlyArray1<'_, u32>, PyReadonlyArray1<'_, f64>),
        fields: Option<PyReadonlyArray1<'_, f64>>,
    ) -> PyResult<Self> {
        let Graph { potts, sites, q, shape, periodic, beta } = graph;
        let (from, to, strength) = (edges.0.as_slice()?, edges.1.as_slice()?, edges.2.as_slice()?);
        if from.len() != to.len() || from.len() != strength.len() {
            let words = "edges: must have one coupling for every pair of sites";
            return Err(PyValueError::new_err(words));
        }
        let ends = from.iter().zip(to);
        let edges: Vec<_> = ends.zip(strength).map(|((&i, &j), &s)| (i, j, s)).collect();
        let interaction = if potts { Interaction::Potts } else { Interaction::Ising };
        let mut model = match shape {
            None => Pairwise::from_edges(interaction, sites, q, &edges).or_raise()?,
            Some(shape) => {
                let boundary = if periodic { Boundary::Periodic } else { Boundary::Free };
                let lattice = Lattice::new(&shape, boundary).or_raise()?;
                let variables = if potts { Variables::Potts(q) } else { Variables::Spins };
                placed(Instance { variables, ..instance(lattice, edges) }).or_raise()?
            }
        };
        if let Some(fields) = fields {
            model = model.with_fields(fields.as_slice()?).or_raise()?;
        }
        problem::Problem::new(model, beta).or_raise().map(Self::from)
    }

    /// A Python function as an energy; see `leaps.Energy`.
    #[staticmethod]
    fn custom(
        energy: Py<PyAny>,
        delta: Option<Py<PyAny>>,
        asarray: Py<PyAny>,
        settings: Custom,
    ) -> PyResult<Self> {
        let Custom { shape, lattice, periodic, q, beta, name, version } = settings;
        let sites = shape.iter().try_fold(1usize, |sites, &side| sites.checked_mul(side));
        let Some(sites) = sites.filter(|&sites| sites > 0) else {
            let advice = "give sites=16 or shape=(4, 4)";
            return Err(exception(Error::invalid("sites", 0, "at least 1", advice)));
        };
        let (mut target, failure) = Parts { energy, delta, asarray, sites, q, name }.build();
        if lattice {
            let boundary = if periodic { Boundary::Periodic } else { Boundary::Free };
            target = target.on_lattice(Lattice::new(&shape, boundary).or_raise()?);
        }
        if let Some(version) = version {
            target = target.version(version);
        }
        let checked = target.check().and_then(|()| problem::Problem::new(target, beta));
        match (checked, failure.take()) {
            (_, Some(raised)) => Err(raised),
            (Ok(inner), None) => Ok(Problem { inner, failure: Some(failure) }),
            (Err(error), None) => Err(exception(error)),
        }
    }

    /// The same energy at another inverse temperature and, if one is given, in another uniform field.
    #[pyo3(signature = (beta, field=None))]
    fn at(&self, beta: f64, field: Option<f64>) -> PyResult<Self> {
        let inner = self.inner.at(beta, field).or_raise()?;
        Ok(Problem { inner, failure: self.failure.clone() })
    }

    /// The energies of states that lie one after the other.
    fn energies<'py>(
        &self,
        py: Python<'py>,
        states: PyReadonlyArray1<'_, u8>,
    ) -> PyResult<Bound<'py, PyArray1<f64>>> {
        // A copy: other threads go on, and may change the array.
        let states = states.as_slice()?.to_vec();
        check_states(&self.inner, &states)?;
        let target = &*self.inner.target;
        let terms = target.terms();
        let mut energies = vec![0.0; states.len() / target.sites() * terms];
        let done = py.detach(|| target.energies(&states, &mut energies));
        if let Some(raised) = self.failure.as_ref().and_then(|failure| failure.take()) {
            return Err(raised);
        }
        done.or_raise()?;
        let sums: Vec<f64> = energies.chunks_exact(terms).map(|row| row.iter().sum()).collect();
        Ok(sums.into_pyarray(py))
    }

    #[getter]
    fn sites(&self) -> usize {
        self.inner.target.sites()
    }

    #[getter]
    fn q(&self) -> usize {
        self.inner.target.q()
    }

    #[getter]
    fn beta(&self) -> f64 {
        self.inner.beta
    }

    #[getter]
    fn shape(&self) -> Vec<usize> {
        self.sides()
    }

    #[getter]
    fn description(&self) -> String {
        self.inner.description.clone()
    }

    /// The energy as it is understood, as `leaps check` prints it; none for energies that are not the library's own.
    #[getter]
    fn formula(&self) -> Option<String> {
        self.inner.spec.as_ref().map(|spec| spec.formula())
    }

    /// The target as results have it, as JSON.
    #[getter]
    fn origin(&self) -> String {
        serde_json::Value::Object(self.inner.origin()).to_string()
    }
}

/// What is said about couplings beside themselves.
#[derive(FromPyObject)]
pub struct Graph {
    #[pyo3(item)]
    potts: bool,
    #[pyo3(item)]
    sites: usize,
    #[pyo3(item)]
    q: usize,
    /// The lattice that the sites lie on.
    #[pyo3(item)]
    shape: Option<Vec<usize>>,
    #[pyo3(item)]
    periodic: bool,
    #[pyo3(item)]
    beta: f64,
}

/// What is said about a Python energy beside its functions.
#[derive(FromPyObject)]
pub struct Custom {
    #[pyo3(item)]
    shape: Vec<usize>,
    #[pyo3(item)]
    lattice: bool,
    #[pyo3(item)]
    periodic: bool,
    #[pyo3(item)]
    q: usize,
    #[pyo3(item)]
    beta: f64,
    #[pyo3(item)]
    name: String,
    #[pyo3(item)]
    version: Option<String>,
}
