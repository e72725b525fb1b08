//! Runs that start from the parameters of a trained model.
//!
//! Parameters go over tensor by tensor, by name and shape. Those of convolutions know nothing of the sites, so that a network trained on a
//! small lattice starts one on a larger lattice. A hollow convolution may be deeper than the model's: the layers that the model does not
//! have start as the identity (weights and biases 0), so that the network does what the model's does. The free energy is extensive:
//! [`FreeEnergySpec::Rate`] is its derivative per site and goes over as it is; any other starts afresh.

use serde::{Deserialize, Serialize};

use super::model::Model;
use super::parameters;
use crate::net::{FreeEnergy, FreeEnergySpec, Net, NetSpec, Tensor, take_mut};
use crate::{Error, Result};

/// The trained model that a run started from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Origin {
    /// Its directory, as it was given.
    pub name: String,
    /// BLAKE3 of its `model.safetensors`.
    pub checksum: String,
}

/// What a trained model gives to a run that starts from it.
#[derive(Clone, Debug, PartialEq)]
pub struct WarmStart {
    /// Averaged parameters of the network, then of the free energy.
    pub parameters: Vec<f32>,
    /// BLAKE3 of the model's `model.safetensors`.
    pub checksum: String,
    /// Layers that the model does not have, which start as the identity.
    pub new_layers: usize,
    /// Whether the free energy starts from the model's too.
    pub free_energy: bool,
}

impl Model {
    /// The averaged parameters as a start for `net` and `free`, which may be those of another target; `seed` is for what the model
    /// does not have.
    ///
    /// # Errors
    /// [`Error::Misfit`] names the first tensor that does not fit.
    pub fn warm_start(&self, net: &Net, free: &FreeEnergy, seed: u64) -> Result<WarmStart> {
        if self.conditions() != net.conditions() {
            let own = self.family.map_or("one target alone".into(), |family| family.describe());
            let advice = "start from a model for the same ranges, or afresh";
            let condition = "trained for the same kinds of ranges, train.beta_range and train.field_range or what stands in its place, as the new run";
            return Err(Error::invalid("train.from", format!("for {own}"), condition, advice));
        }
        let depth = |spec: &NetSpec| match spec {
            NetSpec::Hollow(hollow) => hollow.depth,
            NetSpec::Glass(glass) => glass.depth,
            _ => None,
        };
        let layers = depth(&self.network).unwrap_or(usize::MAX);
        let new_layers = depth(net.spec()).map_or(0, |depth| depth.saturating_sub(layers));
        let mut parameters = self.take_over("net.", &net.tensors(), net.initial(seed), layers)?;
        let same = *free.spec() == self.free_energy;
        let free_energy = same && !matches!(self.free_energy, FreeEnergySpec::Mlp { .. });
        parameters.extend(match free_energy {
            true => self.take_over("free.", &free.tensors(), free.initial(seed), usize::MAX)?,
            false => free.initial(seed),
        });
        let checksum = self.checksum()?;
        Ok(WarmStart { parameters, checksum, new_layers, free_energy })
    }

    /// The numbers of `wanted` from this model, and of layers from `layers` on such that they change nothing.
    fn take_over(
        &self,
        prefix: &str,
        wanted: &[Tensor],
        fresh: Vec<f32>,
        layers: usize,
    ) -> Result<Vec<f32>> {
        let misfit =
            |name: &str, found: Option<&[usize]>, needed: Option<&[usize]>| Error::Misfit {
                path: self.file().into(),
                tensor: name.into(),
                found: found.map(<[usize]>::to_vec),
                needed: needed.map(<[usize]>::to_vec),
            };
        let mut all = fresh;
        let mut rest = &mut all[..];
        for tensor in wanted {
            let own = take_mut(&mut rest, tensor.len());
            let name = format!("{prefix}{}", tensor.name);
            let Some(shape) = self.tensors.shape(&name) else {
                match place(&tensor.name) {
                    // h + W * f(h) + b is h.
                    Some((layer, "weight" | "bias")) if layer >= layers => own.fill(0.0),
                    Some((layer, _)) if layer >= layers => {}
                    _ => return Err(misfit(&name, None, Some(&tensor.shape))),
                }
                continue;
            };
            if shape != tensor.shape {
                return Err(misfit(&name, Some(shape), Some(&tensor.shape)));
            }
            own.copy_from_slice(parameters::numbers(&self.tensors, prefix, tensor)?);
        }
        let known = |name: &str| wanted.iter().any(|tensor| tensor.name == name);
        let extra =
            self.tensors.names().find(|name| name.strip_prefix(prefix).is_some_and(|n| !known(n)));
        match extra {
            Some(name) => Err(misfit(name, self.tensors.shape(name), None)),
            None => Ok(all),
        }
    }
}

/// The layer of a tensor `layerN.REST`, and the rest.
fn place(name: &str) -> Option<(usize, &str)> {
    let (layer, rest) = name.strip_prefix("layer")?.split_once('.')?;
    Some((layer.parse().ok()?, rest))
}

#[cfg(test)]
mod tests;
