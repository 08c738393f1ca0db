//! The `blackboard` binary.

use std::process::ExitCode;

use blackboard::{chain::Chain, cli::Cli};
use clap::Parser;
use mimalloc::MiMalloc;

/// Requests come and go on all threads; the system's allocator makes them wait for one another.
#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

fn main() -> ExitCode {
    match Cli::parse().run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("error: {}", Chain(&failure));
            ExitCode::from(failure.exit_code())
        }
    }
}
