//! Catch the signals that ask for an end, so that work stops at a good place.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use signal_hook::consts::{SIGINT, SIGTERM};

use crate::error::Failure;

/// Signals that come within this time after the first are the same one.
const SAME: Duration = Duration::from_secs(1);

/// The signals that have come so far.
#[derive(Clone, Debug)]
pub struct Signals {
    /// Whether any has come.
    pub flag: Arc<AtomicBool>,
    /// The last one, 0 for none.
    last: Arc<AtomicUsize>,
    /// Whether what batch systems send ends the program: until the work stops by itself.
    ends: Arc<AtomicBool>,
}

impl Signals {
    /// Catch Ctrl-C; another one, a second later or more, ends the program at once with 130. Other signals end it as ever, but leave no
    /// temporary files behind.
    pub fn catch() -> Self {
        let ends = Arc::new(AtomicBool::new(true));
        let signals = Signals { flag: Arc::default(), last: Arc::default(), ends };
        if signals.end_tidily().or_else(|_| signals.end_plainly()).is_ok() {
            signals.add(SIGINT);
        }
        signals
    }

    /// Look after the signals that end the program in a thread of its own, where files can be removed.
    #[cfg(unix)]
    fn end_tidily(&self) -> std::io::Result<()> {
        use signal_hook::consts::SIGUSR1;
        use signal_hook::low_level;
        let mut coming = signal_hook::iterator::Signals::new([SIGINT, SIGTERM, SIGUSR1])?;
        let ends = Arc::clone(&self.ends);
        let look = move || {
            let mut asked: Option<Instant> = None;
            for signal in coming.forever() {
                // Terminals, shells and timeouts often send one Ctrl-C twice.
                let first = asked.is_none_or(|first| first.elapsed() < SAME);
                asked.get_or_insert_with(Instant::now);
                if (signal == SIGINT && first)
                    || (signal != SIGINT && !ends.load(Ordering::Relaxed))
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

    #[cfg(not(unix))]
    fn end_tidily(&self) -> std::io::Result<()> {
        Err(std::io::ErrorKind::Unsupported.into())
    }

    /// Where no such thread can be started a second Ctrl-C ends the program, as other signals do, and temporary files stay.
    fn end_plainly(&self) -> std::io::Result<()> {
        use signal_hook::flag::{register_conditional_default, register_conditional_shutdown};
        // A signal that was ever looked for does nothing by itself any more.
        register_conditional_default(SIGTERM, Arc::clone(&self.ends))?;
        #[cfg(unix)]
        register_conditional_default(signal_hook::consts::SIGUSR1, Arc::clone(&self.ends))?;
        // Before the flag is registered: the first signal must find it unset.
        register_conditional_shutdown(SIGINT, 130, Arc::clone(&self.flag)).map(drop)
    }

    /// Catch what batch systems send before they kill.
    pub fn catch_stops(&self) {
        self.add(SIGTERM);
        #[cfg(unix)]
        self.add(signal_hook::consts::SIGUSR1);
        // Last: until the flag hears of them, these signals end the program.
        self.ends.store(false, Ordering::Relaxed);
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
