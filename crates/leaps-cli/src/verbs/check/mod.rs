//! `leaps check`: a configuration explained without running it.

mod training;

use std::path::PathBuf;

use anyhow::Result;
use clap::Args;
use leaps::Error;
use leaps::device::Bytes;
use leaps::exact::{enumerate, kaufman, transfer};
use leaps::mcmc::lanes::{Plan, Scan};
use leaps::target::{Colouring, Kind, Pairwise, Target};

use super::compare;
use crate::app::Context;
use crate::config::Layers;
use crate::csv::CsvArgs;
use crate::error::usage;
use crate::output;
use leaps::mcmc::Move;
use leaps::problem::Problem;
use leaps::spec::RunSpec;
use leaps_report::csv;
use leaps_report::text::span;

/// Flags of `check`.
#[derive(Args, Debug)]
pub struct CheckArgs {
    /// Configuration file, or run directory (- reads standard input)
    #[arg(value_name = "FILE|DIR")]
    config: PathBuf,
    /// Override a key of the configuration, such as sample.walkers=2000; repeatable
    #[arg(long = "set", value_name = "KEY=VALUE")]
    set: Vec<String>,
    #[command(flatten)]
    csv: CsvArgs,
}

/// Nanoseconds of one core for a single-site update by tables, by any other kernel, and for measuring one
/// site of a state. Within a factor of three on most machines.
const TABLE_UPDATE: f64 = 1.5;
const KERNEL_UPDATE: f64 = 90.0;
const MEASUREMENT: f64 = 45.0;

