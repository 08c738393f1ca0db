//! Tests of timeouts, limits and shutdown of connections.

use std::{net::SocketAddr, time::Instant};

use axum::{Router, body::Body, routing::get};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    sync::Notify,
    task::JoinHandle,
};

use super::*;

struct Server {
    addr: SocketAddr,
    shutdown: CancellationToken,
    task: JoinHandle<()>,
}

async fn start(router: Router, limits: ConnectionLimits) -> Server {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let addr = listener.local_addr().expect("an address");
    let shutdown = CancellationToken::new();
    let task = tokio::spawn(serve(listener, router, limits, shutdown.clone()));
    Server { addr, shutdown, task }
}

const SHORT: Duration = Duration::from_millis(200);

fn hasty() -> ConnectionLimits {
    ConnectionLimits {
        head_timeout: SHORT,
        idle_max: SHORT,
        write_stall_max: SHORT,
        drain_timeout: Duration::from_millis(300),
        ..ConnectionLimits::default()
    }
}

fn hello() -> Router {
    Router::new().route("/", get(async || "hello"))
}

/// Returns a handler that notifies on entry and waits for a signal to leave.
fn gated() -> (Router, Arc<Notify>, Arc<Notify>) {
    let (entered, leave) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let handler = {
        let (entered, leave) = (Arc::clone(&entered), Arc::clone(&leave));
        async move || {
            entered.notify_one();
            leave.notified().await;
            "hello"
        }
    };
    (Router::new().route("/", get(handler)), entered, leave)
}

const GET: &[u8] = b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n";

/// Reads until the server closes the connection; returns the text and the time taken.
async fn until_closed(mut stream: TcpStream) -> (String, Duration) {
    let begun = Instant::now();
    let mut bytes = Vec::new();
    // A reset counts as a close.
    _ = stream.read_to_end(&mut bytes).await;
    let text = String::from_utf8_lossy(&bytes).into_owned();
    (text, begun.elapsed())
}

async fn read_hello(stream: &mut TcpStream) {
    let mut bytes = Vec::new();
    while !bytes.ends_with(b"hello") {
        let read = stream.read_buf(&mut bytes).await.expect("an answer");
        assert_ne!(read, 0, "closed early");
    }
}

#[tokio::test]
async fn a_connection_that_never_says_anything_is_closed() {
    let server = start(hello(), hasty()).await;
    let stream = TcpStream::connect(server.addr).await.expect("connect");
    let (said, after) = until_closed(stream).await;
    assert_eq!(said, "");
    assert!(after >= Duration::from_millis(150), "{after:?}");
    assert!(after < Duration::from_secs(5), "{after:?}");
}

#[tokio::test]
async fn a_dawdling_head_is_closed_in_spite_of_its_bytes() {
    let server = start(hello(), hasty()).await;
    let mut stream = TcpStream::connect(server.addr).await.expect("connect");
    let begun = Instant::now();
    let mut ticks = tokio::time::interval(Duration::from_millis(20));
    stream.write_all(b"GET / HTTP/1.1\r\n").await.expect("write");
    while stream.write_all(b"X: y\r\n").await.is_ok() {
        ticks.tick().await;
        assert!(begun.elapsed() < Duration::from_secs(5));
    }
}

#[tokio::test]
async fn an_idle_connection_is_closed_between_requests() {
    let server = start(hello(), hasty()).await;
    let mut stream = TcpStream::connect(server.addr).await.expect("connect");
    stream.write_all(GET).await.expect("write");
    read_hello(&mut stream).await;
    let (said, after) = until_closed(stream).await;
    assert_eq!(said, "");
    assert!(after >= Duration::from_millis(150), "{after:?}");
    assert!(after < Duration::from_secs(5), "{after:?}");
}

#[tokio::test]
async fn a_connection_may_rest_longer_than_a_head_may_take() {
    let limits = ConnectionLimits { idle_max: Duration::from_secs(3600), ..hasty() };
    let server = start(hello(), limits).await;
    let mut kept = TcpStream::connect(server.addr).await.expect("connect");
    kept.write_all(GET).await.expect("write");
    read_hello(&mut kept).await;
    // A silent connection, opened later, measures the head timeout.
    let silent = TcpStream::connect(server.addr).await.expect("connect");
    until_closed(silent).await;
    kept.write_all(GET).await.expect("write");
    read_hello(&mut kept).await;
    // A head that has begun has no more time than a first one.
    kept.write_all(b"GET / HTTP/1.1\r\n").await.expect("write");
    assert_eq!(until_closed(kept).await.0, "");
}

