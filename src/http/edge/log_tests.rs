//! What the log tells of a request, and what it never tells.

use std::{io, sync::Arc};

use axum::body::Body;
use axum::routing::get;
use parking_lot::Mutex;
use serde_json::Value;
use tower::ServiceExt;

use super::*;
use crate::{board::Code, http::Problem};

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

/// The lines that one request leaves in the log.
async fn logged(path: &str) -> Vec<Value> {
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
        .route("/panic", get(panicking));
    let request = Request::get(path)
        .header("host", "localhost")
        .header("x-agent-id", "H%20ost")
        .body(Body::empty())
        .expect("a request");
    {
        let _guard = tracing::subscriber::set_default(log);
        let edge = edge(router, AllowedHosts::default(), CorsOrigins::default());
        edge.oneshot(request).await.expect("an answer");
    }
    let text = String::from_utf8(lines.0.lock().clone()).expect("UTF-8");
    text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect()
}

async fn failed() -> Problem {
    Problem::new(Code::StoreUnavailable, "Later.").cause(io::Error::other("disk on fire"))
}

async fn panicking() -> &'static str {
    panic!("out of {}", "luck");
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
async fn a_panic_is_logged_with_its_message() {
    let lines = logged("/panic").await;
    assert_eq!(lines[0]["cause"], "the handler panicked: out of luck");
    assert_eq!(lines[1]["status"], 500);
}

#[tokio::test]
async fn a_probe_that_succeeds_leaves_no_line() {
    assert!(logged("/healthz").await.is_empty());
    assert_eq!(logged("/nowhere").await[0]["code"], "route-not-found");
}
