//! `leaps models`: models that have a name, listed, and made of training runs.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::Result;
use clap::Args;
use clap::builder::{OsStringValueParser, TypedValueParser};
use leaps::Error;
use leaps::device::{Device, NoProgress, Placement, cpu_name};
use leaps::file::{if_any, read_text};
use leaps::observe::Estimate;
use leaps::store::{
    CARD, Card, Meta, Model, SHIPPED, START, SamplingCard, SpeedCard, TrainingCard, own_models,
    shipped_settings,
};
use serde::Serialize;

use crate::app::Context;
use crate::csv::CsvArgs;
use crate::error::usage;
use crate::models::{self, Found};
use crate::output;
use leaps::job::{Context as JobContext, Sampling};
use leaps::parse::count;
use leaps::results::WalkerResult;
use leaps_report::csv;
use leaps_report::text::{Table, sigmas, with_error};

/// Flags of `models`.
#[derive(Args, Debug)]
pub struct ModelsArgs {
    /// Make a model of this finished run: its averaged parameters, a model card with numbers of a fresh sample, a page
    #[arg(long, value_name = "RUN", requires = "name")]
    add: Option<PathBuf>,
    /// Name of the new model
    #[arg(long, value_name = "NAME", requires = "add", value_parser = text())]
    name: Option<String>,
    /// Folder of the new model's folder; those in crates/leaps/models of the source are shipped with the next build
    #[arg(long, value_name = "DIR", default_value = "models", requires = "add")]
    into: PathBuf,
    /// Walkers of the sample whose numbers are on the model card
    #[arg(long, value_name = "N", default_value = "20000", value_parser = count, requires = "add")]
    walkers: usize,
    /// What the network was trained on, where the run does not say
    #[arg(long, value_name = "MACHINE", requires = "add")]
    trained_on: Option<String>,
    #[command(flatten)]
    csv: CsvArgs,
}

/// Words that must be text; the parser's own complaint would not name the flag.
fn text() -> impl TypedValueParser<Value = String> {
    let text = |word: OsString| word.into_string().map_err(|_| "UTF-8 text");
    OsStringValueParser::new().try_map(text)
}

/// A model in the list.
#[derive(Debug, Serialize)]
struct Listed {
    name: String,
    /// `shipped`, or a folder in `LEAPS_MODELS`.
    place: String,
    target: String,
    network: String,
    /// What its card says, if it has one.
    card: Option<Card>,
}

/// All models.
#[derive(Debug, Serialize)]
struct List {
    models: Vec<Listed>,
}

/// Print the list, or make a model.
pub fn run(args: &ModelsArgs, context: &Context) -> Result<()> {
    args.csv.check()?;
    if let (Some(run), Some(name)) = (&args.add, &args.name) {
        return add(args, run, name, context);
    }
    let mut models = Vec::new();
    for (name, folder) in own_models() {
        let file = folder.join(CARD);
        let read = || -> Result<_> {
            let text = if_any(read_text(&file))?;
            let card = text.map(|text| Card::parse(&text, &folder)).transpose()?;
            Ok((models::find("LEAPS_MODELS", &folder)?, card))
        };
        // A damaged one does not hide the others.
        match read() {
            Ok((found, card)) => {
                models.push(listed(name, folder.display().to_string(), &found, card))
            }
            Err(error) => context.say(format!("warning: {error}")),
        }
    }
    for shipped in SHIPPED {
        // One of the user's hides a shipped one of the same name.
        if !models.iter().any(|model| model.name == shipped.name) {
            let found =
                Found { model: shipped.model()?, name: shipped.name.into(), directory: None };
            models.push(listed(
                shipped.name.into(),
                "shipped".into(),
                &found,
                Some(shipped.card()?),
            ));
        }
    }
    models.sort_by(|a, b| a.name.cmp(&b.name));
    args.csv.write(|| digits(&models), context)?;
    if context.globals.json {
        return output::json(&List { models });
    }
    output::data(&table(&models))
}

fn listed(name: String, place: String, found: &Found, card: Option<Card>) -> Listed {
    let target = found.description().unwrap_or_default();
    Listed { name, place, target, network: words(&found.model), card }
}

