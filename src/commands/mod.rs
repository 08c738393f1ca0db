//! The command line: one file for each command.

mod backup;
mod check;
mod directory;
mod environment;
mod healthcheck;
mod openapi;
mod print_config;
mod progress;
mod salvage;
mod serve;
mod session;
mod shell;
mod token;

use clap::{Parser, Subcommand};

use crate::cli::{Failure, Mcp, Remote, note};

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
    Mcp(Mcp),
    Salvage(salvage::Salvage),
    Healthcheck(healthcheck::Healthcheck),
    Openapi(openapi::Openapi),
    Completions(shell::Completions),
    Man(shell::Man),
    #[command(flatten)]
    Remote(Remote),
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

#[cfg(test)]
mod tests;
