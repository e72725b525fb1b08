//! SIGINT from people, SIGTERM and SIGUSR1 from batch systems.

use std::sync::Arc;

use signal_hook::consts::{SIGINT, SIGTERM, SIGUSR1};
use signal_hook::{flag, low_level};

use super::{INTERRUPTED, Signals, Verdict};

pub(super) const INTERRUPT: usize = SIGINT as usize;

pub(super) fn name(signal: usize) -> &'static str {
    match signal as i32 {
        SIGINT => "Ctrl-C",
        SIGTERM => "SIGTERM",
        SIGUSR1 => "SIGUSR1",
        _ => "a signal",
    }
}

impl Signals {
    pub(super) fn listen(&self) {
        if self.end_tidily().or_else(|_| self.end_plainly()).is_ok() {
            self.add(SIGINT);
        }
    }

    pub(super) fn listen_to_stops(&self) {
        self.add(SIGTERM);
        self.add(SIGUSR1);
    }

    /// Let a signal set the flag.
    fn add(&self, signal: i32) {
        let _ = flag::register(signal, Arc::clone(&self.flag));
        let _ = flag::register_usize(signal, Arc::clone(&self.last), signal as usize);
    }

    /// Look after the signals that end the program in a thread of its own, where files can be removed.
    fn end_tidily(&self) -> std::io::Result<()> {
        let mut coming = signal_hook::iterator::Signals::new([SIGINT, SIGTERM, SIGUSR1])?;
        let signals = self.clone();
        let look = move || {
            for signal in coming.forever() {
                match signals.verdict(signal == SIGINT) {
                    Verdict::Stop => continue,
                    Verdict::End => leaps::run::remove_unfinished(),
                }
                if signal == SIGINT {
                    low_level::exit(INTERRUPTED);
                }
                let _ = low_level::emulate_default_handler(signal);
            }
        };
        std::thread::Builder::new().name("signals".to_owned()).spawn(look).map(drop)
    }

    /// Where no such thread can be started a second Ctrl-C ends the program, as other signals do, and temporary files stay.
    fn end_plainly(&self) -> std::io::Result<()> {
        // A signal that was ever looked for does nothing by itself any more.
        flag::register_conditional_default(SIGTERM, Arc::clone(&self.ends))?;
        flag::register_conditional_default(SIGUSR1, Arc::clone(&self.ends))?;
        // Before the flag is registered: the first signal must find it unset.
        flag::register_conditional_shutdown(SIGINT, INTERRUPTED, Arc::clone(&self.flag)).map(drop)
    }
}