/// Returns an endless body that notifies when it is dropped.
fn endless() -> (Router, Arc<Notify>) {
    struct Given(Arc<Notify>);
    impl Drop for Given {
        fn drop(&mut self) {
            self.0.notify_one();
        }
    }
    let given_up = Arc::new(Notify::new());
    let handler = {
        let given_up = Arc::clone(&given_up);
        async move || {
            let given = Given(Arc::clone(&given_up));
            let pieces = futures_util::stream::repeat_with(move || {
                let _held = &given;
                Ok::<_, io::Error>("hello".repeat(1000))
            });
            Body::from_stream(pieces)
        }
    };
    (Router::new().route("/", get(handler)), given_up)
}

#[tokio::test]
async fn a_client_that_takes_nothing_of_its_answer_is_cut_off() {
    let (router, given_up) = endless();
    let server = start(router, hasty()).await;
    let mut stalled = TcpStream::connect(server.addr).await.expect("connect");
    stalled.write_all(GET).await.expect("write");
    given_up.notified().await;
    // The reset also discards the bytes already written.
    let mut read = Vec::new();
    let ended = stalled.read_to_end(&mut read).await;
    assert_eq!(ended.map_err(|error| error.kind()), Err(io::ErrorKind::ConnectionReset));
}

#[tokio::test]
async fn a_client_that_takes_its_answer_in_drips_is_cut_off() {
    let (router, given_up) = endless();
    let server = start(router, hasty()).await;
    let mut dripping = TcpStream::connect(server.addr).await.expect("connect");
    dripping.write_all(GET).await.expect("write");
    let mut ticks = tokio::time::interval(Duration::from_millis(20));
    let drip = async {
        while dripping.read_u8().await.is_ok() {
            ticks.tick().await;
        }
        std::future::pending::<()>().await;
    };
    tokio::select! {
        () = given_up.notified() => {}
        () = drip => {}
    }
}

#[tokio::test]
async fn a_client_that_waits_for_more_is_not_cut_off() {
    let more = Arc::new(Notify::new());
    let handler = {
        let more = Arc::clone(&more);
        async move || {
            let first = futures_util::stream::once(async { Ok::<_, io::Error>("first") });
            let rest = futures_util::stream::once(async move {
                more.notified().await;
                Ok("hello")
            });
            Body::from_stream(futures_util::StreamExt::chain(first, rest))
        }
    };
    let server = start(Router::new().route("/", get(handler)), hasty()).await;
    let mut waiting = TcpStream::connect(server.addr).await.expect("connect");
    waiting.write_all(b"GET / HTTP/1.0\r\nHost: localhost\r\n\r\n").await.expect("write");
    let silent = TcpStream::connect(server.addr).await.expect("connect");
    until_closed(silent).await;
    more.notify_one();
    read_hello(&mut waiting).await;
}

#[tokio::test]
async fn a_slow_handler_is_not_taken_for_a_slow_head() {
    let (router, entered, leave) = gated();
    let server = start(router, hasty()).await;
    let mut busy = TcpStream::connect(server.addr).await.expect("connect");
    busy.write_all(GET).await.expect("write");
    entered.notified().await;
    // A silent connection, opened later, measures the timeout.
    let silent = TcpStream::connect(server.addr).await.expect("connect");
    until_closed(silent).await;
    leave.notify_one();
    read_hello(&mut busy).await;
}

#[tokio::test]
async fn a_head_too_long_is_refused() {
    let server = start(hello(), ConnectionLimits::default()).await;
    let long = "x".repeat(40 * 1024);
    let many = "X: y\r\n".repeat(200);
    for headers in [format!("X: {long}\r\n"), many] {
        let mut stream = TcpStream::connect(server.addr).await.expect("connect");
        let request = format!("GET / HTTP/1.1\r\nHost: a\r\n{headers}\r\n");
        stream.write_all(request.as_bytes()).await.expect("write");
        let (said, _) = until_closed(stream).await;
        assert!(said.starts_with("HTTP/1.1 431 "), "{said}");
    }
}

