//! `blackboard man`

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use clap::{Args, Command, CommandFactory as _};

use crate::cli::{Failure, put};
use crate::commands::Cli;

/// The heading of the examples, as they are written after the help.
const EXTRA: &str = ".SH EXTRA\nExamples:\n";

/// Print the manual page, or write the pages of all commands
///
/// Without --dir prints the page of the command line, or of one COMMAND: blackboard man tail | man -l -
#[derive(Args, Debug)]
pub(in crate::commands) struct Man {
    /// Command whose page to print
    #[arg(value_name = "COMMAND", conflicts_with = "dir")]
    command: Option<String>,

    /// Directory to write one page per command to, such as /usr/local/share/man/man1
    #[arg(long, env = "BLACKBOARD_MAN_DIR", value_name = "PATH")]
    dir: Option<PathBuf>,
}

#[derive(Debug, thiserror::Error)]
enum Unwritten {
    #[error("unknown command {0:?}; 'blackboard help' lists all commands")]
    Unknown(String),
    #[error("cannot write {}", path.display())]
    Page { path: PathBuf, source: io::Error },
    #[error("cannot print")]
    Output(#[source] io::Error),
}

impl Man {
    pub(in crate::commands) fn run(self) -> Result<(), Failure> {
        let mut top = Cli::command();
        top.build();
        match (self.command, self.dir) {
            (Some(name), _) => {
                let unknown = || Failure::usage(Unwritten::Unknown(name.clone()));
                print(top.find_subcommand(&name).ok_or_else(unknown)?)
            }
            (None, Some(dir)) => write(&top, &dir).map_err(Failure::failed),
            (None, None) => print(&top),
        }
    }
}

fn print(command: &Command) -> Result<(), Failure> {
    let page = page(command).map_err(Unwritten::Output);
    let printed = page.and_then(|page| put(&page).map_err(Unwritten::Output));
    printed.map_err(Failure::failed)
}

/// Writes the pages of a command and of those below it, each under its name with hyphens.
fn write(command: &Command, dir: &Path) -> Result<(), Unwritten> {
    let path = dir.join(format!("{}.1", command.get_display_name().unwrap_or("blackboard")));
    page(command)
        .and_then(|page| fs::write(&path, page))
        .map_err(|source| Unwritten::Page { path: path.clone(), source })?;
    let is_shown = |nested: &&Command| nested.get_name() != "help" && !nested.is_hide_set();
    let nested = command.get_subcommands().filter(is_shown);
    nested.into_iter().try_for_each(|nested| write(nested, dir))
}

fn page(command: &Command) -> io::Result<String> {
    let mut text = Vec::new();
    clap_mangen::Man::new(command.clone()).render(&mut text)?;
    // It has no name for what comes after the help.
    Ok(String::from_utf8_lossy(&text).replacen(EXTRA, ".SH EXAMPLES\n", 1))
}
