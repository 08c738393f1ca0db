//! `blackboard serve`

use std::net::SocketAddr;

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

/// Nothing is asked of clients yet, so the address must be one that only this machine reaches.
#[derive(Debug, thiserror::Error)]
#[error(
    "{0} can be reached from other machines, and clients need no token: listen on a loopback \
     address such as 127.0.0.1, or add --insecure if only a trusted network reaches this one"
)]
struct Exposed(SocketAddr);

impl Serve {
    pub(super) fn run(self) -> Result<(), Failure> {
        let listen = self.config.listen;
        if !self.config.insecure && !listen.ip().to_canonical().is_loopback() {
            return Err(Failure::usage(Exposed(listen)));
        }
        let _log = telemetry::start(&self.config.log).map_err(Failure::usage)?;
        let runtime = Builder::new_multi_thread()
            .enable_all()
            .max_blocking_threads(BLOCKING_THREADS_MAX)
            .build()
            .map_err(Failure::failed)?;
        runtime.block_on(app::run(self.config)).map_err(Failure::failed)
    }
}
