//! Responses: JSON with a newline, revision and entity tag.

pub(crate) mod chunked;
pub(crate) mod problem;
pub(crate) mod range;
pub(crate) mod request_id;
pub(crate) mod segments;
pub(crate) mod stored_bytes;
pub(crate) mod trace_context;

use axum::body::Body;
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use axum::response::Response;
use serde::Serialize;
use serde_json::error::Category;

use blackboard_api::tag::Tag;
use blackboard_board::{AgentName, Board, Code, Revision, TokenName};
use problem::Problem;

/// The header that tells whether a board's four logs are empty.
pub(crate) const EMPTY_HEADER: HeaderName = HeaderName::from_static("blackboard-empty");

/// The header with the revision of the session that an answer shows.
pub(crate) const REVISION_HEADER: HeaderName = HeaderName::from_static("blackboard-revision");

/// The header that repeats `ETag`, which some proxies make weak, extend or remove.
pub(crate) const TAG_HEADER: HeaderName = HeaderName::from_static("blackboard-etag");

/// The media type of JSON.
pub(super) const JSON: &str = "application/json";

/// The media type of server-sent events.
pub(crate) const EVENT_STREAM: &str = "text/event-stream";

/// The media type of JSON lines.
pub(super) const NDJSON: &str = "application/x-ndjson";

/// The capacity for an answer's headers, including those that the edge and axum add, so that the map need not
/// grow.
const HEADERS: usize = 15;

/// An answer about a session.
pub(super) struct Answer {
    status: StatusCode,
    headers: HeaderMap,
}

impl Answer {
    /// Creates an answer that shows a revision.
    pub(super) fn of(revision: Revision) -> Self {
        Self::plain().header(REVISION_HEADER, revision_value(revision))
    }

    /// Creates an answer that shows no session.
    pub(super) fn plain() -> Self {
        Self { status: StatusCode::OK, headers: HeaderMap::with_capacity(HEADERS) }
    }

    /// Adds the tag of the resource shown or written.
    pub(super) fn tag(self, tag: &Tag) -> Self {
        self.header(header::ETAG, tag_value(tag))
    }

    /// Adds a header.
    pub(super) fn header(mut self, name: HeaderName, value: HeaderValue) -> Self {
        self.headers.insert(name, value);
        self
    }

    /// Sets a status other than 200.
    pub(super) fn status(mut self, status: StatusCode) -> Self {
        self.status = status;
        self
    }

    /// Adds the address of the created resource.
    pub(super) fn location(self, location: &str) -> Self {
        match HeaderValue::from_str(location) {
            Ok(location) => self.header(header::LOCATION, location),
            Err(_) => self,
        }
    }

    /// Returns the headers, for an answer whose body is built elsewhere.
    pub(super) fn into_headers(self) -> HeaderMap {
        self.headers
    }

    /// Adds a body of this media type.
    pub(super) fn body(self, media_type: &'static str, body: Body) -> Response {
        self.header(header::CONTENT_TYPE, HeaderValue::from_static(media_type)).with(body)
    }

    /// Adds a JSON text as the body.
    pub(super) fn text(self, mut text: String) -> Response {
        text.push('\n');
        self.body(JSON, Body::from(text))
    }

    /// Adds a value as the JSON body.
    pub(super) fn json(self, value: &impl Serialize) -> Result<Response, Problem> {
        Ok(self.text(serde_json::to_string(value).map_err(unwritten)?))
    }

    /// Finishes the answer without a body.
    pub(super) fn without_body(self) -> Response {
        self.with(Body::empty())
    }

    fn with(self, body: Body) -> Response {
        let mut response = Response::new(body);
        *response.status_mut() = self.status;
        *response.headers_mut() = self.headers;
        response
    }
}

/// The token of a caller and its agent, for the access log.
#[derive(Clone)]
pub(crate) struct LoggedToken {
    pub(crate) name: TokenName,
    pub(crate) agent: Option<AgentName>,
}

/// The reason of a refusal, for the access log.
#[derive(Clone, Copy)]
pub(crate) struct LoggedReason(pub(crate) &'static str);

/// Returns the value of [`EMPTY_HEADER`].
pub(crate) fn emptiness(board: &Board) -> HeaderValue {
    HeaderValue::from_static(if board.is_empty() { "true" } else { "false" })
}

/// Returns a tag as a header's value.
pub(crate) fn tag_value(tag: &Tag) -> HeaderValue {
    // A tag is printable ASCII by construction.
    HeaderValue::from_str(tag.as_str()).unwrap_or_else(|_| HeaderValue::from_static("\"\""))
}

/// Returns a session's revision as a header's value.
pub(crate) fn revision_value(revision: Revision) -> HeaderValue {
    HeaderValue::from(revision.0)
}

/// Reports an answer that cannot be serialized, which is the server's fault.
#[expect(clippy::needless_pass_by_value, reason = "as `map_err` gives it")]
pub(super) fn unwritten(error: serde_json::Error) -> Problem {
    let cause = Unwritten { category: error.classify(), at: error.column() };
    Problem::new(Code::Internal, "the response could not be written").cause(cause)
}

/// The cause for the log, without the parser's own message, which would quote values.
#[derive(Debug, thiserror::Error)]
#[error("JSON failed with a {category:?} error at column {at}")]
struct Unwritten {
    category: Category,
    at: usize,
}

/// Returns true if `Accept` names one of the media types and does not prefer JSON (RFC 9110, section 12.5.1).
pub(super) fn prefers(request: &HeaderMap, media_types: &[&str]) -> bool {
    let values = request.get_all(header::ACCEPT).into_iter();
    let ranges = values.filter_map(|value| value.to_str().ok()).flat_map(|value| value.split(','));
    let (mut wanted, mut json) = (0.0_f32, 0.0_f32);
    for range in ranges {
        let mut parts = range.split(';').map(str::trim);
        let essence = parts.next().unwrap_or_default();
        let weight = parts.find_map(|part| part.strip_prefix(['q', 'Q'])?.strip_prefix('='));
        let weight = weight.map_or(Ok(1.0), str::parse);
        let weight = weight.unwrap_or(0.0);
        if media_types.iter().any(|wanted| essence.eq_ignore_ascii_case(wanted)) {
            wanted = wanted.max(weight);
        } else if essence.eq_ignore_ascii_case(JSON) {
            json = json.max(weight);
        }
    }
    wanted > 0.0 && wanted >= json
}
