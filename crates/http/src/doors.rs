//! Doors of other protocols on this port, behind the guard and within the bounds of HTTP.

use std::sync::Arc;

use axum::body::Bytes;
use axum::extract::{Request, State};
use axum::http::{HeaderValue, header};
use axum::response::{IntoResponse as _, Response};
use axum::{Extension, Router};
use futures_util::future::BoxFuture;
use http_body::Body as _;

use super::access::Credentials;
use super::connection::Peer;
use super::edge::wrapped;
use super::events::sse::{Streams, X_ACCEL_BUFFERING};
use super::request::body::{BodyRoom, DOOR_BODY_BYTES_MAX, read};
use super::response::EVENT_STREAM;
use super::response::problem::Problem;
use super::response::trace_context::Trace;
use blackboard_metrics as metrics;

/// A request to a door. Its extensions have the [`Caller`](blackboard_auth::Caller), and a
/// [`CancellationToken`](tokio_util::sync::CancellationToken) that is cancelled when the client departs;
/// a [`TraceId`](blackboard_board::TraceId) if it belongs to a trace.
pub type DoorRequest = axum::http::Request<Bytes>;

/// Answers a request.
pub type DoorAnswer = Arc<dyn Fn(DoorRequest) -> BoxFuture<'static, Response> + Send + Sync>;

/// The door of another protocol, which takes POST requests.
#[derive(Clone)]
pub struct Door {
    /// The name that the root resource shows.
    pub name: &'static str,
    /// The path.
    pub path: &'static str,
    /// The function that answers.
    pub answer: DoorAnswer,
}

/// A page that people open in a browser, and the credentials of its logins.
#[derive(Clone)]
pub struct Page {
    /// The name that the root resource shows.
    pub name: &'static str,
    /// The address, to which the root resource redirects browsers.
    pub path: &'static str,
    /// The routes, which need no token.
    pub routes: Router,
    /// The source of callers for requests without a token.
    pub credentials: Credentials,
}

/// Reads the body, calls the door, and counts its answer among the event streams if it is one.
pub(super) async fn pass(
    door: Door,
    State(room): State<BodyRoom>,
    State(streams): State<Streams>,
    peer: Option<Extension<Peer>>,
    request: Request,
) -> Result<Response, Problem> {
    let (mut parts, body) = request.into_parts();
    let bytes = read(&parts.headers, body, DOOR_BODY_BYTES_MAX, &room).await?;
    let departed = peer.map(|peer| peer.departure.watch().clone()).unwrap_or_default();
    parts.extensions.insert(departed);
    if let Some(trace) = Trace::of(&parts.headers) {
        parts.extensions.insert(trace.id());
    }
    let request = DoorRequest::from_parts(parts, Bytes::from_owner(bytes));
    let mut response = (door.answer)(request).await;
    if response.headers().get(header::CONTENT_TYPE).is_some_and(is_event_stream) {
        let place = streams.place()?;
        let headers = response.headers_mut();
        headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
        headers.insert(X_ACCEL_BUFFERING, HeaderValue::from_static("no"));
        let (parts, body) = response.into_parts();
        let held = (place, metrics::STREAMS.count());
        // The place is kept for as long as the body.
        let body = wrapped(body, move |body, cx| {
            let _held = &held;
            body.poll_frame(cx)
        });
        response = Response::from_parts(parts, body);
    }
    Ok(response.into_response())
}

fn is_event_stream(value: &HeaderValue) -> bool {
    value.as_bytes().starts_with(EVENT_STREAM.as_bytes())
}
