//! The command line: one file for each command.

mod backup;
mod check;
mod connection;
mod directory;
mod environment;
mod export;
mod healthcheck;
mod import;
mod mcp;
mod openapi;
mod print_config;
mod salvage;
mod serve;
mod token;

use std::error::Error;
use std::fmt::Display;
use std::io::{self, Write as _};

use clap::{Parser, Subcommand};

use crate::printable::line;

/// A durable blackboard that agents on many devices share over HTTP.
#[derive(Debug, Parser)]
#[command(version, arg_required_else_help = true)]
pub struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Serve(serve::Serve),
    Token(token::Token),
    Backup(backup::Backup),
    Check(check::Check),
    Export(export::Export),
    Import(import::Import),
    Mcp(mcp::Mcp),
    Salvage(salvage::Salvage),
    Healthcheck(healthcheck::Healthcheck),
    Openapi(openapi::Openapi),
}

/// A failed command; decides the exit code.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// Invalid usage: exit code 2, as for an unknown flag.
    #[error(transparent)]
    Usage(Box<dyn Error + Send + Sync>),
    /// The command failed: exit code 1.
    #[error(transparent)]
    Failed(Box<dyn Error + Send + Sync>),
}

impl Failure {
    /// Returns the exit code of the process.
    #[must_use]
    pub const fn exit_code(&self) -> u8 {
        match self {
            Self::Failed(_) => 1,
            Self::Usage(_) => 2,
        }
    }

    fn usage(error: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self::Usage(error.into())
    }

    fn failed(error: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self::Failed(error.into())
    }
}

impl Cli {
    /// Runs the command.
    ///
    /// # Errors
    ///
    /// The usage is invalid, or the command failed.
    pub fn run(self) -> Result<(), Failure> {
        // The server logs them.
        if !matches!(self.command, Command::Serve(_)) {
            environment::unknown().iter().for_each(note);
        }
        match self.command {
            Command::Serve(serve) => serve.run(),
            Command::Token(token) => token.run(),
            Command::Backup(backup) => backup.run(),
            Command::Check(check) => check.run(),
            Command::Export(export) => export.run(),
            Command::Import(import) => import.run(),
            Command::Mcp(mcp) => mcp.run(),
            Command::Salvage(salvage) => salvage.run(),
            Command::Healthcheck(healthcheck) => healthcheck.run(),
            Command::Openapi(openapi) => openapi.run(),
        }
    }
}

/// Writes a line for people to standard error. Names in it may have been chosen by clients.
pub fn note(what: impl Display) {
    eprintln!("{}", line(&what.to_string()));
}

/// Writes the whole text to standard output.
fn put(text: &str) -> io::Result<()> {
    match io::stdout().write_all(text.as_bytes()) {
        // The reader closed the pipe: it has read enough.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        written => written,
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn every_flag_is_an_environment_variable_too() {
        let mut top = Cli::command();
        top.build();
        let nested = top.get_subcommands().flat_map(clap::Command::get_subcommands);
        for command in top.get_subcommands().chain(nested) {
            for arg in command.get_arguments() {
                // A confirmation is given for one call, not for all.
                let own = |flag: &&str| !["help", "version", "yes"].contains(flag);
                let Some(flag) = arg.get_long().filter(own) else { continue };
                let env = arg.get_env().and_then(|env| env.to_str());
                let name = flag.replace('-', "_").to_uppercase();
                let found = env.unwrap_or_else(|| panic!("--{flag} has none"));
                assert!(found.starts_with("BLACKBOARD_") && found.ends_with(&name));
            }
        }
    }
}
