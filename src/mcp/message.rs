//! Messages that the protocol's library cannot read, refused as JSON-RPC says.

use axum::body::{Body, Bytes};
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::Response;
use rmcp::model::{ErrorCode, ErrorData, JsonRpcError};

use super::call::arguments::RawArguments;
use crate::api::offload::work;
use crate::board::json::tokens::Tokens;
use crate::board::json::{self, Kind};

/// The maximum number of names, values and brackets in a message. The library keeps each as a value of its own, of 32 bytes
/// and more, whatever the size of the body.
const TOKENS_MAX: usize = 200_000;

/// The requests that are answered. Their library reads one with other parameters as a request of another protocol.
const METHODS: [&str; 14] = [
    "completion/complete",
    "ping",
    "prompts/get",
    "prompts/list",
    "resources/list",
    "resources/read",
    "resources/templates/list",
    "server/discover",
    "subscriptions/listen",
    "tasks/cancel",
    "tasks/get",
    "tasks/update",
    "tools/call",
    "tools/list",
];

/// A message as it came, before the library reads it.
pub(super) struct Received {
    /// The arguments of a tool.
    pub(super) arguments: Option<RawArguments>,
    /// The refusal of a body that is no message.
    pub(super) refusal: Option<Response>,
}

/// Looks at a body, on another thread if it is large.
pub(super) async fn received(body: Bytes) -> Received {
    let bytes = body.len();
    let look = move || Ok(Received { arguments: RawArguments::of(&body), refusal: refused(&body) });
    work(bytes, look).await.unwrap_or_else(|_| Received { arguments: None, refusal: None })
}

/// Returns the refusal of a body that is no JSON, no single message, or too large a tree.
fn refused(body: &[u8]) -> Option<Response> {
    match json::document(body) {
        Err(json::Malformed { line, column, reason }) => {
            let why = format!("line {line}, column {column}: {reason}");
            Some(refusal(ErrorCode::PARSE_ERROR, why))
        }
        Ok(text) if json::kind(text.get()) != Kind::Object => {
            let found = json::kind(text.get()).with_article();
            Some(unread(&format!("expected one message, as an object; found {found}")))
        }
        Ok(text) if Tokens::new(text.get()).nth(TOKENS_MAX).is_some() => Some(unread(&format!(
            "the message has more than {TOKENS_MAX} names, values and brackets"
        ))),
        Ok(_) => None,
    }
}

/// Replaces the library's answer to a message that it cannot read.
pub(super) fn answered(response: Response, is_json: bool) -> Response {
    if is_json && response.status() == StatusCode::UNSUPPORTED_MEDIA_TYPE {
        return unread("the message is none of the protocol, or nested deeper than 128 levels");
    }
    response
}

fn unread(why: &str) -> Response {
    refusal(ErrorCode::INVALID_REQUEST, why.to_owned())
}

fn refusal(code: ErrorCode, why: String) -> Response {
    let error = JsonRpcError::new(None, ErrorData::new(code, why, None));
    let body = serde_json::to_vec(&error).unwrap_or_default();
    let mut response = Response::new(Body::from(Bytes::from(body)));
    *response.status_mut() = StatusCode::BAD_REQUEST;
    let json = HeaderValue::from_static("application/json");
    response.headers_mut().insert(header::CONTENT_TYPE, json);
    response
}

/// Returns the error for a request that the library does not know: of its parameters, if the method is known. Recent
/// generations have no handshake.
pub(super) fn unknown(method: &str, is_recent: bool) -> ErrorData {
    if METHODS.contains(&method) || method == "initialize" && !is_recent {
        let why = format!("the parameters of {method} are not those of the protocol");
        return ErrorData::invalid_params(why, None);
    }
    ErrorData::new(ErrorCode::METHOD_NOT_FOUND, format!("there is no method {method}"), None)
}
