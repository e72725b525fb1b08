//! `leaps free-energy`: free energies, entropies and observables over temperatures and fields.

use std::path::PathBuf;

use anyhow::Result;
use clap::Args;
use leaps::Error;
use leaps::device::NoProgress;
use leaps::job::{FreeEnergies, FreeEnergyMethod};
use leaps::mcmc::{ChainSpec, KernelSpec};
use leaps::path::Strength;
use leaps::results::{FreeEnergyResult, ThermoPoint};
use leaps::sampler::{ResampleSpec, SchemeSpec, WalkerSpec};
use leaps::store::write_file;
use leaps_report::csv;
use leaps_report::figure::{Figure, Format};
use leaps_report::free_energy::figure;
use leaps_report::text::{Short, Table, fixed, sigmas, with_error};

use crate::app::Context;
use crate::config::{Layers, ProblemArgs};
use crate::csv::CsvArgs;
use crate::error::usage;
use crate::models::{self, Found};
use crate::output;

/// Flags of `free-energy`.
#[derive(Args, Debug)]
#[command(
    after_help = "Ranges: --beta 0.2:0.6:9 is nine inverse temperatures from 0.2 to 0.6; --temperature, --field, --mu and --crystal-field take ranges too.\n\
    Example: leaps free-energy ising --size 16 --beta 0.2:0.6:21 --csv ising.csv --figure ising.svg"
)]
pub struct FreeEnergyArgs {
    #[command(flatten)]
    problem: ProblemArgs,
    /// Model directory, run directory, or name of a model, in place of a target
    #[arg(long, value_name = "DIR|NAME", conflicts_with_all = ["kind", "config"])]
    model: Option<PathBuf>,
    /// How: auto (network if there is one, else tempering), network, ais, smc (population annealing) or tempering
    #[arg(long, value_enum, value_name = "NAME", default_value_t, hide_possible_values = true)]
    method: FreeEnergyMethod,
    #[command(flatten)]
    scheme: SchemeSpec,
    #[command(flatten)]
    walkers: WalkerSpec,
    #[command(flatten)]
    resample: ResampleSpec,
    #[command(flatten)]
    kernel: KernelSpec,
    #[command(flatten)]
    chains: ChainSpec,
    #[command(flatten)]
    csv: CsvArgs,
    /// Draw curves over temperature, or maps over temperature and field
    #[arg(long, value_name = "FILE.svg|.png|.pdf", help_heading = "Output")]
    figure: Option<PathBuf>,
}

/// Find the free energies and print them; after a signal those of the points that there are.
pub fn run(args: &FreeEnergyArgs, context: &Context) -> Result<()> {
    args.csv.check()?;
    if let Some(path) = &args.figure {
        drawing(path)?;
    }
    let found = args.model.as_deref().map(|model| models::find("--model", model)).transpose()?;
    let layers = layers(args, found.as_ref(), context)?;
    let spec = layers.resolve()?;
    if spec.walkers.two_sided {
        let verbs = "'leaps ais' and 'leaps sample' have it";
        return Err(usage(format!(
            "--two-sided: must be left out of 'leaps free-energy'; {verbs}"
        )));
    }
    let problem = layers.problem(&spec)?;
    let given = |key: &str| layers.source(key).is_some();
    let job = FreeEnergies {
        betas: context.grid.betas.clone(),
        fields: context.grid.fields.clone(),
        of: context.grid.of,
        method: args.method,
        model: found.as_ref().map(|found| (found.model.clone(), found.name.clone())),
        fit_ladder: !given("sample.temperatures") && !given("sample.betas"),
        spec,
        ..FreeEnergies::new(problem)
    };
    job.check().map_err(|error| layers.explain(error))?;
    // What batch systems send ends the work as Ctrl-C does: the points that there are are not lost.
    let signals = context.catch_stops();
    context.say(format!("{}, seed {}", job.problem.description, job.spec.seed));
    let done = job.run_in(&context.job(&NoProgress), context);
    if matches!(done, Err(Error::Interrupted)) {
        return Err(signals.failure(Error::Interrupted.to_string()));
    }
    let run = done.map_err(|error| layers.explain(error))?;
    let printed = context.record(&job.problem, &run.computed, &run.result);
    let shown = if context.globals.json {
        output::json(&printed)
    } else {
        context.say(summary(&run));
        output::data(&table(&run.points, run.of))
    };
    for doubt in &run.warnings {
        context.say(format!("warning: {doubt}"));
    }
    args.csv.write(|| csv::points(&run), context)?;
    if let Some(path) = &args.figure {
        let element = figure(&job.problem.description, &run);
        let title = job.problem.description.clone();
        let drawn = Figure { name: "all".to_owned(), title, section: "", element };
        let bytes = drawn.encode(drawing(path)?)?;
        write_file(path, &bytes)?;
        context.say(format!("wrote {}", path.display()));
    }
    if let (true, Some(asked)) = (run.interrupted, run.asked) {
        let text =
            format!("interrupted with {} of {asked} points; they are printed", run.points.len());
        return Err(signals.failure(text));
    }
    shown
}

