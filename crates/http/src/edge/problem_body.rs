//! Rendering of problems from handlers, router, layers and panics.

use std::any::Any;

use axum::{
    body::{Body, Bytes, to_bytes},
    http::{HeaderValue, Uri, header},
    response::{IntoResponse, Response},
};
use http_body::Body as _;

use super::Gate;
use crate::response::LoggedReason;
use crate::response::problem::{MEDIA_TYPE, Problem};
use crate::response::request_id::RequestId;
use blackboard_board::Code;
use blackboard_service::Service;

/// The maximum length of a layer's plain text that becomes a problem's detail.
const DETAIL_BYTES_MAX: u64 = 4096;

/// Returns true for an answer to render.
pub(super) fn is_refusal(response: &Response) -> bool {
    response.extensions().get::<Problem>().is_some() || is_bare_error(response)
}

/// Renders the problem among the extensions of a refusal, or else a layer's bare error. The code stays among the
/// extensions for the log.
pub(super) async fn render(mut response: Response, id: RequestId, gate: &Gate) -> Response {
    let problem = match response.extensions_mut().remove::<Problem>() {
        Some(problem) => problem,
        None => bare(&mut response).await,
    };
    fill(response, problem, id, gate)
}

fn fill(mut response: Response, mut problem: Problem, id: RequestId, gate: &Gate) -> Response {
    if problem.is_disk_full()
        && let Some(space) = gate.service.as_ref().and_then(Service::free_space)
    {
        problem = problem.free_space(&space);
    }
    if problem.status().is_server_error() && !is_for_want_of_room(problem.code()) {
        gate.faults.tell(&mut problem, id);
    }
    *response.status_mut() = problem.status();
    response.headers_mut().extend(problem.take_headers());
    response.extensions_mut().insert(problem.code());
    if let Some(reason) = problem.logged_reason() {
        response.extensions_mut().insert(LoggedReason(reason));
    }
    let media_type = HeaderValue::from_static(MEDIA_TYPE);
    response.headers_mut().remove(header::CONTENT_LENGTH);
    response.headers_mut().insert(header::CONTENT_TYPE, media_type);
    *response.body_mut() = Body::from(problem.into_json(id));
    response
}

/// Returns true for refusals for lack of capacity, or of a revision not reached yet. These are no faults of the
/// server, and the access log has them; a second line for each would make an overload worse.
fn is_for_want_of_room(code: Code) -> bool {
    [Code::Overloaded, Code::RevisionNotReached, Code::SessionFull].contains(&code)
}

/// Returns true for an error without a media type or in plain text, as from the router, an extractor or a layer.
/// An error of another media type, such as JSON-RPC, is a handler's deliberate answer.
fn is_bare_error(response: &Response) -> bool {
    let status = response.status();
    if !(status.is_client_error() || status.is_server_error()) {
        return false;
    }
    let media_type = response.headers().get(header::CONTENT_TYPE);
    media_type.is_none_or(|value| value.as_bytes().starts_with(b"text/plain"))
}

/// Returns the problem of a bare error.
async fn bare(response: &mut Response) -> Problem {
    let status = response.status();
    let body = std::mem::take(response.body_mut());
    // A stream has no upper bound and is not read; the text of a server error is not for the client.
    let is_short = body.size_hint().upper().is_some_and(|n| n <= DETAIL_BYTES_MAX);
    let said = if is_short && status.is_client_error() {
        to_bytes(body, usize::MAX).await.unwrap_or_default()
    } else {
        Bytes::new()
    };
    let said = String::from_utf8_lossy(&said);
    let detail = match said.trim() {
        "" => status.canonical_reason().unwrap_or("Error"),
        said => said,
    };
    Problem::of_status(status, detail.to_owned())
}

/// Handles a request that matches no route.
pub(super) async fn route_not_found(uri: Uri) -> Problem {
    crate::response::problem::no_route(uri.path())
}

/// Turns a handler's panic into a problem. The log gets its message only if that is a literal: a formatted message
/// may quote the client.
pub(super) fn panicked(payload: Box<dyn Any + Send + 'static>) -> Response {
    let message = payload.downcast::<&'static str>().map_or("message withheld", |text| *text);
    Problem::new(Code::Internal, "the request failed in the server; its log has the cause")
        .cause(Panicked(message))
        .into_response()
}

#[derive(Debug, thiserror::Error)]
#[error("the handler panicked: {0}")]
struct Panicked(&'static str);
