//! SIGINT from people; SIGTERM and SIGUSR1 from batch systems, SIGHUP from terminals that close.

use std::sync::Arc;

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGUSR1};
use signal_hook::{flag, low_level};

use super::{INTERRUPTED, Signals, Verdict};

pub(super) const INTERRUPT: usize = SIGINT as usize;

/// What batch systems, and terminals that close, send before they kill.
const STOPS: [(i32, &str); 3] = [(SIGTERM, "SIGTERM"), (SIGUSR1, "SIGUSR1"), (SIGHUP, "SIGHUP")];

/// The stops that are heard: a signal that whoever started the program had it ignore, as `nohup` does with SIGHUP, stays ignored.
fn stops() -> impl Iterator<Item = i32> {
    STOPS.into_iter().map(|(signal, _)| signal).filter(|&signal| !is_ignored(signal))
}

fn is_ignored(signal: i32) -> bool {
    let mut now = std::mem::MaybeUninit::<libc::sigaction>::zeroed();
    // SAFETY: without a new action the call only writes the present one to `now`, of which all bytes zero is a value.
    unsafe {
        libc::sigaction(signal, std::ptr::null(), now.as_mut_ptr());
        now.assume_init().sa_sigaction == libc::SIG_IGN
    }
}

pub(super) fn name(signal: usize) -> &'static str {
    let stop = STOPS.into_iter().find(|(stop, _)| *stop as usize == signal);
    let interrupt = [(SIGINT, "Ctrl-C")].into_iter().find(|_| signal == INTERRUPT);
    stop.or(interrupt).map_or("a signal", |(_, name)| name)
}

impl Signals {
    pub(super) fn listen(&self) {
        if self.end_tidily().or_else(|_| self.end_plainly()).is_ok() {
            self.add(SIGINT);
        }
    }

    pub(super) fn listen_to_stops(&self) {
        stops().for_each(|signal| self.add(signal));
    }

    /// Let a signal set the flag.
    fn add(&self, signal: i32) {
        let _ = flag::register(signal, Arc::clone(&self.flag));
        let _ = flag::register_usize(signal, Arc::clone(&self.last), signal as usize);
    }

    /// Look after the signals that end the program in a thread of its own, where files can be removed.
    fn end_tidily(&self) -> std::io::Result<()> {
        let mut coming = signal_hook::iterator::Signals::new(stops().chain([SIGINT]))?;
        let signals = self.clone();
        let look = move || {
            for signal in coming.forever() {
                match signals.verdict(signal == SIGINT) {
                    Verdict::Stop => continue,
                    Verdict::End => leaps::store::remove_unfinished(),
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
        for signal in stops() {
            flag::register_conditional_default(signal, Arc::clone(&self.ends))?;
        }
        // Before the flag is registered: the first signal must find it unset.
        flag::register_conditional_shutdown(SIGINT, INTERRUPTED, Arc::clone(&self.flag)).map(drop)
    }
}
