//! `leaps man`: manual pages, made from the definitions of the flags.

use std::path::PathBuf;

use anyhow::Result;
use clap::Args;
use clap_mangen::Man;
use leaps::Error;

use crate::cli;
use crate::error::usage;
use crate::output;

/// Flags of `man`.
#[derive(Args, Debug)]
pub struct ManArgs {
    /// Verb whose page to print [default: the program's own page]
    verb: Option<String>,
    /// Write the pages of the program and of all verbs into this directory
    #[arg(long, value_name = "DIR", conflicts_with = "verb")]
    out: Option<PathBuf>,
}

/// Print one page, or write all of them.
pub fn run(args: &ManArgs) -> Result<()> {
    // The parser makes a verb 'help' with a page for every other verb, which has one already.
    let mut command = cli::command().disable_help_subcommand(true);
    command.build();
    if let Some(directory) = &args.out {
        let io = |source| Error::Io { path: directory.clone(), source };
        std::fs::create_dir_all(directory).map_err(io)?;
        clap_mangen::generate_to(command, directory).map_err(io)?;
        return Ok(());
    }
    if let Some(verb) = &args.verb {
        let Some(found) = command.find_subcommand(verb) else {
            return Err(usage(format!("VERB = {verb}: must be a verb; see 'leaps --help'")));
        };
        command = found.clone();
    }
    let mut page = Vec::new();
    // A verb has no version of its own.
    let source = concat!("leaps ", env!("CARGO_PKG_VERSION"));
    Man::new(command).source(source).render(&mut page)?;
    output::data(&String::from_utf8_lossy(&page))
}
