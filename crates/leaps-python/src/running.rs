//! Work in a thread of its own, while the thread that asked for it listens for Ctrl-C and shows the progress.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use leaps::device::{Device, Placement, Precision, Progress};
use leaps::job::{Context, Monitor};
use leaps::store::{Metrics, Observer};
use pyo3::exceptions::{PyKeyboardInterrupt, PyRuntimeWarning};
use pyo3::prelude::*;

use crate::energy::Failure;
use crate::errors::{OrRaise, exception};

/// How often the waiting thread looks for signals.
const TICK: Duration = Duration::from_millis(100);

/// Where a job runs and who watches it: what every function of the package takes.
#[derive(FromPyObject)]
pub struct Place {
    #[pyo3(item)]
    device: Option<String>,
    #[pyo3(item)]
    precision: Option<String>,
    #[pyo3(item)]
    threads: Option<usize>,
    /// Called as `show(label, done, total, note)` every now and then.
    #[pyo3(item)]
    show: Option<Py<PyAny>>,
}

/// Hears of the work's progress and tells it to stop.
#[derive(Default)]
pub struct RunProgress {
    done: AtomicU64,
    total: AtomicU64,
    stop: AtomicBool,
    failure: Option<Arc<Failure>>,
    label: Mutex<String>,
    note: Mutex<String>,
}

impl RunProgress {
    fn set(slot: &Mutex<String>, text: String) {
        *slot.lock().unwrap_or_else(PoisonError::into_inner) = text;
    }

    fn text(slot: &Mutex<String>) -> String {
        slot.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Progress for RunProgress {
    fn advance(&self, done: u64) {
        self.done.fetch_add(done, Ordering::Relaxed);
    }

    fn total(&self, units: u64) {
        self.done.store(0, Ordering::Relaxed);
        self.total.store(units, Ordering::Relaxed);
    }

    fn placed(&self, placement: &Placement, _: Option<&leaps::Error>) {
        if let Placement::Cuda(..) = placement {
            Self::set(&self.note, placement.machine().to_owned());
        }
    }

    fn stopped(&self) -> bool {
        let failed = self.failure.as_ref().is_some_and(|failure| failure.is_set());
        failed || self.stop.load(Ordering::Relaxed)
    }
}

impl Observer for RunProgress {
    fn measured(&self, metrics: &Metrics) {
        let loss = metrics.step_metrics.loss;
        let mut note = format!("loss {loss:.3e}");
        if let Some(ess) = metrics.ess {
            note += &format!(", ESS {ess:.3}");
        }
        Self::set(&self.note, note);
    }
}

/// A part of the work that counts on its own.
struct Part<'a>(&'a RunProgress);

impl Progress for Part<'_> {
    fn advance(&self, done: u64) {
        self.0.advance(done);
    }

    fn total(&self, units: u64) {
        self.0.total(units);
    }

    fn placed(&self, placement: &Placement, reason: Option<&leaps::Error>) {
        self.0.placed(placement, reason);
    }

    fn stopped(&self) -> bool {
        self.0.stopped()
    }
}

impl Monitor for RunProgress {
    fn progress(&self, label: &str) -> Box<dyn Progress + '_> {
        Self::set(&self.label, label.to_owned());
        Box::new(Part(self))
    }
}

impl Place {
    /// Do `work` without the GIL. Ctrl-C asks it to stop: what it returns then is returned, with a warning unless it `says` itself that it was
    /// interrupted; if it has nothing to return, `KeyboardInterrupt` is raised. An exception of a Python energy is raised as it is.
    pub fn run<T: Send>(
        &self,
        py: Python<'_>,
        failure: Option<&Arc<Failure>>,
        says: impl Fn(&T) -> bool,
        work: impl FnOnce(&Context<'_>, &RunProgress) -> leaps::Result<T> + Send,
    ) -> PyResult<T> {
        let device: Device = self.device.as_deref().unwrap_or("auto").parse().or_raise()?;
        let precision = match &self.precision {
            Some(word) => precision(word)?,
            None => Precision::default(),
        };
        if let Some(failure) = failure {
            failure.clear();
        }
        let progress = RunProgress { failure: failure.cloned(), ..RunProgress::default() };
        let threads = self.threads;
        let (sender, receiver) = channel();
        let receiver = Mutex::new(receiver);
        let wait = || {
            let receiver = receiver.lock().unwrap_or_else(PoisonError::into_inner);
            receiver.recv_timeout(TICK)
        };
        let mut interrupt: Option<PyErr> = None;
        let done = std::thread::scope(|scope| {
            let progress = &progress;
            let worker = scope.spawn(move || {
                let context =
                    Context { device, precision, threads, progress, ..Context::default() };
                let _ = sender.send(work(&context, progress));
            });
            loop {
                match py.detach(wait) {
                    Ok(done) => return Ok(done),
                    Err(RecvTimeoutError::Timeout) => {}
                    Err(RecvTimeoutError::Disconnected) => return Err(worker.join()),
                }
                let mut heard = py.check_signals();
                if heard.is_ok() {
                    heard = self.show(py, progress);
                }
                if let Err(raised) = heard {
                    progress.stop.store(true, Ordering::Relaxed);
                    interrupt.get_or_insert(raised);
                }
            }
        });
        let done = match done {
            Ok(done) => done,
            Err(Err(panic)) => std::panic::resume_unwind(panic),
            Err(Ok(())) => Err(leaps::Error::Interrupted),
        };
        if let Some(raised) = failure.and_then(|failure| failure.take()) {
            return Err(raised);
        }
        let interrupted =
            interrupt.as_ref().map(|raised| raised.is_instance_of::<PyKeyboardInterrupt>(py));
        match (done, interrupt) {
            (Ok(found), Some(_)) if interrupted == Some(true) => {
                if !says(&found) {
                    // It came when the work was done already.
                    let category = py.get_type::<PyRuntimeWarning>();
                    PyErr::warn(py, &category, c"interrupted; the result is complete", 2)?;
                }
                Ok(found)
            }
            (_, Some(raised)) => Err(raised),
            (Ok(found), None) => Ok(found),
            (Err(error), None) => Err(exception(error)),
        }
    }

    fn show(&self, py: Python<'_>, progress: &RunProgress) -> PyResult<()> {
        let Some(show) = &self.show else { return Ok(()) };
        let done = progress.done.load(Ordering::Relaxed);
        let total = progress.total.load(Ordering::Relaxed);
        let words =
            (RunProgress::text(&progress.label), done, total, RunProgress::text(&progress.note));
        show.call1(py, words).map(drop)
    }
}

fn precision(word: &str) -> PyResult<Precision> {
    let all = [Precision::Float32, Precision::Tf32, Precision::Bf16];
    all.into_iter().find(|own| own.name() == word).ok_or_else(|| {
        let names = all.map(|own| own.name()).join(", ");
        exception(leaps::Error::invalid(
            "precision",
            word,
            format!("one of {names}"),
            "leave it out",
        ))
    })
}
