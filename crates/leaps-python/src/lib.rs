//! The extension module `leaps._leaps`: the library's jobs for the Python package around it.
//!
//! Nothing is decided here. Settings arrive as dictionaries and become the library's own typed settings; results leave as
//! JSON text, as the program prints them, with states, log-weights and energies as NumPy arrays that own the memory of the
//! vectors they were.

mod energy;
mod errors;
mod jobs;
mod model;
mod network;
mod problem;
mod program;
mod run;
mod running;
mod settings;

use pyo3::prelude::*;

/// The compiled half of the package `leaps`. Nobody has looked at it without the GIL: a free-threaded Python switches it on.
#[pymodule(gil_used = true)]
mod _leaps {
    use pyo3::prelude::*;

    #[pymodule_export]
    use super::jobs::{ais, exact, free_energy, mcmc, minimize, smc};
    #[pymodule_export]
    use super::model::{Model, models};
    #[pymodule_export]
    use super::network::{forward, gradient, parameters, rates};
    #[pymodule_export]
    use super::problem::Problem;
    #[pymodule_export]
    use super::program::{convert, keys_of, program, with_error};
    #[pymodule_export]
    use super::run::Run;

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        module.add("__version__", env!("CARGO_PKG_VERSION"))
    }
}
