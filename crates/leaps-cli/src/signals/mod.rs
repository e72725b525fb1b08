//! Requests to stop, so that work ends at a good place: signals on Unix, console events on Windows.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use crate::error::Failure;

#[cfg(not(windows))]
#[path = "unix.rs"]
mod system;
#[cfg(windows)]
#[path = "windows.rs"]
mod system;

/// Signals that come within this time after the first are the same one: terminals, shells and timeouts often send one Ctrl-C twice.
const SAME: Duration = Duration::from_secs(1);

/// The signals that have come so far, by the system's numbers (on Windows those of its console events and one).
#[derive(Clone, Debug)]
pub struct Signals {
    /// Whether any has come.
    pub flag: Arc<AtomicBool>,
    /// The last one, 0 for none.
    last: Arc<AtomicUsize>,
    /// Whether what batch systems send ends the program: until the work stops by itself.
    ends: Arc<AtomicBool>,
    /// When the first one came.
    first: Arc<OnceLock<Instant>>,
}

impl Default for Signals {
    fn default() -> Self {
        let ends = Arc::new(AtomicBool::new(true));
        Signals { flag: Arc::default(), last: Arc::default(), ends, first: Arc::default() }
    }
}

impl Signals {
    /// Catch Ctrl-C; another one, a second later or more, ends the program at once with 130. Other signals end it as ever, but leave no
    /// temporary files behind.
    pub fn catch() -> Self {
        let signals = Signals::default();
        signals.listen();
        signals
    }

    /// Catch what asks for a stop before somebody kills.
    pub fn catch_stops(&self) {
        self.listen_to_stops();
        // Last: until the flag hears of them, these signals end the program.
        self.ends.store(false, Ordering::Relaxed);
    }

    /// What to do about a signal that has just come.
    fn verdict(&self, interrupt: bool) -> Verdict {
        let again = self.first.get_or_init(Instant::now).elapsed() >= SAME;
        match interrupt {
            true if !again => Verdict::Stop,
            false if !self.ends.load(Ordering::Relaxed) => Verdict::Stop,
            _ => Verdict::End,
        }
    }

    /// Whether one has come.
    pub fn caught(&self) -> bool {
        self.flag.load(Ordering::Relaxed)
    }

    /// The last one's name.
    pub fn name(&self) -> &'static str {
        system::name(self.last.load(Ordering::Relaxed))
    }

    /// How the last one ends the program; `text` says where the work is left.
    pub fn failure(&self, text: String) -> anyhow::Error {
        match self.last.load(Ordering::Relaxed) {
            system::INTERRUPT => Failure::Interrupted(text).into(),
            _ => Failure::Stopped(text).into(),
        }
    }
}

/// What to do about a signal.
enum Verdict {
    /// Nothing: the work sees the flag and stops.
    Stop,
    /// Remove temporary files and end the program.
    End,
}

/// The exit code of a program that Ctrl-C ends.
const INTERRUPTED: i32 = 130;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_interrupt_ends_the_program_and_a_repeated_one_does_not() {
        let signals = Signals::default();
        assert!(matches!(signals.verdict(true), Verdict::Stop));
        assert!(matches!(signals.verdict(true), Verdict::Stop));
        assert!(matches!(signals.verdict(false), Verdict::End));
        signals.ends.store(false, Ordering::Relaxed);
        assert!(matches!(signals.verdict(false), Verdict::Stop));
        let earlier = Signals::default();
        earlier.first.set(Instant::now() - 2 * SAME).unwrap();
        assert!(matches!(earlier.verdict(true), Verdict::End));
    }

    #[test]
    fn the_last_signal_has_a_name_and_an_exit_code() {
        let signals = Signals::default();
        signals.last.store(system::INTERRUPT, Ordering::Relaxed);
        assert_eq!(signals.name(), "Ctrl-C");
        assert_eq!(crate::error::exit_code(&signals.failure(String::new())), 130);
        signals.last.store(usize::MAX, Ordering::Relaxed);
        assert_eq!(signals.name(), "a signal");
        assert_eq!(crate::error::exit_code(&signals.failure(String::new())), 75);
    }
}
