//! `blackboard serve`

use clap::Args;
use tokio::runtime::Builder;

use super::Failure;
use crate::{app, config::Config, telemetry};

/// How many threads may wait for the disk, or work on something large, at once.
const BLOCKING_THREADS_MAX: usize = 64;

/// Serve the blackboards of a data directory over HTTP
#[derive(Args, Debug)]
pub(super) struct Serve {
    #[command(flatten)]
    config: Config,
}

impl Serve {
    pub(super) fn run(self) -> Result<(), Failure> {
        let _log = telemetry::start(&self.config.log).map_err(Failure::usage)?;
        let runtime = Builder::new_multi_thread()
            .enable_all()
            .max_blocking_threads(BLOCKING_THREADS_MAX)
            .build()
            .map_err(Failure::failed)?;
        runtime.block_on(app::run(self.config)).map_err(|error| match error {
            app::Error::Exposed { .. } => Failure::usage(error),
            other => Failure::failed(other),
        })
    }
}
