//! Run the library's samplers as a configuration says.

mod chains;
mod flow;
mod measured;
mod snapshots;
mod walkers;

pub use chains::{rule, run_chains};
pub use flow::run_flow;
pub use measured::{bins, energies};
pub use walkers::{gpu_has, run_walkers};

use std::io::Read;
use std::path::Path;

use anyhow::Result;
use leaps::observe::Families;
use leaps::run::NpzWriter;
use leaps::target::{Pairwise, Target};
use serde_json::Value;

use crate::error::usage;

/// States with their weights, to be written to a file.
#[derive(Clone, Debug, Default)]
pub struct Samples {
    /// `[walker * sites + site]`.
    pub states: Vec<u8>,
    pub log_weights: Vec<f64>,
    /// `sum_k E_k` of every state.
    pub energies: Vec<f64>,
}

impl Samples {
    /// States of one of `chains` chains, which lie one after the other, are not independent: each chain is a family.
    pub fn by_chain(&self, chains: usize) -> Families {
        let states = self.log_weights.len();
        let kept = (states / chains.max(1)).max(1);
        Families::new(&(0..states).map(|state| (state / kept) as u32).collect::<Vec<_>>())
    }
}

/// Open a file of samples before the work starts, so that a wrong name costs nothing.
pub fn open(path: Option<&Path>) -> Result<Option<NpzWriter>> {
    let Some(path) = path else { return Ok(None) };
    let shown = path.display();
    if path.is_dir() {
        return Err(usage(format!("--out = {shown}: must be a file, not a directory")));
    }
    if path.extension().is_none_or(|extension| extension != "npz") {
        return Err(usage(format!("--out = {shown}: must end in .npz; write --out samples.npz")));
    }
    // Something else under that name may be the input.
    let mut start = [0; 2];
    let old = leaps::file::open(path).map(|mut file| file.read_exact(&mut start));
    if matches!(old, Ok(Ok(()))) && start != *b"PK" {
        return Err(usage(format!(
            "--out = {shown}: must be a new name or an .npz file; remove what is there first"
        )));
    }
    Ok(Some(NpzWriter::create(path)?))
}

/// Write the samples and give the file its name.
pub fn save(mut file: NpzWriter, target: &Pairwise, samples: &Samples, meta: &Value) -> Result<()> {
    let sites = [target.sites()];
    let shape = target.lattice().map_or(&sites[..], |lattice| lattice.shape());
    file.samples(shape, &samples.states, &samples.log_weights, &samples.energies, meta)?;
    Ok(file.finish()?)
}
