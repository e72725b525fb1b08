//! Every verb and flag, defined once: parser, help, man pages and completions come from here.

use clap::{Args, Command, CommandFactory, Parser, Subcommand, ValueEnum};
use leaps::device::{Device, Precision};

use crate::verbs;
use leaps::parse::{count, seed};
use leaps::spec::SEED;

/// The version, with the commit and the features of this build.
const VERSION: &str = concat!(env!("CARGO_PKG_VERSION"), " (", env!("LEAPS_BUILD"), ")");

/// Sample discrete distributions: Ising, Potts, spin glasses, any energy
#[derive(Parser, Debug)]
#[command(name = "leaps", version, long_version = VERSION, max_term_width = 100, propagate_version = true)]
#[command(
    after_help = "Exit codes: 0 done, 1 a requested check failed, 2 usage or configuration, \
    3 numerical failure, 4 files or the GPU, 75 stopped in time by a limit or a signal, 130 interrupted."
)]
pub struct Cli {
    #[command(flatten)]
    pub globals: Globals,
    #[command(subcommand)]
    pub verb: Verb,
}

/// The whole command line. Negative numbers are values everywhere, so that errors name their flag.
pub fn command() -> Command {
    Cli::command()
        .bin_name("leaps") // not 'leaps.exe', nor the name of a link
        .mut_subcommands(|verb| verb.allow_negative_numbers(true))
        .mut_subcommand("train", |verb| verb.mut_arg("kind", verbs::train::first_word))
        .mut_subcommand("free-energy", |verb| {
            let points =
                "Write the table to this file too, one line for every temperature and field";

            verb.mut_arg("at_beta", |arg| arg.hide(true))
                .mut_arg("two_sided", |arg| arg.hide(true))
                .mut_arg("csv", |arg| arg.help(points))
        })
}

/// The verbs that have a flag, as they are called; `None` if none has.
pub fn verbs_with(flag: &str) -> Option<String> {
    let has = |verb: &&Command| {
        // A verb has hidden flags to refuse them with a reason.
        let mut offered = verb.get_arguments().filter(|arg| !arg.is_hide_set());
        offered.any(|arg| arg.get_long() == flag.strip_prefix("--"))
    };
    let all = command();
    let verbs: Vec<String> = all
        .get_subcommands()
        .filter(has)
        .map(|verb| format!("'leaps {}'", verb.get_name()))
        .collect();
    (flag.starts_with("--") && !verbs.is_empty()).then(|| verbs.join(", "))
}

/// What to do.
#[derive(Subcommand, Debug)]
#[expect(clippy::large_enum_variant, reason = "one is made in the life of the program")]
pub enum Verb {
    /// Train a network on a small lattice, sample and compare with the exact answer, in a minute
    Demo(verbs::demo::DemoArgs),
    /// Train a network; continues a run that was stopped
    Train(verbs::train::TrainArgs),
    /// Sample with a trained network: log Z and weighted samples
    Sample(verbs::sample::SampleArgs),
    /// The models that have a name, such as those shipped with the program
    Models(verbs::models::ModelsArgs),
    /// Where training runs stand, one line each
    Status(verbs::status::StatusArgs),
    /// A training run on the terminal, while it goes on
    Watch(verbs::watch::WatchArgs),
    /// The report of a run as a page that is renewed while it goes on, for browsers on this machine
    Serve(verbs::serve::ServeArgs),
    /// One page with everything about a run or a result
    Report(verbs::report::ReportArgs),
    /// Figures of a run, a result or an experiment, as SVG, PNG or PDF
    Plot(verbs::plot::PlotArgs),
    /// Evaluate a network at given states and times
    Rates(verbs::rates::RatesArgs),
    /// Exact log Z, energy and heat capacity of a target
    Exact(verbs::exact::ExactArgs),
    /// Free energy, entropy, energy and order over temperatures and fields
    FreeEnergy(verbs::free_energy::FreeEnergyArgs),
    /// Annealed importance sampling: log Z and weighted samples
    Ais(verbs::annealing::AisArgs),
    /// Sequential Monte Carlo: annealing with resampling (population annealing)
    Smc(verbs::annealing::SmcArgs),
    /// Markov chains with any kernel
    Mcmc(verbs::mcmc::McmcArgs),
    /// The lowest energy of a target, and a state that has it
    Minimize(verbs::minimize::MinimizeArgs),
    /// Several samplers on one target, in one table
    Compare(verbs::compare::CompareArgs),
    /// The results of many runs, in one table
    Table(verbs::table::TableArgs),
    /// The paper's experiments: a page each, with figures, tables and exact values
    Reproduce(verbs::reproduce::ReproduceArgs),
    /// Make a model of a checkpoint of the authors' code
    Import(verbs::import::ImportArgs),
    /// Write the file of an instance in another format: rudy, dimod, qbsolv, MQLib, SciPy
    Convert(verbs::convert::ConvertArgs),
    /// Print a commented configuration with every default visible
    Init(verbs::init::InitArgs),
    /// Validate a configuration and explain it; nothing is run
    Check(verbs::check::CheckArgs),
    /// Print a completion script for a shell
    Completions(verbs::completions::CompletionsArgs),
    /// Print a manual page
    Man(verbs::man::ManArgs),
}

/// How exactly networks are computed on a GPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum PrecisionName {
    Float32,
    Tf32,
    Bf16,
}

impl From<PrecisionName> for Precision {
    fn from(name: PrecisionName) -> Precision {
        match name {
            PrecisionName::Float32 => Precision::Float32,
            PrecisionName::Tf32 => Precision::Tf32,
            PrecisionName::Bf16 => Precision::Bf16,
        }
    }
}

/// Read a device; what is wrong with it otherwise.
fn device(text: &str) -> Result<Device, String> {
    let all = "auto, cpu, cuda or, of several GPUs, cuda:0, cuda:1, ...";
    text.parse().map_err(|_| all.to_owned())
}

/// Flags that every verb has.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Common")]
pub struct Globals {
    /// Seed of all random numbers
    #[arg(long, global = true, value_name = "N", default_value_t = SEED, value_parser = seed)]
    pub seed: u64,
    /// Where to compute: cpu, cuda (an NVIDIA GPU; cuda:1 is the second) or auto (a GPU if there is one)
    #[arg(long, global = true, value_name = "DEVICE", default_value_t = Device::Auto, value_parser = device)]
    pub device: Device,
    /// Numbers in a network's products on a GPU: float32, tf32 or bf16; weights are exact with each
    #[arg(
        long,
        global = true,
        value_enum,
        value_name = "BITS",
        default_value = "bf16",
        hide_possible_values = true
    )]
    pub precision: PrecisionName,
    /// Threads; results do not depend on it [default: all cores]
    #[arg(long, global = true, value_name = "N", value_parser = count)]
    pub threads: Option<usize>,
    /// Print one JSON object instead of a table
    #[arg(long, global = true)]
    pub json: bool,
    /// Print nothing but results and errors
    #[arg(long, short, global = true, conflicts_with = "verbose")]
    pub quiet: bool,
    /// Say more about what is done
    #[arg(long, short, global = true)]
    pub verbose: bool,
}
