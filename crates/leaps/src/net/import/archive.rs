//! The archive of a checkpoint: one folder of entries that were stored as they are.

use super::{Damage, damage};
use crate::file::zip::Zip;

/// A zip archive as PyTorch writes it: one folder, nothing compressed.
pub(super) struct Archive<'a> {
    zip: Zip<'a>,
    /// Name of the folder, with its slash.
    folder: String,
}

impl<'a> Archive<'a> {
    /// Read the list of entries at the end.
    pub(super) fn new(bytes: &'a [u8]) -> Result<Self, Damage> {
        let zip = Zip::new(bytes).map_err(|fault| Damage {
            what: fault.what,
            reason: format!("not a checkpoint: {}", fault.reason),
        })?;
        let folder = zip.names().find_map(|name| name.strip_suffix("data.pkl"));
        let Some(folder) = folder.map(str::to_owned) else {
            return damage("data.pkl", "the entry is missing; is this a PyTorch checkpoint?");
        };
        let archive = Archive { zip, folder };
        if archive.zip.entry(&format!("{}byteorder", archive.folder)).is_some()
            && archive.entry("byteorder")? != b"little"
        {
            return damage("byteorder", "only little-endian checkpoints are read");
        }
        Ok(archive)
    }

    /// The contents of an entry of the folder.
    pub(super) fn entry(&self, name: &str) -> Result<&'a [u8], Damage> {
        let full = format!("{}{name}", self.folder);
        if self.zip.entry(&full).is_some_and(|entry| !entry.is_stored()) {
            let reason = "it is compressed or encrypted; PyTorch stores entries as they are: unpack \
                          the archive and pack it again with `zip -0`";
            return damage(name, reason);
        }
        let found = self.zip.stored(&full);
        found.map_err(|fault| Damage { what: name.to_owned(), reason: fault.reason })
    }
}
