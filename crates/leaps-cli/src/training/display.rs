//! The progress of training: a bar on a terminal, a line every few seconds elsewhere.

use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use leaps::Error;
use leaps::device::{Placement, Progress};
use leaps::observe::Estimate;
use leaps::store::{Event, Metrics, Observer};

use crate::app::Context;
use crate::output;
use crate::progress::Manner;
use leaps_report::text::{Short, fixed, span, with_error};

/// Between two plain lines.
const LINE_EVERY: Duration = Duration::from_secs(5);

/// The progress of training, for somebody at a terminal or reading a log.
pub struct TrainingProgress<'c> {
    context: &'c Context,
    manner: Manner,
    state: Mutex<State>,
}

struct State {
    /// The run directory, which may be that of a part on a smaller lattice.
    directory: PathBuf,
    /// log Z, if it is known.
    exact: Option<f64>,
    steps: u64,
    /// The step at which this session began.
    first: Option<u64>,
    start: Instant,
    last_line: Instant,
    loss: Option<f64>,
    ess: Option<f64>,
    log_z: Option<Estimate>,
    bar: Option<ProgressBar>,
}

impl<'c> TrainingProgress<'c> {
    /// Of the run in a directory.
    pub fn new(context: &'c Context, directory: &Path) -> Self {
        let now = Instant::now();
        let state = State {
            directory: directory.to_owned(),
            exact: None,
            steps: 0,
            first: None,
            start: now,
            last_line: now,
            loss: None,
            ess: None,
            log_z: None,
            bar: None,
        };
        let manner = Manner::of(context.globals.quiet);
        TrainingProgress { context, manner, state: Mutex::new(state) }
    }

    fn directory(&self) -> PathBuf {
        self.with(|state| state.directory.clone()).unwrap_or_default()
    }

    fn with<T>(&self, act: impl FnOnce(&mut State) -> T) -> Option<T> {
        self.state.lock().ok().map(|mut state| act(&mut state))
    }
}

impl State {
    /// Steps, loss, effective sample size and log Z in words.
    fn words(&self) -> String {
        let mut words = Vec::new();
        words.extend(self.loss.map(|loss| format!("loss {}", Short(loss))));
        words.extend(self.ess.map(|ess| format!("ess {ess:.3}")));
        words.extend(self.log_z.map(|log_z| {
            let exact = self.exact.map(|exact| format!(" (exact {})", fixed(exact, 4)));
            format!("log_z {}{}", with_error(log_z.mean, log_z.error), exact.unwrap_or_default())
        }));
        words.join(", ")
    }

    /// Steps a second in this session, and seconds left.
    fn pace(&self, step: u64) -> Option<(f64, f64)> {
        let made = step.checked_sub(self.first?)?;
        let rate = made as f64 / self.start.elapsed().as_secs_f64();
        (made > 0 && rate > 0.0).then(|| (rate, self.steps.saturating_sub(step) as f64 / rate))
    }
}

impl Progress for TrainingProgress<'_> {
    fn total(&self, units: u64) {
        let bar = || {
            let template = "train {bar:20} {pos}/{len}  {msg}";
            let style = ProgressStyle::with_template(template)
                .unwrap_or_else(|_| ProgressStyle::default_bar());
            ProgressBar::with_draw_target(Some(units), ProgressDrawTarget::stderr())
                .with_style(style)
        };
        self.with(|state| {
            state.steps = units;
            state.first = None;
            state.start = Instant::now();
            state.bar = (self.manner == Manner::Bar).then(bar);
        });
    }

    fn advance(&self, done: u64) {
        // The first call says how many steps were made in earlier sessions.
        self.with(|state| *state.first.get_or_insert(done));
    }

    fn placed(&self, placement: &Placement, reason: Option<&Error>) {
        self.context.placed(placement, reason);
    }

    fn stopped(&self) -> bool {
        self.context.is_stopped()
    }
}

impl Observer for TrainingProgress<'_> {
    fn note(&self, text: &str) {
        self.with(|state| state.bar.take().map(|bar| bar.finish_and_clear()));
        self.context.say(text);
    }

    fn begins(&self, directory: &Path, exact: Option<f64>) {
        self.with(|state| {
            (state.directory, state.exact) = (directory.to_owned(), exact);
            (state.loss, state.ess, state.log_z) = (None, None, None);
        });
    }

    fn measured(&self, metrics: &Metrics) {
        let step = metrics.step_metrics.step;
        self.with(|state| {
            // A smooth loss says more than the last one.
            let loss = metrics.step_metrics.loss;
            state.loss = Some(state.loss.map_or(loss, |old| 0.95 * old + 0.05 * loss));
            state.ess = metrics.ess.or(state.ess);
            state.log_z = metrics.log_z.or(state.log_z);
            let pace = state
                .pace(step)
                .map(|(rate, left)| format!("{} steps/s, {} left", Short(rate), span(left)));
            let words = [Some(state.words()), pace].into_iter().flatten();
            let words = words.filter(|words| !words.is_empty()).collect::<Vec<_>>().join(", ");
            if let Some(bar) = &state.bar {
                bar.set_position(step);
                bar.set_message(words);
            } else if self.manner == Manner::Lines && state.last_line.elapsed() >= LINE_EVERY {
                state.last_line = Instant::now();
                output::talk(&format!("train: step {step}/{}, {words}", state.steps));
            }
        });
    }

    fn happened(&self, event: &Event) {
        match event {
            Event::Resumed { step, passed_over, .. } => {
                for reason in passed_over {
                    self.context.say(format!("warning: passed over a checkpoint: {reason}"));
                }
                self.context.say(format!("continues at step {step}"));
            }
            Event::RolledBack { step, to, error, .. } => {
                let text = format!("step {step} failed, back to {to} at half the rate: {error}");
                self.context.say(format!("warning: {text}"));
            }
            Event::Failed { dump, .. } => {
                let dump = self.directory().join(dump);
                self.context.say(format!("the states and parameters are in {}", dump.display()));
            }
            Event::Validated(found) => {
                let log_z = with_error(found.log_z.mean, found.log_z.error);
                let text = format!("step {}: ess {:.4}, log_z {log_z}", found.step, found.ess);
                self.context.detail(text);
            }
            Event::Checkpointed { checkpoint, .. } => {
                let checkpoint = self.directory().join(checkpoint);
                self.context.detail(format!("wrote {}", checkpoint.display()));
            }
            _ => {}
        }
    }
}

impl Drop for TrainingProgress<'_> {
    fn drop(&mut self) {
        self.with(|state| state.bar.take().map(|bar| bar.finish_and_clear()));
    }
}
