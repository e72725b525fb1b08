//! One command line, from its words to its exit code.

use std::ffi::OsString;
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, OnceLock};

use anyhow::Result;
use clap::error::ErrorKind;
use clap::{ArgMatches, FromArgMatches};
use leaps::Error;
use leaps::device::{Device, Placement, Progress};
use leaps::job::{self, Monitor};
use leaps::problem::Problem;
use leaps::results::{Computed, Origin, Record, SamplerResult};
use leaps::store::Observer;

use crate::cli::{self, Cli, Globals, Verb};
use crate::error::{self, usage};
use crate::grid::Grid;
use crate::output;
use crate::progress::TerminalProgress;
use crate::signals::Signals;
use crate::tables::Report;
use crate::threads;
use crate::training::TrainingProgress;
use crate::verbs;

/// What every verb needs besides its own flags.
pub struct Context {
    pub globals: Globals,
    /// The words of the command line, for the record.
    pub command: Vec<String>,
    /// Which flags were given and which have their defaults.
    pub matches: ArgMatches,
    /// Ranges that stand in place of single values.
    pub grid: Grid,
    signals: OnceLock<Signals>,
    stops: OnceLock<()>,
    /// Whether it was said that a GPU computes.
    on_gpu: Arc<AtomicBool>,
}

impl Context {
    /// Say something to the person at the terminal.
    pub fn say(&self, text: impl AsRef<str>) {
        if !self.globals.quiet {
            output::talk(text.as_ref());
        }
    }

    /// Say something to the person who asked for more with `-v`.
    pub fn detail(&self, text: impl AsRef<str>) {
        if self.globals.verbose {
            output::talk(text.as_ref());
        }
    }

    /// Catch Ctrl-C from here on; whether it came: before files are opened, so that none is left behind.
    pub fn interrupted(&self) -> bool {
        self.signals.get_or_init(Signals::catch).caught()
    }

    /// A watcher for long work, called `label` in its reports, which Ctrl-C stops.
    pub fn progress(&self, label: &str) -> TerminalProgress {
        let flag = &self.signals.get_or_init(Signals::catch).flag;
        let Globals { quiet, verbose, .. } = self.globals;
        TerminalProgress::new(label, quiet, Arc::clone(flag))
            .placing(verbose, Arc::clone(&self.on_gpu))
    }

    /// Say that a GPU computes, once, or why the CPU does to those who want to know.
    pub fn placed(&self, placement: &Placement, reason: Option<&Error>) {
        self.progress("").placed(placement, reason);
    }

    /// What jobs are given.
    pub fn job<'a>(&self, progress: &'a dyn Progress) -> job::Context<'a> {
        let precision = self.globals.precision.into();
        job::Context { device: self.globals.device, precision, progress, ..job::Context::default() }
    }

    /// What was computed, with its origin and this command.
    pub fn record<T>(&self, problem: &Problem, computed: &Computed, result: T) -> Record<T> {
        Record::new(Origin::new(problem, computed).of_command(&self.command), result)
    }

    /// Catch the signals of batch systems as well as Ctrl-C from here on.
    pub fn catch_stops(&self) -> &Signals {
        let signals = self.signals.get_or_init(Signals::catch);
        self.stops.get_or_init(|| signals.catch_stops());
        signals
    }

    /// Whether a signal has come.
    pub fn is_stopped(&self) -> bool {
        self.signals.get().is_some_and(Signals::caught)
    }
}

impl Monitor for Context {
    fn progress(&self, label: &str) -> Box<dyn Progress + '_> {
        Box::new(self.progress(label))
    }

    fn training(&self, directory: &Path) -> Box<dyn Observer + '_> {
        self.catch_stops();
        Box::new(TrainingProgress::new(self, directory))
    }

    fn note(&self, text: &str) {
        self.say(text);
    }

    fn detail(&self, text: &str) {
        self.detail(text);
    }

    fn found(&self, name: &str, result: &SamplerResult) {
        let summary = match result {
            SamplerResult::Walkers(result) => result.summary(),
            SamplerResult::Chains(result) => result.summary(),
        };
        self.detail(format!("{name}: seed {}, {summary}", result.seed()));
        for doubt in result.doubts() {
            Monitor::warn(self, &format!("{name}: {doubt}"));
        }
    }

    fn warn(&self, text: &str) {
        self.say(format!("warning: {text}"));
    }
}

