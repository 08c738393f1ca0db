//! Wiring: from a configuration to a running server, and from a signal to its end.

use std::num::NonZeroU32;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use std::{fs, io, net::SocketAddr};

use futures_util::future::OptionFuture;
use tokio::{
    net::{TcpListener, TcpSocket},
    signal::unix::{Signal, SignalKind, signal},
    time::MissedTickBehavior,
};
use tokio_util::sync::CancellationToken;

use crate::auth::{
    ADMIN_TOKEN_FILE, FirstTokenError, KeptBecause, Logins, TokenLimits, Tokens, first_token,
    given_token,
};
use crate::board::{BlobRef, InvalidItem, Item, Policy, json};
use crate::clock::Clock;
use crate::config::{Config, Search, SyncPolicy};
use crate::control;
use crate::control::Socket;
use crate::descriptors::fit_connections;
use crate::doors::{doors, page};
use crate::error_chain::Chain;
use crate::http::{
    ConnectionLimits, EdgeOptions, Page, PublicUrl, Routes, Streams, edge, observation, router,
    serve,
};
use crate::owner_files;
use crate::service::{LoadError, Options, QaSession, SearchPlace, Service};
use crate::store::{SqliteOptions, SqliteStore, Store, StoreError, SyncLevel};
use crate::systemd::Notice;
use crate::telemetry::{FIRST_TOKEN, LISTENING};

/// The time for open requests to finish at shutdown. Together with the writer and the store, the server stops within
/// 10 s.
const DRAIN_MAX: Duration = Duration::from_secs(8);

/// The time between two looks at the tokens of a store that other servers write to. A revocation takes as long.
const TOKENS_EVERY: Duration = Duration::from_millis(200);

/// The limits of the metrics listener: a few scrapers and probes.
const OBSERVERS: ConnectionLimits = ConnectionLimits {
    connections_max: 64,
    head_timeout: Duration::from_secs(10),
    head_bytes_max: 8 << 10,
    drain_timeout: DRAIN_MAX,
    idle_max: Duration::from_secs(60),
    write_stall_max: Duration::from_secs(10),
};

/// The maximum number of connections that wait to be accepted, as in the standard library.
const BACKLOG: u32 = 1024;

