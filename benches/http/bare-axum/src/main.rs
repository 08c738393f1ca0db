//! Baseline of `benches/http/run` and `benches/watchers.rs`: axum without parsing, board or disk.
//!
//! `POST /item` reads the body and answers with the server's headers and a body of the same length; `GET /static`
//! answers with the file named on the command line, and `GET /events` streams that file once for each item posted
//! meanwhile. Allocator, runtime and `TCP_NODELAY` are the server's.

use std::process::ExitCode;
use std::{env, fs, io};

use std::convert::Infallible;
use std::sync::Arc;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::{HeaderName, StatusCode, header};
use axum::response::IntoResponse;
use axum::routing::{get, post};
use axum::serve::{ListenerExt, serve};
use futures_util::stream::unfold;
use tikv_jemallocator::Jemalloc;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

#[global_allocator]
static ALLOCATOR: Jemalloc = Jemalloc;

const ADDRESS: &str = "127.0.0.1:0";

/// What a write of one item is answered.
const WRITTEN: &str = "{\"revision\":12345,\"etag\":\"\\\"3039.6e3e25ee1dec62d8\\\"\",\"entries\":[{\"seq\":12345,\
    \"at\":\"2026-11-21T22:48:00.008Z\",\"etag\":\"\\\"3039.ad3b85b75f75ea67\\\"\"}]}\n";

type Headers = [(HeaderName, &'static str); 12];

const HEADERS: Headers = [
    (HeaderName::from_static("blackboard-revision"), "12345"),
    (header::ETAG, "\"3039.ad3b85b75f75ea67\""),
    (header::LOCATION, "/v1/sessions/bench/trajectories/12345"),
    (header::CONTENT_TYPE, "application/json"),
    (header::VARY, "Accept, Accept-Encoding"),
    (HeaderName::from_static("x-request-id"), "01a2004b-8908-763d-8147-b95c1eb06c28"),
    (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (header::REFERRER_POLICY, "no-referrer"),
    (header::X_FRAME_OPTIONS, "DENY"),
    (header::CONTENT_SECURITY_POLICY, "default-src 'none'; frame-ancestors 'none'"),
    (header::CACHE_CONTROL, "private, no-cache"),
    (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
];

fn main() -> ExitCode {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    match runtime.and_then(|runtime| runtime.block_on(run())) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

async fn run() -> io::Result<()> {
    let path = env::args_os().nth(1);
    let text = path.map(fs::read).transpose()?.unwrap_or_default();
    let body = Bytes::from(text);
    let frame = body.clone();
    let items = Arc::new(watch::Sender::new(0));
    let router = Router::new()
        .route("/item", post(item))
        .route("/static", get(async move || ([(header::CONTENT_TYPE, "application/json")], body)))
        .route("/events", get(async move |State(items): State<Items>| events(&items, frame)))
        .with_state(items);
    let listener = TcpListener::bind(ADDRESS).await?;
    eprintln!("listening on http://{}", listener.local_addr()?);
    serve(listener.tap_io(send_at_once), router).await
}

/// The number of items so far.
type Items = Arc<watch::Sender<usize>>;

/// The body is read whole and looked at no further.
async fn item(State(items): State<Items>, body: Bytes) -> (StatusCode, Headers, &'static str) {
    drop(body);
    items.send_modify(|count| *count += 1);
    (StatusCode::CREATED, HEADERS, WRITTEN)
}

/// A stream of server-sent events: the frame for each new item, all that came meanwhile in one piece.
fn events(items: &Items, frame: Bytes) -> impl IntoResponse + use<> {
    let mut seen = items.subscribe();
    let sent = *seen.borrow_and_update();
    let frames = unfold((seen, sent, frame), async |(mut seen, sent, frame)| {
        seen.changed().await.ok()?;
        let now: usize = *seen.borrow_and_update();
        let piece = Bytes::from(frame.repeat(now - sent));
        Some((Ok::<_, Infallible>(piece), (seen, now, frame)))
    });
    ([(header::CONTENT_TYPE, "text/event-stream")], Body::from_stream(frames))
}

fn send_at_once(stream: &mut TcpStream) {
    if let Err(error) = stream.set_nodelay(true) {
        eprintln!("cannot set TCP_NODELAY: {error}");
    }
}
