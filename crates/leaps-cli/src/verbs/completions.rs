//! `leaps completions`: a completion script for a shell.

use anyhow::Result;
use clap::Args;
use clap_complete::Shell;

use crate::cli;
use crate::output;

/// Flags of `completions`.
#[derive(Args, Debug)]
pub struct CompletionsArgs {
    /// Shell: bash, elvish, fish, powershell or zsh
    #[arg(value_enum, hide_possible_values = true)]
    shell: Shell,
}

/// Print the script.
pub fn run(args: &CompletionsArgs) -> Result<()> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut cli::command(), "leaps", &mut script);
    output::data(&String::from_utf8_lossy(&script))
}
