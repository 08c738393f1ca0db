//! Problems for heads that hyper cannot parse.
//!
//! hyper responds to a malformed head by itself, with an empty body. Such a response is recognised when it is written,
//! and replaced: no handler and no layer sees it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use axum::http::StatusCode;

use crate::response::problem::{MEDIA_TYPE, Problem};
use crate::response::request_id::RequestId;
use blackboard_board::Code;

/// True once a request of the connection was parsed. Later responses are not examined, since they may contain bytes
/// that a client chose.
#[derive(Clone, Default)]
pub(super) struct Parsed {
    is_set: Arc<AtomicBool>,
    /// True once that was seen to be true: a stream of events looks at each of them.
    was_set: bool,
}

impl Parsed {
    /// Records a parsed request.
    pub(super) fn set(&self) {
        self.is_set.store(true, Ordering::Relaxed);
    }

    /// Returns the response to write instead of hyper's response to a malformed first head.
    pub(super) fn replacement(&mut self, written: &[u8]) -> Option<Vec<u8>> {
        self.was_set = self.was_set || self.is_set.load(Ordering::Relaxed);
        if self.was_set {
            return None;
        }
        let status = written.strip_prefix(b"HTTP/1.")?.get(2..5)?;
        response(StatusCode::from_bytes(status).ok().filter(StatusCode::is_client_error)?)
    }
}

fn response(status: StatusCode) -> Option<Vec<u8>> {
    let problem = match status {
        StatusCode::BAD_REQUEST => Problem::new(
            Code::InvalidEncoding,
            "the request line or a header is malformed; in a URL, write spaces and characters such as \" { } < > \
             percent-encoded, for example with curl -G --data-urlencode",
        ),
        StatusCode::URI_TOO_LONG | StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE => {
            Problem::of_status(status, "the request line and headers are too long".to_owned())
        }
        _ => return None,
    };
    let (id, reason) = (RequestId::new(), status.canonical_reason()?);
    let body = problem.into_json(id);
    let (number, length) = (status.as_u16(), body.len());
    let head = format!(
        "HTTP/1.1 {number} {reason}\r\ncontent-type: {MEDIA_TYPE}\r\nx-request-id: {id}\r\n\
         x-content-type-options: nosniff\r\nconnection: close\r\ncontent-length: {length}\r\n\r\n"
    );
    Some([head, body].concat().into_bytes())
}
