//! The command line: one file for each command.
//!
//! Elsewhere than on Unix it has the clients alone: the store needs descriptors, modes and locks of Unix.

mod environment;
#[cfg(unix)]
mod server;
mod shell;

use clap::{Parser, Subcommand};

#[cfg(unix)]
use self::server::Server;
use crate::cli::{Failure, Keeper, Mcp, Remote};

/// A durable blackboard that agents on many devices share over HTTP.
#[derive(Debug, Parser)]
#[command(version, arg_required_else_help = true, help_template = shell::groups_template())]
#[cfg_attr(
    not(unix),
    command(
        after_help = "The server runs on Linux and macOS, and on Windows in WSL or a container."
    )
)]
pub struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    #[cfg(unix)]
    #[command(flatten)]
    Server(Server),
    #[command(flatten)]
    Client(Client),
}

/// The commands that know a server by HTTP alone, or none.
#[derive(Debug, Subcommand)]
enum Client {
    Mcp(Mcp),
    Completions(shell::Completions),
    Man(shell::Man),
    #[command(name = "__work-child", hide = true)]
    WorkChild(Keeper),
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
        match self.command {
            #[cfg(unix)]
            Command::Server(server) => server.run(),
            Command::Client(client) => client.run(),
        }
    }
}

impl Client {
    fn run(self) -> Result<(), Failure> {
        // Its notes would be the command's.
        if !matches!(self, Self::WorkChild(_)) {
            environment::note_unknown();
        }
        match self {
            Self::Mcp(mcp) => mcp.run(),
            Self::Completions(completions) => completions.run(),
            Self::Man(man) => man.run(),
            Self::WorkChild(keeper) => keeper.run(),
            Self::Remote(remote) => remote.run(),
        }
    }
}

#[cfg(test)]
mod tests;
