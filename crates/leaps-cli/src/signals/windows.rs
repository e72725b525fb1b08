//! Ctrl-C from people; Ctrl-Break, a closed console, the end of a session and shutdown as what batch systems send.

use std::sync::OnceLock;
use std::sync::atomic::Ordering;
use std::time::Duration;

use super::{INTERRUPTED, Signals, Verdict};

const CTRL_C: u32 = 0;
const CTRL_BREAK: u32 = 1;
const CLOSE: u32 = 2;
const LOGOFF: u32 = 5;
const SHUTDOWN: u32 = 6;

/// Numbers that are kept are those of the events and one, since 0 is none.
pub(super) const INTERRUPT: usize = CTRL_C as usize + 1;

pub(super) fn name(kept: usize) -> &'static str {
    match kept.wrapping_sub(1) as u32 {
        CTRL_C => "Ctrl-C",
        CTRL_BREAK => "Ctrl-Break",
        CLOSE => "the end of the console",
        LOGOFF => "the end of the session",
        SHUTDOWN => "shutdown",
        _ => "a signal",
    }
}

type Handler = extern "system" fn(u32) -> i32;

#[link(name = "kernel32")]
unsafe extern "system" {
    fn SetConsoleCtrlHandler(handler: Option<Handler>, add: i32) -> i32;
}

/// What [`handle`] tells: Windows passes nothing of ours to it.
static HEARD: OnceLock<Signals> = OnceLock::new();

impl Signals {
    pub(super) fn listen(&self) {
        if HEARD.set(self.clone()).is_ok() {
            // SAFETY: the handler lives as long as the program. That it cannot be set (no console) is no failure.
            unsafe { SetConsoleCtrlHandler(Some(handle), 1) };
        }
    }

    /// The handler hears of every event already.
    pub(super) fn listen_to_stops(&self) {}
}

/// Windows calls this in a thread of its own, where files can be removed. 1 says that the event has been dealt with, 0 lets it
/// end the program.
extern "system" fn handle(event: u32) -> i32 {
    let Some(signals) = HEARD.get() else { return 0 };
    match signals.verdict(event == CTRL_C) {
        Verdict::Stop => {
            signals.last.store(event as usize + 1, Ordering::Relaxed);
            signals.flag.store(true, Ordering::Relaxed);
            // Windows ends the program some seconds after these events, and at once when this returns: leave the seconds to the work.
            if matches!(event, CLOSE | LOGOFF | SHUTDOWN) {
                std::thread::sleep(Duration::from_secs(3600));
            }
            1
        }
        Verdict::End => {
            leaps::store::remove_unfinished();
            if event == CTRL_C {
                std::process::exit(INTERRUPTED);
            }
            0
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What Windows does when somebody presses keys is in tests/console.rs.
    #[test]
    fn events_stop_work_that_stops_by_itself() {
        let signals = Signals::catch();
        assert_eq!(handle(CTRL_BREAK), 0);
        assert!(!signals.caught());
        signals.catch_stops();
        assert_eq!(handle(CTRL_BREAK), 1);
        assert!(signals.caught() && signals.name() == "Ctrl-Break");
        assert_eq!(crate::error::exit_code(&signals.failure(String::new())), 75);
        assert_eq!(handle(CTRL_C), 1);
        assert_eq!(crate::error::exit_code(&signals.failure(String::new())), 130);
    }
}