fn two_at_once() -> ConnectionLimits {
    let never = Duration::from_secs(3600);
    ConnectionLimits {
        connections_max: 2,
        idle_max: never,
        head_timeout: never,
        ..ConnectionLimits::default()
    }
}

async fn connected(server: &Server, said: &[u8]) -> TcpStream {
    let mut stream = TcpStream::connect(server.addr).await.expect("connect");
    stream.write_all(said).await.expect("write");
    stream
}

#[tokio::test]
async fn a_newcomer_gets_the_place_of_the_idlest_connection() {
    let server = start(hello(), two_at_once()).await;
    let mut idle = Vec::new();
    for _ in 0..2 {
        let mut stream = connected(&server, GET).await;
        read_hello(&mut stream).await;
        idle.push(stream);
    }
    // The first has now been idle for less time than the second.
    idle[0].write_all(GET).await.expect("write");
    read_hello(&mut idle[0]).await;

    let mut newcomer = connected(&server, GET).await;
    read_hello(&mut newcomer).await;
    assert_eq!(until_closed(idle.remove(1)).await.0, "");
    idle[0].write_all(GET).await.expect("write");
    read_hello(&mut idle[0]).await;
}

#[tokio::test]
async fn a_newcomer_waits_for_the_first_connection_that_idles() {
    let (router, entered, leave) = gated();
    let server = start(router, two_at_once()).await;
    let silent = connected(&server, b"GET / HTTP/1.1\r\n").await;
    let busy = connected(&server, GET).await;
    entered.notified().await;

    let newcomer = connected(&server, GET).await;
    let waited = timeout(Duration::from_millis(100), entered.notified()).await;
    assert!(waited.is_err(), "let in beyond the cap");
    leave.notify_one();
    // `Connection: close` in the answer keeps the client from sending a request that would be lost.
    let (said, _) = until_closed(busy).await;
    assert!(said.contains("connection: close") && said.ends_with("hello"), "{said}");
    entered.notified().await;
    leave.notify_one();
    let mut newcomer = newcomer;
    read_hello(&mut newcomer).await;
    drop(silent);
}

#[tokio::test]
async fn of_a_crowd_everybody_is_answered_though_nobody_leaves() {
    let server = start(hello(), two_at_once()).await;
    let mut crowd = Vec::new();
    for _ in 0..20 {
        crowd.push(connected(&server, GET).await);
    }
    for stream in &mut crowd {
        read_hello(stream).await;
    }
}

#[tokio::test]
async fn a_shutdown_lets_a_request_finish_and_closes_idle_connections() {
    let (router, entered, leave) = gated();
    let server = start(router, ConnectionLimits::default()).await;
    let idle = TcpStream::connect(server.addr).await.expect("connect");
    let mut busy = TcpStream::connect(server.addr).await.expect("connect");
    busy.write_all(GET).await.expect("write");
    entered.notified().await;

    server.shutdown.cancel();
    assert_eq!(until_closed(idle).await.0, "");
    leave.notify_one();
    let (said, _) = until_closed(busy).await;
    assert!(said.contains("connection: close"), "{said}");
    assert!(said.ends_with("hello"), "{said}");
    server.task.await.expect("joined");
    assert!(TcpStream::connect(server.addr).await.is_err());
}

#[tokio::test]
async fn an_endless_body_is_cut_off_after_the_drain_time() {
    let endless = async || {
        let first = futures_util::stream::once(async { Ok::<_, io::Error>("hello") });
        let rest = futures_util::stream::pending();
        Body::from_stream(futures_util::StreamExt::chain(first, rest))
    };
    let server = start(Router::new().route("/", get(endless)), hasty()).await;
    let mut stream = TcpStream::connect(server.addr).await.expect("connect");
    stream.write_all(GET).await.expect("write");
    let mut head = [0; 17];
    stream.read_exact(&mut head).await.expect("a head");

    server.shutdown.cancel();
    let begun = Instant::now();
    server.task.await.expect("joined");
    let took = begun.elapsed();
    assert!(took >= Duration::from_millis(250), "{took:?}");
    assert!(took < Duration::from_secs(5), "{took:?}");
    assert!(until_closed(stream).await.0.contains("hello"));
}
