//! `leaps import`: a checkpoint of the authors' code as a model directory.

use std::path::PathBuf;

use anyhow::Result;
use clap::Args;
use leaps::net::{FreeEnergy, Net, import_checkpoint};
use leaps::path::PathSpec;
use leaps::rates::Parametrisation;
use leaps::store::{Model, ModelParts, Summary};
use leaps::target::{Boundary, Field, Interaction, Kind, Size, TargetSpec};

use crate::app::Context;
use crate::error::usage;

/// Flags of `import`.
#[derive(Args, Debug)]
pub struct ImportArgs {
    /// PyTorch-Lightning checkpoint (.ckpt); read as data, nothing in it is executed
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// New model directory
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
}

/// Read the checkpoint and write the model.
pub fn run(args: &ImportArgs, context: &Context) -> Result<()> {
    if args.out.exists() {
        let out = args.out.display();
        return Err(usage(format!("--out = {out}: must be a new directory; it exists already")));
    }
    let imported = import_checkpoint(&args.file)?;
    let target = imported.target.model()?;
    let net = Net::new(&imported.spec, &target)?;
    let free = FreeEnergy::new(&imported.free_energy, leaps::target::Target::sites(&target))?;
    let mut parameters = imported.parameters.clone();
    parameters.extend(&imported.free_energy_parameters);
    let description = &imported.target;
    let potts = description.interaction == Interaction::Potts;
    let described = TargetSpec {
        kind: Some(if potts { Kind::Potts } else { Kind::Ising }),
        size: Some(Size(vec![description.side])),
        dimensions: Some(2),
        beta: Some(description.beta),
        coupling: Some(description.coupling),
        field: Some(Field::Uniform(0.0)),
        boundary: Some(Boundary::Periodic),
        q: potts.then_some(description.q),
        ..TargetSpec::default()
    };
    let name = args.file.file_name().unwrap_or_default().to_string_lossy();
    let source = format!("{name}, a checkpoint of the authors' code");
    let model = Model::new(ModelParts {
        net: &net,
        free: &free,
        parametrisation: Parametrisation::Relu, // the paper's
        target: described.without_gaps(),
        path: PathSpec::default(), // linear, as theirs
        training: Summary { source: Some(source), ..Summary::default() },
        average: &parameters,
        raw: None,
    })?;
    model.save(&args.out)?;
    let (out, n) = (args.out.display(), parameters.len());
    context.say(format!("wrote {out}: {n} parameters; next: 'leaps sample --model {out}'"));
    Ok(())
}
