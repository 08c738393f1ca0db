//! CORS for a list of sites, empty by default.
//!
//! Before a request that a plain form could not send, a browser sends a preflight, without credentials. So
//! preflights are answered before authentication, for any path.

use std::collections::BTreeSet;
use std::str::FromStr;
use std::sync::Arc;

use axum::extract::Request;
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use axum::response::{IntoResponse, Response};

use super::hosts::is_authority;

/// The methods that a page of a listed site may use.
const METHODS: &str = "GET, HEAD, POST, PUT, PATCH, DELETE";

/// The headers that a page of a listed site may send. Clients of MCP send those of its transport.
const SENT: &str = "authorization, x-api-key, content-type, content-encoding, accept, if-match, if-none-match, \
    idempotency-key, last-event-id, x-agent-id, range, traceparent, mcp-protocol-version, mcp-method, mcp-name, \
    mcp-session-id";

/// The headers that a page of a listed site may read.
const SHOWN: &str = "etag, blackboard-etag, location, retry-after, blackboard-revision, blackboard-empty, \
    blackboard-tokens, blackboard-truncated, idempotency-replayed, x-request-id, link, content-range, accept-post, accept-patch, \
    allow";

/// The time for which a browser may cache a preflight's answer, in seconds.
const TOLD_S: &str = "600";

/// The sites whose pages may call this server from a browser.
#[derive(Clone, Debug, Default)]
pub struct CorsOrigins(Arc<BTreeSet<Origin>>);

/// A site as a browser names it: scheme, host, and port unless it is the scheme's default.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Origin(String);

/// An invalid list of sites.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidOrigin {
    /// The wildcard `*`.
    #[error(
        "'*' would let every site that a user visits read and write here; list the allowed sites"
    )]
    Any,
    /// The origin `null`, which browsers send for pages without a site.
    #[error("'null' is the origin of any sandboxed page or local file; list the allowed sites")]
    Null,
    /// A text without the scheme `http` or `https`.
    #[error("{0:?} does not begin with http:// or https://")]
    Scheme(String),
    /// A text that is not a site, such as a URL with a path.
    #[error("{0:?} is not a site such as https://board.example.com or http://localhost:5173")]
    Malformed(String),
}

impl FromStr for Origin {
    type Err = InvalidOrigin;

    fn from_str(text: &str) -> Result<Self, InvalidOrigin> {
        match text {
            "*" => return Err(InvalidOrigin::Any),
            "null" => return Err(InvalidOrigin::Null),
            _ => {}
        }
        let site = text.to_ascii_lowercase();
        let (own_port, authority) =
            match (site.strip_prefix("http://"), site.strip_prefix("https://")) {
                (Some(authority), _) => (":80", authority),
                (_, Some(authority)) => (":443", authority),
                (None, None) => return Err(InvalidOrigin::Scheme(text.to_owned())),
            };
        if !is_authority(authority) || authority.ends_with(':') {
            return Err(InvalidOrigin::Malformed(text.to_owned()));
        }
        // Browsers omit the default port.
        Ok(Self(site.strip_suffix(own_port).unwrap_or(&site).to_owned()))
    }
}

impl FromStr for CorsOrigins {
    type Err = InvalidOrigin;

    /// Parses sites separated by commas; the list may be empty.
    fn from_str(text: &str) -> Result<Self, InvalidOrigin> {
        let sites = text.split(',').map(str::trim).filter(|site| !site.is_empty());
        let sites: Result<_, _> = sites.map(str::parse).collect();
        sites.map(|sites| Self(Arc::new(sites)))
    }
}

impl CorsOrigins {
    /// Returns true if no site is listed.
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the site that a request comes from, if listed.
    pub(super) fn listed(&self, headers: &HeaderMap) -> Option<HeaderValue> {
        if self.is_empty() {
            return None;
        }
        let mut origins = headers.get_all(header::ORIGIN).into_iter();
        let (Some(origin), None) = (origins.next(), origins.next()) else { return None };
        self.has(origin).then(|| origin.clone())
    }

    /// Returns true if the site is listed.
    pub(super) fn has(&self, origin: &HeaderValue) -> bool {
        origin.to_str().is_ok_and(|origin| self.0.iter().any(|listed| listed.0 == origin))
    }

    /// Answers a preflight from a listed site; `None` for any other request.
    pub(super) fn preflight(&self, request: &Request) -> Option<Response> {
        let asks = request.method() == Method::OPTIONS
            && request.headers().contains_key(header::ACCESS_CONTROL_REQUEST_METHOD);
        if !asks {
            return None;
        }
        self.listed(request.headers())?;
        let told = [
            (header::ACCESS_CONTROL_ALLOW_METHODS, HeaderValue::from_static(METHODS)),
            (header::ACCESS_CONTROL_ALLOW_HEADERS, HeaderValue::from_static(SENT)),
            (header::ACCESS_CONTROL_MAX_AGE, HeaderValue::from_static(TOLD_S)),
        ];
        Some((StatusCode::NO_CONTENT, told).into_response())
    }
}

/// Lets the page of a listed site read an answer.
pub(super) fn show(origin: HeaderValue, headers: &mut HeaderMap) {
    headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, origin);
    headers.insert(header::ACCESS_CONTROL_EXPOSE_HEADERS, HeaderValue::from_static(SHOWN));
}
