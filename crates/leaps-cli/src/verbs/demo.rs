//! Show in a few seconds what the program does: samplers beside the exact answer on a small lattice.

use std::path::PathBuf;

use anyhow::Result;
use clap::Args;
use leaps::Error;
use leaps::exact;
use leaps::target::Target;

use super::compare::{compare, table};
use crate::app::Context;
use crate::config::Layers;
use crate::output;
use crate::results::{Origin, Printed};

/// Flags of `demo`.
#[derive(Args, Debug)]
pub struct DemoArgs {
    /// Directory for the specification and the results
    #[arg(long, value_name = "DIR", default_value = "leaps-demo")]
    out: PathBuf,
}

/// What the demonstration compares.
const SPECIFICATION: &str = include_str!("demo.toml");

/// Compare samplers on the critical 8x8 Ising model with the exact answer.
pub fn run(args: &DemoArgs, context: &Context) -> Result<()> {
    let write = |name: &str, text: &str| {
        let path = args.out.join(name);
        std::fs::write(&path, text).map_err(|source| Error::Io { path, source })
    };
    let directory = args.out.clone();
    std::fs::create_dir_all(&args.out).map_err(|source| Error::Io { path: directory, source })?;
    let specification =
        SPECIFICATION.replace("seed = 1", &format!("seed = {}", context.globals.seed));
    write("compare.toml", &specification)?;

    let mut layers = Layers::default();
    layers.parse_file(&specification, "demo.toml".as_ref())?;
    let (config, problem, comparison) = compare(layers, context)?;
    let origin = Origin::new(context, &config, problem.target.sites());
    let printed = Printed { origin, result: &comparison };
    write("results.json", &(serde_json::to_string_pretty(&printed)? + "\n"))?;
    if context.globals.json {
        return output::json(&printed);
    }
    if let Some(exact) = exact::known(&problem.target, problem.path.ends()) {
        let log_z = output::fixed(exact.log_z, 6);
        context.say(format!("exact log_z {log_z} ({}), to compare with:", exact.method));
    }
    output::data(&table(&comparison))?;
    let out = args.out.display();
    context.say(format!("wrote {out}/compare.toml and {out}/results.json"));
    context.say(format!("next: edit it and run 'leaps compare {out}/compare.toml'"));
    Ok(())
}
