//! The accept loop: connections are counted, timed and, at the end, all joined.
//!
//! Where there are as many as may be, a newcomer takes the place of one that asks for nothing ([`self::idle`]).
//! `axum::serve` has no cap on connections, no timeout for a silent one, and waits for ever for a
//! stream that does not end.

mod head_timer;
mod idle;
mod idle_queues;
pub(crate) mod slow_client;
mod stream;

use std::error::Error;
use std::task::Poll;
use std::{io, iter, sync::Arc, time::Duration};

use axum::Router;
use axum::body::Body;
use futures_util::StreamExt as _;
use futures_util::poll;
use futures_util::stream::FuturesUnordered;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::HttpService;
use hyper_util::{rt::TokioIo, service::TowerToHyperService};
use tokio::{
    net::{TcpListener, TcpStream},
    sync::{OwnedSemaphorePermit, Semaphore},
    time::{sleep, timeout},
};
use tokio_util::sync::{CancellationToken, WaitForCancellationFutureOwned};
use tokio_util::task::TaskTracker;
use tower::util::MapResponse;

use crate::fairness::Client;
use crate::metrics;
use head_timer::HeadTimer;
use idle::{IdleConnections, Idleness};
use stream::ClientStream;

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
    /// So many connections at once. Another one waits until one that asks for nothing was closed for it, and more
    /// wait in the system's queue.
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
        idle: IdleConnections::new(),
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
    let places = Arc::new(Semaphore::new(connections_max));
    loop {
        match listener.accept().await {
            // The semaphore is never closed, so that the loop ends only with its future.
            Ok((stream, peer)) => {
                let client = Client::at(peer.ip());
                match connections.idle.place(&places, client).await {
                    Some(place) => connections.open(stream, client, place),
                    None => return,
                }
            }
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
    idle: Arc<IdleConnections>,
    tasks: TaskTracker,
    shutdown: CancellationToken,
    abort: CancellationToken,
}

impl Connections {
    fn open(&self, stream: TcpStream, client: Client, place: OwnedSemaphorePermit) {
        let connections = Arc::clone(&self.idle);
        let see_off = move |response| connections.see_off(response);
        let service = TowerToHyperService::new(MapResponse::new(self.router.clone(), see_off));
        let member = self.idle.join(client);
        let idleness = Arc::clone(member.idleness());
        let heads = HeadTimer::new(self.limits.head_timeout, Arc::clone(&idleness));
        let stream = ClientStream::new(stream, idleness, self.limits.write_stall_max);
        let mut http = self.http.clone();
        http.timer(heads);
        let connection = http.serve_connection(TokioIo::new(stream), service);
        let shutdown = End::of(&self.shutdown);
        let mut abort = End::of(&self.abort);
        let counted = metrics::CONNECTIONS.count();
        // Without a token the address is whom requests are for.
        self.tasks.spawn(client.scope(async move {
            tokio::select! {
                biased;
                () = run(connection, shutdown, member.idleness()) => {}
                () = abort.reached() => {}
            }
            drop((member, place, counted));
        }));
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

type Connection<S> = http1::Connection<TokioIo<ClientStream>, S>;

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

/// Runs one connection to its end; no further request is taken at the shutdown, or where a newcomer needs its place.
async fn run<S>(connection: Connection<S>, mut shutdown: End, idleness: &Idleness)
where
    S: HttpService<Incoming, ResBody = Body>,
    S::Error: Into<Box<dyn Error + Send + Sync>>,
{
    let mut connection = std::pin::pin!(connection);
    let ended = tokio::select! {
        biased;
        ended = connection.as_mut() => ended,
        why = last_request(&mut shutdown, idleness) => {
            connection.as_mut().graceful_shutdown();
            match (poll!(connection.as_mut()), why, idleness.keeps()) {
                (Poll::Ready(ended), _, _) => ended,
                // Its head would be waited for.
                (Poll::Pending, LastRequest::Yields, Some(_)) => return,
                (Poll::Pending, LastRequest::Yields | LastRequest::Shutdown, _) => {
                    idleness.is_busy_after_all();
                    connection.await
                }
            }
        }
    };
    if let Err(error) = ended {
        // The client's doing: it left, sent what is no HTTP, or was silent for too long.
        tracing::debug!(%error, "connection ended early");
    }
}

/// Why a connection takes no further request.
#[derive(Clone, Copy)]
enum LastRequest {
    /// The server ends.
    Shutdown,
    /// A newcomer needs its place.
    Yields,
}

/// Comes when a connection is to take no further request.
async fn last_request(shutdown: &mut End, idleness: &Idleness) -> LastRequest {
    tokio::select! {
        biased;
        () = shutdown.reached() => LastRequest::Shutdown,
        () = idleness.yields() => LastRequest::Yields,
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
mod tests;
