//! A run as its files have it now, made into a page and a line of numbers whenever they change.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use anyhow::Result;
use leaps::device::{NoProgress, Progress};
use leaps_report::run::{Source, page};
use serde_json::{Value, json};

use super::page::{Served, nothing_yet};
use crate::app::Context;
use crate::error::one_line;
use crate::verbs::watch::view::Watcher;

/// How often files are looked at.
const EVERY: Duration = Duration::from_millis(500);
/// Pages take longer to make than numbers.
const PAGE_EVERY: Duration = Duration::from_secs(2);
/// What a page is made of.
const FILES: [&str; 6] = [
    "metrics.jsonl",
    "events.jsonl",
    "results.json",
    "comparison.json",
    "config.toml",
    "snapshot.json",
];

/// What there is to see at a moment.
#[derive(Clone, Debug, Default)]
pub struct Current {
    /// Counts the pages.
    pub version: u64,
    /// The page.
    pub page: Arc<Served>,
    /// Where the run stands, with its words for the page.
    pub status: Arc<Value>,
}

impl Current {
    /// Where the run stands, in words.
    pub fn words(&self) -> &str {
        self.status["words"].as_str().unwrap_or_default()
    }
}

/// What all connections look at.
#[derive(Default)]
pub struct Live {
    current: Mutex<Current>,
    changed: Condvar,
}

impl Live {
    fn lock(&self) -> MutexGuard<'_, Current> {
        // It is whole after every change, whoever made the last one.
        self.current.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What there is now.
    pub fn now(&self) -> Current {
        self.lock().clone()
    }

    /// What there is after a change from `old`, or after this time.
    pub fn after(&self, old: &Current, most: Duration) -> Current {
        let same =
            |now: &mut Current| now.version == old.version && Arc::ptr_eq(&now.status, &old.status);
        let waited = self.changed.wait_timeout_while(self.lock(), most, same);
        waited.unwrap_or_else(PoisonError::into_inner).0.clone()
    }

    fn set(&self, change: impl FnOnce(&mut Current)) {
        change(&mut self.lock());
        self.changed.notify_all();
    }
}

/// Sizes and times of the files of a run.
type Marks = BTreeMap<&'static str, (u64, Option<SystemTime>)>;

fn marks(run: &Path) -> Marks {
    let mark = |name: &'static str| {
        let about = std::fs::metadata(run.join(name)).ok()?;
        Some((name, (about.len(), about.modified().ok())))
    };
    FILES.into_iter().filter_map(mark).collect()
}

/// Makes pages of a run.
pub struct Renderer<'a> {
    watcher: Watcher,
    context: &'a Context,
    drawn: Option<(PathBuf, Marks, Instant)>,
}

impl<'a> Renderer<'a> {
    /// Of the run in a directory, which must hold one.
    pub fn new(folder: &Path, context: &'a Context) -> Result<Self> {
        Ok(Renderer { watcher: Watcher::new(folder)?, context, drawn: None })
    }

    /// Look at the files until the program ends.
    pub fn go_on(&mut self, live: &Live) {
        while !self.context.is_stopped() {
            self.look(live);
            std::thread::sleep(EVERY);
        }
    }

    /// Bring everything up to date.
    pub fn look(&mut self, live: &Live) {
        let view = match self.watcher.look() {
            Ok(view) => view,
            Err(error) => {
                let words = format!("{} (shown as it was)", one_line(&error));
                self.say(live, json!({ "words": words }));
                return;
            }
        };
        let standing = &view.standing;
        let mut status = serde_json::to_value(standing).unwrap_or_default();
        let numbers = standing.numbers(view.exact);
        let words = [standing.state.clone(), standing.pace(), numbers];
        status["words"] = words.join(", ").into();
        status["exact"] = view.exact.into();
        self.say(live, status);
        if let Ok(run) = self.watcher.run() {
            self.draw(&run, &view.title, live);
        }
    }

    fn say(&self, live: &Live, status: Value) {
        if *live.now().status != status {
            live.set(|current| current.status = Arc::new(status));
        }
    }

    /// Make the page anew, if files have changed since and the last one is old enough.
    fn draw(&mut self, run: &Path, title: &str, live: &Live) {
        let marks = marks(run);
        let due = match &self.drawn {
            None => true,
            Some((of, _, _)) if of != run => true,
            Some((_, old, when)) => *old != marks && when.elapsed() >= PAGE_EVERY,
        };
        if !due {
            return;
        }
        let stops = Stops(self.context);
        let made = Source::read(run)
            .and_then(|source| page(&source, &self.context.job(&stops), &NoProgress));
        let report = made.unwrap_or_else(|error| nothing_yet(title, &error.to_string()));
        let served = Served::of(&report);
        if self.drawn.is_none() || *live.now().page != served {
            live.set(|current| {
                current.version += 1;
                current.page = Arc::new(served);
            });
        }
        self.drawn = Some((run.to_owned(), marks, Instant::now()));
    }
}

/// Ends what a page is compared with when the program ends.
struct Stops<'a>(&'a Context);

impl Progress for Stops<'_> {
    fn stopped(&self) -> bool {
        self.0.is_stopped()
    }
}
