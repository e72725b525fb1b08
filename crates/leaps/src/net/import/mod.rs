//! Networks trained by the authors' code, read from their PyTorch-Lightning checkpoints.
//!
//! A checkpoint is a zip archive with a pickle in it. A pickle is a program; here it is only ever data: the
//! interpreter knows the few instructions and the few names that tensors and settings are made of, refuses everything else, and
//! uses memory in proportion to the file.

mod archive;
mod mapping;
mod objects;
mod pickle;
mod settings;
mod state;
#[cfg(test)]
mod tests;
mod value;
#[cfg(test)]
mod writer;

use std::path::Path as FilePath;

use super::layout::total;
use super::lec::Lec;
use super::network::Network;
use super::{FreeEnergy, FreeEnergySpec, NetSpec};
use crate::{Error, Result};

pub use settings::ImportedTarget;

#[cfg(test)]
pub(crate) use mapping::Mapped;
pub(crate) use mapping::map;
#[cfg(test)]
pub(crate) use state::{StateDict, Stored};

/// A network, its free energy and the target it was trained for.
#[derive(Clone, Debug)]
pub struct Imported {
    /// The network.
    pub spec: NetSpec,
    /// Its parameters.
    pub parameters: Vec<f32>,
    /// The function of time for the free energy.
    pub free_energy: FreeEnergySpec,
    /// Its parameters.
    pub free_energy_parameters: Vec<f32>,
    /// What it samples.
    pub target: ImportedTarget,
}

/// What is wrong with a part of a file.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Damage {
    what: String,
    reason: String,
}

/// A [`Damage`].
fn damage<T>(what: impl Into<String>, reason: impl Into<String>) -> std::result::Result<T, Damage> {
    Err(Damage { what: what.into(), reason: reason.into() })
}

/// Larger files are no checkpoints of networks of this kind.
const MAX_BYTES: u64 = 1 << 31;

/// Read a checkpoint (`.ckpt`) of the authors' code.
///
/// # Errors
/// [`Error::Io`] if the file cannot be read, [`Error::Corrupt`] if it is damaged, holds anything but data, or describes a
/// network or a target that is not known here.
pub fn import_checkpoint(path: &FilePath) -> Result<Imported> {
    let corrupt = |damage: Damage| Error::Corrupt {
        path: path.to_owned(),
        what: damage.what,
        reason: damage.reason,
    };
    import(&crate::file::read(path, MAX_BYTES)?).map_err(corrupt)
}

/// Import from the bytes of a checkpoint.
fn import(bytes: &[u8]) -> std::result::Result<Imported, Damage> {
    let archive = archive::Archive::new(bytes)?;
    let pickle = pickle::read(archive.entry("data.pkl")?)?;
    let state = state::state_dict(&pickle, &archive, bytes.len())?;
    let mapped = map(&state)?;
    let target = settings::target(&pickle, mapped.q)?;
    let imported = Imported {
        spec: NetSpec::Lec(mapped.spec.clone()),
        parameters: mapped.parameters,
        free_energy: mapped.free_energy,
        free_energy_parameters: mapped.free_energy_parameters,
        target,
    };
    // Building it shows whether everything fits together.
    let wrong = |error: Error| Damage { what: "the network".to_owned(), reason: error.to_string() };
    let model = imported.target.model().map_err(wrong)?;
    let network = Lec::new(&mapped.spec, &model).map_err(wrong)?;
    let free_energy = FreeEnergy::new(&imported.free_energy, 1).map_err(wrong)?;
    if total(&network.tensors()) != imported.parameters.len()
        || free_energy.parameters() != imported.free_energy_parameters.len()
    {
        return damage("the network", "it has another number of parameters than its shape says");
    }
    let numbers = imported.parameters.iter().chain(&imported.free_energy_parameters);
    if !numbers.into_iter().all(|number| number.is_finite()) {
        return damage("the network", "some of its parameters are not finite");
    }
    Ok(imported)
}
