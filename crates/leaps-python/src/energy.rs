//! Python functions as energies.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use leaps::Error;
use leaps::target::BatchEnergy;
use numpy::{PyArray1, PyArray2, PyArrayMethods, PyUntypedArrayMethods};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

/// The first exception that a Python function raised, until somebody takes it.
#[derive(Default)]
pub struct Failure {
    flag: AtomicBool,
    error: Mutex<Option<PyErr>>,
}

impl Failure {
    /// Whether there is one.
    pub fn is_set(&self) -> bool {
        self.flag.load(Ordering::Relaxed)
    }

    /// Keep an exception. What the library hears is that it should stop.
    fn keep(&self, raised: PyErr) -> Error {
        let mut slot = self.error.lock().unwrap_or_else(PoisonError::into_inner);
        slot.get_or_insert(raised);
        self.flag.store(true, Ordering::Relaxed);
        Error::Interrupted
    }

    /// Forget what was raised before.
    pub fn clear(&self) {
        drop(self.take());
    }

    /// The exception, if there is one.
    pub fn take(&self) -> Option<PyErr> {
        self.flag.store(false, Ordering::Relaxed);
        self.error.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

/// What a Python energy is made of.
pub struct Parts {
    /// `energy(x)`: `uint8` of shape `(B, sites)` to numbers of shape `(B,)`.
    pub energy: Py<PyAny>,
    /// `delta(x, site)`: numbers of shape `(B, q)`.
    pub delta: Option<Py<PyAny>>,
    /// `numpy.asarray`.
    pub asarray: Py<PyAny>,
    /// Sites of a state.
    pub sites: usize,
    /// Values of a site.
    pub q: usize,
    /// What it is called.
    pub name: String,
}

/// The states of a call as a new array, which the function may keep.
fn array<'py>(py: Python<'py>, states: &[u8], sites: usize) -> PyResult<Bound<'py, PyArray2<u8>>> {
    PyArray1::from_slice(py, states).reshape([states.len() / sites, sites])
}

/// The numbers of an answer of this shape.
fn copied<const N: usize>(
    answer: &Bound<'_, PyAny>,
    asarray: &Py<PyAny>,
    what: &str,
    shape: [usize; N],
    out: &mut [f64],
) -> PyResult<()> {
    let py = answer.py();
    let wanted = |found: String| {
        let shape: Vec<String> = shape.iter().map(usize::to_string).collect();
        let comma = if N == 1 { "," } else { "" };
        let shape = shape.join(", ");
        PyValueError::new_err(format!(
            "{what} must return numbers of shape ({shape}{comma}), not {found}"
        ))
    };
    let array = asarray.call1(py, (answer, "float64"))?.into_bound(py);
    let array = array.cast::<numpy::PyArrayDyn<f64>>()?;
    if array.shape() != shape {
        let found: Vec<String> = array.shape().iter().map(usize::to_string).collect();
        return Err(wanted(format!("of shape ({})", found.join(", "))));
    }
    let numbers = array.readonly();
    match numbers.as_slice() {
        Ok(numbers) => out.copy_from_slice(numbers),
        Err(_) => out.iter_mut().zip(numbers.as_array().iter()).for_each(|(out, x)| *out = *x),
    }
    Ok(())
}

/// Let the allocator keep what energies free after every call: glibc gives memory at the end of a heap back to the system when more of it is free
/// than twice the largest block that it ever got from there and freed, and taking it again, page by page, can cost more than the energies.
fn keep_freed_memory() {
    drop(std::hint::black_box(vec![0u8; 24 << 20]));
}

impl Parts {
    /// The target, and where its exceptions go.
    pub fn build(self) -> (BatchEnergy, Arc<Failure>) {
        keep_freed_memory();
        let Parts { energy, delta, asarray, sites, q, name } = self;
        let failure = Arc::new(Failure::default());
        let attached = Python::attach(|py| asarray.clone_ref(py));
        let slot = failure.clone();
        let energies = move |states: &[u8], out: &mut [f64]| {
            Python::attach(|py| {
                let answer = energy.bind(py).call1((array(py, states, sites)?,))?;
                copied(&answer, &attached, "energy(x)", [out.len()], out)
            })
            .map_err(|raised: PyErr| slot.keep(raised))
        };
        let target = BatchEnergy::new(name, sites, q, energies);
        let Some(delta) = delta else { return (target, failure) };
        let slot = failure.clone();
        let changes = move |states: &[u8], site: usize, out: &mut [f64]| {
            Python::attach(|py| {
                let answer = delta.bind(py).call1((array(py, states, sites)?, site))?;
                let shape = [states.len() / sites, q];
                copied(&answer, &asarray, "delta(x, site)", shape, out)
            })
            .map_err(|raised: PyErr| slot.keep(raised))
        };
        (target.with_changes(changes), failure)
    }
}