/// Validate, and say what would be sampled and at what cost.
pub fn run(args: &CheckArgs, context: &Context) -> Result<()> {
    args.csv.check()?;
    let mut layers = Layers::default();
    let file = match args.config.is_dir() {
        true => args.config.join("config.toml"),
        false => args.config.clone(),
    };
    if args.config.join("model.json").exists() && !file.exists() {
        return Err(usage(format!(
            "DIR = {}: is a model, and must be a run; 'leaps models' and 'leaps report' describe models",
            args.config.display()
        )));
    }
    layers.read_file(&file)?;
    layers.set(&args.set)?;
    let config = layers.resolve()?;
    let problem = layers.problem(&config)?;
    let mut rows = rows(&config, &problem);
    match training::rows(&config, &problem) {
        Ok(more) => rows.extend(more),
        // A target without a network can still be sampled in all other ways.
        Err(error @ Error::NotApplicable { .. }) => rows.push(("network", error.to_string())),
        Err(error) => return Err(layers.explain(error).into()),
    }
    if !layers.compare.is_empty() {
        let samplers = compare::job(&layers)?.samplers;
        let names: Vec<String> = samplers.into_iter().map(|sampler| sampler.name).collect();
        rows.push(("compare", names.join("; ")));
    }
    let pair = |(key, value): &(&'static str, String)| vec![(*key).into(), value.as_str().into()];
    args.csv.write(|| csv::cells(csv::Head::Configuration, rows.iter().map(pair)), context)?;
    if context.globals.json {
        let object: serde_json::Map<_, _> =
            rows.into_iter().map(|(name, value)| (name.to_owned(), value.into())).collect();
        return output::json(&object);
    }
    output::data(&output::pairs(&rows))?;
    context.say(format!("{} is valid; nothing was run", file.display()));
    Ok(())
}

fn rows(config: &RunSpec, problem: &Problem) -> Vec<(&'static str, String)> {
    let target = &*problem.target;
    let (sites, terms) = (target.sites(), target.term_names());
    let bonds = |model: &Pairwise| (0..sites).map(|site| model.neighbours(site).len()).sum();
    let directed: usize = target.pairwise().map_or(0, bonds);
    let clusters = target.lattice_model().map_or(directed / 2, |model| model.clusters());
    let updates = match config.updates.updates {
        0 => config.walkers.sweeps.unwrap_or(1) as f64 * sites as f64,
        updates => updates as f64,
    };
    let one = if has_tables(config, target) { TABLE_UPDATE } else { KERNEL_UPDATE };
    let walker_work =
        one * config.walkers.walkers as f64 * config.walkers.intervals as f64 * updates;
    let chains = &config.chains;
    let rungs = match config.kernel.kernel {
        Move::Kernel(_) => 1,
        Move::ParallelTempering | Move::Ladder => chains.temperatures.max(chains.betas.len()),
        Move::Houdayer => 2 * chains.temperatures.max(chains.betas.len()),
    };
    let moves = one * rungs as f64 * (chains.steps + chains.burn_in) as f64;
    let measurements = MEASUREMENT * (chains.steps / chains.thin) as f64;
    let chain_work = chains.chains as f64 * sites as f64 * (moves + measurements);
    // States, log-weights and their ancestors; the graph with one coupling per directed bond and term.
    let graph = directed * (4 + 8 * terms.len()) + sites * target.q() * 8 * terms.len();
    let memory = graph + config.walkers.walkers * (2 * sites + 40);
    let colours = target.pairwise().map(|model| Colouring::new(model).colours());
    let file = file_rows(config).unwrap_or_default();
    let mut rows = vec![
        ("target", problem.description.clone()),
        ("hamiltonian", config.target.formula()),
        ("sites", sites.to_string()),
        ("q", target.q().to_string()),
        ("bonds", clusters.to_string()),
        ("terms", terms.join(", ")),
        ("colours", colours.map_or_else(|| "-".to_owned(), |colours| colours.to_string())),
        ("exact", exact_method(target)),
        ("memory", bytes(memory as f64)),
        ("time_ais", seconds(walker_work)),
        ("time_mcmc", seconds(chain_work)),
    ];
    rows.splice(1..1, file);
    rows
}

/// The file of a target that is one: its format, what it holds, and the lattice that it is.
fn file_rows(config: &RunSpec) -> Option<Vec<(&'static str, String)>> {
    let target = config.target.clone();
    (target.kind == Some(Kind::File)).then_some(())?;
    let (instance, format) = target.instance().ok()?;
    let how = if target.format.is_some() { "as given" } else { "recognised" };
    let none = "none recognised: not the same bonds at every site, numbered row by row, and no line 'lattice'";
    Some(vec![
        ("file", format!("{} ({how}): {}", format.title(), instance.describe())),
        ("lattice", instance.describe_lattice().unwrap_or_else(|| none.to_owned())),
    ])
}

fn has_tables(config: &RunSpec, target: &dyn Target) -> bool {
    let Move::Kernel(kernel) = config.kernel.kernel else { return false };
    kernel.rule().is_some_and(|rule| Plan::of(target, rule, Scan::Systematic).is_ok())
}

/// The method by which `leaps exact` would solve the target.
fn exact_method(target: &dyn Target) -> String {
    let kaufman = |(rows, columns, _): (usize, usize, f64)| rows.max(columns) <= kaufman::MAX_SIDE;
    let states = enumerate::states(target);
    if states.is_some_and(|states| states <= 1 << 20) {
        "enumeration".to_owned()
    } else if target.pairwise().and_then(Pairwise::uniform_torus).is_some_and(kaufman) {
        "kaufman".to_owned()
    } else if states.is_some_and(|states| states <= enumerate::MAX_STATES) {
        "enumeration".to_owned()
    } else {
        match transfer::estimate(target) {
            Ok(cost) if cost.is_affordable() => {
                format!("transfer-matrix, {}", lasting(cost.seconds()))
            }
            _ => "none: too many states for enumeration, too wide for transfer-matrix".to_owned(),
        }
    }
}

fn bytes(count: f64) -> String {
    format!("about {}", Bytes(count))
}

/// The time of so many nanoseconds of one core on the cores at hand.
fn seconds(nanoseconds: f64) -> String {
    lasting(nanoseconds * 1e-9 / rayon::current_num_threads() as f64)
}

fn lasting(seconds: f64) -> String {
    match seconds {
        ..1.0 => "under a second".to_owned(),
        _ => format!("about {}", span(seconds)),
    }
}
