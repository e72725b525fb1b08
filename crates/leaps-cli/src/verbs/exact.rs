//! Compute exact answers by enumeration, transfer matrix or Kaufman's formula, and say by which.

use anyhow::Result;
use clap::{Args, ValueEnum};
use leaps::exact::{self, Exact, Method};
use leaps::observe::symmetric;
use leaps::target::Target;

use crate::app::Context;
use crate::config::{Config, Problem, ProblemArgs};
use crate::output;
use crate::results::{ExactResult, Origin};

/// Flags of `exact`.
#[derive(Args, Debug)]
pub struct ExactArgs {
    #[command(flatten)]
    problem: ProblemArgs,
    /// Method: enumeration, transfer-matrix or kaufman [default: the best that applies]
    #[arg(long, value_enum, value_name = "NAME", hide_possible_values = true, help_heading = None::<&str>)]
    method: Option<MethodName>,
}

/// The methods by the names users write.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum MethodName {
    Enumeration,
    TransferMatrix,
    Kaufman,
}

impl From<MethodName> for Method {
    fn from(name: MethodName) -> Method {
        match name {
            MethodName::Enumeration => Method::Enumeration,
            MethodName::TransferMatrix => Method::TransferMatrix,
            MethodName::Kaufman => Method::Kaufman,
        }
    }
}

/// Solve the target and print what is known.
pub fn run(args: &ExactArgs, context: &Context) -> Result<()> {
    let layers = args.problem.layers(context.globals.seed, &context.matches)?;
    let config = Config::resolve(&layers)?;
    let problem = config.problem(&layers)?;
    let (target, lambda) = (&problem.target, problem.path.ends());
    let progress = context.progress("exact").titled(problem.description.clone());
    let solved = exact::solve(target, lambda, args.method.map(Method::from), &progress)?;
    progress.announce();
    let seconds = progress.seconds();
    drop(progress);
    context.detail(config.formula());
    let origin = Origin::new(context, &config, &problem);
    let result = result(origin, &solved, &problem, seconds);
    if context.globals.json { output::json(&result) } else { output::data(&table(&result)) }
}

fn result(origin: Origin, solved: &Exact, problem: &Problem, seconds: f64) -> ExactResult {
    let (sites, beta) = (problem.target.sites(), problem.beta);
    let symmetric = symmetric(&problem.target, problem.path.ends());
    ExactResult {
        origin,
        method: solved.method.to_string(),
        log_z: solved.log_z,
        energy_per_site: solved.energy_per_site(sites),
        heat_capacity_per_site: solved.heat_capacity_per_site(sites),
        free_energy_per_site: -solved.log_z / (beta * sites as f64),
        entropy_per_site: (solved.log_z + beta * solved.energy) / sites as f64,
        magnetization: solved.order.map(|order| order.m),
        abs_magnetization: solved.order.map(|order| order.abs),
        magnetization_squared: solved.order.map(|order| order.squared),
        binder: solved.binder(),
        susceptibility_per_site: solved.susceptibility_per_site(sites, beta, symmetric),
        seconds,
    }
}

fn table(result: &ExactResult) -> String {
    let mut rows = vec![("method", result.method.clone())];
    for (name, value) in [
        ("log_z", Some(result.log_z)),
        ("energy_per_site", Some(result.energy_per_site)),
        ("heat_capacity_per_site", Some(result.heat_capacity_per_site)),
        ("free_energy_per_site", Some(result.free_energy_per_site)),
        ("entropy_per_site", Some(result.entropy_per_site)),
        ("magnetization", result.magnetization),
        ("abs_magnetization", result.abs_magnetization),
        ("magnetization_squared", result.magnetization_squared),
        ("binder", result.binder),
        ("susceptibility_per_site", result.susceptibility_per_site),
    ] {
        if let Some(value) = value {
            rows.push((name, output::fixed(value, 10)));
        }
    }
    output::pairs(&rows)
}
