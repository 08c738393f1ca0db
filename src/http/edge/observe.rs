//! What every exchange has: an id, one line in the log, and the headers that stand on every answer.

use std::{fmt, time::Instant};

use axum::{
    extract::{MatchedPath, Request},
    http::{HeaderMap, HeaderName, HeaderValue, Method, header},
    middleware::Next,
    response::Response,
};
use uuid::Uuid;

use super::encoding::normalize_accept_encoding;
use crate::board::Code;

const X_REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");
const X_AGENT_ID: HeaderName = HeaderName::from_static("x-agent-id");

/// The name of one exchange, in its answer, its problem and its log line. A request carries it
/// among its extensions; a client's own `X-Request-Id` is not taken over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RequestId(Uuid);

impl RequestId {
    #[expect(
        clippy::new_without_default,
        reason = "every one is new; a default would pretend otherwise"
    )]
    /// An id that nothing else has; later ones sort behind earlier ones.
    #[must_use]
    pub fn new() -> Self {
        Self(Uuid::now_v7())
    }
}

impl fmt::Display for RequestId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The outermost layer.
pub(super) async fn observe(mut request: Request, next: Next) -> Response {
    let id = RequestId::new();
    request.extensions_mut().insert(id);
    normalize_accept_encoding(request.headers_mut());
    let line = Line::begin(&request, id);
    let mut response = next.run(request).await;
    line.end(&response);
    dress(response.headers_mut(), id);
    response
}

fn dress(headers: &mut HeaderMap, id: RequestId) {
    let mut text = [0; uuid::fmt::Hyphenated::LENGTH];
    if let Ok(value) = HeaderValue::from_str(id.0.hyphenated().encode_lower(&mut text)) {
        headers.insert(X_REQUEST_ID, value);
    }
    let vary = HeaderValue::from_static("Accept, Accept-Encoding");
    headers.insert(header::VARY, vary);
    let nosniff = HeaderValue::from_static("nosniff");
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, nosniff);
}

/// The log line of one exchange. Names stay percent-encoded, as they came, so that none can forge
/// a line; the time is that to the head of the answer, since a stream may last for days.
struct Line {
    begun: Instant,
    id: RequestId,
    method: Method,
    route: Option<MatchedPath>,
    session: Option<String>,
    agent: Option<String>,
}

impl Line {
    fn begin(request: &Request, id: RequestId) -> Self {
        let agent = request.headers().get(X_AGENT_ID);
        Self {
            begun: Instant::now(),
            id,
            method: request.method().clone(),
            route: request.extensions().get().cloned(),
            session: session_of(request.uri().path()).map(str::to_owned),
            agent: agent.and_then(|v| v.to_str().ok()).map(str::to_owned),
        }
    }

    fn end(self, response: &Response) {
        let status = response.status();
        let code = response.extensions().get::<Code>().map(|code| code.as_str());
        let route = self.route.as_ref().map_or("none", MatchedPath::as_str);
        let ms = (self.begun.elapsed().as_secs_f64() * 1e6).round() / 1e3;
        macro_rules! line {
            ($level:ident) => {
                tracing::$level!(
                    method = %self.method,
                    route,
                    status = status.as_u16(),
                    code,
                    ms,
                    session = self.session,
                    agent = self.agent,
                    request_id = %self.id,
                    "answered"
                )
            };
        }
        // Probes come every few seconds and say nothing while all is well.
        match route {
            "/healthz" | "/readyz" | "/metrics" if status.is_success() => line!(debug),
            _ => line!(info),
        }
    }
}

fn session_of(path: &str) -> Option<&str> {
    let name = path.strip_prefix("/v1/sessions/")?.split('/').next()?;
    (!name.is_empty() && name.is_ascii()).then_some(name)
}