/// Run the program on the words of a command line.
pub fn run(words: impl IntoIterator<Item = OsString>) -> u8 {
    let words: Vec<OsString> = words.into_iter().collect();
    let result = Grid::take(words.clone()).and_then(|(single, grid)| {
        let parsed = cli::command()
            .try_get_matches_from(&single)
            .and_then(|matches| Ok((Cli::from_arg_matches(&matches)?, matches)));
        match parsed {
            Ok((cli, matches)) => execute(cli, &matches, &words, grid),
            Err(refused) => refuse(&refused, &words),
        }
    });
    match result {
        Ok(()) => 0,
        Err(failure) => {
            if !error::is_closed_pipe(&failure) {
                let word = if error::is_stop(&failure) { "" } else { "error: " };
                output::talk(&format!("{word}{}", error::one_line(&failure)));
            }
            error::exit_code(&failure)
        }
    }
}

/// Print help and versions; turn everything else the parser refuses into one line.
fn refuse(refused: &clap::Error, words: &[OsString]) -> Result<()> {
    match refused.kind() {
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => Ok(refused.print()?),
        ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => {
            Err(usage("no verb; try 'leaps --help' or 'leaps exact ising --size 15'"))
        }
        ErrorKind::InvalidUtf8 => {
            let odd =
                words.iter().find(|word| word.to_str().is_none()).cloned().unwrap_or_default();
            let odd = odd.to_string_lossy();
            Err(usage(format!("{odd}: must be UTF-8 text here; rename the file if it is one")))
        }
        _ => Err(usage(error::from_clap(refused))),
    }
}

fn execute(cli: Cli, matches: &ArgMatches, words: &[OsString], grid: Grid) -> Result<()> {
    let shortage = threads::start(cli.globals.threads)?;
    let verb = matches.subcommand_name().unwrap_or_default().to_owned();
    let matches = matches.subcommand().map(|(_, matches)| matches.clone()).unwrap_or_default();
    let context = Context {
        globals: cli.globals,
        command: words.iter().map(|word| word.to_string_lossy().into_owned()).collect(),
        matches,
        grid,
        signals: OnceLock::new(),
        stops: OnceLock::new(),
        on_gpu: Arc::default(),
    };
    if let Some(shortage) = shortage {
        context.say(format!("warning: {shortage}"));
    }
    use Verb::{
        Ais, Compare, Demo, Exact, FreeEnergy, Mcmc, Models, Plot, Report, Reproduce, Sample, Smc,
        Train,
    };
    match &cli.verb {
        FreeEnergy(_) | Exact(_) | Ais(_) | Smc(_) | Sample(_) | Mcmc(_) => {}
        _ => context.grid.refuse(&verb)?,
    }
    let on_gpu = matches!(
        &cli.verb,
        Demo(_)
            | Train(_)
            | Sample(_)
            | FreeEnergy(_)
            | Models(_)
            | Report(_)
            | Plot(_)
            | Ais(_)
            | Smc(_)
            | Mcmc(_)
            | Compare(_)
            | Reproduce(_)
    );
    if let (device @ Device::Cuda(_), false) = (context.globals.device, on_gpu) {
        let verbs = "demo, train, sample, free-energy, models, report, plot, ais, smc, mcmc, compare and reproduce";
        return Err(usage(format!(
            "--device = {device}: only {verbs} compute on a GPU; leave it out"
        )));
    }
    match &cli.verb {
        Verb::Demo(args) => verbs::demo::run(args, &context),
        Verb::Train(args) => verbs::train::run(args, &context),
        Verb::Sample(args) => verbs::sample::run(args, &context),
        Verb::Models(args) => verbs::models::run(args, &context),
        Verb::Status(args) => verbs::status::run(args, &context),
        Verb::Watch(args) => verbs::watch::run(args, &context),
        Verb::Serve(args) => verbs::serve::run(args, &context),
        Verb::Report(args) => verbs::report::run(args, &context),
        Verb::Plot(args) => verbs::plot::run(args, &context),
        Verb::Rates(args) => verbs::rates::run(args, &context),
        Verb::Exact(args) => verbs::exact::run(args, &context),
        Verb::FreeEnergy(args) => verbs::free_energy::run(args, &context),
        Verb::Ais(args) => verbs::annealing::ais(args, &context),
        Verb::Smc(args) => verbs::annealing::smc(args, &context),
        Verb::Mcmc(args) => verbs::mcmc::run(args, &context),
        Verb::Minimize(args) => verbs::minimize::run(args, &context),
        Verb::Compare(args) => verbs::compare::run(args, &context),
        Verb::Table(args) => verbs::table::run(args, &context),
        Verb::Reproduce(args) => verbs::reproduce::run(args, &context),
        Verb::Import(args) => verbs::import::run(args, &context),
        Verb::Convert(args) => verbs::convert::run(args, &context),
        Verb::Init(args) => verbs::init::run(args, &context),
        Verb::Check(args) => verbs::check::run(args, &context),
        Verb::Completions(args) => verbs::completions::run(args),
        Verb::Man(args) => verbs::man::run(args),
    }
}
