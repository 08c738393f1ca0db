//! Rendering of problems from handlers, router, layers and panics.

use std::any::Any;

use axum::{
    body::{Body, Bytes, to_bytes},
    extract::Request,
    http::{HeaderValue, Method, StatusCode, header},
    response::{IntoResponse, Response},
};
use http_body::Body as _;

use super::fault_log::Faults;
use crate::board::Code;
use crate::http::response::problem::{MEDIA_TYPE, Problem};
use crate::http::response::request_id::RequestId;

/// The maximum length of a layer's plain text that becomes a problem's detail.
const DETAIL_BYTES_MAX: u64 = 4096;

/// Renders the problem among the answer's extensions, or else a layer's bare error. The code stays among the
/// extensions for the log.
pub(super) async fn render(
    mut response: Response,
    asked: &Asked,
    id: RequestId,
    faults: &Faults,
) -> Response {
    let found = response.extensions_mut().remove::<Problem>();
    let problem = match found {
        Some(problem) => problem,
        None if is_bare_error(&response) => match bare(&mut response, asked).await {
            Some(problem) => problem,
            None => return response,
        },
        None => return response,
    };
    fill(response, problem, id, faults)
}

fn fill(mut response: Response, mut problem: Problem, id: RequestId, faults: &Faults) -> Response {
    if problem.status().is_server_error() && !is_for_want_of_room(problem.code()) {
        faults.tell(&mut problem, id);
    }
    *response.status_mut() = problem.status();
    response.headers_mut().extend(problem.take_headers());
    response.extensions_mut().insert(problem.code());
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

/// Returns the problem of a bare error, or `None` if the answer is the methods of a route.
async fn bare(response: &mut Response, asked: &Asked) -> Option<Problem> {
    let status = response.status();
    if status == StatusCode::METHOD_NOT_ALLOWED {
        return asked.without_method(response);
    }
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
    Some(Problem::of_status(status, detail.to_owned()))
}

/// The parts of a request that the answer for a missing method depends on.
pub(super) struct Asked {
    method: Method,
    /// True for the list of sessions, where a client may expect to create one.
    is_sessions: bool,
}

impl Asked {
    pub(super) fn of(request: &Request) -> Self {
        let is_sessions = request.uri().path() == "/v1/sessions";
        Self { method: request.method().clone(), is_sessions }
    }

    /// Answers OPTIONS, and refuses any other missing method. The router adds `Allow` to both.
    fn without_method(&self, response: &mut Response) -> Option<Problem> {
        if self.method == Method::OPTIONS {
            *response.status_mut() = StatusCode::NO_CONTENT;
            return None;
        }
        let detail = if self.is_sessions && self.method == Method::POST {
            "the list has no such method; to create a session, PUT /v1/sessions/{session}"
        } else {
            "the route has no such method; use one that Allow lists"
        };
        Some(Problem::of_status(StatusCode::METHOD_NOT_ALLOWED, detail.to_owned()))
    }
}

/// Handles a request that matches no route.
pub(super) async fn route_not_found() -> Problem {
    crate::http::response::problem::no_route()
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
