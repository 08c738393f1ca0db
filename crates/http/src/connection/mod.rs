//! The accept loop, with limits on connections and graceful shutdown.
//!
//! At the maximum number of connections, an idle one is closed for a new one ([`self::idle`]). `axum::serve` limits
//! neither the number nor the silence of connections, and waits for ever for a stream that does not end.

mod departure;
mod head_timer;
mod idle;
mod idle_queues;
mod malformed_head;
pub(crate) mod slow_client;
mod stream;

use std::convert::Infallible;
use std::error::Error;
use std::pin::Pin;
use std::task::Poll;
use std::{io, net::IpAddr, sync::Arc, time::Duration};

use axum::body::Body;
use axum::http::Request;
use axum::response::Response;
use futures_util::poll;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::{HttpService, service_fn};
use hyper_util::rt::TokioIo;
use tokio::{
    net::{TcpListener, TcpStream},
    sync::{OwnedSemaphorePermit, Semaphore},
    time::{sleep, timeout},
};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tower::Service;

use blackboard_fairness::Client;
use blackboard_fairness::cancellation::Dormant;
use blackboard_metrics as metrics;
pub(super) use departure::Departure;
use head_timer::HeadTimer;
use idle::{IdleConnections, Idleness};
use malformed_head::Parsed;
use stream::ClientStream;

/// The pause after a failed accept, mostly for lack of file descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// The timeout of a head: of the first from the connection's opening, of later ones from their first byte.
const HEAD_TIMEOUT: Duration = Duration::from_secs(10);

/// The longest idle time between two requests.
const IDLE_MAX: Duration = Duration::from_secs(60);

/// The timeout of a client that reads nothing of its answer, which would keep a board in memory.
const WRITE_STALL_MAX: Duration = Duration::from_secs(10);

