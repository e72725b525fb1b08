//! `leaps rates`: a network evaluated at given states and times, to examine it from outside.

mod input;

use std::path::{Path, PathBuf};

use anyhow::Result;
use clap::Args;
use leaps::Error;
use leaps::job::{Evaluated, evaluate};
use safetensors::Dtype;
use safetensors::tensor::{TensorView, serialize};

use crate::app::Context;
use crate::error::usage;
use crate::models;
use input::Input;

/// Flags of `rates`.
#[derive(Args, Debug)]
#[command(after_help = "\
Input:   x [n, sites...], values from 0 or spins -1 and +1; t [n], times from 0 to 1.
Output:  G          flux of the network, [n, q, sites...]; for q = 2 the flip, [n, sites...]
         out_rates  rates of jumps, the same shape
         back_rates rates of the time reversal, the same shape
         delta_U    change of U_t, the same shape
         U, dU_dt   [n]
         dF_dt      derivative of the free energy that was learnt with the network, [n]
         K          log-weight rate -dU_dt + sum(out_rates - back_rates), [n]
         residual   K + dF_dt, 0 for a perfect network, [n]")]
pub struct RatesArgs {
    /// Model directory, run directory, or name of a model: shipped ('leaps models' lists them) or in LEAPS_MODELS
    #[arg(long, value_name = "DIR|NAME")]
    model: PathBuf,
    /// States and times, as safetensors
    #[arg(long, value_name = "FILE.safetensors")]
    input: PathBuf,
    /// File for what the network says, as safetensors
    #[arg(long, value_name = "FILE.safetensors")]
    output: PathBuf,
}

/// Read the states, evaluate the network, write all numbers.
pub fn run(args: &RatesArgs, context: &Context) -> Result<()> {
    let found = models::find("--model", &args.model)?;
    let layers = found.layers()?;
    let config = layers.resolve()?;
    let problem = layers.problem(&config)?;
    let full = |path: &Path| path.canonicalize().ok();
    if full(&args.output).is_some_and(|output| Some(output) == full(&args.input)) {
        let output = args.output.display();
        return Err(usage(format!("--output = {output}: must be another file than --input")));
    }
    writable(&args.output)?;
    let input = Input::read(&args.input, &*problem.target)?;
    let evaluated = evaluate(&found.model, &problem, &input.states, &input.times)?;
    leaps::store::write_file(&args.output, &encode(&evaluated, &input, problem.target.q())?)?;
    let (states, output) = (input.times.len(), args.output.display());
    context.say(format!("{}, {states} states, wrote {output}", problem.description));
    Ok(())
}

/// Refuse a place where no file can be made, before any work.
fn writable(path: &Path) -> Result<()> {
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    let directory = parent.unwrap_or(".".as_ref());
    let fail = |source| Error::Io { path: path.into(), source };
    if !std::fs::metadata(directory).map_err(fail)?.is_dir() {
        return Err(fail(std::io::ErrorKind::NotADirectory.into()).into());
    }
    Ok(())
}

fn encode(evaluated: &Evaluated, input: &Input, q: usize) -> Result<Vec<u8>> {
    let n = input.times.len();
    let one = vec![n];
    let mut all = vec![n];
    all.extend((q > 2).then_some(q));
    all.extend(&input.shape);
    let flux: Vec<u8> = evaluated.flux.iter().flat_map(|value| value.to_le_bytes()).collect();
    let bytes =
        |values: &[f64]| -> Vec<u8> { values.iter().flat_map(|v| v.to_le_bytes()).collect() };
    let mut tensors = vec![("G", Dtype::F32, all.clone(), flux)];
    for (name, values) in [
        ("out_rates", &evaluated.out),
        ("back_rates", &evaluated.back),
        ("delta_U", &evaluated.changes),
    ] {
        tensors.push((name, Dtype::F64, all.clone(), bytes(values)));
    }
    for (name, values) in [
        ("U", &evaluated.potential),
        ("dU_dt", &evaluated.slope),
        ("dF_dt", &evaluated.free),
        ("K", &evaluated.balance),
        ("residual", &evaluated.residual),
    ] {
        tensors.push((name, Dtype::F64, one.clone(), bytes(values)));
    }
    let views: std::result::Result<Vec<_>, _> = tensors
        .iter()
        .map(|(name, kind, shape, bytes)| {
            TensorView::new(*kind, shape.clone(), bytes).map(|view| (*name, view))
        })
        .collect();
    Ok(serialize(views?, None)?)
}
