//! Checks of path and body encodings.

use axum::http::{HeaderMap, HeaderValue, Method, header};

use crate::Problem;
use blackboard_address::percent_decode;
use blackboard_board::Code;

/// Refuses a path that is not percent-encoded UTF-8.
pub(super) fn check_path(path: &str) -> Result<(), Problem> {
    if !path.contains('%') || percent_decode(path.as_bytes()).is_some() {
        return Ok(());
    }
    Err(Problem::new(
        Code::InvalidEncoding,
        "the path is not percent-encoded UTF-8; write a literal % as %25",
    ))
}

/// Refuses any transfer coding but `chunked`, and closes the connection. hyper would read the body as chunked, and
/// a proxy in front may have read it otherwise, so the bytes that follow cannot be trusted.
pub(super) fn check_transfer_coding(headers: &HeaderMap) -> Result<(), Problem> {
    let mut codings = headers.get_all(header::TRANSFER_ENCODING).into_iter();
    let is_chunked =
        codings.next().is_none_or(|coding| coding.as_bytes().eq_ignore_ascii_case(b"chunked"));
    if is_chunked && codings.next().is_none() {
        return Ok(());
    }
    let detail = "Transfer-Encoding must be absent, or chunked once";
    Err(Problem::new(Code::InvalidEncoding, detail)
        .header(header::CONNECTION, HeaderValue::from_static("close")))
}

/// Refuses a write of a part of a representation: no route writes a part (RFC 9110, section 14.5).
pub(super) fn check_content_range(method: &Method, headers: &HeaderMap) -> Result<(), Problem> {
    let is_write = matches!(*method, Method::POST | Method::PUT | Method::PATCH | Method::DELETE);
    if !is_write || !headers.contains_key(header::CONTENT_RANGE) {
        return Ok(());
    }
    let detail = "a write with Content-Range is not supported; send the whole body without it";
    Err(Problem::new(Code::PartialContent, detail))
}

/// The compression of a body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Coding {
    Gzip,
    Zstd,
}

/// Removes `Content-Encoding` and returns its coding; at most one is allowed besides `identity`.
pub(super) fn take_content_coding(headers: &mut HeaderMap) -> Result<Option<Coding>, Problem> {
    if !headers.contains_key(header::CONTENT_ENCODING) {
        return Ok(None);
    }
    let mut found = None;
    for coding in members(headers, header::CONTENT_ENCODING) {
        let known = match coding.to_ascii_lowercase().as_str() {
            "identity" | "" => continue,
            "gzip" | "x-gzip" => Coding::Gzip,
            "zstd" => Coding::Zstd,
            _ => return Err(unsupported()),
        };
        // Only decompression bombs are compressed twice.
        if found.replace(known).is_some() {
            return Err(unsupported());
        }
    }
    headers.remove(header::CONTENT_ENCODING);
    Ok(found)
}

/// Returns the members of `Accept-Encoding` that the edge knows, if any.
///
/// With the others, a client that refuses `identity` and names no supported coding would get 406 as the answer to a
/// write that succeeded.
pub(super) fn accepted(headers: &HeaderMap) -> Option<HeaderValue> {
    if !headers.contains_key(header::ACCEPT_ENCODING) {
        return None;
    }
    let kept: Vec<_> = members(headers, header::ACCEPT_ENCODING)
        .filter(|member| {
            let coding = member.split(';').next().unwrap_or_default().trim();
            let known = ["gzip", "x-gzip", "zstd"];
            known.iter().any(|known| coding.eq_ignore_ascii_case(known))
        })
        .collect();
    if kept.is_empty() { None } else { HeaderValue::from_str(&kept.join(",")).ok() }
}

fn members(headers: &HeaderMap, name: header::HeaderName) -> impl Iterator<Item = &str> {
    let values = headers.get_all(name).into_iter();
    // A value that is not text becomes an unknown member.
    values.flat_map(|value| value.to_str().unwrap_or("?").split(',')).map(str::trim)
}

fn unsupported() -> Problem {
    Problem::new(
        Code::UnsupportedMediaType,
        "the body's Content-Encoding is not supported; send the body with gzip, zstd or neither",
    )
    .header(header::ACCEPT_ENCODING, HeaderValue::from_static("gzip, zstd"))
}
