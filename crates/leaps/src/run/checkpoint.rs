//! Keep checkpoints.

use std::path::{Path, PathBuf};

use super::sealed;
use crate::Result;

pub(crate) fn latest(run: &Path) -> Result<Option<PathBuf>> {
    let file = run.join("latest");
    if !file.exists() {
        return Ok(None);
    }
    Ok(Some(run.join(String::from_utf8_lossy(&sealed::read(&file)?).trim())))
}
