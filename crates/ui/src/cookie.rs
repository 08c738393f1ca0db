//! The cookie of a login.
//!
//! All ports of a host share their cookies, so the name has the port. Over TLS it has the prefix `__Host-`, which
//! other hosts of the domain cannot set (RFC 6265bis).

use axum::http::header::{COOKIE, HOST, ORIGIN};
use axum::http::{HeaderMap, HeaderName, HeaderValue};

use blackboard_auth::RequestOrigin;

const FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");

/// The maximum length of a login's id; a longer value is none of ours.
const ID_BYTES_MAX: usize = 128;

/// Returns the origin of a request. Repeated headers count as absent.
pub(super) fn origin(headers: &HeaderMap) -> RequestOrigin<'_> {
    RequestOrigin {
        origin: single(headers, &ORIGIN),
        fetch_site: single(headers, &FETCH_SITE),
        host: single(headers, &HOST),
    }
}

fn single<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Option<&'a str> {
    let mut values = headers.get_all(name).iter();
    let value = values.next()?.to_str().unwrap_or_default();
    // Two origins are not one of ours.
    Some(if values.next().is_none() { value } else { "" })
}

/// Returns the id in the cookie of a request: the first one.
pub(super) fn login_id(headers: &HeaderMap) -> Option<&str> {
    login_ids(headers).next()
}

/// Returns all ids in the cookies of a request, of which a browser may keep several of one name, by path. Those that were
/// set over TLS go first.
pub(super) fn login_ids(headers: &HeaderMap) -> impl Iterator<Item = &str> {
    let port = origin(headers).port();
    [true, false].into_iter().flat_map(move |is_secure| {
        let name = name(is_secure, port);
        let lines = headers.get_all(COOKIE).iter().filter_map(|value| value.to_str().ok());
        let pairs = lines.flat_map(|line| line.split(';')).filter_map(|pair| pair.split_once('='));
        let ids = pairs.filter(move |(key, _)| key.trim() == name).map(|(_, id)| id.trim());
        ids.filter(|id| !id.is_empty() && id.len() <= ID_BYTES_MAX)
    })
}

/// Returns the header that sets a login's cookie for some seconds.
pub(super) fn set(id: &str, seconds: i64, origin: RequestOrigin<'_>) -> Option<HeaderValue> {
    let secure = origin.is_secure();
    let name = name(secure, origin.port());
    let secure = if secure { "; Secure" } else { "" };
    let text = format!("{name}={id}; Path=/; Max-Age={seconds}; HttpOnly; SameSite=Strict{secure}");
    HeaderValue::from_str(&text).ok()
}

fn name(secure: bool, port: Option<u16>) -> String {
    let prefix = if secure { "__Host-" } else { "" };
    match port {
        Some(port) => format!("{prefix}blackboard-{port}"),
        None => format!("{prefix}blackboard"),
    }
}
