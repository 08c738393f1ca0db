//! The accept loop: connections are counted, timed and, at the end, all joined.
//!
//! `axum::serve` has no cap on connections, no timeout for a silent one, and waits for ever for a
//! stream that does not end.

use std::{io, iter, sync::Arc, time::Duration};

use axum::Router;
use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;
use hyper::server::conn::http1;
use hyper_util::{rt::TokioIo, service::TowerToHyperService};
use tokio::{
    net::{TcpListener, TcpStream},
    sync::{OwnedSemaphorePermit, Semaphore},
    time::{sleep, timeout},
};
use tokio_util::sync::{CancellationToken, WaitForCancellationFutureOwned};
use tokio_util::task::TaskTracker;

use super::client_stream::ClientStream;
use super::head_timer::HeadTimer;
use crate::metrics;

/// How long to wait after the system refused to give a connection: for want of descriptors, mostly.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// The first head is there within so long of the connection's opening, and each other one of its first byte.
const HEAD_TIMEOUT: Duration = Duration::from_secs(10);

/// So long a connection may rest between two requests.
const IDLE_MAX: Duration = Duration::from_secs(60);

/// A client that takes nothing of its answer for so long is cut off; it would keep a board in memory.
const WRITE_STALL_MAX: Duration = Duration::from_secs(10);

/// What one client, and all of them together, may take of the server.
#[derive(Clone, Copy, Debug)]
pub struct ConnectionLimits {
    /// So many connections at once; more wait in the system's queue.
    pub connections_max: usize,
    /// A connection that sends no complete head for so long is closed: a new one, and one that dawdles
    /// within a head.
    pub head_timeout: Duration,
    /// So is one that rests between two requests for so long.
    pub idle_max: Duration,
    /// One that takes nothing of its answer for so long is cut off.
    pub write_stall_max: Duration,
    /// A longer head is refused with 431.
    pub head_bytes_max: usize,
    /// What still runs so long after the shutdown began is cut off.
    pub drain_timeout: Duration,
}

impl Default for ConnectionLimits {
    fn default() -> Self {
        Self {
            connections_max: 10_000,
            head_timeout: HEAD_TIMEOUT,
            idle_max: IDLE_MAX,
            write_stall_max: WRITE_STALL_MAX,
            head_bytes_max: 32 * 1024,
            drain_timeout: Duration::from_secs(10),
        }
    }
}

/// Serves `router` until `shutdown`, then lets what is under way finish, and returns when the last
/// connection is gone.
///
/// Streams must end by themselves at the shutdown; one that does not is cut off when the time to
/// drain is over.
pub async fn serve(
    listener: TcpListener,
    router: Router,
    limits: ConnectionLimits,
    shutdown: CancellationToken,
) {
    let connections = Connections {
        http: http(&limits),
        limits,
        router,
        tasks: TaskTracker::new(),
        shutdown: shutdown.clone(),
        abort: CancellationToken::new(),
    };
    shutdown.run_until_cancelled(accept(&listener, &connections, limits.connections_max)).await;
    drop(listener);
    connections.drain(limits.drain_timeout).await;
}

/// Accepts for ever.
async fn accept(listener: &TcpListener, connections: &Connections, connections_max: usize) {
    let slots = Arc::new(Semaphore::new(connections_max));
    // The semaphore is never closed, so that the loop ends only with its future.
    while let Ok(slot) = Arc::clone(&slots).acquire_owned().await {
        match listener.accept().await {
            Ok((stream, _)) => connections.open(stream, slot),
            Err(error) if is_of_one_connection(&error) => {}
            Err(error) => {
                tracing::warn!(%error, "cannot accept connections");
                sleep(ACCEPT_PAUSE).await;
            }
        }
    }
}

struct Connections {
    http: http1::Builder,
    limits: ConnectionLimits,
    router: Router,
    tasks: TaskTracker,
    shutdown: CancellationToken,
    abort: CancellationToken,
}

impl Connections {
    fn open(&self, stream: TcpStream, slot: OwnedSemaphorePermit) {
        let service = TowerToHyperService::new(self.router.clone());
        let heads = HeadTimer::new(self.limits.head_timeout);
        let stream = ClientStream::new(stream, heads.hearing(), self.limits.write_stall_max);
        let mut http = self.http.clone();
        http.timer(heads);
        let connection = http.serve_connection(TokioIo::new(stream), service);
        let shutdown = End::of(&self.shutdown);
        let mut abort = End::of(&self.abort);
        let counted = metrics::CONNECTIONS.count();
        self.tasks.spawn(async move {
            tokio::select! {
                biased;
                () = run(connection, shutdown) => {}
                () = abort.reached() => {}
            }
            drop((slot, counted));
        });
    }

    async fn drain(self, drain_timeout: Duration) {
        self.tasks.close();
        if timeout(drain_timeout, self.tasks.wait()).await.is_err() {
            let connections = self.tasks.len();
            tracing::warn!(connections, "cut off what did not finish in time");
            self.abort.cancel();
            self.tasks.wait().await;
        }
    }
}

type Connection = http1::Connection<TokioIo<ClientStream>, TowerToHyperService<Router>>;

/// The end of all connections, as one of them waits for it. A token alone takes the lock of all who wait
/// for it whenever the connection has something to do; this looks at it only when it was cancelled.
struct End(FuturesUnordered<WaitForCancellationFutureOwned>);

impl End {
    fn of(token: &CancellationToken) -> Self {
        Self(iter::once(token.clone().cancelled_owned()).collect())
    }

    async fn reached(&mut self) {
        self.0.next().await;
    }
}

/// Runs one connection to its end; at the shutdown no further request is taken.
async fn run(connection: Connection, mut shutdown: End) {
    let mut connection = std::pin::pin!(connection);
    let ended = tokio::select! {
        biased;
        ended = connection.as_mut() => ended,
        () = shutdown.reached() => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    if let Err(error) = ended {
        // The client's doing: it left, sent what is no HTTP, or was silent for too long.
        tracing::debug!(%error, "connection ended early");
    }
}

fn http(limits: &ConnectionLimits) -> http1::Builder {
    let mut http = http1::Builder::new();
    // At most 100 headers is hyper's own bound.
    // A client that has said all it has to say still gets its answer.
    // The timer of each connection knows which waits are shorter.
    http.half_close(true)
        .header_read_timeout(limits.idle_max.max(limits.head_timeout))
        .max_header_size(limits.head_bytes_max);
    http
}

/// Errors that belong to the connection which would have been next, not to the listener.
fn is_of_one_connection(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset};
    [ConnectionAborted, ConnectionRefused, ConnectionReset].contains(&error.kind())
}

#[cfg(test)]
#[path = "server_tests.rs"]
mod tests;
