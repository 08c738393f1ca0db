//! Headers set on every response.
//!
//! These are the request id, `Vary`, caching, CORS, and security headers for browsers. A handler's own caching,
//! content security and resource policies are kept. Proxies are asked to leave tags and event streams alone.

use axum::extract::Request;
use axum::http::{HeaderMap, HeaderName, HeaderValue, header};

use super::Gate;
use super::cors;
use crate::response::request_id::RequestId;
use crate::response::{EVENT_STREAM, TAG_HEADER};

const CROSS_ORIGIN_RESOURCE_POLICY: HeaderName =
    HeaderName::from_static("cross-origin-resource-policy");

/// The policy of answers that are not pages: they may load nothing and not be framed.
const NO_PAGE: HeaderValue = HeaderValue::from_static("default-src 'none'; frame-ancestors 'none'");

/// The caching of answers about boards: only the client's own cache stores them, and revalidates before each use.
const REVALIDATED: HeaderValue = HeaderValue::from_static("private, no-cache");

/// The same, for answers that no proxy may compress: it would make the tag weak or remove it, and hold back events.
const REVALIDATED_AS_IS: HeaderValue = HeaderValue::from_static("private, no-cache, no-transform");

/// The facts about a request that decide its answer's headers.
pub(super) struct Dress {
    is_of_boards: bool,
    /// The listed site whose page sent the request.
    page: Option<HeaderValue>,
    vary: HeaderValue,
}

impl Dress {
    pub(super) fn of(request: &Request, gate: &Gate) -> Self {
        let vary = if gate.options.cors_origins.is_empty() {
            HeaderValue::from_static("Accept, Accept-Encoding")
        } else {
            HeaderValue::from_static("Accept, Accept-Encoding, Origin")
        };
        Self {
            is_of_boards: request.uri().path().starts_with("/v1/"),
            page: gate.options.cors_origins.listed(request.headers()),
            vary,
        }
    }

    /// Sets the headers.
    pub(super) fn put_on(self, headers: &mut HeaderMap, id: RequestId) {
        headers.reserve(8);
        id.put_on(headers);
        headers.insert(header::VARY, self.vary);
        headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
        headers.insert(header::REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
        headers.insert(header::X_FRAME_OPTIONS, HeaderValue::from_static("DENY"));
        headers.entry(header::CONTENT_SECURITY_POLICY).or_insert(NO_PAGE);
        for_proxies(headers);
        if self.is_of_boards {
            headers.entry(header::CACHE_CONTROL).or_insert(REVALIDATED);
        }
        let readers = if self.page.is_some() { "cross-origin" } else { "same-origin" };
        let readers = HeaderValue::from_static(readers);
        headers.entry(CROSS_ORIGIN_RESOURCE_POLICY).or_insert(readers);
        if let Some(page) = self.page {
            cors::show(page, headers);
        }
    }
}

/// Repeats the tag where proxies leave it alone, and forbids them to transform what has a tag and what is a stream.
fn for_proxies(headers: &mut HeaderMap) {
    let tag = headers.get(header::ETAG).cloned();
    let kind = headers.get(header::CONTENT_TYPE).map(HeaderValue::as_bytes);
    let is_stream = kind.is_some_and(|kind| kind.starts_with(EVENT_STREAM.as_bytes()));
    if tag.is_none() && !is_stream {
        return;
    }
    if let Some(tag) = tag {
        headers.insert(TAG_HEADER, tag);
    }
    let caching = headers.get(header::CACHE_CONTROL).and_then(|caching| caching.to_str().ok());
    let caching = caching.map(|caching| HeaderValue::from_str(&format!("{caching}, no-transform")));
    let caching = caching.and_then(Result::ok).unwrap_or(REVALIDATED_AS_IS);
    headers.insert(header::CACHE_CONTROL, caching);
}
