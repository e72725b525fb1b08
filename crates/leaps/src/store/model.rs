//! Models: a network with its parameters in a directory, and what it was trained for.
//!
//! | file | what |
//! |---|---|
//! | `model.safetensors` | `net.NAME`, `free.NAME`: averaged parameters, which sampling uses; `raw.net.NAME`, `raw.free.NAME`: the ones they are the average of, if known |
//! | `model.json` | network, free energy, parametrisation, target, path, how it was trained; checksums of all other files and of itself (BLAKE3) |
//! | `target/` | files that the target is made of, such as a list of edges, if it is |

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::atomic::{self, AtomicDirectory, failed};
use super::tensors::Tensors;
use super::{Checkpoints, Manifest, Origin, START, parameters, sealed};
use crate::file::{self, DATA};
use crate::net::{FreeEnergy, FreeEnergySpec, Net, NetSpec, Tensor};
use crate::observe::Estimate;
use crate::path::{PathSpec, Ranges};
use crate::rates::Parametrisation;
use crate::sampler::RateModel;
use crate::target::{Boundary, Target};
use crate::train::TrainSpec;
use crate::{Error, Result};

/// The version of the files that this version of the library writes and reads.
const SCHEMA: u32 = 2;
const TENSORS: &str = "model.safetensors";
const DESCRIPTION: &str = "model.json";

/// What is known about how a network was trained; everything may be unknown.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Summary {
    /// Gradient steps.
    pub steps: u64,
    /// Seed of the run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seed: Option<u64>,
    /// Loss of the last step.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub loss: Option<f64>,
    /// Effective sample size at the last validation, as a fraction.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ess: Option<f64>,
    /// log Z at the last validation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub log_z: Option<Estimate>,
    /// The settings of networks that were trained here.
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "sealed::sorted")]
    pub settings: Option<TrainSpec>,
    /// Where a network comes from that was not trained here.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    /// The model that training started from.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from: Option<Origin>,
}

/// A network with its parameters, and what it was made for.
///
/// The target is kept as whoever made the model described it, since it may be an energy of their own; it is the caller who builds it again.
///
/// ```no_run
/// # fn build(_: &serde_json::Value) -> leaps::target::Pairwise { unimplemented!() }
/// # fn main() -> leaps::Result<()> {
/// let model = leaps::store::Model::load("runs/a")?;
/// let target = build(&model.target);
/// let net = model.net(&target)?;
/// let rates = model.rates(&std::sync::Arc::new(net))?; // ready for NetworkWalkers
/// # Ok(()) }
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Model {
    /// The network.
    pub network: NetSpec,
    /// The free energy.
    pub free_energy: FreeEnergySpec,
    /// How fluxes become rates.
    pub parametrisation: Parametrisation,
    /// The target, as described by the maker.
    pub target: Value,
    /// The path.
    pub path: PathSpec,
    /// The ranges of the family of targets that it was trained for, if it was one: the network is conditioned on the member at hand.
    pub family: Option<Ranges>,
    /// How it was trained.
    pub training: Summary,
    /// Files that the description of the target names, by their names from the model's directory on.
    pub files: BTreeMap<String, Vec<u8>>,
    pub(super) tensors: Tensors<'static>,
}

/// What a model is made of.
pub struct ModelParts<'a> {
    /// The network.
    pub net: &'a Net,
    /// The free energy.
    pub free: &'a FreeEnergy,
    /// How fluxes become rates.
    pub parametrisation: Parametrisation,
    /// The target, as described by the maker.
    pub target: Value,
    /// The path.
    pub path: PathSpec,
    /// How it was trained.
    pub training: Summary,
    /// Averaged parameters of the network followed by those of the free energy, as [`Optimiser`](crate::train::Optimiser) has them.
    pub average: &'a [f32],
    /// The parameters of the last step, if they are known.
    pub raw: Option<&'a [f32]>,
}