fn table(models: &[Listed]) -> String {
    let mut table = Table::default();
    table.row(["name", "ess", "log_z", "sigmas", "seconds", "target", "network"]);
    let or_dash = |text: Option<String>| text.unwrap_or_else(|| "-".to_owned());
    for Listed { name, target, network, card, .. } in models {
        let sampling = card.as_ref().map(|card| &card.sampling);
        let shown = |e: &Estimate| with_error(e.mean, e.error);
        let off = |e: &Estimate| Some(sigmas(e.mean, e.error, e.exact?));
        table.row([
            name.clone(),
            or_dash(sampling.map(|s| shown(&s.ess))),
            or_dash(sampling.map(|s| shown(&s.log_z))),
            or_dash(sampling.and_then(|s| off(&s.log_z))),
            or_dash(card.as_ref().map(|card| format!("{:.1}", card.speed.seconds))),
            target.clone(),
            network.clone(),
        ]);
    }
    table.text()
}

/// The models with all digits of what their cards say.
fn digits(models: &[Listed]) -> String {
    let line = |Listed { name, place, target, network, card }: &Listed| {
        let number = |of: fn(&Card) -> f64| card.as_ref().map(of).into();
        vec![
            name.as_str().into(),
            place.as_str().into(),
            target.as_str().into(),
            network.as_str().into(),
            number(|card| card.parameters as f64),
            number(|card| card.sampling.walkers as f64),
            number(|card| card.sampling.ess.mean),
            number(|card| card.sampling.ess.error),
            number(|card| card.sampling.log_z.mean),
            number(|card| card.sampling.log_z.error),
            card.as_ref().and_then(|card| card.sampling.log_z.exact).into(),
            number(|card| card.speed.seconds),
        ]
    };
    csv::cells(csv::Head::Models, models.iter().map(line))
}

/// The network of a model in words.
fn words(model: &Model) -> String {
    let value = serde_json::to_value(&model.network).unwrap_or_default();
    let mut text = value["kind"].as_str().unwrap_or("network").to_owned();
    for (key, value) in value.as_object().into_iter().flatten() {
        if key != "kind" && !value.is_null() && *value != false {
            text += &format!(" {key} {}", value.to_string().trim_matches('"'));
        }
    }
    text += &format!(" {:?}", model.parametrisation).to_lowercase();
    if let Some(ranges) = model.family {
        text += &format!(", {}", ranges.describe());
    }
    if let Some(instances) = model.instances() {
        text += &format!(", over {instances} random instances at a time");
    }
    text
}

/// Cores of the sample whose time the card of the model states, and its walkers.
const CORES: usize = 2;
const FEW: usize = 2000;

fn add(args: &ModelsArgs, run: &Path, name: &str, context: &Context) -> Result<()> {
    let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "-.".contains(c);
    if name.starts_with(['.', '-']) || name.is_empty() || !name.chars().all(plain) {
        return Err(usage(format!(
            "--name = {name}: must be of small letters, digits, dots and dashes, such as ising-15-critical"
        )));
    }
    let folder = args.into.join(name);
    if folder.exists() {
        let shown = folder.display();
        return Err(usage(format!(
            "--name = {name}: must be new; {shown} exists, remove it first"
        )));
    }
    if SHIPPED.iter().any(|shipped| shipped.name == name) {
        context.say(format!(
            "warning: --name = {name}: a model of this name is shipped with the program, and hidden by one in LEAPS_MODELS"
        ));
    }
    if args.walkers < 2 {
        let walkers = args.walkers;
        return Err(usage(format!("--walkers = {walkers}: must be at least 2; 20000 is usual")));
    }
    // Before anything long is done.
    let fail = |source| leaps::Error::Io { path: args.into.clone(), source };
    std::fs::create_dir_all(&args.into).map_err(fail)?;
    let source = models::find("--add", run)?;
    check(&source.model, run)?;
    let training = training(&source, args);
    let found = Found { model: source.model.averaged(), name: name.to_owned(), directory: None };
    let target = found.description().unwrap_or_default();

    let placement = context.job(&NoProgress).place(Ok(()))?.0;
    let pool = rayon::ThreadPoolBuilder::new().num_threads(CORES).build()?;
    context.interrupted(); // signals are caught here, not in a thread of the pool
    let (few, seconds) = pool.install(|| sample(&found, FEW, Device::Cpu, context))?;
    let large = match (&placement, args.walkers) {
        (Placement::Cpu, FEW) => few,
        _ => sample(&found, args.walkers, context.globals.device, context)?.0,
    };

    let layers = found.layers()?;
    let problem = layers.problem(&layers.resolve()?)?;
    let net = found.model.net(&*problem.target)?;
    let parameters = net.parameters() + found.model.free(&*problem.target)?.parameters();
    let card = Card {
        name: name.to_owned(),
        target,
        network: words(&found.model),
        parameters,
        training,
        sampling: SamplingCard {
            walkers: large.walkers,
            intervals: large.intervals,
            seed: large.seed,
            device: match &placement {
                Placement::Cpu => cpu_name(),
                #[allow(unreachable_patterns)] // builds without CUDA have one placement
                gpu => net.computed_on(gpu),
            },
            ess: Estimate::new(large.ess, large.ess_error),
            log_z: large.log_z,
            energy_per_site: large.observables.energy_per_site,
        },
        speed: SpeedCard {
            walkers: FEW,
            threads: CORES,
            machine: cpu_name(),
            seconds: hundredths(seconds),
        },
    };
    let (text, page) = (card.text(), models::page(&card));
    found.model.save_with(&folder, &[(CARD, text.as_bytes()), ("README.md", page.as_bytes())])?;
    context.say(format!("wrote {}", folder.display()));
    let listed = [Listed {
        name: name.into(),
        place: folder.display().to_string(),
        target: card.target.clone(),
        network: card.network.clone(),
        card: Some(card.clone()),
    }];
    args.csv.write(|| digits(&listed), context)?;
    if context.globals.json {
        return output::json(&card);
    }
    output::data(&table(&listed))
}

