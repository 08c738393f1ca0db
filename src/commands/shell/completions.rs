//! `blackboard completions`

use clap::{Args, CommandFactory as _};
use clap_complete::{Shell, generate};

use crate::cli::{Failure, put};
use crate::commands::Cli;

/// Print the completions for a shell
///
/// For bash: blackboard completions bash > ~/.local/share/bash-completion/completions/blackboard; for zsh into
/// _blackboard in a directory of $fpath; for fish into ~/.config/fish/completions/blackboard.fish; for PowerShell into the
/// profile.
#[derive(Args, Debug)]
pub(in crate::commands) struct Completions {
    /// Shell to complete in
    #[arg(value_name = "SHELL", value_enum)]
    shell: Shell,
}

impl Completions {
    pub(in crate::commands) fn run(self) -> Result<(), Failure> {
        let mut text = Vec::new();
        generate(self.shell, &mut Cli::command(), "blackboard", &mut text);
        put(&String::from_utf8_lossy(&text)).map_err(Failure::failed)
    }
}
