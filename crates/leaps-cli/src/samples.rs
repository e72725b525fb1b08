//! Files of samples.

use std::io::Read;
use std::path::Path;

use anyhow::Result;
use leaps::job::Samples;
use leaps::results::timings;
use leaps::store::NpzWriter;
use leaps::target::Target;
use serde::Serialize;

use crate::error::usage;

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

/// Write the samples with the result they belong to, and give the file its name.
pub fn save(
    mut file: NpzWriter,
    target: &dyn Target,
    samples: &Samples,
    result: &impl Serialize,
) -> Result<()> {
    let mut meta = serde_json::to_value(result)?;
    // What differs from run to run stays out: the same seed gives the same file.
    timings::take(&mut meta);
    if let Some(meta) = meta.as_object_mut() {
        meta.remove("command");
    }
    samples.write(&mut file, target, &meta)?;
    Ok(file.finish()?)
}