/// A failed start.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The address is in use or not of this machine.
    #[error("cannot listen on {listen}")]
    Listen {
        /// The requested address.
        listen: SocketAddr,
        /// The system's error.
        source: io::Error,
    },
    /// The data directory cannot be opened.
    #[error("cannot open the data directory {}", data.display())]
    Store {
        /// The directory.
        data: PathBuf,
        /// The store's error.
        source: StoreError,
    },
    /// The PostgreSQL service is refused or cannot be reached.
    #[error("cannot open {url}")]
    Service {
        /// The address, shown without its password.
        url: String,
        /// The store's error.
        source: StoreError,
    },
    /// The first token of a store without a data directory has no file to be told in.
    #[error(
        "the store has no token yet: give one with --admin-token-file, or create one with 'blackboard token create \
         --scopes admin --name NAME --store URL'"
    )]
    NoToken,
    /// The data directory cannot be read, as without the permission.
    #[error("cannot read the data directory {}", data.display())]
    Unreadable {
        /// The directory.
        data: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// The sessions in the data directory cannot be loaded.
    #[error("cannot load the sessions; run 'blackboard check' for details")]
    Load(#[from] LoadError),
    /// The file of questions and answers cannot be read.
    #[error("cannot read the --qa-file {}", path.display())]
    QaFile {
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// The first token could not be created, or read from its file.
    #[error("cannot set up the first token")]
    FirstToken(#[from] FirstTokenError),
    /// A server without tokens would be open to everybody who can reach the address.
    #[error(
        "{listen} can be reached from other machines, and this server has no tokens: add --require-token, or create \
         one with 'blackboard token create --name admin --scopes admin --create'; listen on a loopback address such \
         as 127.0.0.1; or add --insecure if only a trusted network reaches it"
    )]
    Exposed {
        /// The requested address.
        listen: SocketAddr,
    },
    /// A task panicked during start or stop.
    #[error("a component of the server panicked during startup or shutdown")]
    Panicked,
    /// The writer panicked. Acknowledged writes are durable; the next start recovers them.
    #[error("the writer thread panicked; restart the server: no acknowledged write is lost")]
    Failed,
    /// No signal handler could be installed.
    #[error("cannot wait for signals")]
    Signals(#[source] io::Error),
}

/// Serves until SIGTERM or SIGINT.
///
/// # Errors
///
/// The server could not start, or did not stop cleanly.
pub async fn run(config: Config) -> Result<(), Error> {
    // Installed first, so that a signal during the start is not lost.
    let signals = Signals::listen().map_err(Error::Signals)?;
    // An exposed server and an address in use are refused before a data directory is created.
    let may_have_tokens = config.require_token || config.admin_token_file.is_some();
    let is_there = config.store.is_some()
        || SqliteStore::is_in(&config.data)
            .map_err(|error| owner_files::explained(&config.data, error))
            .map_err(|source| Error::Unreadable { data: config.data.clone(), source })?;
    refuse_exposure(&config, may_have_tokens || is_there)?;
    let listener = bind(config.listen)?;
    let metrics = config.metrics_listen.map(bind).transpose()?;
    let starting = config.clone();
    let start = tokio::task::spawn_blocking(move || start(&starting));
    let (service, tokens, logins) = start.await.map_err(|_| Error::Panicked)??;
    let shutdown = service.stopping().clone();
    keep_up(&service, tokens.clone(), logins.clone());
    let edge_options = EdgeOptions {
        allowed_hosts: config.allowed_hosts.clone(),
        cors_origins: config.cors_origins.clone(),
        trusted_proxies: config.trusted_proxies.clone(),
    };
    let observed = edge(observation(service.clone()), edge_options.clone(), service.clone());
    let streams = Streams::new(config.streams_max);
    let page = page(logins);
    let path_of_page = page.as_ref().map(|page| page.path);
    let routes = routes(&service, &tokens, page, config.public_url.clone(), streams);
    let router = edge(routes, edge_options, service.clone());
    let limits = ConnectionLimits {
        connections_max: fit_connections(config.connections_max),
        drain_timeout: DRAIN_MAX,
        ..ConnectionLimits::default()
    };

    let (listener, address) = listen(listener, config.listen)?;
    let metrics = match (metrics, config.metrics_listen) {
        (Some(socket), Some(address)) => Some(listen(socket, address)?),
        _ => None,
    };
    // The line below tells clients that the server is ready, so the control socket opens before it.
    let socket = if config.store.is_none() { control_socket(&config.data) } else { None };
    announce(&config, address, path_of_page, &service, &tokens);
    if let Some((_, address)) = &metrics {
        tracing::info!(target: LISTENING, url = %format_args!("http://{address}/metrics"), "serving metrics");
    }
    Notice::Ready.send();
    let serving = Box::pin(serve(listener, router, limits, shutdown.clone()));
    let controlled = answer_commands(socket, &service, tokens.clone(), shutdown.clone());
    let observing = OptionFuture::from(
        metrics.map(|(listener, _)| serve(listener, observed, OBSERVERS, shutdown.clone())),
    );
    let ended = async { tokio::join!(serving, controlled, observing, signals.cancel(shutdown)) };
    let failed = service.failed().clone();
    // Without a writer, nothing can be answered and draining would only delay the restart.
    failed.run_until_cancelled(ended).await.ok_or(Error::Failed)?;
    // All connections are closed. Queued writes are stored before the store closes.
    let stop = tokio::task::spawn_blocking(move || service.stop());
    stop.await.map_err(|_| Error::Panicked)?;
    if failed.is_cancelled() {
        return Err(Error::Failed);
    }
    tracing::info!("stopped");
    Ok(())
}

/// Logs the line by which people and clients know that the server is ready.
fn announce(
    config: &Config,
    address: SocketAddr,
    path_of_page: Option<&str>,
    service: &Service,
    tokens: &Tokens,
) {
    tracing::info!(
        target: LISTENING,
        version = env!("CARGO_PKG_VERSION"),
        url = %format_args!("http://{address}"),
        page = path_of_page.map(|path| display(format!("http://{address}{path}"))),
        docs = %format_args!("http://{address}/docs"),
        store = %place(config),
        // Over PostgreSQL none is known before it is asked for.
        sessions = config.store.is_none().then(|| service.status().sessions),
        tokens = if tokens.are_required() { "required" } else { "not required" },
        "listening"
    );
}

/// Returns the place of the store, without secrets.
fn place(config: &Config) -> String {
    let directory = || config.data.display().to_string();
    config.store.as_ref().map_or_else(directory, ToString::to_string)
}

/// Returns the routes of HTTP, with the other doors.
fn routes(
    service: &Service,
    tokens: &Tokens,
    page: Option<Page>,
    public_url: Option<PublicUrl>,
    streams: Streams,
) -> Routes {
    router(service.clone(), tokens.clone(), public_url, streams, doors(service), page)
}

/// Opens the control socket. The server runs without one if that fails.
fn control_socket(data: &Path) -> Option<Socket> {
    let bound = Socket::bind(data);
    let told = bound.inspect_err(|error| {
        let error = Chain(error);
        tracing::warn!(%error, "no control socket: commands like export work only while the server is stopped");
    });
    told.ok()
}

async fn answer_commands(
    socket: Option<Socket>,
    service: &Service,
    tokens: Tokens,
    shutdown: CancellationToken,
) {
    if let Some(socket) = socket {
        control::serve(socket, service.clone(), tokens, shutdown).await;
    }
}

/// Starts to take in the tokens that other servers of the store change, and the logins that they end.
fn keep_up(service: &Service, tokens: Tokens, logins: Logins) {
    if !service.has_replicas() {
        return;
    }
    let shutdown = service.stopping().clone();
    tokio::spawn(async move {
        let mut ticks = tokio::time::interval(TOKENS_EVERY);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        while shutdown.run_until_cancelled(ticks.tick()).await.is_some() {
            let (tokens, logins) = (tokens.clone(), logins.clone());
            let read = move || tokens.refresh().and_then(|()| logins.refresh());
            if let Ok(Err(error)) = tokio::task::spawn_blocking(read).await {
                tracing::debug!(%error, "tokens changed by other servers could not be read");
            }
        }
    });
}

/// Reserves an address. Nobody can connect before [`listen`].
fn bind(listen: SocketAddr) -> Result<TcpSocket, Error> {
    let bound = || {
        let socket = if listen.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() }?;
        // As tokio's own listeners: a restart need not wait for old connections.
        socket.set_reuseaddr(true)?;
        socket.bind(listen)?;
        Ok(socket)
    };
    bound().map_err(|source| Error::Listen { listen, source })
}

/// Listens, and returns the address with the port that was chosen for port 0.
fn listen(socket: TcpSocket, listen: SocketAddr) -> Result<(TcpListener, SocketAddr), Error> {
    let failed = |source| Error::Listen { listen, source };
    let listener = socket.listen(BACKLOG).map_err(failed)?;
    let address = listener.local_addr().map_err(failed)?;
    Ok((listener, address))
}

/// Opens the store, and returns it with its clock.
fn open(config: &Config) -> Result<(Arc<dyn Store>, Clock), Error> {
    if let Some(url) = &config.store {
        return url.open().map_err(|source| unreadable(config, source));
    }
    let sync = match config.sync {
        SyncPolicy::Full => SyncLevel::Full,
        SyncPolicy::Normal => SyncLevel::Normal,
    };
    let options = SqliteOptions { sync, ..SqliteOptions::default() };
    let store =
        SqliteStore::open(&config.data, options).map_err(|source| unreadable(config, source))?;
    Ok((Arc::new(store), Clock::system()))
}

/// Opens the store and loads the sessions.
fn start(config: &Config) -> Result<(Service, Tokens, Logins), Error> {
    let (store, clock) = open(config)?;
    let tokens = tokens(config, &store, &clock)?;
    let logins = Logins::new(tokens.clone());
    // Before the first request: a login that ended before the restart stays ended.
    logins.refresh().map_err(|source| unreadable(config, source))?;
    let cache = config.store.is_none().then(|| config.data.join("cache"));
    if let Some(cache) = &cache
        && let Err(error) = owner_files::make_dir(cache)
    {
        let cache = cache.display();
        tracing::warn!(%cache, %error, "the cache directory could not be created; searches and thumbnails need it");
    }
    let last = config.qa_last.and_then(|last| usize::try_from(last.get()).ok());
    let qa_pairs = config.qa_file.as_deref().map(|path| qa_pairs(path, last)).transpose()?;
    let policy = Policy {
        auto_create: config.auto_create,
        session_bytes_max: config.session_bytes_max.0,
        session_blob_bytes_max: config.session_blob_bytes_max.0,
        session_items_max: config.session_items_max,
        sessions_max: usize::try_from(config.sessions_max).unwrap_or(usize::MAX),
        qa_pairs: qa_pairs.unwrap_or_default(),
    };
    let options = Options {
        qa_session: config.qa_session.clone().map(|name| QaSession { name, last }),
        memory_budget: config.memory_budget.0,
        thumbnails: cache.as_ref().map(|cache| cache.join("thumbnails")),
        search: match config.search {
            Search::On => Some(match cache {
                Some(cache) => SearchPlace::File(cache.join("search.db")),
                None => SearchPlace::Store,
            }),
            Search::Off => None,
        },
        ..Options::default()
    };
    let service = Service::start_with(store, policy, clock, options)?;
    for damage in service.damage() {
        tracing::error!(%damage, "a session is not served: its stored history is damaged");
    }
    Ok((service, tokens, logins))
}

/// Returns the error of a store that cannot be read.
fn unreadable(config: &Config, source: StoreError) -> Error {
    let data = &config.data;
    match (&config.store, source) {
        (Some(url), source) => Error::Service { url: url.to_string(), source },
        (None, StoreError::Io { path, source }) => {
            let source = StoreError::Io { path, source: owner_files::explained(data, source) };
            Error::Store { data: data.clone(), source }
        }
        (None, source) => Error::Store { data: data.clone(), source },
    }
}

/// Opens the tokens, and creates the first one if required.
fn tokens(config: &Config, store: &Arc<dyn Store>, clock: &Clock) -> Result<Tokens, Error> {
    let limits = TokenLimits {
        rate: NonZeroU32::new(config.token_rate),
        streams_max: config.token_streams_max,
    };
    let tokens = Tokens::open(Arc::clone(store), clock.clone(), limits)
        .map_err(|source| unreadable(config, source))?;
    owner_files::narrow(&config.data.join(ADMIN_TOKEN_FILE));
    if let Some(path) = &config.admin_token_file {
        given_token(&tokens, path)?;
    } else if config.require_token && config.store.is_some() && !tokens.are_required() {
        return Err(Error::NoToken);
    } else if config.require_token
        && let Some(path) = first_token(&tokens, &config.data)?
    {
        tracing::info!(
            target: FIRST_TOKEN,
            path = %path.display(),
            "created the first token, with all rights; save it, and delete the file"
        );
    }
    refuse_exposure(config, tokens.are_required())?;
    if config.insecure && !tokens.are_required() {
        tracing::warn!(
            listen = %config.listen,
            "--insecure: without a token, anyone who reaches the server may read and change every session"
        );
    }
    if config.require_token || config.admin_token_file.is_some() {
        tokens.keep(KeptBecause::Configured);
    } else if !config.listen.ip().to_canonical().is_loopback() {
        tokens.keep(KeptBecause::Exposed(config.listen));
    }
    Ok(tokens)
}

/// Refuses addresses other than loopback on a server without tokens.
fn refuse_exposure(config: &Config, has_tokens: bool) -> Result<(), Error> {
    let listen = config.listen;
    if has_tokens || config.insecure || listen.ip().to_canonical().is_loopback() {
        return Ok(());
    }
    Err(Error::Exposed { listen })
}

/// Reads the last lines of a JSONL file as items. Invalid lines are skipped, as in the original.
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
                tracing::warn!(path = %path.display(), line, %why, "skipped a line of the --qa-file");
            }
        }
    }
    Ok(items)
}

fn qa_pair(line: &str) -> Result<Item, NoPair> {
    let item = Item::from_json(json::syntax(line.trim().as_bytes())?)?;
    if BlobRef::all_in(item.text()).next().is_some() { Err(NoPair::NamesBlob) } else { Ok(item) }
}

#[derive(Debug, thiserror::Error)]
enum NoPair {
    #[error(transparent)]
    Malformed(#[from] json::Malformed),
    /// The message could quote the line, so only the code is logged.
    #[error("{}", .0.code().as_str())]
    Invalid(#[from] InvalidItem),
    #[error("it refers to a blob, and a blob belongs to one session")]
    NamesBlob,
}

/// The signals that stop the server.
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

    /// Cancels the token on the first signal.
    async fn cancel(mut self, shutdown: CancellationToken) {
        let name = tokio::select! {
            _ = self.terminate.recv() => "SIGTERM",
            _ = self.interrupt.recv() => "SIGINT",
        };
        tracing::info!(signal = name, "stopping");
        Notice::Stopping.send();
        shutdown.cancel();
    }
}
