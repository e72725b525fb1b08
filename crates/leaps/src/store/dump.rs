//! The evidence when a number is not finite.

use std::path::{Path, PathBuf};

use super::setup::Setup;
use super::tensors::Tensors;
use super::{atomic, parameters};
use crate::train::Trainer;
use crate::{Error, Result};

/// Write the batch of the step that failed, and the parameters it failed with, to
/// `dump-step-STEP.safetensors`: `states` `[n, sites]`, `times` `[n]`, `members` `[n]` of a family, `couplings` `[instances, site * dimensions + axis]` of the
/// instances that share them out evenly, `net.NAME` and `free.NAME` (parameters), `step`, `seed`. In
/// the header are the `error` and, as JSON, the `run`: target, path, network and settings, all that is needed to see it fail again.
pub(crate) fn write(
    run: &Path,
    setup: &Setup,
    trainer: &Trainer,
    error: &Error,
) -> Result<PathBuf> {
    let (batch, parameters) = (trainer.batch(), &trainer.state.optimiser.parameters);
    let path = run.join(format!("dump-step-{:08}.safetensors", trainer.steps()));
    let mut tensors = Tensors::new(&path);
    tensors.put("states", &[batch.len(), setup.target.sites()], batch.states.as_slice());
    tensors.put("times", &[batch.len()], batch.times.as_slice());
    if !batch.members.is_empty() {
        let members: Vec<u64> = batch.members.iter().map(|&member| member as u64).collect();
        tensors.put("members", &[batch.len()], members);
    }
    if !batch.instances.is_empty() {
        let couplings = batch.instances.iter().filter_map(|instance| instance.axis_couplings());
        let couplings: Vec<f32> = couplings.flatten().collect();
        let each = couplings.len() / batch.instances.len();
        tensors.put("couplings", &[batch.instances.len(), each], couplings);
    }
    parameters::put(&mut tensors, "", &setup.net, &setup.free, parameters)?;
    tensors.put("step", &[1], vec![trainer.steps()]);
    tensors.put("seed", &[1], vec![setup.seed]);
    let run = serde_json::to_string(&setup.identity()).unwrap_or_default();
    let notes = [("error", error.to_string()), ("run", run)];
    let notes: Vec<(&str, &str)> = notes.iter().map(|(key, text)| (*key, text.as_str())).collect();
    atomic::write(&path, &tensors.encode_with(&notes)?)?;
    Ok(path)
}

/// Refuse to keep parameters that are not finite.
pub(crate) fn check_parameters(setup: &Setup, trainer: &Trainer) -> Result<()> {
    let optimiser = &trainer.state.optimiser;
    let own = setup.net.parameters();
    for (what, numbers) in [("parameter", &optimiser.parameters), ("average", &optimiser.average)] {
        if let Some(at) = numbers.iter().position(|p| !p.is_finite()) {
            let (part, at_part) =
                if at < own { ("the network", at) } else { ("the free energy", at - own) };
            return Err(Error::NonFinite {
                what: format!("{what} {at_part} of {part}"),
                value: f64::from(numbers[at]),
                seed: setup.seed,
                walker: 0,
                step: trainer.steps(),
                state: "no state's".into(),
            });
        }
    }
    Ok(())
}
