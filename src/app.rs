//! The only wiring: from a configuration to a running server, and from a signal to its end.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use std::{fs, io, net::SocketAddr};

use tokio::{
    net::TcpListener,
    signal::unix::{Signal, SignalKind, signal},
};
use tokio_util::sync::CancellationToken;

use crate::board::{InvalidItem, Item, Policy, json};
use crate::config::{Config, SyncPolicy};
use crate::descriptors::fit_connections;
use crate::http::{ConnectionLimits, edge, router, serve};
use crate::service::{Clock, LoadError, Options, QaSession, Service};
use crate::store::{SqliteOptions, SqliteStore, StoreError, SyncLevel};
use crate::telemetry::LISTENING;

/// How long open requests may take once the server is to end: with what the writer and the store then
/// need, the end comes within 10 s.
const DRAIN_MAX: Duration = Duration::from_secs(8);

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
    /// The data directory cannot be opened.
    #[error("cannot open the data directory {}", data.display())]
    Store {
        /// Which one.
        data: PathBuf,
        /// Why.
        source: StoreError,
    },
    /// The sessions in it cannot be loaded.
    #[error("cannot load the sessions; 'blackboard check' tells more")]
    Load(#[from] LoadError),
    /// The file of questions and answers cannot be read.
    #[error("cannot read the --qa-file {}", path.display())]
    QaFile {
        /// Which one.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A thread of ours panicked.
    #[error("a part of the server panicked while it started or stopped")]
    Panicked,
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
    let starting = config.clone();
    let start = tokio::task::spawn_blocking(move || start(&starting));
    let service = start.await.map_err(|_| Error::Panicked)??;
    let shutdown = service.stopping().clone();
    let router = edge(router(service.clone(), config.public_url), config.allowed_hosts);
    let limits = ConnectionLimits {
        connections_max: fit_connections(config.connections_max),
        drain_timeout: DRAIN_MAX,
        ..ConnectionLimits::default()
    };

    let listen = config.listen;
    let failed = |source| Error::Listen { listen, source };
    let listener = TcpListener::bind(listen).await.map_err(failed)?;
    let address = listener.local_addr().map_err(failed)?;
    tracing::info!(
        target: LISTENING,
        url = %format_args!("http://{address}"),
        store = %config.data.display(),
        sessions = service.len(),
        tokens = "not required",
        "listening"
    );
    let serving = serve(listener, router, limits, shutdown.clone());
    tokio::join!(serving, signals.cancel(shutdown));
    // Every connection is gone; what still waits in the queue is written before the store closes.
    let stop = tokio::task::spawn_blocking(move || service.stop());
    stop.await.map_err(|_| Error::Panicked)?;
    tracing::info!("stopped");
    Ok(())
}

/// Opens the store and loads the sessions.
fn start(config: &Config) -> Result<Service, Error> {
    let sync = match config.sync {
        SyncPolicy::Full => SyncLevel::Full,
        SyncPolicy::Normal => SyncLevel::Normal,
    };
    let options = SqliteOptions { sync, ..SqliteOptions::default() };
    let store = SqliteStore::open(&config.data, options)
        .map_err(|source| Error::Store { data: config.data.clone(), source })?;
    let last = config.qa_last.and_then(|last| usize::try_from(last.get()).ok());
    let qa_pairs = config.qa_file.as_deref().map(|path| qa_pairs(path, last)).transpose()?;
    let policy = Policy {
        auto_create: config.auto_create,
        session_bytes_max: config.session_bytes_max.0,
        session_blob_bytes_max: config.session_blob_bytes_max.0,
        qa_pairs: qa_pairs.unwrap_or_default(),
    };
    let options = Options {
        qa_session: config.qa_session.clone().map(|name| QaSession { name, last }),
        memory_budget: config.memory_budget.0,
        thumbnails: Some(config.data.join("cache").join("thumbnails")),
        ..Options::default()
    };
    let service = Service::start_with(Arc::new(store), policy, Clock::system(), options)?;
    for damage in service.damage() {
        tracing::error!(%damage, "a session is not served: its stored history is damaged");
    }
    Ok(service)
}

/// The last lines of a JSONL file as items. A line that is none is passed over, as in the original.
fn qa_pairs(path: &Path, last: Option<usize>) -> Result<Vec<Item>, Error> {
    let text = fs::read_to_string(path)
        .map_err(|source| Error::QaFile { path: path.to_owned(), source })?;
    let lines: Vec<&str> = text.lines().collect();
    let first = lines.len().saturating_sub(last.unwrap_or(usize::MAX));
    let mut items = Vec::new();
    for (index, line) in lines.iter().enumerate().skip(first) {
        match qa_pair(line) {
            Ok(item) => items.push(item),
            Err(why) => {
                let line = index + 1;
                tracing::warn!(path = %path.display(), line, %why, "a line of the --qa-file is no item");
            }
        }
    }
    Ok(items)
}

fn qa_pair(line: &str) -> Result<Item, NoPair> {
    Ok(Item::from_json(json::syntax(line.trim().as_bytes())?)?)
}

#[derive(Debug, thiserror::Error)]
enum NoPair {
    #[error(transparent)]
    Malformed(#[from] json::Malformed),
    #[error(transparent)]
    Invalid(#[from] InvalidItem),
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
