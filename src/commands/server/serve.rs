//! `blackboard serve`

use std::io;
use std::time::Duration;

use clap::builder::BoolishValueParser;
use clap::{Args, CommandFactory as _};
use tokio::runtime::Builder;

use super::print_config;
use crate::cli::{Failure, put};
use crate::commands::{Cli, environment};
use crate::telemetry;
use crate::telemetry::Wanted;
use crate::{app, config::Config};

/// The maximum number of threads that wait for the disk or do large computations.
const BLOCKING_THREADS_MAX: usize = 64;

/// The time that the shutdown waits for busy threads.
const RUNTIME_END_MAX: Duration = Duration::from_secs(1);

/// Serve the blackboards of a data directory over HTTP
#[derive(Args, Debug)]
#[command(after_help = "Examples:\n\
\x20 blackboard serve\n\
\x20 blackboard serve --data /var/lib/blackboard --listen :8733 --require-token")]
pub(in crate::commands) struct Serve {
    #[command(flatten)]
    config: Config,

    /// Print each setting in force with its source, as lines NAME=value, and exit without opening anything
    #[arg(long, env = "BLACKBOARD_PRINT_CONFIG", value_parser = BoolishValueParser::new())]
    print_config: bool,
}

impl Serve {
    pub(super) fn run(self) -> Result<(), Failure> {
        if self.print_config {
            return print().map_err(Failure::failed);
        }
        let log = telemetry::start(Wanted {
            filter: &self.config.log,
            #[cfg(feature = "otlp")]
            otlp_endpoint: self.config.otlp_endpoint.as_deref(),
        });
        let _log = log.map_err(Failure::usage)?;
        for unknown in environment::unknown() {
            tracing::warn!("{unknown}");
        }
        let runtime = Builder::new_multi_thread()
            .enable_all()
            .max_blocking_threads(BLOCKING_THREADS_MAX)
            .build()
            .map_err(Failure::failed)?;
        let served = runtime.block_on(app::run(self.config));
        // Where it failed, a blocking thread may wait for what never comes.
        runtime.shutdown_timeout(RUNTIME_END_MAX);
        served.map_err(|error| {
            if matches!(error, app::Error::Exposed { .. }) {
                Failure::usage(error)
            } else {
                Failure::failed(error)
            }
        })
    }
}

/// Only the parser knows where a value came from, so the command line is parsed once more.
fn print() -> io::Result<()> {
    let cli = Cli::command();
    let matches = cli.clone().get_matches();
    let (command, matches) = (cli.find_subcommand("serve"), matches.subcommand_matches("serve"));
    match command.zip(matches) {
        Some((command, matches)) => put(&print_config::settings(command, matches)),
        None => Ok(()),
    }
}