fn drawing(path: &std::path::Path) -> Result<Format> {
    let wrong = || usage(format!("--figure = {}: must end in .svg, .png or .pdf", path.display()));
    Format::of(path).ok_or_else(wrong)
}

fn layers(args: &FreeEnergyArgs, found: Option<&Found>, context: &Context) -> Result<Layers> {
    let matches = &context.matches;
    let mut layers = match found {
        Some(found) => {
            let mut layers = found.layers()?;
            layers.set(&args.problem.set)?;
            layers.seed(context.globals.seed, matches)?;
            // A network of one temperature passes those of a range on its way to its own.
            let family = found.model.family.unwrap_or_default();
            if context.grid.betas.is_empty() || family.beta.is_some() {
                layers.flags("target", &args.problem.target, matches)?;
                layers.temperature(args.problem.temperature)?;
            }
            layers
        }
        None => args.problem.layers(context.globals.seed, matches)?,
    };
    layers.flags("sample", &args.scheme, matches)?;
    layers.flags("sample", &args.walkers, matches)?;
    layers.flags("sample", &args.resample, matches)?;
    layers.flags("sample", &args.kernel, matches)?;
    layers.flags("sample", &args.chains, matches)?;
    Ok(layers)
}

fn summary(result: &FreeEnergyResult) -> String {
    let how = match &result.model {
        Some(model) => format!("{} {model}", result.method),
        None => result.method.clone(),
    };
    let merit = result.points.last().map_or(f64::NAN, |point| point.log_z_merit);
    let points = result.points.len();
    let lowest = result.lowest.as_ref().map_or_else(String::new, |lowest| {
        format!(", lowest_energy_per_site {}", fixed(lowest.energy_per_site, 6))
    });
    format!(
        "{how}, {points} points, {:.2} s, log_z_merit {} at the last{lowest}",
        result.seconds,
        Short(merit)
    )
}

/// The points for people, with the distance of log Z from the exact value where that is known.
fn table(points: &[ThermoPoint], of: Strength) -> String {
    let Some(first) = points.first() else { return String::new() };
    let fields = points.iter().any(|point| point.field.is_some());
    let exact = points.iter().any(|point| point.log_z.exact.is_some());
    let mut table = Table::default();
    let mut head = vec!["beta"];
    head.extend(fields.then_some(of.name()));
    head.push("ess");
    for (name, _) in first.named() {
        head.push(name);
        if name == "log_z" && exact {
            head.extend(["exact", "sigmas"]);
        }
    }
    table.row(head);
    for point in points {
        let mut cells = vec![point.beta.to_string()];
        cells.extend(point.field.filter(|_| fields).map(|field| field.to_string()));
        cells.push(fixed(point.ess, 3));
        for (name, e) in point.named() {
            cells.push(with_error(e.mean, e.error));
            if name == "log_z" && exact {
                let known = e.exact.map(|exact| (fixed(exact, 6), sigmas(e.mean, e.error, exact)));
                let (value, distance) = known.unwrap_or_else(|| ("-".into(), "-".into()));
                cells.extend([value, distance]);
            }
        }
        table.row(cells);
    }
    table.text()
}
