//! Arbitrary requests to a whole server without its sockets: no panic, no 500, no hang.
//!
//! An input is a number of requests, each ended by a NUL: a line of method and path, headers, an empty line, the body.
#![no_main]

use std::sync::{Arc, LazyLock};
use std::time::Duration;

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::http::{Request, Response};
use blackboard::auth::{TokenLimits, Tokens};
use blackboard::board::Policy;
use blackboard::clock::Clock;
use blackboard::http::{Door, EdgeOptions, Streams, edge, router};
use blackboard::mcp;
use blackboard::service::{Options, Service};
use blackboard::store::{SqliteOptions, SqliteStore, Store, SyncLevel};
use libfuzzer_sys::fuzz_target;
use tempfile::TempDir;
use tokio::runtime::{Builder, Runtime};
use tokio::time::timeout;
use tower::ServiceExt as _;

/// The requests of an input; more take too long.
const REQUESTS_MAX: usize = 8;

/// Reads may wait, and streams do not end.
const WAIT_MAX: Duration = Duration::from_millis(200);

const ANSWER_BYTES_MAX: usize = 1 << 20;

/// Deleted after each input, so that the store stays small.
const SESSIONS: [&str; 3] = ["s", "t", "demo"];

struct Server {
    runtime: Runtime,
    router: Router,
    _home: TempDir,
}

static SERVER: LazyLock<Server> = LazyLock::new(|| {
    let home = TempDir::new().expect("a directory");
    let runtime =
        Builder::new_multi_thread().worker_threads(1).enable_all().build().expect("a runtime");
    let entered = runtime.enter();
    let options = SqliteOptions { sync: SyncLevel::Normal, ..SqliteOptions::default() };
    let store: Arc<dyn Store> = Arc::new(SqliteStore::open(home.path(), options).expect("a store"));
    let limits = TokenLimits { rate: None, streams_max: 100 };
    let tokens = Tokens::open(Arc::clone(&store), Clock::system(), limits).expect("tokens");
    let policy = Policy {
        auto_create: true,
        session_bytes_max: 16 << 20,
        session_blob_bytes_max: 16 << 20,
        session_items_max: 10_000,
        sessions_max: 100,
        qa_pairs: Vec::new(),
    };
    let service = Service::start_with(store, policy, Clock::system(), Options::default());
    let service = service.expect("a service");
    let doors = vec![Door { name: "mcp", path: mcp::PATH, answer: mcp::answer(&service) }];
    let routes = router(service.clone(), tokens, None, Streams::new(100), doors, None);
    let router = edge(routes, EdgeOptions::default(), service);
    drop(entered);
    Server { runtime, router, _home: home }
});

/// A request in the form of the input; `None` if it is none.
fn request(text: &[u8]) -> Option<Request<Body>> {
    let end = text.windows(2).position(|two| two == b"\n\n").unwrap_or(text.len());
    let head = std::str::from_utf8(&text[..end]).ok()?;
    let body = text.get(end + 2..).unwrap_or_default().to_owned();
    let mut lines = head.lines();
    let (method, path) = lines.next()?.split_once(' ')?;
    let mut request = Request::builder().method(method).uri(path).header("host", "localhost");
    for (name, value) in lines.filter_map(|line| line.split_once(": ")) {
        request = request.header(name, value);
    }
    request.body(Body::from(body)).ok()
}

async fn answer(request: Request<Body>) -> Option<()> {
    let told = format!("{} {} {:?}", request.method(), request.uri(), request.headers());
    let answered = timeout(WAIT_MAX, SERVER.router.clone().oneshot(request)).await.ok()?;
    let Ok(response): Result<Response<Body>, _> = answered;
    let status = response.status().as_u16();
    let body = timeout(WAIT_MAX, to_bytes(response.into_body(), ANSWER_BYTES_MAX)).await;
    assert!(status < 500 || status == 503, "{status} to {told}: {body:?}");
    Some(())
}

fuzz_target!(|bytes: &[u8]| {
    SERVER.runtime.block_on(async {
        for text in bytes.split(|byte| *byte == 0).take(REQUESTS_MAX) {
            if let Some(request) = request(text) {
                answer(request).await;
            }
        }
        for session in SESSIONS {
            let path = format!("/v1/sessions/{session}");
            let delete = Request::delete(path).header("host", "localhost").body(Body::empty());
            answer(delete.expect("a request")).await;
        }
    });
});
