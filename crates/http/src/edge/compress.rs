//! Compression of responses with gzip or zstd.

use std::convert::Infallible;

use axum::body::Body;
use axum::extract::Request;
use axum::http::{HeaderValue, header};
use axum::response::Response;
use http_body::Body as _;
use tower::{ServiceExt as _, service_fn};
use tower_http::CompressionLevel;
use tower_http::compression::Compression;

use super::body_polls::paced::paced;
use blackboard_api::pieces::WHOLE_BYTES_MAX;

/// Compresses an answer by `accepted`, the value of `Accept-Encoding`.
pub(super) async fn compress(accepted: HeaderValue, response: Response) -> Response {
    // An answer with ranges stays uncompressed: its tag and its ranges are of the plain bytes.
    if response.headers().contains_key(header::ACCEPT_RANGES) {
        return response;
    }
    let length = response.body().size_hint().upper();
    let level = match length {
        Some(length) if length <= WHOLE_BYTES_MAX as u64 => CompressionLevel::Default,
        // A higher level on a long answer costs its client, and others, more time than it saves.
        Some(_) | None => CompressionLevel::Fastest,
    };
    let mut request = Request::new(Body::empty());
    request.headers_mut().insert(header::ACCEPT_ENCODING, accepted);
    let mut answered = Some(response.map(paced));
    let answer = service_fn(move |_: Request| {
        let response = answered.take().unwrap_or_default();
        std::future::ready(Ok::<_, Infallible>(response))
    });
    match Compression::new(answer).quality(level).oneshot(request).await {
        Ok(response) => response.map(Body::new),
        Err(never) => match never {},
    }
}
