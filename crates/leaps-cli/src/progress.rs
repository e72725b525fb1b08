//! The progress of long work on a terminal, which Ctrl-C stops.

use std::io::IsTerminal;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressState, ProgressStyle};
use leaps::Error;
use leaps::device::{Placement, Progress};

use crate::output;
use leaps_report::text::Short;

/// Seconds between two lines where there is no terminal.
const LINE_EVERY: u64 = 5;

/// How progress is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Manner {
    /// A bar on a terminal.
    Bar,
    /// A plain line every few seconds.
    Lines,
    /// Not at all.
    Silent,
}

impl Manner {
    /// What suits standard error.
    pub fn of(quiet: bool) -> Self {
        match (quiet, std::io::stderr().is_terminal()) {
            (true, _) => Manner::Silent,
            (false, true) => Manner::Bar,
            (false, false) => Manner::Lines,
        }
    }
}

/// A bar on a terminal, a plain line every few seconds elsewhere, nothing if quiet.
pub struct TerminalProgress {
    label: String,
    interrupted: Arc<AtomicBool>,
    start: Instant,
    total: AtomicU64,
    done: AtomicU64,
    /// Milliseconds after the start at which the next plain line is due.
    due: AtomicU64,
    manner: Manner,
    bar: Mutex<Option<ProgressBar>>,
    until: Option<Instant>,
    /// What to say when the work begins: not before, so that an error is the only line.
    title: Mutex<Option<String>>,
    /// Whether somebody wants to know why the CPU computes.
    verbose: bool,
    /// Whether it was said that a GPU does.
    on_gpu: Arc<AtomicBool>,
}

impl TerminalProgress {
    /// Follow work called `label`.
    pub fn new(label: &str, quiet: bool, interrupted: Arc<AtomicBool>) -> Self {
        TerminalProgress {
            label: label.to_owned(),
            interrupted,
            start: Instant::now(),
            total: AtomicU64::new(0),
            done: AtomicU64::new(0),
            due: AtomicU64::new(1000 * LINE_EVERY),
            manner: Manner::of(quiet),
            bar: Mutex::new(None),
            until: None,
            title: Mutex::new(None),
            verbose: false,
            on_gpu: Arc::default(),
        }
    }

    /// Say `title` when the work begins.
    pub fn titled(mut self, title: String) -> Self {
        self.title = Mutex::new((self.manner != Manner::Silent).then_some(title));
        self
    }

    /// Say why the CPU computes if `verbose`, and that a GPU does unless that was said.
    pub fn placing(mut self, verbose: bool, on_gpu: Arc<AtomicBool>) -> Self {
        (self.verbose, self.on_gpu) = (verbose, on_gpu);
        self
    }

    /// Say the title unless it was said.
    pub fn announce(&self) {
        let title = self.title.lock().ok().and_then(|mut title| title.take());
        if let Some(title) = title {
            output::talk(&title);
        }
    }

    /// The same, asking for a stop after a moment.
    pub fn until(mut self, until: Option<Instant>) -> Self {
        self.until = until;
        self
    }

    fn line(&self, done: u64) {
        let elapsed = self.start.elapsed();
        let due = self.due.load(Ordering::Relaxed);
        let now = elapsed.as_millis() as u64;
        let next = now + 1000 * LINE_EVERY;
        let relaxed = Ordering::Relaxed;
        if now < due || self.due.compare_exchange(due, next, relaxed, relaxed).is_err() {
            return;
        }
        let total = self.total.load(Ordering::Relaxed);
        output::talk(&format!("{}: {}", self.label, report(done, total, elapsed)));
    }
}

/// Progress in words: how much, how fast, how long still.
fn report(done: u64, total: u64, elapsed: Duration) -> String {
    let rate = done as f64 / elapsed.as_secs_f64();
    if total == 0 || done == 0 {
        return format!("{done} done, {}/s", Short(rate));
    }
    let left = total.saturating_sub(done) as f64 / rate;
    let percent = 100.0 * done as f64 / total as f64;
    format!("{percent:.0} % ({done}/{total}), {}/s, {left:.0} s left", Short(rate))
}

impl Progress for TerminalProgress {
    fn total(&self, units: u64) {
        self.announce();
        self.total.store(units, Ordering::Relaxed);
        if self.manner != Manner::Bar {
            return;
        }
        let style =
            ProgressStyle::with_template("{prefix} {bar:32} {percent:>3} %  {rate:>9}  {eta} left")
                .unwrap_or_else(|_| ProgressStyle::default_bar())
                .with_key("rate", |state: &ProgressState, out: &mut dyn std::fmt::Write| {
                    let _ = write!(out, "{}/s", Short(state.per_sec()));
                });
        let bar = ProgressBar::with_draw_target(Some(units), ProgressDrawTarget::stderr())
            .with_style(style)
            .with_prefix(self.label.clone());
        if let Ok(mut slot) = self.bar.lock() {
            *slot = Some(bar);
        }
    }

    fn advance(&self, done: u64) {
        let done = self.done.fetch_add(done, Ordering::Relaxed) + done;
        if self.manner == Manner::Lines {
            self.line(done);
        } else if self.manner == Manner::Bar
            && let Ok(Some(bar)) = self.bar.try_lock().as_deref()
        {
            bar.set_position(done);
        }
    }

    fn placed(&self, placement: &Placement, reason: Option<&Error>) {
        if let Some(reason) = reason.filter(|_| self.verbose) {
            output::talk(&format!("computing on the CPU: {reason}"));
        }
        let gpu = placement.name() != Placement::Cpu.name();
        if gpu && !self.on_gpu.swap(true, Ordering::Relaxed) && self.manner != Manner::Silent {
            output::talk(&format!("computing on {}", placement.machine()));
        }
    }

    fn stopped(&self) -> bool {
        let late = || self.until.is_some_and(|until| Instant::now() >= until);
        self.interrupted.load(Ordering::Relaxed) || late()
    }
}

impl Drop for TerminalProgress {
    fn drop(&mut self) {
        if let Ok(Some(bar)) = self.bar.lock().as_deref() {
            bar.finish_and_clear();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reports_are_plain_text() {
        let text = report(250, 1000, Duration::from_secs(5));
        assert_eq!(text, "25 % (250/1000), 50.000/s, 15 s left");
        assert!(report(0, 0, Duration::from_secs(1)).chars().all(|c| !c.is_control()));
    }

    #[test]
    fn an_interrupt_stops_the_work() {
        let flag = Arc::new(AtomicBool::new(false));
        let progress = TerminalProgress::new("test", true, Arc::clone(&flag));
        assert!(progress.check().is_ok());
        flag.store(true, Ordering::Relaxed);
        assert!(matches!(progress.check(), Err(leaps::Error::Interrupted)));
    }
}
