//! The `blackboard` binary.

use std::process::ExitCode;

use blackboard::cli;
use blackboard::commands::Cli;
use blackboard::error_chain::Chain;
use clap::Parser;

/// Requests come and go on all threads; the system's allocator makes them wait for one another. This one gives back
/// what was not used for ten seconds, also of threads that sleep.
#[cfg(unix)]
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

fn main() -> ExitCode {
    // Most of each would be empty: for many small boards they took half as much memory again. Where the system cannot
    // be told it costs no more than that.
    #[cfg(target_os = "linux")]
    rustix::thread::disable_transparent_huge_pages(true).ok();
    match Cli::parse().run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            cli::note(format_args!("error: {}", Chain(&failure)));
            ExitCode::from(failure.exit_code())
        }
    }
}
