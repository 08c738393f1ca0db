//! The `blackboard` binary.

use std::process::ExitCode;

use blackboard::{chain::Chain, cli::Cli};
use clap::Parser;

fn main() -> ExitCode {
    match Cli::parse().run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("error: {}", Chain(&failure));
            ExitCode::from(failure.exit_code())
        }
    }
}
