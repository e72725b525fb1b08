//! Catch the signals that ask for an end, so that work stops at a good place.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use signal_hook::consts::{SIGINT, SIGTERM};

use crate::error::Failure;

/// The signals that have come so far.
#[derive(Clone, Debug)]
pub struct Signals {
    /// Whether any has come.
    pub flag: Arc<AtomicBool>,
    /// The last one, 0 for none.
    last: Arc<AtomicUsize>,
}

impl Signals {
    /// Catch Ctrl-C; a second one ends the program at once with 130.
    pub fn catch() -> Self {
        let signals = Signals { flag: Arc::default(), last: Arc::default() };
        let again = Arc::clone(&signals.flag);
        // In this order: the first signal must find the flag unset.
        let second = signal_hook::flag::register_conditional_shutdown(SIGINT, 130, again);
        if second.is_ok() {
            signals.add(SIGINT);
        }
        signals
    }

    /// Catch what batch systems send before they kill.
    pub fn catch_stops(&self) {
        self.add(SIGTERM);
        #[cfg(unix)]
        self.add(signal_hook::consts::SIGUSR1);
    }

    fn add(&self, signal: i32) {
        let _ = signal_hook::flag::register(signal, Arc::clone(&self.flag));
        let last = Arc::clone(&self.last);
        let _ = signal_hook::flag::register_usize(signal, last, signal as usize);
    }

    /// Whether one has come.
    pub fn caught(&self) -> bool {
        self.flag.load(Ordering::Relaxed)
    }

    /// The last one's name.
    pub fn name(&self) -> &'static str {
        match self.last.load(Ordering::Relaxed) as i32 {
            SIGINT => "Ctrl-C",
            SIGTERM => "SIGTERM",
            #[cfg(unix)]
            signal_hook::consts::SIGUSR1 => "SIGUSR1",
            _ => "a signal",
        }
    }

    /// The failure that the last one ends the program with.
    pub fn failure(&self) -> anyhow::Error {
        match self.last.load(Ordering::Relaxed) as i32 {
            SIGINT => leaps::Error::Interrupted.into(),
            _ => Failure::Stopped(format!("stopped by {}", self.name())).into(),
        }
    }
}
