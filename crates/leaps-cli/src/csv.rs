//! Tables in files: `--csv`.

use std::io::Read;
use std::path::{Path, PathBuf};

use anyhow::Result;
use clap::Args;
use leaps::store::write_file;
use leaps_report::csv::is_table;

use crate::app::Context;
use crate::error::usage;

/// Where a table goes.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Output")]
pub struct CsvArgs {
    /// Write the numbers with all their digits to this file too, one line each
    #[arg(long, value_name = "FILE.csv")]
    pub csv: Option<PathBuf>,
}

impl CsvArgs {
    /// Refuse a name that cannot be meant, before the work starts.
    pub fn check(&self) -> Result<()> {
        self.csv.as_deref().map_or(Ok(()), check)
    }

    /// Write the table, if it is wanted.
    pub fn write(&self, table: impl FnOnce() -> String, context: &Context) -> Result<()> {
        let Some(path) = &self.csv else { return Ok(()) };
        write_file(path, table().as_bytes())?;
        context.say(format!("wrote {}", path.display()));
        Ok(())
    }
}

/// Refuse what is no name of a table, or something else under it, which may be the input.
fn check(path: &Path) -> Result<()> {
    let shown = path.display();
    if path.is_dir() {
        return Err(usage(format!("--csv = {shown}: must be a file, not a directory")));
    }
    if path.extension().is_none_or(|extension| extension != "csv") {
        return Err(usage(format!("--csv = {shown}: must end in .csv; write --csv table.csv")));
    }
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    if let Some(folder) = folder.filter(|folder| !folder.is_dir()) {
        let folder = folder.display();
        return Err(usage(format!(
            "--csv = {shown}: must be in a folder that there is, not {folder}"
        )));
    }
    let mut start = Vec::new();
    let old = leaps::file::open(path).map(|file| file.take(32).read_to_end(&mut start));
    if matches!(old, Ok(Ok(1..))) && !is_table(&String::from_utf8_lossy(&start)) {
        return Err(usage(format!(
            "--csv = {shown}: must be a new name or a table of leaps; remove what is there first"
        )));
    }
    Ok(())
}
