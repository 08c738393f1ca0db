//! The server, and the commands on its data directory or store.

mod backup;
mod check;
mod directory;
mod healthcheck;
mod openapi;
mod print_config;
mod progress;
mod salvage;
mod serve;
mod session;
mod token;

use clap::Subcommand;

use super::environment;
use crate::cli::Failure;

/// The commands that have the server's own code.
#[derive(Debug, Subcommand)]
pub(super) enum Server {
    Serve(serve::Serve),
    Token(token::Token),
    Backup(backup::Backup),
    Check(check::Check),
    Export(session::Export),
    Import(session::Import),
    Salvage(salvage::Salvage),
    Healthcheck(healthcheck::Healthcheck),
    Openapi(openapi::Openapi),
}

impl Server {
    pub(super) fn run(self) -> Result<(), Failure> {
        // The server logs them.
        if !matches!(self, Self::Serve(_)) {
            environment::note_unknown();
        }
        match self {
            Self::Serve(serve) => serve.run(),
            Self::Token(token) => token.run(),
            Self::Backup(backup) => backup.run(),
            Self::Check(check) => check.run(),
            Self::Export(export) => export.run(),
            Self::Import(import) => import.run(),
            Self::Salvage(salvage) => salvage.run(),
            Self::Healthcheck(healthcheck) => healthcheck.run(),
            Self::Openapi(openapi) => openapi.run(),
        }
    }
}