/// What `model.json` says.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Description {
    schema: u32,
    /// Of the library that wrote it.
    version: String,
    network: NetSpec,
    free_energy: FreeEnergySpec,
    parametrisation: Parametrisation,
    target: Value,
    #[serde(serialize_with = "sealed::sorted")]
    path: PathSpec,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    family: Option<Ranges>,
    training: Summary,
    checksums: BTreeMap<String, String>,
}

impl Model {
    /// A model in memory.
    pub fn new(parts: ModelParts<'_>) -> Result<Self> {
        let ModelParts { net, free, parametrisation, target, path, training, average, raw } = parts;
        let mut tensors = Tensors::new(TENSORS);
        parameters::put(&mut tensors, "", net, free, average)?;
        if let Some(raw) = raw {
            parameters::put(&mut tensors, "raw.", net, free, raw)?;
        }
        Ok(Model {
            network: net.spec().clone(),
            free_energy: free.spec().clone(),
            parametrisation,
            target,
            path,
            family: None,
            training,
            files: BTreeMap::new(),
            tensors,
        })
    }

    /// Write the model to `directory`, which is made if need be.
    ///
    /// A new directory appears whole or not at all. In an old one the files are replaced one after the other: after a
    /// crash in between, [`load`](Model::load) refuses them by their checksums.
    pub fn save(&self, directory: impl AsRef<Path>) -> Result<()> {
        self.save_with(directory, &[])
    }

    /// The same with further files beside the model's, by name: there is no moment at which a new directory has some of them.
    pub fn save_with(&self, directory: impl AsRef<Path>, more: &[(&str, &[u8])]) -> Result<()> {
        let directory = directory.as_ref();
        let mut files = self.contents()?;
        files.extend(more.iter().map(|(name, bytes)| ((*name).to_owned(), bytes.to_vec())));
        if directory.exists() {
            return files.iter().try_for_each(|(name, bytes)| write_below(directory, name, bytes));
        }
        if let Some(parent) = directory.parent().filter(|parent| !parent.as_os_str().is_empty()) {
            fs::create_dir_all(parent).map_err(|source| failed(parent, source))?;
        }
        let made = AtomicDirectory::create(directory)?;
        files.iter().try_for_each(|(name, bytes)| made.write(name, bytes))?;
        made.finish()
    }

    /// The files of a model directory and their contents.
    pub(crate) fn contents(&self) -> Result<Vec<(String, Vec<u8>)>> {
        let mut files: Vec<(String, Vec<u8>)> =
            self.files.iter().map(|(name, bytes)| (name.clone(), bytes.clone())).collect();
        files.push((TENSORS.into(), self.tensors.encode()?));
        let checksums = files.iter().map(|(name, b)| (name.clone(), file::checksum(b)));
        let description = Description {
            schema: SCHEMA,
            version: env!("CARGO_PKG_VERSION").into(),
            network: self.network.clone(),
            free_energy: self.free_energy.clone(),
            parametrisation: self.parametrisation,
            target: self.target.clone(),
            path: self.path.clone(),
            family: self.family,
            training: self.training.clone(),
            checksums: checksums.collect(),
        };
        files.push((DESCRIPTION.into(), sealed::seal(&description).into_bytes()));
        Ok(files)
    }

    /// Read a model directory, or the newest checkpoint of a run directory. A checkpoint must be what its manifest says.
    pub fn load(directory: impl AsRef<Path>) -> Result<Self> {
        Self::read(&Self::find(directory.as_ref())?)
    }

