//! Responses with stored bytes that a client sent: an image or a blob, whole or a range.

use std::ops::Range;

use axum::body::{Body, Bytes};
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use blackboard_thumbnail::IMAGE_TYPES;
use futures_util::stream::{self, StreamExt as _, TryStreamExt as _};

use super::problem::Problem;
use super::range::{Asked, beyond, content_range};
use blackboard_api::pieces::WHOLE_BYTES_MAX;
use blackboard_board::Code;
use blackboard_service::{ImagePieces, ServiceError};

/// The caching of an address with a digest, whose bytes never change.
pub(crate) const IMMUTABLE: HeaderValue =
    HeaderValue::from_static("private, max-age=31536000, immutable");

/// The policy for bytes that a client sent: a browser may only show them.
const SANDBOX: HeaderValue = HeaderValue::from_static("sandbox; default-src 'none'");

/// Types other than images that a browser shows; it saves bytes of all others.
const SHOWN_TYPES: [&str; 2] = ["application/json", "text/plain"];

/// Adds the headers that describe bytes of this media type.
pub(crate) fn describe(media_type: &str, headers: &mut HeaderMap) -> Result<(), Problem> {
    let value = HeaderValue::from_str(media_type)
        .map_err(|error| Problem::new(Code::Internal, "the bytes have no type").cause(error))?;
    headers.insert(header::CONTENT_TYPE, value);
    headers.insert(header::CONTENT_SECURITY_POLICY, SANDBOX);
    headers.insert(header::ACCEPT_RANGES, HeaderValue::from_static("bytes"));
    let essence = media_type.split(';').next().unwrap_or_default().trim();
    let is_shown = IMAGE_TYPES.iter().map(|(name, _)| *name).chain(SHOWN_TYPES);
    if !is_shown.into_iter().any(|name| name.eq_ignore_ascii_case(essence)) {
        headers.insert(header::CONTENT_DISPOSITION, HeaderValue::from_static("attachment"));
    }
    Ok(())
}

/// Returns the part that a request asks for, and the status; adds the headers that describe the part.
pub(crate) fn requested_part(
    method: &Method,
    request: &HeaderMap,
    length: u64,
    headers: &mut HeaderMap,
) -> Result<(StatusCode, Range<u64>), Problem> {
    let tag = headers.get(header::ETAG).cloned().unwrap_or(HeaderValue::from_static(""));
    let (status, part) = match Asked::of(method, request, &tag, length) {
        Asked::Whole => (StatusCode::OK, 0..length),
        Asked::Part(part) => {
            headers.insert(header::CONTENT_RANGE, content_range(&part, length)?);
            (StatusCode::PARTIAL_CONTENT, part)
        }
        Asked::Beyond => return Err(beyond(length)),
    };
    // A streamed body sets no length.
    headers.insert(header::CONTENT_LENGTH, HeaderValue::from(part.end - part.start));
    Ok((status, part))
}

/// Returns a body of these pieces. An early failure is an error; a later one breaks the body off.
pub(crate) async fn body(mut pieces: ImagePieces) -> Result<Body, ServiceError> {
    let mut head = Vec::new();
    while head.len() < WHOLE_BYTES_MAX {
        match pieces.next().await? {
            Some(piece) => head.extend_from_slice(&piece),
            None => return Ok(Body::from(head)),
        }
    }
    let rest = stream::try_unfold(pieces, async |mut pieces| {
        Ok(pieces.next().await?.map(|piece| (piece, pieces)))
    });
    let rest = rest.inspect_err(|error: &ServiceError| {
        tracing::error!(%error, "failed to stream a response body");
    });
    Ok(Body::from_stream(stream::once(async { Ok(Bytes::from(head)) }).chain(rest)))
}
