//! The `blackboard` binary.

use std::env;
use std::process::{self, ExitCode};

use blackboard::cli;
use blackboard::commands::Cli;
use blackboard::error_chain::Chain;
use clap::Parser;

/// Requests come and go on all threads; the system's allocator makes them wait for one another. This one gives back
/// what was not used for ten seconds, also of threads that sleep.
#[cfg(unix)]
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

/// Reads the arguments. A host of agents takes the usual exit code 2 for a hook's word that its model must go on.
fn parsed() -> Cli {
    Cli::try_parse().unwrap_or_else(|error| {
        let is_hook = env::args().any(|argument| argument.starts_with("--hook"));
        if is_hook && error.use_stderr() {
            error.print().ok();
            process::exit(1);
        }
        error.exit()
    })
}

fn main() -> ExitCode {
    // Most of each would be empty: for many small boards they took half as much memory again. Where the system cannot
    // be told it costs no more than that.
    #[cfg(target_os = "linux")]
    rustix::thread::disable_transparent_huge_pages(true).ok();
    match parsed().run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            cli::note(format_args!("error: {}", Chain(&failure)));
            ExitCode::from(failure.exit_code())
        }
    }
}
