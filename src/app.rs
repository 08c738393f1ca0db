//! The only wiring: from a configuration to a running server, and from a signal to its end.

use std::{io, net::SocketAddr};

use axum::{Router, routing::get};
use tokio::{
    net::TcpListener,
    signal::unix::{Signal, SignalKind, signal},
};
use tokio_util::sync::CancellationToken;

use crate::{
    config::Config,
    descriptors::fit_connections,
    http::{ConnectionLimits, edge, serve},
};

/// Why the server did not start.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The address is taken, or not ours.
    #[error("cannot listen on {listen}")]
    Listen {
        /// What was asked for.
        listen: SocketAddr,
        /// What the system said.
        source: io::Error,
    },
    /// The system gives no handler for signals.
    #[error("cannot wait for signals")]
    Signals(#[source] io::Error),
}

/// Serves until SIGTERM or SIGINT.
///
/// # Errors
///
/// The server could not start; once it listens, it ends well.
pub async fn run(config: Config) -> Result<(), Error> {
    // Before anything else, so that a signal during the start is not lost.
    let signals = Signals::listen().map_err(Error::Signals)?;
    let shutdown = CancellationToken::new();
    let routes = Router::new().route("/healthz", get(healthz));
    let router = edge(routes, config.allowed_hosts);
    let limits = ConnectionLimits {
        connections_max: fit_connections(config.connections_max),
        ..ConnectionLimits::default()
    };

    let listen = config.listen;
    let failed = |source| Error::Listen { listen, source };
    let listener = TcpListener::bind(listen).await.map_err(failed)?;
    let address = listener.local_addr().map_err(failed)?;
    tracing::info!(
        url = %format_args!("http://{address}"),
        store = %config.data.display(),
        sessions = 0,
        tokens = "not required",
        "listening"
    );
    let serving = serve(listener, router, limits, shutdown.clone());
    tokio::join!(serving, signals.cancel(shutdown));
    tracing::info!("stopped");
    Ok(())
}

async fn healthz() -> &'static str {
    "ok\n"
}

/// The signals that ask a server to end.
struct Signals {
    terminate: Signal,
    interrupt: Signal,
}

impl Signals {
    fn listen() -> io::Result<Self> {
        Ok(Self {
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
        })
    }

    /// Waits for the first of them.
    async fn cancel(mut self, shutdown: CancellationToken) {
        let name = tokio::select! {
            _ = self.terminate.recv() => "SIGTERM",
            _ = self.interrupt.recv() => "SIGINT",
        };
        tracing::info!(signal = name, "stopping");
        shutdown.cancel();
    }
}
