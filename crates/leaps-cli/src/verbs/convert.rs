//! `leaps convert IN OUT`: an instance's file in another format.

use std::path::PathBuf;

use anyhow::Result;
use clap::Args;
use leaps::store::write_instance;
use leaps::target::{Format, Instance};

use crate::app::Context;
use crate::error::usage;

/// Flags of `convert`.
#[derive(Args, Debug)]
pub struct ConvertArgs {
    /// File to read
    #[arg(value_name = "IN")]
    input: PathBuf,
    /// File to write
    #[arg(value_name = "OUT")]
    output: PathBuf,
    /// Format of IN [default: recognised by its contents]
    #[arg(long, value_enum, value_name = "FORMAT")]
    from: Option<Format>,
    /// Format of OUT [default: by the end of its name: .txt .rud .coo .json .qubo .npz]
    #[arg(long, value_enum, hide_possible_values = true, value_name = "FORMAT")]
    to: Option<Format>,
}

/// Read the one and write the other.
pub fn run(args: &ConvertArgs, context: &Context) -> Result<()> {
    let (input, output) = (&args.input, &args.output);
    let Some(to) = args.to.or_else(|| Format::of_name(output)) else {
        let names = Format::ALL.map(Format::name).join(", ");
        let out = output.display();
        return Err(usage(format!(
            "--to: must be one of {names}, since the name {out} does not say it; give it"
        )));
    };
    let (instance, from) = Instance::read(input, args.from)?;
    write_instance(&instance, output, to)?;
    let (from, to, words) = (from.title(), to.title(), instance.describe());
    context.say(format!("wrote {}: {to} of {from}, {words}", output.display()));
    Ok(())
}
