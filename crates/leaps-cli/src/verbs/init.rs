//! `leaps init TARGET > run.toml`: a commented configuration.

use anyhow::Result;
use clap::Args;

use crate::app::Context;
use crate::config::{ProblemArgs, to_toml};
use crate::output;

/// Flags of `init`.
#[derive(Args, Debug)]
pub struct InitArgs {
    #[command(flatten)]
    problem: ProblemArgs,
}

/// Print the configuration of the target with every default written out.
pub fn run(args: &InitArgs, context: &Context) -> Result<()> {
    let layers = args.problem.layers(context.globals.seed, &context.matches)?;
    let config = layers.resolve()?;
    layers.problem(&config)?; // a target that cannot be built has no configuration
    output::data(&to_toml(&config))
}