    /// Read a model directory.
    pub(crate) fn read(directory: &Path) -> Result<Self> {
        let file = directory.join(DESCRIPTION);
        let description: Description = sealed::open(&file, SCHEMA)?;
        let manifest = Manifest::load_if_any(directory)?;
        if let Some(manifest) = &manifest {
            manifest.check_files(directory)?;
            for name in description.checksums.keys().map(String::as_str).chain([DESCRIPTION]) {
                if !manifest.checksums.contains_key(name) {
                    return Err(manifest.contradicts(directory, name, "has no checksum"));
                }
            }
            let run = &manifest.run;
            for (key, same) in [
                ("target", run.target == description.target),
                ("path", run.path == description.path),
                ("family", run.train.ranges() == description.family),
                ("network", run.network == description.network),
                ("parametrisation", run.parametrisation == description.parametrisation),
                ("step", manifest.step == description.training.steps),
            ] {
                if !same {
                    let reason = format!("is not that of {}", file.display());
                    return Err(manifest.contradicts(directory, key, &reason));
                }
            }
        }
        Self::of(description, directory, |name| file::read(&directory.join(name), DATA))
    }

    /// The model of a directory whose two files are in memory: `description` is `model.json`, `tensors` is `model.safetensors`. Checked
    /// like [`load`](Model::load); `directory` is for errors.
    pub fn from_bytes(directory: &Path, description: &[u8], tensors: &[u8]) -> Result<Self> {
        Self::of(
            sealed::parse(&directory.join(DESCRIPTION), description, SCHEMA)?,
            directory,
            |name| match name {
                TENSORS => Ok(tensors.to_vec()),
                _ => Err(failed(&directory.join(name), io::ErrorKind::NotFound.into())),
            },
        )
    }

    fn of(
        description: Description,
        directory: &Path,
        read: impl Fn(&str) -> Result<Vec<u8>>,
    ) -> Result<Self> {
        let path = directory.join(TENSORS);
        let mut files = BTreeMap::new();
        for (name, checksum) in &description.checksums {
            check_name(name, &directory.join(DESCRIPTION))?;
            let bytes = read(name)?;
            sealed::check(&directory.join(name), &bytes, checksum)?;
            files.insert(name.clone(), bytes);
        }
        let Some(tensors) = files.remove(TENSORS) else {
            let (what, reason) = ("checksums".into(), format!("none of {TENSORS}"));
            return Err(Error::Corrupt { path: directory.join(DESCRIPTION), what, reason });
        };
        let wrong = |error: Error| match error {
            Error::Invalid { key, value, condition, .. } => Error::Corrupt {
                path: directory.join(DESCRIPTION),
                what: key,
                reason: format!("is {value}, and must be {condition}"),
            },
            other => other,
        };
        description.network.check_sizes().map_err(wrong)?;
        description.free_energy.check_sizes().map_err(wrong)?;
        Ok(Model {
            network: description.network,
            free_energy: description.free_energy,
            parametrisation: description.parametrisation,
            target: description.target,
            path: description.path,
            family: description.family,
            training: description.training,
            files,
            tensors: Tensors::decode(&path, &tensors)?,
        })
    }

    /// The same with the averaged parameters alone, which is all that sampling needs.
    pub fn averaged(mut self) -> Self {
        self.tensors.retain(|name| !name.starts_with("raw."));
        self
    }

    /// BLAKE3 of `model.safetensors`.
    pub fn checksum(&self) -> Result<String> {
        Ok(file::checksum(&self.tensors.encode()?))
    }

    /// The model directory that `directory` means.
    fn find(directory: &Path) -> Result<PathBuf> {
        if directory.join(DESCRIPTION).exists() {
            return Ok(directory.into());
        }
        if let Some(checkpoint) = Checkpoints::of(directory).latest()? {
            return Ok(checkpoint);
        }
        let text = match directory.join(START).is_dir() {
            true => "is still trained on a smaller lattice",
            false => "holds neither a model (model.json) nor a run (latest)",
        };
        let kind = io::ErrorKind::NotFound;
        let missing = if directory.exists() { io::Error::new(kind, text) } else { kind.into() };
        Err(failed(directory, missing))
    }

    /// Random instances that it was trained on at a time, if it was made for all instances of a disorder.
    pub fn instances(&self) -> Option<u64> {
        let instances = self.training.settings.as_ref()?.instances()?;
        Some(instances as u64)
    }