/// Refuse runs that are not finished.
fn check(model: &Model, run: &Path) -> Result<()> {
    let (shown, steps) = (run.display(), model.training.steps);
    let asked = model.training.settings.as_ref().map(|settings| settings.steps);
    if let Some(all) = asked.filter(|all| steps < *all) {
        return Err(usage(format!(
            "--add = {shown}: must be finished; {steps} of {all} steps are made, 'leaps train {shown}' goes on"
        )));
    }
    Ok(())
}

/// What the run says about how it was trained.
fn training(source: &Found, args: &ModelsArgs) -> TrainingCard {
    let run = source.directory.as_deref().unwrap_or(Path::new(""));
    let meta = Meta::read(run).unwrap_or_default();
    let command = command(&meta.command);
    let is_settings = |word: &&String| word.ends_with(".toml") || shipped_settings(word).is_some();
    let settings = command.iter().flatten().find(is_settings).cloned();
    let summary = &source.model.training;
    TrainingCard {
        settings,
        command: command.map(|words| words.join(" ")),
        seed: summary.seed,
        steps: summary.steps,
        machine: args.trained_on.clone().or_else(|| machine(&meta)),
        seconds: leaps::job::seconds(run).map(hundredths),
        from: summary.from.as_ref().map(|from| match from.name.as_str() {
            START => "a smaller lattice, for as many steps".to_owned(),
            name => file_name(name),
        }),
        source: summary.source.clone(),
    }
}

/// A time as exact as anyone can tell.
fn hundredths(seconds: f64) -> f64 {
    (100.0 * seconds).round() / 100.0
}

/// The words of a command line without places of the machine.
fn command(words: &[String]) -> Option<Vec<String>> {
    let plain =
        |word: &String| if word.starts_with('/') { file_name(word) } else { word.to_owned() };
    let rest = words.get(1..)?.iter().map(plain);
    Some(std::iter::once("leaps".to_owned()).chain(rest).collect())
}

fn file_name(path: &str) -> String {
    Path::new(path).file_name().map_or(path.to_owned(), |name| name.to_string_lossy().into_owned())
}

/// The machine in words: the GPU, or threads of the CPU.
fn machine(meta: &Meta) -> Option<String> {
    match &*meta.device {
        "" => None,
        cpu if cpu == Placement::Cpu.machine() => {
            let machine = &meta.machine;
            Some(format!("{} threads of {}", machine.threads, machine.cpu))
        }
        gpu => Some(gpu.to_owned()),
    }
}

/// Sample as `leaps sample --model NAME --walkers N` does, and take the time.
fn sample(
    found: &Found,
    walkers: usize,
    device: Device,
    context: &Context,
) -> Result<(WalkerResult, f64)> {
    let start = Instant::now();
    let mut layers = found.layers()?;
    layers.set(&[format!("sample.walkers={walkers}")])?;
    layers.seed(context.globals.seed, &context.matches)?;
    let config = layers.resolve()?;
    let problem = layers.problem(&config)?;
    let progress =
        context.progress("sample").titled(format!("{}, {walkers} walkers", problem.description));
    let job = Sampling::of(&config, problem, found.model.clone(), &found.name);
    let done = job.run_in(&JobContext { device, ..context.job(&progress) });
    drop(progress);
    let run = done.map_err(|error| layers.explain(error))?;
    if run.interrupted {
        return Err(Error::Interrupted.into());
    }
    Ok((run.result, start.elapsed().as_secs_f64()))
}
