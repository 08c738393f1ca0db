//! The command line: one file for each command.

mod backup;
mod check;
mod connection;
mod directory;
mod environment;
mod healthcheck;
mod mcp;
mod openapi;
mod print_config;
mod progress;
mod remote;
mod salvage;
mod serve;
mod session;
mod shell;
mod token;

use std::error::Error;
use std::fmt::Display;
use std::io::{self, Write as _};

use clap::{Parser, Subcommand};

use self::remote::Refusal;
use crate::error_chain::Chain;
use crate::printable::line;

/// A durable blackboard that agents on many devices share over HTTP.
#[derive(Debug, Parser)]
#[command(version, arg_required_else_help = true, help_template = shell::groups_template())]
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
    Export(session::Export),
    Import(session::Import),
    Mcp(mcp::Mcp),
    Salvage(salvage::Salvage),
    Healthcheck(healthcheck::Healthcheck),
    Openapi(openapi::Openapi),
    Completions(shell::Completions),
    Man(shell::Man),
    #[command(flatten)]
    Remote(remote::Remote),
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
    /// A server refused or was not reached: an exit code for each class.
    #[error("{}", Chain(&**error))]
    Refused {
        /// The exit code of the class.
        code: u8,
        /// The refusal.
        error: Box<dyn Error + Send + Sync>,
    },
}

impl Failure {
    /// Returns the exit code of the process.
    #[must_use]
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::Failed(_) => 1,
            Self::Usage(_) => 2,
            Self::Refused { code, .. } => *code,
        }
    }

    fn usage(error: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self::Usage(error.into())
    }

    fn failed(error: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self::Failed(error.into())
    }

    fn refused(refusal: Refusal) -> Self {
        Self::Refused { code: refusal.exit_code(), error: refusal.into() }
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
            Command::Completions(completions) => completions.run(),
            Command::Man(man) => man.run(),
            Command::Remote(remote) => remote.run(),
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
mod tests;