/// Limits on single connections and on all together.
#[derive(Clone, Copy, Debug)]
pub struct ConnectionLimits {
    /// The maximum number of open connections. A further one waits until an idle one was closed for it; more wait
    /// in the system's backlog.
    pub connections_max: usize,
    /// The time for a complete head, after which the connection is closed: counted from the opening for the first
    /// head, from the first byte for later ones.
    pub head_timeout: Duration,
    /// The longest idle time between two requests, after which the connection is closed.
    pub idle_max: Duration,
    /// The time without progress of an answer after which the connection is reset.
    pub write_stall_max: Duration,
    /// The maximum size of a head, in bytes; a larger one is refused with 431.
    pub head_bytes_max: usize,
    /// The time from the beginning of a shutdown until open connections are closed.
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

/// Serves requests until `shutdown`, then drains: requests under way finish. Returns when the last connection is
/// closed.
///
/// Streams must end by themselves at shutdown; those left after the drain timeout are aborted.
pub async fn serve<S>(
    listener: TcpListener,
    service: S,
    limits: ConnectionLimits,
    shutdown: CancellationToken,
) where
    S: Service<Request<Body>, Response = Response, Error = Infallible, Future: Send>,
    S: Clone + Send + Sync + 'static,
{
    let connections = Connections {
        http: http(&limits),
        limits,
        service,
        idle: IdleConnections::new(),
        tasks: TaskTracker::new(),
        shutdown: shutdown.clone(),
        abort: CancellationToken::new(),
    };
    shutdown.run_until_cancelled(connections.accept(&listener)).await;
    drop(listener);
    connections.drain(limits.drain_timeout).await;
}

/// The other end of a request's connection.
#[derive(Clone, Debug)]
pub(super) struct Peer {
    pub(super) address: IpAddr,
    pub(super) departure: Departure,
}

struct Connections<S> {
    http: http1::Builder,
    limits: ConnectionLimits,
    /// Answers requests. It is always ready.
    service: S,
    idle: Arc<IdleConnections>,
    tasks: TaskTracker,
    shutdown: CancellationToken,
    abort: CancellationToken,
}

impl<S> Connections<S>
where
    S: Service<Request<Body>, Response = Response, Error = Infallible, Future: Send>,
    S: Clone + Send + Sync + 'static,
{
    /// Accepts connections until its future is dropped.
    async fn accept(&self, listener: &TcpListener) {
        let places = Arc::new(Semaphore::new(self.limits.connections_max));
        loop {
            match listener.accept().await {
                // The semaphore is never closed, so `None` never comes.
                Ok((stream, peer)) => {
                    let client = Client::at(peer.ip());
                    match self.idle.place(&places, client).await {
                        Some(place) => self.open(stream, peer.ip(), place),
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

    fn open(&self, stream: TcpStream, address: IpAddr, place: OwnedSemaphorePermit) {
        let client = Client::at(address);
        let (parsed, departure) = (Parsed::default(), Departure::default());
        let peer = Peer { address, departure: departure.clone() };
        let service = service_fn({
            let (service, parsed) = (self.service.clone(), parsed.clone());
            let connections = Arc::clone(&self.idle);
            move |mut request: Request<Incoming>| {
                parsed.set();
                request.extensions_mut().insert(peer.clone());
                let answering = service.clone().call(request.map(Body::new));
                let connections = Arc::clone(&connections);
                async move { answering.await.map(|response| connections.see_off(response)) }
            }
        });
        let member = self.idle.join(client);
        let idleness = Arc::clone(member.idleness());
        let heads = HeadTimer::new(self.limits.head_timeout, Arc::clone(&idleness));
        let stream =
            ClientStream::new(stream, idleness, self.limits.write_stall_max, parsed, departure);
        let mut http = self.http.clone();
        http.timer(heads);
        // Boxed, or the task would have room for it in each future that it is passed to.
        let connection = Box::pin(http.serve_connection(TokioIo::new(stream), service));
        let last_request = last_request(self.shutdown.clone(), Arc::clone(member.idleness()));
        let last_request = Dormant::new(last_request);
        let abort = self.abort.clone();
        let counted = metrics::CONNECTIONS.count();
        // Requests without a token count as their address's.
        self.tasks.spawn(client.scope(async move {
            run(connection, last_request, member.idleness(), abort).await;
            drop((member, place, counted));
        }));
    }

    async fn drain(self, drain_timeout: Duration) {
        self.tasks.close();
        if timeout(drain_timeout, self.tasks.wait()).await.is_err() {
            let connections = self.tasks.len();
            tracing::warn!(connections, "aborted connections at the drain timeout");
            self.abort.cancel();
            self.tasks.wait().await;
        }
    }
}

type Connection<S> = http1::Connection<TokioIo<ClientStream>, S>;

/// Serves one connection until it closes. At shutdown, or when a new connection needs its place, the connection
/// takes no further request; only then may it be aborted.
async fn run<S>(
    mut connection: Pin<Box<Connection<S>>>,
    last_request: Dormant<LastRequest>,
    idleness: &Idleness,
    abort: CancellationToken,
) where
    S: HttpService<Incoming, ResBody = Body>,
    S::Error: Into<Box<dyn Error + Send + Sync>>,
{
    let ended = tokio::select! {
        biased;
        ended = connection.as_mut() => ended,
        why = last_request => {
            connection.as_mut().graceful_shutdown();
            match (poll!(connection.as_mut()), why, idleness.keeps()) {
                (Poll::Ready(ended), _, _) => ended,
                // hyper would wait for the head of a further request.
                (Poll::Pending, LastRequest::Yields, Some(_)) => return,
                (Poll::Pending, LastRequest::Yields | LastRequest::Shutdown, _) => {
                    idleness.is_busy_after_all();
                    match abort.run_until_cancelled(connection).await {
                        Some(ended) => ended,
                        None => return,
                    }
                }
            }
        }
    };
    if let Err(error) = ended {
        // The client's doing: it left, sent malformed HTTP, or ran into a timeout.
        tracing::debug!(%error, "connection ended early");
    }
}

/// The reason why a connection takes no further request.
#[derive(Clone, Copy)]
enum LastRequest {
    /// The server shuts down.
    Shutdown,
    /// A new connection needs its place.
    Yields,
}

/// Waits until the connection must take no further request.
async fn last_request(shutdown: CancellationToken, idleness: Arc<Idleness>) -> LastRequest {
    tokio::select! {
        biased;
        () = shutdown.cancelled() => LastRequest::Shutdown,
        () = idleness.yields() => LastRequest::Yields,
    }
}

fn http(limits: &ConnectionLimits) -> http1::Builder {
    let mut http = http1::Builder::new();
    // hyper's own limit is 100 headers.
    // A client that has closed its sending half still gets its answer.
    // The connection's `HeadTimer` shortens this timeout where a head has less time.
    http.half_close(true)
        .header_read_timeout(limits.idle_max.max(limits.head_timeout))
        .max_header_size(limits.head_bytes_max);
    http
}

/// Returns true if the error is of the connection to accept, not of the listener.
fn is_of_one_connection(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset};
    [ConnectionAborted, ConnectionRefused, ConnectionReset].contains(&error.kind())
}

#[cfg(test)]
mod tests;
