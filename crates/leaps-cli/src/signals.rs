//! Catch the signals that ask for an end, so that work stops at a good place.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

#[cfg(unix)]
use signal_hook::consts::{SIGHUP, SIGUSR1};
use signal_hook::consts::{SIGINT, SIGTERM};

use crate::error::Failure;

/// Signals that come within this time after the first are the same one.
const SAME: Duration = Duration::from_secs(1);

/// What batch systems, and terminals that close, send before they kill.
#[cfg(unix)]
const STOPS: [(i32, &str); 3] = [(SIGTERM, "SIGTERM"), (SIGUSR1, "SIGUSR1"), (SIGHUP, "SIGHUP")];
#[cfg(not(unix))]
const STOPS: [(i32, &str); 1] = [(SIGTERM, "SIGTERM")];

/// The signals that have come so far.
#[derive(Clone, Debug)]
pub struct Signals {
    /// Whether any has come.
    pub flag: Arc<AtomicBool>,
    /// The last one, 0 for none.
    last: Arc<AtomicUsize>,
    /// Whether the work stops by itself when a batch system asks for it.
    stops: Arc<AtomicBool>,
}

impl Signals {
    /// Catch Ctrl-C; another one, a second later or more, ends the program at once with 130. Other signals end it as ever, but leave no
    /// temporary files behind.
    pub fn catch() -> Self {
        let signals = Signals { flag: Arc::default(), last: Arc::default(), stops: Arc::default() };
        if signals.end_tidily().is_ok() {
            signals.add(SIGINT);
        }
        signals
    }

    /// Look after the signals that end the program in a thread of its own, where files can be removed.
    #[cfg(unix)]
    fn end_tidily(&self) -> std::io::Result<()> {
        use signal_hook::low_level;
        let ends = std::iter::once(SIGINT).chain(stops().map(|(signal, _)| signal));
        let mut coming = signal_hook::iterator::Signals::new(ends)?;
        let stops = Arc::clone(&self.stops);
        let look = move || {
            let mut asked: Option<Instant> = None;
            for signal in coming.forever() {
                // Terminals, shells and timeouts often send one Ctrl-C twice.
                let first = asked.is_none_or(|first| first.elapsed() < SAME);
                asked.get_or_insert_with(Instant::now);
                if (signal == SIGINT && first)
                    || (signal != SIGINT && stops.load(Ordering::Relaxed))
                {
                    continue; // the work sees the flag and stops
                }
                leaps::run::remove_unfinished();
                if signal == SIGINT {
                    low_level::exit(130);
                }
                let _ = low_level::emulate_default_handler(signal);
            }
        };
        std::thread::Builder::new().name("signals".to_owned()).spawn(look).map(drop)
    }

    /// Without such threads a second Ctrl-C ends the program, and temporary files stay.
    #[cfg(not(unix))]
    fn end_tidily(&self) -> std::io::Result<()> {
        let again = Arc::clone(&self.flag);
        // Before the flag is registered: the first signal must find it unset.
        signal_hook::flag::register_conditional_shutdown(SIGINT, 130, again).map(drop)
    }

    /// Catch what asks for a stop before somebody kills.
    pub fn catch_stops(&self) {
        stops().for_each(|(signal, _)| self.add(signal));
        // Last: until the flag hears of them, these signals end the program.
        self.stops.store(true, Ordering::Relaxed);
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
        let last = self.last.load(Ordering::Relaxed) as i32;
        let stop = STOPS.into_iter().find(|(signal, _)| *signal == last);
        stop.map_or("Ctrl-C", |(_, name)| name)
    }

    /// How the last one ends the program; `text` says where the work is left.
    pub fn failure(&self, text: String) -> anyhow::Error {
        match self.last.load(Ordering::Relaxed) as i32 {
            SIGINT => Failure::Interrupted(text).into(),
            _ => Failure::Stopped(text).into(),
        }
    }
}

/// The stops that are heard: a signal that whoever started the program had it ignore, as `nohup` does with SIGHUP, stays ignored.
fn stops() -> impl Iterator<Item = (i32, &'static str)> {
    STOPS.into_iter().filter(|(signal, _)| !is_ignored(*signal))
}

#[cfg(unix)]
fn is_ignored(signal: i32) -> bool {
    let mut now = std::mem::MaybeUninit::<libc::sigaction>::zeroed();
    // SAFETY: without a new action the call only writes the present one to `now`, of which all bytes zero is a value.
    unsafe {
        libc::sigaction(signal, std::ptr::null(), now.as_mut_ptr());
        now.assume_init().sa_sigaction == libc::SIG_IGN
    }
}

#[cfg(not(unix))]
fn is_ignored(_signal: i32) -> bool {
    false
}
