//! Tests of the access log: its fields, and the secrets kept out of it.

use std::io;
use std::sync::{Arc, LazyLock};

use axum::body::Body;
use axum::http::{HeaderMap, Uri};
use axum::routing::get;
use parking_lot::Mutex;
use serde_json::Value;
use tower::ServiceExt;
use tracing::Dispatch;

use crate::Problem;
use crate::edge::*;
use blackboard_board::Code;

#[derive(Clone, Default)]
struct Lines(Arc<Mutex<Vec<u8>>>);

impl io::Write for Lines {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Keeps all lines of interest. A call site that another test reaches first, without a log, would otherwise stay
/// disabled.
static INTERESTED: LazyLock<Dispatch> =
    LazyLock::new(|| Dispatch::new(tracing_subscriber::fmt().with_writer(io::sink).finish()));

/// Returns the log lines of one request.
async fn logged(path: &str) -> Vec<Value> {
    answered(path, &[]).await.0
}

/// Returns the log lines of one request with these `traceparent` headers, and the headers of the answer.
async fn answered(path: &str, traces: &[&str]) -> (Vec<Value>, HeaderMap) {
    repeated(path, traces, 1).await
}

/// Returns the log lines of repeated requests to one server, and the headers of the last answer.
async fn repeated(path: &str, traces: &[&str], times: usize) -> (Vec<Value>, HeaderMap) {
    let lines = Lines::default();
    let writer = lines.clone();
    let log = tracing_subscriber::fmt()
        .json()
        .flatten_event(true)
        .with_writer(move || writer.clone())
        .finish();
    let router = Router::new()
        .route("/v1/sessions/{session}", get(failed))
        .route("/healthz", get(async || "ok"))
        .route("/panic", get(panicking))
        .route("/quoting", get(quoting))
        .route("/full", get(full));
    let request = || {
        let request = Request::get(path).header("host", "localhost");
        let request = request.header("x-agent-id", "H%20ost");
        let request = traces.iter().fold(request, |to, trace| to.header("traceparent", *trace));
        request.body(Body::empty()).expect("a request")
    };
    LazyLock::force(&INTERESTED);
    let headers = {
        let _guard = tracing::subscriber::set_default(log);
        let edge = layered(router, &Arc::new(Gate::new(EdgeOptions::default(), None)));
        let mut headers = HeaderMap::new();
        for _ in 0..times {
            let answer = edge.clone().oneshot(request()).await.expect("an answer");
            headers = answer.headers().clone();
        }
        headers
    };
    let text = String::from_utf8(lines.0.lock().clone()).expect("UTF-8");
    let lines = text.lines().map(|line| serde_json::from_str(line).expect("JSON"));
    // A slow machine may add lines about slow polls.
    (lines.filter(|line: &Value| line["message"] != "slow poll").collect(), headers)
}

async fn failed() -> Problem {
    Problem::new(Code::StoreUnavailable, "Later.").cause(io::Error::other("disk on fire"))
}

async fn full() -> Problem {
    Problem::new(Code::StoreFull, "No room.")
}

async fn panicking() -> &'static str {
    panic!("out of luck");
}

async fn quoting(uri: Uri) -> &'static str {
    panic!("what is {uri}?");
}

#[tokio::test]
async fn a_failure_is_logged_once_with_its_cause_and_its_request() {
    let lines = logged("/v1/sessions/a%0Ab").await;
    let [failed, answered] = lines.as_slice() else {
        panic!("{lines:?}");
    };
    assert_eq!(failed["level"], "ERROR");
    assert_eq!(failed["cause"], "disk on fire");
    assert_eq!(failed["request_id"], answered["request_id"]);
    assert_eq!(answered["level"], "INFO");
    assert_eq!(answered["route"], "/v1/sessions/{session}");
    assert_eq!(answered["session"], "a%0Ab");
    assert_eq!(answered["agent"], "H%20ost");
    assert_eq!(answered["status"], 503);
    assert_eq!(answered["code"], "store-unavailable");
}

#[tokio::test]
async fn a_full_disk_is_told_once_however_many_writes_it_refuses() {
    let is_told = |line: &&Value| line["level"] == "ERROR";
    let (lines, _) = repeated("/full", &[], 20).await;
    assert_eq!((lines.iter().filter(is_told).count(), lines.len()), (1, 21), "{lines:?}");
    let (lines, _) = repeated("/v1/sessions/s", &[], 3).await;
    assert_eq!(lines.iter().filter(is_told).count(), 3, "each has a cause of its own");
}

#[tokio::test]
async fn a_panic_is_logged_with_its_message() {
    let lines = logged("/panic").await;
    assert_eq!(lines[0]["cause"], "the handler panicked: out of luck");
    assert_eq!(lines[1]["status"], 500);
}

#[tokio::test]
async fn what_a_panic_quotes_is_not_logged() {
    let lines = logged("/quoting?secret").await;
    assert_eq!(lines[0]["cause"], "the handler panicked: message withheld");
    assert!(!format!("{lines:?}").contains("secret"), "{lines:?}");
}

#[tokio::test]
async fn a_trace_is_in_the_log_and_passed_on() {
    const ID: &str = "0af7651916cd43dd8448eb211c80319c";
    let traced = format!("00-{ID}-b7ad6b7169203331-01");
    let (lines, headers) = answered("/v1/sessions/s", &[&traced]).await;
    assert_eq!(lines[1]["trace_id"], ID);
    assert_eq!(lines[1]["parent_id"], "b7ad6b7169203331");
    assert_eq!(lines[1]["sampled"], true);
    let span = lines[1]["span_id"].as_str().expect("a span");
    assert_eq!(headers["traceparent"], format!("00-{ID}-{span}-01"));
    for none in [vec![], vec![traced.as_str(); 2], vec!["00-secret-1-01"]] {
        let (lines, headers) = answered("/v1/sessions/s", &none).await;
        assert!(!headers.contains_key("traceparent"), "{none:?}");
        assert_eq!(lines[1]["trace_id"], Value::Null, "{none:?}");
        assert!(!format!("{lines:?}").contains("secret"), "{lines:?}");
    }
}

#[tokio::test]
async fn a_probe_that_succeeds_leaves_no_line() {
    assert!(logged("/healthz").await.is_empty());
    assert_eq!(logged("/nowhere").await[0]["code"], "route-not-found");
}