    /// Numbers that the network is conditioned on beside the time.
    pub fn conditions(&self) -> usize {
        self.family.map_or(0, |ranges| ranges.conditions())
    }

    /// Where the parameters come from: a file once the model has been loaded.
    pub fn file(&self) -> &Path {
        &self.tensors.path
    }

    /// Build the network for `target` and see that every tensor of it is there, with the right shape and finite.
    pub fn net(&self, target: &dyn Target) -> Result<Net> {
        self.check_sides(target)?;
        let net = Net::conditioned_on(&self.network, target, self.conditions())?;
        self.collect("net.", &net.tensors())?;
        Ok(net)
    }

    /// Refuse a torus that is too small. The sizes of a trained network cannot be changed, so that it is the lattice that must be another.
    fn check_sides(&self, target: &dyn Target) -> Result<()> {
        let least = match &self.network {
            NetSpec::Hollow(spec) => spec.least_side(),
            NetSpec::Glass(spec) => spec.least_side(),
            _ => None,
        };
        let Some(lattice) = target.lattice() else { return Ok(()) };
        let side = lattice.shape().iter().min().copied().unwrap_or(0);
        match least {
            Some(least) if side < least && lattice.boundary() == Boundary::Periodic => {
                let reason = format!(
                    "it looks so far that a periodic lattice must have sides of at least {least}, and the shortest here is {side}"
                );
                Err(Error::not_applicable("the model's network", reason))
            }
            _ => Ok(()),
        }
    }

    /// Build the free energy for `target`, checked like [`net`](Model::net).
    pub fn free(&self, target: &dyn Target) -> Result<FreeEnergy> {
        let free = FreeEnergy::new(&self.free_energy, target.sites())?
            .conditioned_on(self.conditions())?;
        self.collect("free.", &free.tensors())?;
        Ok(free)
    }

    /// The averaged parameters of the network.
    pub fn parameters(&self, net: &Net) -> Result<Vec<f32>> {
        self.collect("net.", &net.tensors())
    }

    /// The averaged parameters of the free energy.
    pub fn free_parameters(&self, free: &FreeEnergy) -> Result<Vec<f32>> {
        self.collect("free.", &free.tensors())
    }

    /// Parameters of network and free energy that are no average, if the model has them.
    pub fn raw(&self, net: &Net, free: &FreeEnergy) -> Result<Option<Vec<f32>>> {
        if !self.tensors.names().any(|name| name.starts_with("raw.")) {
            return Ok(None);
        }
        let mut all = self.collect("raw.net.", &net.tensors())?;
        all.extend(self.collect("raw.free.", &free.tensors())?);
        Ok(Some(all))
    }

    /// The rates of the averaged network, for samplers. One of a family is to be
    /// [conditioned on](RateModel::conditioned_on) the member at hand.
    pub fn rates(&self, net: &Arc<Net>) -> Result<RateModel> {
        Ok(RateModel::new(net, &self.parameters(net)?, self.parametrisation))
    }

    fn collect(&self, prefix: &str, expected: &[Tensor]) -> Result<Vec<f32>> {
        parameters::collect(&self.tensors, prefix, expected)
    }
}

/// Write a file below a directory, in a folder that is made if need be.
pub(crate) fn write_below(directory: &Path, name: &str, bytes: &[u8]) -> Result<()> {
    let path = directory.join(name);
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder).map_err(|source| failed(folder, source))?;
    }
    atomic::write(path, bytes)
}

/// Refuse the name of a file that is not below the directory of the file that names it.
pub(crate) fn check_name(name: &str, by: &Path) -> Result<()> {
    let plain = |part: Component<'_>| matches!(part, Component::Normal(_));
    if !name.is_empty() && Path::new(name).components().all(plain) {
        return Ok(());
    }
    let (what, reason) = ("checksums".into(), format!("{name:?} is no file of this directory"));
    Err(Error::Corrupt { path: by.into(), what, reason })
}

#[cfg(test)]
mod tests;
