//! Headers set on every response.
//!
//! These are the request id, `Vary`, caching, CORS, and security headers for browsers. A handler's own caching,
//! content security and resource policies are kept.

use axum::extract::Request;
use axum::http::{HeaderMap, HeaderName, HeaderValue, header};

use super::Gate;
use super::cors;
use crate::http::response::request_id::RequestId;

const CROSS_ORIGIN_RESOURCE_POLICY: HeaderName =
    HeaderName::from_static("cross-origin-resource-policy");

/// The policy of answers that are not pages: they may load nothing and not be framed.
const NO_PAGE: HeaderValue = HeaderValue::from_static("default-src 'none'; frame-ancestors 'none'");

/// The caching of answers about boards: only the client's own cache stores them, and revalidates before each use.
const REVALIDATED: HeaderValue = HeaderValue::from_static("private, no-cache");

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
