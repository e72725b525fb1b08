//! The view of a run, read from its files as often as somebody wants to look.

use std::path::{Path, PathBuf};

use anyhow::Result;
use leaps::Error;
use leaps::exact;
use leaps::file::{if_any, read_text};
use leaps::job;
use leaps::results::SamplerResult;
use leaps::spec::RunSpec;
use leaps::store::{START, Snapshot};

use crate::error::usage;
use crate::standing::{Standing, is_run};

/// What is shown of a run.
pub struct View {
    /// The target in words.
    pub title: String,
    /// Lattices that are trained on one after another, the smallest first; nothing if there is one.
    pub parts: Vec<Part>,
    /// Where the run stands that is at work, or was last.
    pub standing: Standing,
    /// log Z, if it is known.
    pub exact: Option<f64>,
    /// The newest state that the run has.
    pub state: Option<State>,
    /// What is wrong with its files.
    pub warnings: Vec<String>,
}

/// A run on one of several lattices.
pub struct Part {
    /// Its size.
    pub size: String,
    /// Where it stands; none before it begins.
    pub standing: Option<Standing>,
}

/// A state of the lattice.
pub struct State {
    /// Where it comes from.
    pub origin: String,
    /// The state.
    pub snapshot: Snapshot,
}

/// What does not change while a run goes on.
#[derive(Clone, Default)]
struct Facts {
    title: String,
    exact: Option<f64>,
}

/// Reads a run again and again.
pub struct Watcher {
    folder: PathBuf,
    known: Option<(PathBuf, Facts)>,
}

impl Watcher {
    /// Refuses what is no run.
    pub fn new(folder: &Path) -> Result<Self> {
        let watcher = Watcher { folder: folder.to_owned(), known: None };
        watcher.run()?;
        Ok(watcher)
    }

    /// The run that is at work, or was last.
    pub fn run(&self) -> Result<PathBuf> {
        job::still_there(&self.folder)?;
        let own = || is_run(&self.folder).then(|| self.folder.clone());
        job::begun(&self.folder).or_else(own).ok_or_else(|| {
            let folder = self.folder.display();
            usage(format!(
                "DIR = {folder}: must be the directory of a training run; \
                 'leaps train run.toml --out {folder}' makes one, 'leaps status DIR' finds those in a folder"
            ))
        })
    }

    /// Read everything anew.
    pub fn look(&mut self) -> Result<View> {
        let run = self.run()?;
        let (standing, mut warnings) = Standing::read(&run)?;
        let facts = match &self.known {
            Some((of, facts)) if *of == run => facts.clone(),
            _ => {
                let facts = facts(&run).unwrap_or_else(|error| {
                    warnings.push(error.to_string());
                    Facts::default()
                });
                self.known = Some((run.clone(), facts.clone()));
                facts
            }
        };
        let state = state(&run).unwrap_or_else(|error| {
            warnings.push(error.to_string());
            None
        });
        let parts = self.parts();
        Ok(View { title: facts.title, parts, standing, exact: facts.exact, state, warnings })
    }

    /// The lattices that the run goes through; what cannot be read is left out.
    fn parts(&self) -> Vec<Part> {
        let Ok(Some(spec)) = spec(&self.folder) else { return Vec::new() };
        let smaller = job::sizes(&spec);
        let own = spec.target.size.clone();
        let count = smaller.len();
        if count == 0 {
            return Vec::new();
        }
        let place =
            |part: usize| (part..count).fold(self.folder.clone(), |folder, _| folder.join(START));
        let part = |(number, size): (usize, String)| {
            let folder = place(number);
            let standing = folder.join("events.jsonl").exists();
            let standing = standing.then(|| Standing::read(&folder).ok()).flatten();
            Part { size, standing: standing.map(|(standing, _)| standing) }
        };
        let sizes = smaller.into_iter().chain(own).map(|size| size.to_string());
        sizes.enumerate().map(part).collect()
    }
}

/// The settings in a directory, if there are any.
fn spec(run: &Path) -> Result<Option<RunSpec>, Error> {
    let path = run.join("config.toml");
    let Some(text) = if_any(read_text(&path))? else { return Ok(None) };
    RunSpec::parse(&text, &path)?.resolve().map(Some)
}

fn facts(run: &Path) -> Result<Facts, Error> {
    let Some(spec) = spec(run)? else { return Ok(Facts::default()) };
    let problem = spec.problem()?;
    let exact = exact::known(&*problem.target, problem.path.ends());
    Ok(Facts { title: problem.description, exact: exact.map(|exact| exact.log_z) })
}

/// The state of the last validation, or the last one of `results.json` for runs without.
fn state(run: &Path) -> Result<Option<State>, Error> {
    if let Some(snapshot) = Snapshot::read(run)? {
        let origin = format!("validation at step {}", snapshot.step);
        return Ok(Some(State { origin, snapshot }));
    }
    let Some(text) = if_any(read_text(&run.join("results.json")))? else { return Ok(None) };
    let Ok(SamplerResult::Walkers(result)) = serde_json::from_str(&text) else { return Ok(None) };
    let Some(all) = result.snapshots else { return Ok(None) };
    let sites: usize = all.shape.iter().product();
    let last = all.frames.into_iter().rfind(|frame| frame.x.len() == sites);
    Ok(last.map(|frame| State {
        origin: "results.json".to_owned(),
        snapshot: Snapshot { step: 0, shape: all.shape, q: all.q, x: frame.x },
    }))
}
